prelude
import TBMM
namespace TBMM.Certificate
inductive Nat where
| zero : Nat
noncomputable def one : Nat := Nat.zero
theorem reward : Eq Nat.zero one := Eq.refl Nat.zero
#print axioms reward
