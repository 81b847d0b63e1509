prelude
import TBMM
namespace TBMM.Certificate
opaque reward : Eq (Obligations.hold .nil) Bool.false
#print axioms reward
