prelude
import TBMM.Order

/-!
# The band and the tolerance, for all inputs

What the definitions say in each of their cases, so that none of them can change unnoticed.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

namespace TBMM

/-- The band is twenty times the gap when the gap is 2 % of the reference or more, and not 0. -/
theorem band_wide (scale tolerance : Nat) (reference baseline : Signed)
    (wide : Eq (Nat.ble (Signed.size reference) (Nat.mul 50 (Signed.gap reference baseline))) Bool.true)
    (apart : Eq (Nat.beq (Signed.gap reference baseline) 0) Bool.false) :
    Eq (band scale tolerance reference baseline) (Nat.mul 20 (Signed.gap reference baseline)) :=
  Eq.cong₂
    (fun c d => Bool.pick c
      (Nat.mul 20 (Bool.pick d (Bool.pick (Nat.beq tolerance 0) scale tolerance) (Signed.gap reference baseline)))
      (Signed.size reference))
    wide apart

/-- The band is 5 % of the reference, twenty times over, when the gap is under 2 % of it. -/
theorem band_narrow (scale tolerance : Nat) (reference baseline : Signed)
    (narrow : Eq (Nat.ble (Signed.size reference) (Nat.mul 50 (Signed.gap reference baseline))) Bool.false) :
    Eq (band scale tolerance reference baseline) (Signed.size reference) :=
  Eq.cong
    (fun c => Bool.pick c
      (Nat.mul 20
        (Bool.pick (Nat.beq (Signed.gap reference baseline) 0) (Bool.pick (Nat.beq tolerance 0) scale tolerance)
          (Signed.gap reference baseline)))
      (Signed.size reference))
    narrow

/-- Without a gap that is wide enough for the reference, which is then 0, the band is the tolerance, if there is one. -/
theorem band_tolerance (scale tolerance : Nat) (reference baseline : Signed)
    (wide : Eq (Nat.ble (Signed.size reference) (Nat.mul 50 (Signed.gap reference baseline))) Bool.true)
    (same : Eq (Nat.beq (Signed.gap reference baseline) 0) Bool.true)
    (some : Eq (Nat.beq tolerance 0) Bool.false) :
    Eq (band scale tolerance reference baseline) (Nat.mul 20 tolerance) :=
  Eq.trans
    (Eq.cong₂
      (fun c d => Bool.pick c
        (Nat.mul 20 (Bool.pick d (Bool.pick (Nat.beq tolerance 0) scale tolerance) (Signed.gap reference baseline)))
        (Signed.size reference))
      wide same)
    (Eq.cong (fun c => Nat.mul 20 (Bool.pick c scale tolerance)) some)

/-- ... and one unit, if there is none. -/
theorem band_unit (scale : Nat) (reference baseline : Signed)
    (wide : Eq (Nat.ble (Signed.size reference) (Nat.mul 50 (Signed.gap reference baseline))) Bool.true)
    (same : Eq (Nat.beq (Signed.gap reference baseline) 0) Bool.true) :
    Eq (band scale 0 reference baseline) (Nat.mul 20 scale) :=
  Eq.cong₂
    (fun c d => Bool.pick c
      (Nat.mul 20 (Bool.pick d (Bool.pick (Nat.beq 0 0) scale 0) (Signed.gap reference baseline)))
      (Signed.size reference))
    wide same

/-- Of tolerance and resolution the second is forgiven when the first is at most as large. -/
theorem larger_second {m n : Nat} (h : Eq (Nat.ble m n) Bool.true) : Eq (larger m n) n :=
  Eq.cong (fun c => Bool.pick c n m) h

/-- Of tolerance and resolution the first is forgiven when it is larger. -/
theorem larger_first {m n : Nat} (h : Eq (Nat.ble m n) Bool.false) : Eq (larger m n) m :=
  Eq.cong (fun c => Bool.pick c n m) h

/-- A linear score falls by the excess shortfall's share of the band. -/
theorem shape_linear (e b : Nat) : Eq (Shape.num Shape.linear e b) (Nat.sub b e) := Eq.refl (Nat.sub b e)

/-- The denominator of a linear score is the band. -/
theorem shape_linear_den (b : Nat) : Eq (Shape.den Shape.linear b) b := Eq.refl b

/-- An exact score is nothing for any excess shortfall. -/
theorem shape_exact (e b : Nat) (h : Eq (Nat.beq e 0) Bool.false) : Eq (Shape.num Shape.exact e b) 0 :=
  Eq.cong one h

/-- A single rung is passed when the excess shortfall is at most its share of the band. -/
theorem rung_passed (unit e b t : Nat) (h : Eq (Nat.ble (Nat.mul e unit) (Nat.mul t b)) Bool.true) :
    Eq (Ladder.passed unit e b (Ladder.last t)) 1 :=
  Eq.cong one h

/-- A single rung is not passed when the excess shortfall is more than its share of the band. -/
theorem rung_missed (unit e b t : Nat) (h : Eq (Nat.ble (Nat.mul e unit) (Nat.mul t b)) Bool.false) :
    Eq (Ladder.passed unit e b (Ladder.last t)) 0 :=
  Eq.cong one h

/-- Both ends of the domain and every requirement are looked at before a value counts. -/
theorem counted_all (x low high : Signed) (needs : Obligations) (hl : Eq (Signed.le low x) Bool.true)
    (hh : Eq (Signed.le x high) Bool.true) :
    Eq (counted (Maybe.at x) low high needs) (Obligations.hold needs) :=
  Eq.cong₂ (fun c d => Bool.and (Bool.and c d) (Obligations.hold needs)) hl hh

/-- A value below the domain does not count. -/
theorem uncounted_below (x low high : Signed) (needs : Obligations) (h : Eq (Signed.le low x) Bool.false) :
    Eq (counted (Maybe.at x) low high needs) Bool.false :=
  Eq.cong (fun c => Bool.and (Bool.and c (Signed.le x high)) (Obligations.hold needs)) h

/-- An absent value does not count. -/
theorem uncounted_absent (low high : Signed) (needs : Obligations) :
    Eq (counted Maybe.absent low high needs) Bool.false :=
  Eq.refl Bool.false

end TBMM
