prelude
import TBMM
noncomputable def Nat.div (_ _ : Nat) : Nat := 7
theorem as_defined (m n : Nat) : Eq (Nat.div m n) 7 := Eq.refl 7
attribute [irreducible] Nat.div
theorem as_evaluated : Eq (Nat.div 8 2) 4 := Eq.refl 4
theorem reward : Eq (α := Nat) 7 4 := Eq.rec (motive := fun n _ => Eq (α := Nat) n 4) as_evaluated (as_defined 8 2)
#print axioms reward
