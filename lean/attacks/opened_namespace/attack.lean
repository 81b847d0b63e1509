prelude
import TBMM
namespace TBMM.Certificate
namespace Fake
noncomputable def Obligations.hold (o : Obligations) : Bool := Bool.false
end Fake
open Fake
theorem reward : Eq (Fake.Obligations.hold .nil) Bool.false := Eq.refl Bool.false
#print axioms reward
