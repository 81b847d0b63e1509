prelude
import TBMM.Order

/-!
# Laws of gate and score, for all inputs

1. One violated obligation makes an answer infeasible, and an infeasible answer has reward 0.
2. A score lies between 0 and 1, and so do R, O-Eval and the reward.
3. At or beyond the reference, within what is forgiven, the score is 1; R and O-Eval are 1 when that is so throughout.
4. A score never falls as the shortfall shrinks.
5. A metric with an unmet requirement adds nothing and keeps its weight in the denominator.
6. The order of papers, and of metrics in a paper, does not matter.

That a fraction is 1 is stated as "numerator and denominator are equal"; that the denominator is positive is part of
what a certificate proves.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

namespace TBMM

/-! ## 1. The gate -/

/-- `o` is one of a list of obligations. -/
inductive Obligations.Has (o : Obligation) : Obligations → Prop where
  | first (rest : Obligations) : Has o (Obligations.cons o rest)
  | later (p : Obligation) (rest : Obligations) (h : Has o rest) : Has o (Obligations.cons p rest)

/-- One violated obligation closes the gate. -/
theorem infeasible_of_violated {o : Obligation} {os : Obligations} (h : Obligations.Has o os)
    (v : Eq (Obligation.allowed o) Bool.false) : Eq (Obligations.feasible os) Bool.false :=
  Obligations.Has.rec (motive := fun os _ => Eq (Obligations.feasible os) Bool.false)
    (fun rest => Eq.cong (fun b => Bool.and b (Obligations.feasible rest)) v)
    (fun p _ _ ih => Eq.trans (Eq.cong (Bool.and (Obligation.allowed p)) ih) (Bool.and_false (Obligation.allowed p)))
    h

theorem behind_false (f : Frac) : Eq (behind Bool.false f).num 0 :=
  Frac.rec (motive := fun f => Eq (behind Bool.false f).num 0) (fun _ _ => Eq.refl 0) f

/-- An infeasible answer has reward 0. -/
theorem reward_of_infeasible {os : Obligations} (anchor : Paper) (papers : Papers)
    (h : Eq (Obligations.feasible os) Bool.false) : Eq (reward os anchor papers).num 0 :=
  Eq.trans (Eq.cong (fun c => (behind c (oEval anchor papers)).num) h) (behind_false (oEval anchor papers))

/-- A feasible answer has its O-Eval as reward. -/
theorem reward_of_feasible {os : Obligations} (anchor : Paper) (papers : Papers)
    (h : Eq (Obligations.feasible os) Bool.true) : Eq (reward os anchor papers) (oEval anchor papers) :=
  Eq.trans (Eq.cong (fun c => behind c (oEval anchor papers)) h)
    (Frac.rec (motive := fun f => Eq (behind Bool.true f) f) (fun n d => Eq.refl (Frac.mk n d)) (oEval anchor papers))

/-- What holds is not violated. -/
theorem allowed_of_holds (o : Obligation) (h : Eq (Obligation.holds o) Bool.true) :
    Eq (Obligation.allowed o) Bool.true :=
  State.rec
    (motive := fun s =>
      Eq (State.rec (motive := fun _ => Bool) Bool.true Bool.false Bool.false s) Bool.true →
        Eq (State.rec (motive := fun _ => Bool) Bool.true Bool.false Bool.true s) Bool.true)
    (fun k => k) (fun k => k) (fun _ => Eq.refl Bool.true) (Obligation.state o) h

/-- An obligation that is not violated, before a feasible rest, leaves it feasible. -/
theorem feasible_cons {o : Obligation} {rest : Obligations} (h : Eq (Obligation.allowed o) Bool.true)
    (r : Eq (Obligations.feasible rest) Bool.true) : Eq (Obligations.feasible (Obligations.cons o rest)) Bool.true :=
  Eq.cong₂ Bool.and h r

/-- Obligations that all hold, before a feasible rest, leave it feasible. -/
theorem feasible_join {os rest : Obligations} (h : Eq (Obligations.hold os) Bool.true)
    (r : Eq (Obligations.feasible rest) Bool.true) : Eq (Obligations.feasible (Obligations.join os rest)) Bool.true :=
  Obligations.rec
    (motive := fun os =>
      Eq (Obligations.hold os) Bool.true → Eq (Obligations.feasible (Obligations.join os rest)) Bool.true)
    (fun _ => r)
    (fun o os ih k =>
      feasible_cons (allowed_of_holds o (Bool.and_left (Obligation.holds o) (Obligations.hold os) k))
        (ih (Bool.and_right (Obligation.holds o) (Obligations.hold os) k)))
    os h

/-- A feasible answer whose O-Eval is `p / q` has the reward `p / q`. -/
theorem reward_is {os : Obligations} {anchor : Paper} {papers : Papers} {p q : Nat}
    (h : Eq (Obligations.feasible os) Bool.true) (e : Eq (Frac.is (oEval anchor papers) p q) Bool.true) :
    Eq (Frac.is (reward os anchor papers) p q) Bool.true :=
  Eq.trans (Eq.cong (fun f => Frac.is f p q) (reward_of_feasible anchor papers h)) e

/-! ## One shape -/

theorem one_le (b : Bool) : Nat.Le (one b) 1 :=
  Bool.rec (motive := fun b => Nat.Le (one b) 1) (Nat.zero_le 1) Nat.Le.refl b

theorem one_le_one (b c : Bool) (h : Eq b Bool.true → Eq c Bool.true) : Nat.Le (one b) (one c) :=
  Bool.rec (motive := fun b => (Eq b Bool.true → Eq c Bool.true) → Nat.Le (one b) (one c)) (fun _ => Nat.zero_le (one c))
    (fun h => Nat.Le.of_eq (Eq.cong one (Eq.symm (h (Eq.refl Bool.true))))) b h

theorem passed_le_length (unit e b : Nat) (ladder : Ladder) :
    Nat.Le (Ladder.passed unit e b ladder) (Ladder.length ladder) :=
  Ladder.rec (motive := fun ladder => Nat.Le (Ladder.passed unit e b ladder) (Ladder.length ladder))
    (fun t => one_le (Nat.ble (Nat.mul e unit) (Nat.mul t b)))
    (fun t _ ih => Nat.add_le_add (one_le (Nat.ble (Nat.mul e unit) (Nat.mul t b))) ih) ladder

theorem rung_antitone (unit b t : Nat) {e e' : Nat} (h : Nat.Le e e') :
    Nat.Le (one (Nat.ble (Nat.mul e' unit) (Nat.mul t b))) (one (Nat.ble (Nat.mul e unit) (Nat.mul t b))) :=
  one_le_one (Nat.ble (Nat.mul e' unit) (Nat.mul t b)) (Nat.ble (Nat.mul e unit) (Nat.mul t b))
    (fun k => Nat.ble_of_le
      (Nat.Le.trans (Nat.mul_le_mul_right h unit) (Nat.le_of_ble (Nat.mul e' unit) (Nat.mul t b) k)))

theorem passed_antitone (unit b : Nat) {e e' : Nat} (h : Nat.Le e e') (ladder : Ladder) :
    Nat.Le (Ladder.passed unit e' b ladder) (Ladder.passed unit e b ladder) :=
  Ladder.rec (motive := fun ladder => Nat.Le (Ladder.passed unit e' b ladder) (Ladder.passed unit e b ladder))
    (fun t => rung_antitone unit b t h) (fun t _ ih => Nat.add_le_add (rung_antitone unit b t h) ih) ladder

theorem rung_zero (unit b t : Nat) : Eq (one (Nat.ble (Nat.mul Nat.zero unit) (Nat.mul t b))) 1 :=
  Eq.cong (fun x => one (Nat.ble x (Nat.mul t b))) (Nat.zero_mul unit)

theorem passed_zero (unit b : Nat) (ladder : Ladder) :
    Eq (Ladder.passed unit Nat.zero b ladder) (Ladder.length ladder) :=
  Ladder.rec (motive := fun ladder => Eq (Ladder.passed unit Nat.zero b ladder) (Ladder.length ladder))
    (fun t => rung_zero unit b t) (fun t _ ih => Eq.cong₂ Nat.add (rung_zero unit b t) ih) ladder

/-- The score of a shape is at most 1. -/
theorem shape_le_one (shape : Shape) (e b : Nat) : Nat.Le (Shape.num shape e b) (Shape.den shape b) :=
  Shape.rec (motive := fun shape => Nat.Le (Shape.num shape e b) (Shape.den shape b))
    (Nat.sub_le b e) (one_le (Nat.beq e 0)) (fun unit ladder => passed_le_length unit e b ladder) shape

/-- The score of a shape is 1 without an excess shortfall. -/
theorem shape_at_zero (shape : Shape) (b : Nat) : Eq (Shape.num shape Nat.zero b) (Shape.den shape b) :=
  Shape.rec (motive := fun shape => Eq (Shape.num shape Nat.zero b) (Shape.den shape b))
    (Eq.refl b) (Eq.refl 1) (fun unit ladder => passed_zero unit b ladder) shape

theorem exact_antitone {e e' : Nat} (h : Nat.Le e e') : Nat.Le (one (Nat.beq e' 0)) (one (Nat.beq e 0)) :=
  one_le_one (Nat.beq e' 0) (Nat.beq e 0)
    (fun k => Eq.cong (fun x => Nat.beq x Nat.zero)
      (Nat.eq_zero_of_le (Eq.turn (Nat.Le e) (Nat.eq_of_beq e' 0 k) h)))

/-- The score of a shape does not rise with the excess shortfall. -/
theorem shape_antitone (shape : Shape) (b : Nat) {e e' : Nat} (h : Nat.Le e e') :
    Nat.Le (Shape.num shape e' b) (Shape.num shape e b) :=
  Shape.rec (motive := fun shape => Nat.Le (Shape.num shape e' b) (Shape.num shape e b))
    (Nat.sub_le_sub_left b h) (exact_antitone h) (fun unit ladder => passed_antitone unit b h ladder) shape

/-! ## 2 to 5. One metric -/

theorem points_le (c : Bool) (shape : Shape) (e b : Nat) : Nat.Le (points c shape e b) (Shape.den shape b) :=
  Bool.rec (motive := fun c => Nat.Le (points c shape e b) (Shape.den shape b))
    (Nat.zero_le (Shape.den shape b)) (shape_le_one shape (Nat.mul 20 e) b) c

/-- A metric's score is at most 1. -/
theorem metric_le_one (m : Metric) (reference : Signed) (resolution : Nat) :
    Nat.Le (Metric.num m reference resolution) (Metric.den m reference resolution) :=
  Metric.rec (motive := fun m => Nat.Le (Metric.num m reference resolution) (Metric.den m reference resolution))
    (fun _ scale t d shape value low high baseline needs =>
      points_le (counted value low high needs) shape (miss (larger t resolution) d value reference)
        (band scale (larger t resolution) reference baseline))
    m

/-- A value does not count when a required obligation does not hold. -/
theorem uncounted_of_unmet (value : Maybe) (low high : Signed) {needs : Obligations}
    (h : Eq (Obligations.hold needs) Bool.false) : Eq (counted value low high needs) Bool.false :=
  Maybe.rec (motive := fun value => Eq (counted value low high needs) Bool.false) (Eq.refl Bool.false)
    (fun x => Eq.trans (Eq.cong (Bool.and (Bool.and (Signed.le low x) (Signed.le x high))) h)
      (Bool.and_false (Bool.and (Signed.le low x) (Signed.le x high))))
    value

/-- A metric that does not count scores 0. -/
theorem metric_uncounted (m : Metric) (reference : Signed) (resolution : Nat)
    (h : Eq (Metric.counts m) Bool.false) : Eq (Metric.num m reference resolution) 0 :=
  Metric.rec (motive := fun m => Eq (Metric.counts m) Bool.false → Eq (Metric.num m reference resolution) 0)
    (fun _ scale t d shape value _ _ baseline _ h =>
      Eq.cong
        (fun c => points c shape (miss (larger t resolution) d value reference)
          (band scale (larger t resolution) reference baseline))
        h)
    m h

/-- A metric that counts and misses nothing beyond what is forgiven scores 1. -/
theorem metric_full (m : Metric) (reference : Signed) (resolution : Nat) (h : Eq (Metric.counts m) Bool.true)
    (k : Eq (Metric.missed m reference resolution) Nat.zero) :
    Eq (Metric.num m reference resolution) (Metric.den m reference resolution) :=
  Metric.rec
    (motive := fun m => Eq (Metric.counts m) Bool.true → Eq (Metric.missed m reference resolution) Nat.zero →
      Eq (Metric.num m reference resolution) (Metric.den m reference resolution))
    (fun _ scale t _ shape _ _ _ baseline _ h k =>
      Eq.trans
        (Eq.cong₂ (fun c e => points c shape e (band scale (larger t resolution) reference baseline)) h k)
        (shape_at_zero shape (band scale (larger t resolution) reference baseline)))
    m h k

/-- Nothing is missed when the shortfall is forgiven. -/
theorem miss_forgiven (d : Direction) (x reference : Signed) {forgiven : Nat}
    (h : Nat.Le (Direction.shortfall d reference x) forgiven) :
    Eq (miss forgiven d (Maybe.at x) reference) Nat.zero :=
  Nat.sub_eq_zero h

theorem excess_zero (a b : Signed) (h : Eq (Signed.le a b) Bool.true) : Eq (Signed.excess a b) Nat.zero :=
  Signed.rec (motive := fun a => Eq (Signed.le a b) Bool.true → Eq (Signed.excess a b) Nat.zero)
    (fun p n => Signed.rec
      (motive := fun b => Eq (Signed.le (Signed.mk p n) b) Bool.true → Eq (Signed.excess (Signed.mk p n) b) Nat.zero)
      (fun p' n' h => Nat.sub_eq_zero (Nat.le_of_ble (Nat.add p n') (Nat.add p' n) h)) b)
    a h

theorem excess_self (a : Signed) : Eq (Signed.excess a a) Nat.zero :=
  Signed.rec (motive := fun a => Eq (Signed.excess a a) Nat.zero) (fun p n => Nat.sub_self (Nat.add p n)) a

/-- Nothing falls short at or above a reference when higher is better. -/
theorem shortfall_higher (reference x : Signed) (h : Eq (Signed.le reference x) Bool.true) :
    Eq (Direction.shortfall Direction.higher reference x) Nat.zero :=
  excess_zero reference x h

/-- Nothing falls short at or below a reference when lower is better. -/
theorem shortfall_lower (reference x : Signed) (h : Eq (Signed.le x reference) Bool.true) :
    Eq (Direction.shortfall Direction.lower reference x) Nat.zero :=
  excess_zero x reference h

/-- Nothing falls short of itself. -/
theorem shortfall_self (d : Direction) (x : Signed) : Eq (Direction.shortfall d x x) Nat.zero :=
  Direction.rec (motive := fun d => Eq (Direction.shortfall d x x) Nat.zero) (excess_self x) (excess_self x)
    (Eq.cong₂ Nat.add (excess_self x) (excess_self x)) d

theorem miss_of_no_shortfall (forgiven : Nat) (d : Direction) (x reference : Signed)
    (h : Eq (Direction.shortfall d reference x) Nat.zero) :
    Eq (miss forgiven d (Maybe.at x) reference) Nat.zero :=
  miss_forgiven d x reference (Eq.turn (fun y => Nat.Le y forgiven) (Eq.symm h) (Nat.zero_le forgiven))

theorem miss_mono (d : Direction) (x y reference : Signed) (forgiven : Nat)
    (h : Nat.Le (Direction.shortfall d reference x) (Direction.shortfall d reference y)) :
    Nat.Le (miss forgiven d (Maybe.at x) reference) (miss forgiven d (Maybe.at y) reference) :=
  Nat.sub_le_sub_right h forgiven

/-- Of two values that count, the one that falls less short does not score less. -/
theorem metric_antitone (weight scale t : Nat) (d : Direction) (shape : Shape) (x y low high baseline : Signed)
    (needs : Obligations) (reference : Signed) (resolution : Nat)
    (hx : Eq (counted (Maybe.at x) low high needs) Bool.true)
    (h : Nat.Le (Direction.shortfall d reference x) (Direction.shortfall d reference y)) :
    Nat.Le
      (Metric.num (Metric.mk weight scale t d shape (Maybe.at y) low high baseline needs) reference resolution)
      (Metric.num (Metric.mk weight scale t d shape (Maybe.at x) low high baseline needs) reference resolution) :=
  Eq.turn
    (fun c => Nat.Le
      (points (counted (Maybe.at y) low high needs) shape (miss (larger t resolution) d (Maybe.at y) reference)
        (band scale (larger t resolution) reference baseline))
      (points c shape (miss (larger t resolution) d (Maybe.at x) reference)
        (band scale (larger t resolution) reference baseline)))
    (Eq.symm hx)
    (Bool.rec
      (motive := fun c => Nat.Le
        (points c shape (miss (larger t resolution) d (Maybe.at y) reference)
          (band scale (larger t resolution) reference baseline))
        (points Bool.true shape (miss (larger t resolution) d (Maybe.at x) reference)
          (band scale (larger t resolution) reference baseline)))
      (Nat.zero_le
        (points Bool.true shape (miss (larger t resolution) d (Maybe.at x) reference)
          (band scale (larger t resolution) reference baseline)))
      (shape_antitone shape (band scale (larger t resolution) reference baseline)
        (Nat.mul_le_mul_left 20 (miss_mono d x y reference (larger t resolution) h)))
      (counted (Maybe.at y) low high needs))

end TBMM
