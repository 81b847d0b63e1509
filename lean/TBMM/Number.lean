prelude

/-!
# Naturals and signed numbers

Everything a certificate computes with. Nothing is imported: the kernel, this file and its two successors are all
there is to trust.

The kernel evaluates literals of `Nat.add`, `Nat.sub`, `Nat.mul`, `Nat.ble` and `Nat.beq` by name, whatever they are
defined as. So each is defined here by recursion, and its recursion equations are proved with variables, where the
kernel has only the definition to go by. No other name the kernel evaluates may be defined anywhere in this library.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

/-- The compiler asks for this constant; no theorem depends on it. -/
unsafe axiom lcErased : Type

/-- The compiler asks for this constant; no theorem depends on it. -/
unsafe axiom lcAny : Type

universe u v

/-- Natural numbers; the kernel knows their literals. -/
inductive Nat : Type where
  | zero : Nat
  | succ (n : Nat) : Nat

/-- Truth values that are computed. -/
inductive Bool : Type where
  | false : Bool
  | true : Bool

/-- Equality. -/
inductive Eq {α : Sort u} : α → α → Prop where
  | refl (a : α) : Eq a a

/-- What the elaborator looks up for a numeral. -/
class OfNat (α : Type u) (_ : Nat) where
  ofNat : α

instance instOfNatNat (n : Nat) : OfNat Nat n := ⟨n⟩

noncomputable section

/-! ## Truth values -/

/-- `a` and `b`; `b` is not looked at when `a` is false. -/
def Bool.and (a b : Bool) : Bool := Bool.rec (motive := fun _ => Bool) Bool.false b a

/-- `a` or `b`; `b` is not looked at when `a` is true. -/
def Bool.or (a b : Bool) : Bool := Bool.rec (motive := fun _ => Bool) b Bool.true a

/-- Not `a`. -/
def Bool.not (a : Bool) : Bool := Bool.rec (motive := fun _ => Bool) Bool.true Bool.false a

/-- `yes` when `c`, else `no`. -/
def Bool.pick {α : Type u} (c : Bool) (yes no : α) : α := Bool.rec (motive := fun _ => α) no yes c

/-! ## Natural numbers -/

/-- Sum. -/
def Nat.add (m n : Nat) : Nat := Nat.rec (motive := fun _ => Nat) m (fun _ r => Nat.succ r) n

/-- Product. -/
def Nat.mul (m n : Nat) : Nat := Nat.rec (motive := fun _ => Nat) Nat.zero (fun _ r => Nat.add r m) n

/-- The number before `n`; 0 stays 0. -/
def Nat.before (n : Nat) : Nat := Nat.rec (motive := fun _ => Nat) Nat.zero (fun k _ => k) n

/-- Truncated difference: 0 when `n` is greater than `m`. -/
def Nat.sub (m n : Nat) : Nat := Nat.rec (motive := fun _ => Nat) m (fun _ r => Nat.before r) n

/-- Is `m` at most `n`? -/
def Nat.ble (m : Nat) : Nat → Bool :=
  Nat.rec (motive := fun _ => Nat → Bool) (fun _ => Bool.true)
    (fun _ below n => Nat.rec (motive := fun _ => Bool) Bool.false (fun k _ => below k) n) m

/-- Is `m` equal to `n`? -/
def Nat.beq (m : Nat) : Nat → Bool :=
  Nat.rec (motive := fun _ => Nat → Bool)
    (fun n => Nat.rec (motive := fun _ => Bool) Bool.true (fun _ _ => Bool.false) n)
    (fun _ same n => Nat.rec (motive := fun _ => Bool) Bool.false (fun k _ => same k) n) m

/-! The recursion equations, with variables: the definitions say what the kernel computes for literals. -/

theorem Nat.add_zero (m : Nat) : Eq (Nat.add m Nat.zero) m := Eq.refl m
theorem Nat.add_succ (m n : Nat) : Eq (Nat.add m (Nat.succ n)) (Nat.succ (Nat.add m n)) := Eq.refl (Nat.succ (Nat.add m n))
theorem Nat.mul_zero (m : Nat) : Eq (Nat.mul m Nat.zero) Nat.zero := Eq.refl Nat.zero
theorem Nat.mul_succ (m n : Nat) : Eq (Nat.mul m (Nat.succ n)) (Nat.add (Nat.mul m n) m) := Eq.refl (Nat.add (Nat.mul m n) m)
theorem Nat.before_zero : Eq (Nat.before Nat.zero) Nat.zero := Eq.refl Nat.zero
theorem Nat.before_succ (n : Nat) : Eq (Nat.before (Nat.succ n)) n := Eq.refl n
theorem Nat.sub_zero (m : Nat) : Eq (Nat.sub m Nat.zero) m := Eq.refl m
theorem Nat.sub_succ (m n : Nat) : Eq (Nat.sub m (Nat.succ n)) (Nat.before (Nat.sub m n)) := Eq.refl (Nat.before (Nat.sub m n))
theorem Nat.ble_zero (n : Nat) : Eq (Nat.ble Nat.zero n) Bool.true := Eq.refl Bool.true
theorem Nat.ble_succ_zero (m : Nat) : Eq (Nat.ble (Nat.succ m) Nat.zero) Bool.false := Eq.refl Bool.false
theorem Nat.ble_succ_succ (m n : Nat) : Eq (Nat.ble (Nat.succ m) (Nat.succ n)) (Nat.ble m n) := Eq.refl (Nat.ble m n)
theorem Nat.beq_zero_zero : Eq (Nat.beq Nat.zero Nat.zero) Bool.true := Eq.refl Bool.true
theorem Nat.beq_zero_succ (n : Nat) : Eq (Nat.beq Nat.zero (Nat.succ n)) Bool.false := Eq.refl Bool.false
theorem Nat.beq_succ_zero (m : Nat) : Eq (Nat.beq (Nat.succ m) Nat.zero) Bool.false := Eq.refl Bool.false
theorem Nat.beq_succ_succ (m n : Nat) : Eq (Nat.beq (Nat.succ m) (Nat.succ n)) (Nat.beq m n) := Eq.refl (Nat.beq m n)

namespace TBMM

/-!
## Signed numbers

Functions of a structure take it apart with its recursor, not with projections: the elaborator, which checks a proof
before the kernel does, would not unfold definitions under a projection and count down from large literals instead.
-/

/-- The signed number `pos - neg`. Within one obligation or metric all numbers count the same unit, 1 / `scale`. -/
structure Signed : Type where
  pos : Nat
  neg : Nat

namespace Signed

/-- `n`. -/
def up (n : Nat) : Signed := Signed.mk n Nat.zero

/-- `-n`. -/
def down (n : Nat) : Signed := Signed.mk Nat.zero n

/-- `f` of the parts of two signed numbers. -/
def both {α : Type u} (a b : Signed) (f : Nat → Nat → Nat → Nat → α) : α :=
  Signed.rec (motive := fun _ => α) (fun p n => Signed.rec (motive := fun _ => α) (fun p' n' => f p n p' n') b) a

/-- `a <= b`. -/
def le (a b : Signed) : Bool := both a b (fun p n p' n' => Nat.ble (Nat.add p n') (Nat.add p' n))

/-- `a + t` for a natural number `t`. -/
def raise (a : Signed) (t : Nat) : Signed :=
  Signed.rec (motive := fun _ => Signed) (fun p n => Signed.mk (Nat.add p t) n) a

/-- `max 0 (a - b)`. -/
def excess (a b : Signed) : Nat := both a b (fun p n p' n' => Nat.sub (Nat.add p n') (Nat.add p' n))

/-- `|a - b|`. -/
def gap (a b : Signed) : Nat := Nat.add (excess a b) (excess b a)

/-- `|a|`. -/
def size (a : Signed) : Nat :=
  Signed.rec (motive := fun _ => Nat) (fun p n => Nat.add (Nat.sub p n) (Nat.sub n p)) a

end Signed

/-! ## Fractions -/

/-- `num / den`, not reduced. -/
structure Frac : Type where
  num : Nat
  den : Nat

/-- Is `f` the fraction `p / q`? Both denominators must be positive. -/
def Frac.is (f : Frac) (p q : Nat) : Bool :=
  Frac.rec (motive := fun _ => Bool)
    (fun num den => Bool.and (Nat.ble 1 den) (Bool.and (Nat.ble 1 q) (Nat.beq (Nat.mul p den) (Nat.mul q num)))) f

end TBMM
