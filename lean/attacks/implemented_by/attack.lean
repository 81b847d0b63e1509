prelude
import TBMM
namespace TBMM.Certificate
unsafe def cheat (o : Obligations) : Bool := Bool.false
@[implemented_by cheat] opaque holds (o : Obligations) : Bool
theorem reward : Eq (holds .nil) Bool.false := Eq.refl Bool.false
#print axioms reward
