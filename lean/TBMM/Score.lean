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
  requires : Obligations

namespace Metric

/-- Does the value count: is it present and in its domain, and do all required obligations hold? -/
def counted (m : Metric) : Bool :=
  Maybe.rec (motive := fun _ => Bool) Bool.false
    (fun x => Bool.and (Bool.and (Signed.le m.low x) (Signed.le x m.high)) (Obligations.hold m.requires)) m.value

/-- Shortfall against `reference`, which is not looked at when the value is absent. -/
def shortfall (m : Metric) (reference : Signed) : Nat :=
  Maybe.rec (motive := fun _ => Nat) 0 (fun x => Direction.shortfall m.direction reference x) m.value

/-- Shortfall beyond what tolerance and the reference's resolution forgive. -/
def miss (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  Nat.sub (shortfall m reference) (larger m.tolerance resolution)

/-- Twenty times the band against `reference`. -/
def band (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  TBMM.band m.scale (larger m.tolerance resolution) reference m.baseline

/-- Numerator of the score against `reference`: 0 unless the value counts. -/
def num (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  Bool.pick (counted m) (Shape.num m.shape (Nat.mul 20 (miss m reference resolution)) (band m reference resolution)) 0

/-- Denominator of the score against `reference`. -/
def den (m : Metric) (reference : Signed) (resolution : Nat) : Nat :=
  Shape.den m.shape (band m reference resolution)

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
      Parts.cons m.weight (Metric.num m reference resolution) (Metric.den m reference resolution) r)
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
    (fun paper _ r => Parts.cons 1 (Paper.mean paper).num (Paper.mean paper).den r) papers

/-- O-Eval: the mean of R over papers; against the anchor when there is no paper. -/
def oEval (anchor : Paper) (papers : Papers) : Frac :=
  Papers.rec (motive := fun _ => Frac) (Paper.mean anchor) (fun _ _ _ => Parts.mean (Papers.parts papers)) papers

/-- The reward: O-Eval behind the gate. -/
def reward (obligations : Obligations) (anchor : Paper) (papers : Papers) : Frac :=
  Frac.mk (Bool.pick (Obligations.feasible obligations) (oEval anchor papers).num 0) (oEval anchor papers).den

end TBMM
