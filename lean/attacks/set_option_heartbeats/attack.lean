prelude
import TBMM
namespace TBMM.Certificate
set_option maxHeartbeats 0
set_option maxRecDepth 1000000
theorem reward : Eq (Obligations.hold .nil) Bool.true := Eq.refl Bool.true
#print axioms reward
