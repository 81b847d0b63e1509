prelude
import TBMM
namespace TBMM.Certificate
variable (cheat : Eq (Obligations.hold .nil) Bool.false)
theorem reward : Eq (Obligations.hold .nil) Bool.false := cheat
#print axioms reward
