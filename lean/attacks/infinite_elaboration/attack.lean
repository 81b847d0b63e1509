prelude
import TBMM
namespace TBMM.Certificate
macro "for_ever" : term => `(for_ever)
theorem reward : Eq for_ever Bool.true := Eq.refl Bool.true
#print axioms reward
