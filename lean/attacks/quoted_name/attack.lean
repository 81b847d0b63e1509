prelude
import TBMM
namespace TBMM.Certificate
theorem «reward» : Eq (Obligations.hold .nil) Bool.true := Eq.refl Bool.true
#print axioms «reward»
