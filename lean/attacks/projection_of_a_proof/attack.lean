prelude
import TBMM
namespace TBMM.Certificate
structure Cheat : Prop where
  proof : Eq (Obligations.hold .nil) Bool.false
theorem reward (c : Cheat) : Eq (Obligations.hold .nil) Bool.false := c.proof
#print axioms reward
