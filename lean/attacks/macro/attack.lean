prelude
import TBMM
namespace TBMM.Certificate
macro "gate_holds" : term => `(Bool.false)
theorem reward : Eq gate_holds Bool.false := Eq.refl Bool.false
#print axioms reward
