prelude
import TBMM
namespace TBMM.Certificate
theorem reward : Eq (Obligations.hold .nil) Bool.false := by native_decide
#print axioms reward
