prelude
import TBMM
namespace TBMM.Certificate
namespace Other
theorem TBMM.Certificate.reward : Eq (Obligations.hold .nil) Bool.true := Eq.refl Bool.true
#print axioms TBMM.Certificate.reward
