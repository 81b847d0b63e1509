prelude
import TBMM
universe u
axiom sorryAx (α : Sort u) (synthetic : Bool) : α
namespace TBMM.Certificate
theorem reward : Eq (Obligations.hold .nil) Bool.false := sorry
#print axioms reward
