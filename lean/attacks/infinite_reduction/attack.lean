prelude
import TBMM
namespace TBMM.Certificate
noncomputable def slow (n : Nat) : Nat → Nat := Nat.rec (motive := fun _ => Nat → Nat) (fun k => k) (fun _ r k => Nat.add (r (Nat.add k k)) (r (Nat.succ (Nat.add k k)))) n
theorem reward : Eq (Nat.beq (slow 30 1) 0) Bool.true := Eq.refl Bool.true
#print axioms reward
