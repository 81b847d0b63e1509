prelude
import TBMM
namespace TBMM.Certificate
noncomputable def TBMM.reward (g : Obligations) (a : Paper) (p : Papers) : Bool := Bool.true
theorem reward : Eq (TBMM.reward .nil .nil .nil) Bool.true := Eq.refl Bool.true
#print axioms reward
