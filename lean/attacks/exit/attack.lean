prelude
import TBMM
namespace TBMM.Certificate
#exit
theorem reward : Eq (Obligations.hold .nil) Bool.false := Eq.refl Bool.true
#print axioms reward
