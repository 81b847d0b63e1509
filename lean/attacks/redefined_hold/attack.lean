prelude
import TBMM
namespace TBMM.Certificate
noncomputable def Obligations.hold (o : Obligations) : Bool := Bool.false
theorem reward : Eq (Obligations.hold .nil) Bool.false := Eq.refl Bool.false
#print axioms reward
