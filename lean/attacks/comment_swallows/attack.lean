prelude
import TBMM
namespace TBMM.Certificate
/- theorem reward : Eq (Obligations.hold .nil) Bool.false := Eq.refl Bool.true
-/
#print axioms reward
