prelude
import TBMM
namespace TBMM.Certificate
theorem reward : Eq Bool.true Bool.true := Eq.refl Bool.true
#print axioms reward
