prelude
import TBMM.Gate

/-!
# The score

Scores are fractions of natural numbers and nothing is divided. The band is kept as twenty times itself, so that
5 % of a reference is a natural number of counts too; shortfalls are multiplied by twenty when they meet it.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

noncomputable section

namespace TBMM

/-- The larger of two. -/
def larger (m n : Nat) : Nat := Bool.pick (Nat.ble m n) n m

/-! ## One value against one reference -/

/-- What is better. -/
inductive Direction : Type where
  | higher : Direction
  | lower : Direction
  | target : Direction

/-- How far `x` falls short of `reference`; 0 at or beyond it. -/
def Direction.shortfall (d : Direction) (reference x : Signed) : Nat :=
  Direction.rec (motive := fun _ => Nat) (Signed.excess reference x) (Signed.excess x reference)
    (Signed.gap reference x) d

/--
Twenty times the band: `|reference - baseline|`, or 5 % of `|reference|` when that is under 2 % of it. When reference
and baseline are both 0: the tolerance, or one unit (`scale` counts) when that is 0 too.
-/
def band (scale tolerance : Nat) (reference baseline : Signed) : Nat :=
  Bool.pick (Nat.ble (Signed.size reference) (Nat.mul 50 (Signed.gap reference baseline)))
    (Nat.mul 20
      (Bool.pick (Nat.beq (Signed.gap reference baseline) 0)
        (Bool.pick (Nat.beq tolerance 0) scale tolerance)
        (Signed.gap reference baseline)))
    (Signed.size reference)

/-- Thresholds of a ladder, at least one. -/
inductive Ladder : Type where
  | last (threshold : Nat) : Ladder
  | cons (threshold : Nat) (rest : Ladder) : Ladder

/-- 1 when `c`, else 0. -/
def one (c : Bool) : Nat := Bool.pick c 1 0

/-- How many thresholds there are. -/
def Ladder.length (ladder : Ladder) : Nat :=
  Ladder.rec (motive := fun _ => Nat) (fun _ => 1) (fun _ _ r => Nat.add 1 r) ladder

/-- How many thresholds, as shares of `b` in units of 1 / `unit`, are not exceeded by `e`. -/
def Ladder.passed (unit e b : Nat) (ladder : Ladder) : Nat :=
  Ladder.rec (motive := fun _ => Nat) (fun threshold => one (Nat.ble (Nat.mul e unit) (Nat.mul threshold b)))
    (fun threshold _ r => Nat.add (one (Nat.ble (Nat.mul e unit) (Nat.mul threshold b))) r) ladder

/-- How a shortfall becomes a score. -/
inductive Shape : Type where
  | linear : Shape
  | exact : Shape
  | ladder (unit : Nat) (thresholds : Ladder) : Shape

/-- Numerator of the score for an excess shortfall `e` and a band `b`. -/
def Shape.num (shape : Shape) (e b : Nat) : Nat :=
  Shape.rec (motive := fun _ => Nat) (Nat.sub b e) (one (Nat.beq e 0))
    (fun unit thresholds => Ladder.passed unit e b thresholds) shape

/-- Denominator of the score for a band `b`. -/
def Shape.den (shape : Shape) (b : Nat) : Nat :=
  Shape.rec (motive := fun _ => Nat) b 1 (fun _ thresholds => Ladder.length thresholds) shape

/-! ## One metric -/

/-- Does a value count: is it present and in its domain, and do all required obligations hold? -/
def counted (value : Maybe) (low high : Signed) (needs : Obligations) : Bool :=
  Maybe.rec (motive := fun _ => Bool) Bool.false
    (fun x => Bool.and (Bool.and (Signed.le low x) (Signed.le x high)) (Obligations.hold needs)) value

/-- Shortfall beyond what is forgiven; an absent value has none, and does not count either. -/
def miss (forgiven : Nat) (d : Direction) (value : Maybe) (reference : Signed) : Nat :=
  Maybe.rec (motive := fun _ => Nat) 0 (fun x => Nat.sub (Direction.shortfall d reference x) forgiven) value

/-- Numerator of a score: 0 unless the value counts. -/
def points (c : Bool) (shape : Shape) (e b : Nat) : Nat := Bool.pick c (Shape.num shape (Nat.mul 20 e) b) 0

/-- A metric of one answer. `value`, `low`, `high` and `baseline` count 1 / `scale`, as does `tolerance`. -/
structure Metric : Type where
  weight : Nat
  scale : Nat
  tolerance : Nat
  direction : Direction
  shape : Shape
  value : Maybe
  low : Signed
  high : Signed
  baseline : Signed
  needs : Obligations

namespace Metric

/-- Weight in the mean. -/
def heft (m : Metric) : Nat := Metric.rec (motive := fun _ => Nat) (fun weight _ _ _ _ _ _ _ _ _ => weight) m

/-- Does the value count? -/
def counts (m : Metric) : Bool :=
  Metric.rec (motive := fun _ => Bool) (fun _ _ _ _ _ value low high _ needs => counted value low high needs) m

/-- Shortfall beyond what is forgiven. -/
def missed (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  Metric.rec (motive := fun _ => Nat)
    (fun _ _ tolerance direction _ value _ _ _ _ => miss (larger tolerance resolution) direction value reference) m

/-- Numerator of the score against `reference`: 0 unless the value counts. -/
def num (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  Metric.rec (motive := fun _ => Nat)
    (fun _ scale tolerance direction shape value low high baseline needs =>
      points (counted value low high needs) shape
        (miss (larger tolerance resolution) direction value reference)
        (band scale (larger tolerance resolution) reference baseline))
    m

/-- Denominator of the score against `reference`. -/
def den (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  Metric.rec (motive := fun _ => Nat)
    (fun _ scale tolerance _ shape _ _ _ baseline _ =>
      Shape.den shape (band scale (larger tolerance resolution) reference baseline))
    m

end Metric

/-! ## Weighted means -/

/-- Weighted fractions. -/
inductive Parts : Type where
  | nil : Parts
  | cons (weight num den : Nat) (rest : Parts) : Parts

namespace Parts

/-- The product of the denominators. -/
def den (ps : Parts) : Nat := Parts.rec (motive := fun _ => Nat) 1 (fun _ _ d _ r => Nat.mul d r) ps

/-- The sum of the weighted fractions, over `den`. -/
def num (ps : Parts) : Nat :=
  Parts.rec (motive := fun _ => Nat) 0
    (fun w n d rest r => Nat.add (Nat.mul d r) (Nat.mul (Nat.mul w n) (den rest))) ps

/-- The sum of the weights. -/
def weight (ps : Parts) : Nat := Parts.rec (motive := fun _ => Nat) 0 (fun w _ _ _ r => Nat.add w r) ps

/-- The weighted mean. -/
def mean (ps : Parts) : Frac := Frac.mk (num ps) (Nat.mul (den ps) (weight ps))

end Parts

/-- What one paper reports: metrics with its value and the resolution of that value. -/
inductive Paper : Type where
  | nil : Paper
  | cons (metric : Metric) (reference : Signed) (resolution : Nat) (rest : Paper) : Paper

/-- The scores of a paper with their weights. -/
def Paper.parts (paper : Paper) : Parts :=
  Paper.rec (motive := fun _ => Parts) Parts.nil
    (fun m reference resolution _ r =>
      Parts.cons (Metric.heft m) (Metric.num m reference resolution) (Metric.den m reference resolution) r)
    paper

/-- R of a paper: the weighted mean over the metrics it reports. -/
def Paper.mean (paper : Paper) : Frac := Parts.mean (Paper.parts paper)

/-- A panel. -/
inductive Papers : Type where
  | nil : Papers
  | cons (paper : Paper) (rest : Papers) : Papers

/-- R of every paper, one vote each. -/
def Papers.parts (papers : Papers) : Parts :=
  Papers.rec (motive := fun _ => Parts) Parts.nil
    (fun paper _ r => Frac.rec (motive := fun _ => Parts) (fun num den => Parts.cons 1 num den r) (Paper.mean paper))
    papers

/-- O-Eval: the mean of R over papers; against the anchor when there is no paper. -/
def oEval (anchor : Paper) (papers : Papers) : Frac :=
  Papers.rec (motive := fun _ => Frac) (Paper.mean anchor) (fun _ _ _ => Parts.mean (Papers.parts papers)) papers

/-- `f` when `c`, else 0. -/
def behind (c : Bool) (f : Frac) : Frac :=
  Frac.rec (motive := fun _ => Frac) (fun num den => Frac.mk (Bool.pick c num 0) den) f

/-- The reward: O-Eval behind the gate. -/
def reward (obligations : Obligations) (anchor : Paper) (papers : Papers) : Frac :=
  behind (Obligations.feasible obligations) (oEval anchor papers)

end TBMM
