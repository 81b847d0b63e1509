prelude
import TBMM.Score

/-!
# Arithmetic and order of natural numbers

What the laws of the score rest on. Proofs are terms; each induction is one application of a recursor.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

universe u v w

/-! What the elaborator looks up when it compares successors. -/

class HAdd (α : Type u) (β : Type v) (γ : Type w) where
  hAdd : α → β → γ

class Add (α : Type u) where
  add : α → α → α

noncomputable instance instAddNat : Add Nat := ⟨Nat.add⟩

noncomputable instance instHAdd {α : Type u} [Add α] : HAdd α α α := ⟨Add.add⟩

/-! ## Equality and truth values -/

theorem Eq.turn {α : Sort u} (p : α → Prop) {a b : α} (h : Eq a b) (x : p a) : p b :=
  Eq.rec (motive := fun y _ => p y) x h

theorem Eq.symm {α : Sort u} {a b : α} (h : Eq a b) : Eq b a := Eq.turn (fun y => Eq y a) h (Eq.refl a)

theorem Eq.trans {α : Sort u} {a b c : α} (h : Eq a b) (k : Eq b c) : Eq a c := Eq.turn (fun y => Eq a y) k h

theorem Eq.cong {α : Sort u} {β : Sort v} (f : α → β) {a b : α} (h : Eq a b) : Eq (f a) (f b) :=
  Eq.turn (fun y => Eq (f a) (f y)) h (Eq.refl (f a))

theorem Eq.cong₂ {α : Sort u} {β : Sort v} {γ : Sort w} (f : α → β → γ) {a b : α} {c d : β} (h : Eq a b) (k : Eq c d) :
    Eq (f a c) (f b d) :=
  Eq.trans (Eq.cong (fun y => f y c) h) (Eq.cong (f b) k)

theorem Bool.absurd {p : Prop} (h : Eq Bool.false Bool.true) : p :=
  Eq.turn (a := Bool.false) (b := Bool.true)
    (fun b => Bool.rec (motive := fun _ => Prop) ((q : Prop) → q → q) p b) h (fun (q : Prop) (x : q) => x)

theorem Bool.and_left (a b : Bool) (h : Eq (Bool.and a b) Bool.true) : Eq a Bool.true :=
  Bool.rec (motive := fun a => Eq (Bool.and a b) Bool.true → Eq a Bool.true) (fun k => k) (fun _ => Eq.refl Bool.true) a h

theorem Bool.and_right (a b : Bool) (h : Eq (Bool.and a b) Bool.true) : Eq b Bool.true :=
  Bool.rec (motive := fun a => Eq (Bool.and a b) Bool.true → Eq b Bool.true) (fun k => Bool.absurd k) (fun k => k) a h

theorem Bool.and_false (a : Bool) : Eq (Bool.and a Bool.false) Bool.false :=
  Bool.rec (motive := fun a => Eq (Bool.and a Bool.false) Bool.false) (Eq.refl Bool.false) (Eq.refl Bool.false) a

namespace Nat

/-! ## Sums and products -/

theorem zero_add (n : Nat) : Eq (add zero n) n :=
  Nat.rec (motive := fun n => Eq (add zero n) n) (Eq.refl zero) (fun _ ih => Eq.cong succ ih) n

theorem succ_add (m n : Nat) : Eq (add (succ m) n) (succ (add m n)) :=
  Nat.rec (motive := fun n => Eq (add (succ m) n) (succ (add m n))) (Eq.refl (succ m)) (fun _ ih => Eq.cong succ ih) n

theorem add_comm (m n : Nat) : Eq (add m n) (add n m) :=
  Nat.rec (motive := fun n => Eq (add m n) (add n m)) (Eq.symm (zero_add m))
    (fun k ih => Eq.trans (Eq.cong succ ih) (Eq.symm (succ_add k m))) n

theorem add_assoc (a b c : Nat) : Eq (add (add a b) c) (add a (add b c)) :=
  Nat.rec (motive := fun c => Eq (add (add a b) c) (add a (add b c))) (Eq.refl (add a b))
    (fun _ ih => Eq.cong succ ih) c

theorem add_right_comm (a b c : Nat) : Eq (add (add a b) c) (add (add a c) b) :=
  Eq.trans (add_assoc a b c) (Eq.trans (Eq.cong (add a) (add_comm b c)) (Eq.symm (add_assoc a c b)))

theorem add_left_comm (a b c : Nat) : Eq (add a (add b c)) (add b (add a c)) :=
  Eq.trans (Eq.symm (add_assoc a b c)) (Eq.trans (Eq.cong (fun x => add x c) (add_comm a b)) (add_assoc b a c))

theorem zero_mul (n : Nat) : Eq (mul zero n) zero :=
  Nat.rec (motive := fun n => Eq (mul zero n) zero) (Eq.refl zero) (fun _ ih => ih) n

theorem succ_mul (m n : Nat) : Eq (mul (succ m) n) (add (mul m n) n) :=
  Nat.rec (motive := fun n => Eq (mul (succ m) n) (add (mul m n) n)) (Eq.refl zero)
    (fun k ih => Eq.cong succ (Eq.trans (Eq.cong (fun x => add x m) ih) (add_right_comm (mul m k) k m))) n

theorem mul_comm (m n : Nat) : Eq (mul m n) (mul n m) :=
  Nat.rec (motive := fun n => Eq (mul m n) (mul n m)) (Eq.symm (zero_mul m))
    (fun k ih => Eq.trans (Eq.cong (fun x => add x m) ih) (Eq.symm (succ_mul k m))) n

theorem mul_add (a b c : Nat) : Eq (mul a (add b c)) (add (mul a b) (mul a c)) :=
  Nat.rec (motive := fun c => Eq (mul a (add b c)) (add (mul a b) (mul a c))) (Eq.refl (mul a b))
    (fun k ih => Eq.trans (Eq.cong (fun x => add x a) ih) (add_assoc (mul a b) (mul a k) a)) c

theorem mul_assoc (a b c : Nat) : Eq (mul (mul a b) c) (mul a (mul b c)) :=
  Nat.rec (motive := fun c => Eq (mul (mul a b) c) (mul a (mul b c))) (Eq.refl zero)
    (fun k ih => Eq.trans (Eq.cong (fun x => add x (mul a b)) ih) (Eq.symm (mul_add a (mul b k) b))) c

theorem mul_left_comm (a b c : Nat) : Eq (mul a (mul b c)) (mul b (mul a c)) :=
  Eq.trans (Eq.symm (mul_assoc a b c)) (Eq.trans (Eq.cong (fun x => mul x c) (mul_comm a b)) (mul_assoc b a c))

/-! ## Order -/

/-- `n` is at most `m`. -/
inductive Le (n : Nat) : Nat → Prop where
  | refl : Le n n
  | step {m : Nat} (h : Le n m) : Le n (succ m)

theorem Le.trans {a b c : Nat} (h : Le a b) (k : Le b c) : Le a c :=
  Le.rec (motive := fun c _ => Le a c) h (fun _ ih => Le.step ih) k

theorem Le.of_eq {a b : Nat} (h : Eq a b) : Le a b := Eq.turn (Le a) h Le.refl

theorem zero_le (n : Nat) : Le zero n := Nat.rec (motive := fun n => Le zero n) Le.refl (fun _ ih => Le.step ih) n

theorem succ_le_succ {a b : Nat} (h : Le a b) : Le (succ a) (succ b) :=
  Le.rec (motive := fun b _ => Le (succ a) (succ b)) Le.refl (fun _ ih => Le.step ih) h

theorem add_le_add_right {a b : Nat} (h : Le a b) (c : Nat) : Le (add a c) (add b c) :=
  Nat.rec (motive := fun c => Le (add a c) (add b c)) h (fun _ ih => succ_le_succ ih) c

theorem add_le_add {a b c d : Nat} (h : Le a b) (k : Le c d) : Le (add a c) (add b d) :=
  Le.trans (add_le_add_right h c)
    (Eq.turn (fun x => Le x (add b d)) (add_comm c b) (Eq.turn (Le (add c b)) (add_comm d b) (add_le_add_right k b)))

theorem mul_le_mul_right {a b : Nat} (h : Le a b) (c : Nat) : Le (mul a c) (mul b c) :=
  Nat.rec (motive := fun c => Le (mul a c) (mul b c)) Le.refl (fun _ ih => add_le_add ih h) c

theorem mul_le_mul_left (c : Nat) {a b : Nat} (h : Le a b) : Le (mul c a) (mul c b) :=
  Eq.turn (fun x => Le x (mul c b)) (mul_comm a c) (Eq.turn (Le (mul a c)) (mul_comm b c) (mul_le_mul_right h c))

theorem before_le (n : Nat) : Le (before n) n :=
  Nat.rec (motive := fun n => Le (before n) n) Le.refl (fun _ _ => Le.step Le.refl) n

theorem before_le_before {a b : Nat} (h : Le a b) : Le (before a) (before b) :=
  Le.rec (motive := fun b _ => Le (before a) (before b)) Le.refl
    (fun {m} _ ih => Le.trans ih (before_le m)) h

theorem sub_le (m n : Nat) : Le (sub m n) m :=
  Nat.rec (motive := fun n => Le (sub m n) m) Le.refl (fun k ih => Le.trans (before_le (sub m k)) ih) n

theorem sub_le_sub_left (m : Nat) {a b : Nat} (h : Le a b) : Le (sub m b) (sub m a) :=
  Le.rec (motive := fun b _ => Le (sub m b) (sub m a)) Le.refl
    (fun {k} _ ih => Le.trans (before_le (sub m k)) ih) h

theorem sub_le_sub_right {a b : Nat} (h : Le a b) (c : Nat) : Le (sub a c) (sub b c) :=
  Nat.rec (motive := fun c => Le (sub a c) (sub b c)) h (fun _ ih => before_le_before ih) c

theorem succ_sub_succ (m n : Nat) : Eq (sub (succ m) (succ n)) (sub m n) :=
  Nat.rec (motive := fun n => Eq (sub (succ m) (succ n)) (sub m n)) (Eq.refl m) (fun _ ih => Eq.cong before ih) n

theorem sub_self (n : Nat) : Eq (sub n n) zero :=
  Nat.rec (motive := fun n => Eq (sub n n) zero) (Eq.refl zero) (fun k ih => Eq.trans (succ_sub_succ k k) ih) n

theorem sub_eq_zero {a b : Nat} (h : Le a b) : Eq (sub a b) zero :=
  Le.rec (motive := fun b _ => Eq (sub a b) zero) (sub_self a) (fun _ ih => Eq.cong before ih) h

/-! ## What `ble` and `beq` decide -/

theorem ble_refl (n : Nat) : Eq (ble n n) Bool.true :=
  Nat.rec (motive := fun n => Eq (ble n n) Bool.true) (Eq.refl Bool.true) (fun _ ih => ih) n

theorem ble_step (m : Nat) : (n : Nat) → Eq (ble m n) Bool.true → Eq (ble m (succ n)) Bool.true :=
  Nat.rec (motive := fun m => (n : Nat) → Eq (ble m n) Bool.true → Eq (ble m (succ n)) Bool.true)
    (fun _ _ => Eq.refl Bool.true)
    (fun m ih n => Nat.rec (motive := fun n => Eq (ble (succ m) n) Bool.true → Eq (ble (succ m) (succ n)) Bool.true)
      (fun h => Bool.absurd h) (fun k _ h => ih k h) n)
    m

theorem ble_of_le {m n : Nat} (h : Le m n) : Eq (ble m n) Bool.true :=
  Le.rec (motive := fun n _ => Eq (ble m n) Bool.true) (ble_refl m) (fun {k} _ ih => ble_step m k ih) h

theorem le_of_ble (m : Nat) : (n : Nat) → Eq (ble m n) Bool.true → Le m n :=
  Nat.rec (motive := fun m => (n : Nat) → Eq (ble m n) Bool.true → Le m n)
    (fun n _ => zero_le n)
    (fun m ih n => Nat.rec (motive := fun n => Eq (ble (succ m) n) Bool.true → Le (succ m) n)
      (fun h => Bool.absurd h) (fun k _ h => succ_le_succ (ih k h)) n)
    m

theorem eq_of_beq (m : Nat) : (n : Nat) → Eq (beq m n) Bool.true → Eq m n :=
  Nat.rec (motive := fun m => (n : Nat) → Eq (beq m n) Bool.true → Eq m n)
    (fun n => Nat.rec (motive := fun n => Eq (beq zero n) Bool.true → Eq zero n)
      (fun _ => Eq.refl zero) (fun _ _ h => Bool.absurd h) n)
    (fun m ih n => Nat.rec (motive := fun n => Eq (beq (succ m) n) Bool.true → Eq (succ m) n)
      (fun h => Bool.absurd h) (fun k _ h => Eq.cong succ (ih k h)) n)
    m

theorem eq_zero_of_le {n : Nat} (h : Le n zero) : Eq n zero :=
  Nat.rec (motive := fun n => Eq (ble n zero) Bool.true → Eq n zero) (fun _ => Eq.refl zero)
    (fun _ _ h => Bool.absurd h) n (ble_of_le h)

end Nat
