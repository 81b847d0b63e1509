prelude
import TBMM
namespace TBMM.Certificate
noncomputable def gate : Obligations := .nil
theorem reward : Eq (Obligations.hold gate) Bool.true := Eq.refl Bool.true
