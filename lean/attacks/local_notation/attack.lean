prelude
import TBMM
namespace TBMM.Certificate
local notation "one" => Bool.false
theorem reward : Eq one Bool.false := Eq.refl Bool.false
#print axioms reward
