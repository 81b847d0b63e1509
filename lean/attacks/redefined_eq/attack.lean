prelude
import TBMM
namespace TBMM.Certificate
inductive Eq.{u} {α : Sort u} : α → α → Prop where
| refl (a b : α) : Eq a b
theorem reward : Eq Bool.true Bool.false := Eq.refl Bool.true Bool.false
#print axioms reward
