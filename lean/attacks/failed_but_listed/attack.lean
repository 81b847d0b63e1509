prelude
import TBMM
namespace TBMM.Certificate
noncomputable def gate : Obligations := .cons .unwitnessed .nil
theorem reward : Eq (Obligations.hold gate) Bool.true := Eq.refl Bool.true
#print axioms reward
