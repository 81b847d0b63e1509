prelude
import TBMM
namespace TBMM.Certificate
unsafe def reward : Eq (Obligations.hold .nil) Bool.false := reward
#print axioms reward
