prelude
import TBMM
namespace TBMM.Certificate
inductive False : Prop where
| intro : False
theorem reward : False := False.intro
#print axioms reward
