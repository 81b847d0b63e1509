prelude
import TBMM
namespace TBMM.Certificate
noncomputable def Frac.is (f : Frac) (p q : Nat) : Bool := Bool.true
theorem reward : Eq (Frac.is (Frac.mk 0 1) 1 1) Bool.true := Eq.refl Bool.true
#print axioms reward
