prelude
import TBMM.Number

/-!
# The gate

Six forms of obligation over numbers that count a common unit 1 / `scale`. Multiplying both sides of a comparison by
`scale` changes nothing, so a form compares the counts; `scale` must be positive.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

noncomputable section

namespace TBMM

/-- A list of signed numbers. -/
inductive Terms : Type where
  | nil : Terms
  | cons (pos neg : Nat) (rest : Terms) : Terms

namespace Terms

/-- `n`, then `rest`. -/
def up (n : Nat) (rest : Terms) : Terms := cons n Nat.zero rest

/-- `-n`, then `rest`. -/
def down (n : Nat) (rest : Terms) : Terms := cons Nat.zero n rest

/-- Ten numbers that are not negative, then `rest`. -/
def ten (a b c d e f g h i j : Nat) (rest : Terms) : Terms :=
  cons a Nat.zero (cons b Nat.zero (cons c Nat.zero (cons d Nat.zero (cons e Nat.zero
    (cons f Nat.zero (cons g Nat.zero (cons h Nat.zero (cons i Nat.zero (cons j Nat.zero rest)))))))))

/-- Does `p` hold of every number? -/
def all (p : Signed → Bool) (terms : Terms) : Bool :=
  Terms.rec (motive := fun _ => Bool) Bool.true (fun pos neg _ r => Bool.and (p (Signed.mk pos neg)) r) terms

/-- The sum of the positive parts. -/
def positive (terms : Terms) : Nat :=
  Terms.rec (motive := fun _ => Nat) Nat.zero (fun pos _ _ r => Nat.add pos r) terms

/-- The sum of the negative parts. -/
def negative (terms : Terms) : Nat :=
  Terms.rec (motive := fun _ => Nat) Nat.zero (fun _ neg _ r => Nat.add neg r) terms

/-- The sum. -/
def total (terms : Terms) : Signed := Signed.mk (positive terms) (negative terms)

/-- Is every number at most its successor plus `t`? -/
def rising (t : Nat) (terms : Terms) : Bool :=
  Terms.rec (motive := fun _ => Bool) Bool.true
    (fun pos neg rest r =>
      Bool.and
        (Terms.rec (motive := fun _ => Bool) Bool.true
          (fun pos' neg' _ _ => Signed.le (Signed.mk pos neg) (Signed.raise (Signed.mk pos' neg') t)) rest)
        r)
    terms

end Terms

/-- A number that may be absent. -/
inductive Maybe : Type where
  | absent : Maybe
  | at (value : Signed) : Maybe

/-- `lower - t <= x`. -/
def Maybe.below (lower : Maybe) (t : Nat) (x : Signed) : Bool :=
  Maybe.rec (motive := fun _ => Bool) Bool.true (fun value => Signed.le value (Signed.raise x t)) lower

/-- `x <= upper + t`. -/
def Maybe.above (upper : Maybe) (t : Nat) (x : Signed) : Bool :=
  Maybe.rec (motive := fun _ => Bool) Bool.true (fun value => Signed.le x (Signed.raise value t)) upper

/-- `lower - t <= x <= upper + t`. -/
def within (lower upper : Maybe) (t : Nat) (x : Signed) : Bool :=
  Bool.and (Maybe.below lower t x) (Maybe.above upper t x)

/-- What an obligation is known to be. -/
inductive State : Type where
  | holds : State
  | violated : State
  | unwitnessed : State

/-- An obligation with its operands, all counting 1 / `scale`; `t` is the tolerance. -/
inductive Obligation : Type where
  /-- `lower - t <= x <= upper + t` for every `x` of `terms`. -/
  | bound (scale t : Nat) (lower upper : Maybe) (terms : Terms) : Obligation
  /-- `|x - y| <= t`. -/
  | equality (scale t : Nat) (x y : Signed) : Obligation
  /-- `|x1 + ... + xn - total| <= t`. -/
  | sum (scale t : Nat) (total : Signed) (terms : Terms) : Obligation
  /-- `x1 <= x2 + t`, `x2 <= x3 + t`, ... -/
  | order (scale t : Nat) (terms : Terms) : Obligation
  /-- If `low <= x <= high` then `lower - t <= y <= upper + t` for every `y` of `terms`. -/
  | implication (scale t : Nat) (x low high : Signed) (lower upper : Maybe) (terms : Terms) : Obligation
  /-- `lower <= number <= upper`, `number` being how many values there are. -/
  | count (scale : Nat) (lower upper : Maybe) (number : Signed) : Obligation
  /-- The evidence is absent: neither held nor violated. -/
  | unwitnessed : Obligation

namespace Obligation

/-- `yes` or `no` decided under a positive scale. -/
def decided (scale : Nat) (c : Bool) : State :=
  Bool.pick (Bool.and (Nat.ble 1 scale) c) State.holds State.violated

/-- What the obligation is known to be. -/
def state (o : Obligation) : State :=
  Obligation.rec (motive := fun _ => State)
    (fun scale t lower upper terms => decided scale (Terms.all (within lower upper t) terms))
    (fun scale t x y => decided scale (Nat.ble (Signed.gap x y) t))
    (fun scale t total terms => decided scale (Nat.ble (Signed.gap (Terms.total terms) total) t))
    (fun scale t terms => decided scale (Terms.rising t terms))
    (fun scale t x low high lower upper terms =>
      decided scale
        (Bool.or (Bool.not (Bool.and (Signed.le low x) (Signed.le x high))) (Terms.all (within lower upper t) terms)))
    (fun scale lower upper number => decided scale (within lower upper Nat.zero number))
    State.unwitnessed
    o

/-- Is it known to hold? -/
def holds (o : Obligation) : Bool :=
  State.rec (motive := fun _ => Bool) Bool.true Bool.false Bool.false (state o)

/-- Is it not known to be violated? -/
def allowed (o : Obligation) : Bool :=
  State.rec (motive := fun _ => Bool) Bool.true Bool.false Bool.true (state o)

end Obligation

/-- A list of obligations. -/
inductive Obligations : Type where
  | nil : Obligations
  | cons (o : Obligation) (rest : Obligations) : Obligations

namespace Obligations

/-- `low - t <= x <= high + t`, then `rest`; the usual obligation in few words, as Lean's memory grows with their number. -/
def between (scale t low high x : Nat) (rest : Obligations) : Obligations :=
  cons (.bound scale t (.at (.up low)) (.at (.up high)) (.up x .nil)) rest

/-- `low - t <= x`, then `rest`. -/
def least (scale t low x : Nat) (rest : Obligations) : Obligations :=
  cons (.bound scale t (.at (.up low)) .absent (.up x .nil)) rest

/-- `x <= high + t`, then `rest`. -/
def most (scale t high x : Nat) (rest : Obligations) : Obligations :=
  cons (.bound scale t .absent (.at (.up high)) (.up x .nil)) rest

/-- The obligations of `os`, then those of `rest`. -/
def join (os rest : Obligations) : Obligations :=
  Obligations.rec (motive := fun _ => Obligations) rest (fun o _ r => cons o r) os

/-- Does every obligation hold? -/
def hold (os : Obligations) : Bool :=
  Obligations.rec (motive := fun _ => Bool) Bool.true (fun o _ r => Bool.and (Obligation.holds o) r) os

/-- The gate: is no obligation violated? -/
def feasible (os : Obligations) : Bool :=
  Obligations.rec (motive := fun _ => Bool) Bool.true (fun o _ r => Bool.and (Obligation.allowed o) r) os

end Obligations

end TBMM
