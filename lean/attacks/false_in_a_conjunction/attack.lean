prelude
import TBMM
namespace TBMM.Certificate
noncomputable def held_0 : Obligations := .cons (.bound 500000000 500 .absent (.at (.up 1000000000)) (.up 1604793379 .nil)) .nil
theorem holds_0 : Eq (Obligations.hold held_0) Bool.true := Eq.refl Bool.true
#print axioms holds_0
