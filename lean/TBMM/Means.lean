prelude
import TBMM.Laws

/-!
# Laws of weighted means, R and O-Eval, for all inputs

The laws of `TBMM.Laws` carried from one score to the means made of them, and what only means have: that order does not
matter, and that a part which does not count adds nothing.
-/

set_option genCtorIdx false
set_option genSizeOf false
set_option genInjectivity false

namespace TBMM

/-! ## Bounds -/

/-- Every fraction is at most 1. -/
inductive Parts.Sound : Parts → Prop where
  | nil : Sound Parts.nil
  | cons (w : Nat) {n d : Nat} {ps : Parts} (h : Nat.Le n d) (hs : Sound ps) : Sound (Parts.cons w n d ps)

/-- Every fraction is 1. -/
inductive Parts.Full : Parts → Prop where
  | nil : Full Parts.nil
  | cons (w : Nat) {n d : Nat} {ps : Parts} (h : Eq n d) (hs : Full ps) : Full (Parts.cons w n d ps)

/-- d * (D * W) + (w * d) * D = (d * D) * (w + W). -/
theorem mean_regroup (w d D W : Nat) :
    Eq (Nat.add (Nat.mul d (Nat.mul D W)) (Nat.mul (Nat.mul w d) D)) (Nat.mul (Nat.mul d D) (Nat.add w W)) :=
  Eq.trans
    (Eq.cong₂ Nat.add (Eq.symm (Nat.mul_assoc d D W))
      (Eq.trans (Nat.mul_assoc w d D) (Nat.mul_comm w (Nat.mul d D))))
    (Eq.trans (Nat.add_comm (Nat.mul (Nat.mul d D) W) (Nat.mul (Nat.mul d D) w))
      (Eq.symm (Nat.mul_add (Nat.mul d D) w W)))

/-- A weighted mean of fractions that are at most 1 is at most 1. -/
theorem mean_le_one {ps : Parts} (h : Parts.Sound ps) :
    Nat.Le (Parts.num ps) (Nat.mul (Parts.den ps) (Parts.weight ps)) :=
  Parts.Sound.rec (motive := fun ps _ => Nat.Le (Parts.num ps) (Nat.mul (Parts.den ps) (Parts.weight ps)))
    (Nat.zero_le (Nat.mul 1 0))
    (fun w {n} {d} {ps} h _ ih =>
      Eq.turn (Nat.Le (Parts.num (Parts.cons w n d ps))) (mean_regroup w d (Parts.den ps) (Parts.weight ps))
        (Nat.add_le_add (Nat.mul_le_mul_left d ih)
          (Nat.mul_le_mul_right (Nat.mul_le_mul_left w h) (Parts.den ps))))
    h

/-- A weighted mean of fractions that are 1 is 1. -/
theorem mean_full {ps : Parts} (h : Parts.Full ps) :
    Eq (Parts.num ps) (Nat.mul (Parts.den ps) (Parts.weight ps)) :=
  Parts.Full.rec (motive := fun ps _ => Eq (Parts.num ps) (Nat.mul (Parts.den ps) (Parts.weight ps)))
    (Eq.refl Nat.zero)
    (fun w {_} {d} {ps} h _ ih =>
      Eq.trans
        (Eq.cong₂ (fun x y => Nat.add (Nat.mul d x) (Nat.mul (Nat.mul w y) (Parts.den ps))) ih h)
        (mean_regroup w d (Parts.den ps) (Parts.weight ps)))
    h

theorem paper_sound (paper : Paper) : Parts.Sound (Paper.parts paper) :=
  Paper.rec (motive := fun paper => Parts.Sound (Paper.parts paper)) Parts.Sound.nil
    (fun m reference resolution _ ih =>
      Parts.Sound.cons (Metric.heft m) (metric_le_one m reference resolution) ih)
    paper

/-- R is at most 1. -/
theorem paper_le_one (paper : Paper) : Nat.Le (Paper.mean paper).num (Paper.mean paper).den :=
  mean_le_one (paper_sound paper)

theorem papers_sound (papers : Papers) : Parts.Sound (Papers.parts papers) :=
  Papers.rec (motive := fun papers => Parts.Sound (Papers.parts papers)) Parts.Sound.nil
    (fun paper _ ih => Parts.Sound.cons 1 (paper_le_one paper) ih) papers

/-- O-Eval is at most 1. -/
theorem oEval_le_one (anchor : Paper) (papers : Papers) :
    Nat.Le (oEval anchor papers).num (oEval anchor papers).den :=
  Papers.rec (motive := fun papers => Nat.Le (oEval anchor papers).num (oEval anchor papers).den)
    (paper_le_one anchor) (fun paper rest _ => mean_le_one (papers_sound (Papers.cons paper rest))) papers

/-- The reward is at most 1. -/
theorem reward_le_one (os : Obligations) (anchor : Paper) (papers : Papers) :
    Nat.Le (reward os anchor papers).num (reward os anchor papers).den :=
  Frac.rec (motive := fun f => Nat.Le f.num f.den →
      Nat.Le (behind (Obligations.feasible os) f).num (behind (Obligations.feasible os) f).den)
    (fun n d h => Bool.rec (motive := fun c => Nat.Le (Bool.pick c n 0) d) (Nat.zero_le d) h (Obligations.feasible os))
    (oEval anchor papers) (oEval_le_one anchor papers)

/-! ## At or beyond the references -/

/-- The answer scores 1 in everything a paper reports. -/
inductive Paper.Reached : Paper → Prop where
  | nil : Reached Paper.nil
  | cons (m : Metric) (reference : Signed) (resolution : Nat) {rest : Paper} (h : Eq (Metric.counts m) Bool.true)
      (k : Eq (Metric.missed m reference resolution) Nat.zero) (hs : Reached rest) :
      Reached (Paper.cons m reference resolution rest)

/-- The answer scores 1 in everything any paper reports. -/
inductive Papers.Reached : Papers → Prop where
  | nil : Reached Papers.nil
  | cons {paper : Paper} {rest : Papers} (h : Paper.Reached paper) (hs : Reached rest) :
      Reached (Papers.cons paper rest)

theorem paper_full {paper : Paper} (h : Paper.Reached paper) : Parts.Full (Paper.parts paper) :=
  Paper.Reached.rec (motive := fun paper _ => Parts.Full (Paper.parts paper)) Parts.Full.nil
    (fun m reference resolution {_} h k _ ih =>
      Parts.Full.cons (Metric.heft m) (metric_full m reference resolution h k) ih)
    h

/-- R is 1 for an answer at or beyond everything the paper reports, the paper's own answer included. -/
theorem paper_one {paper : Paper} (h : Paper.Reached paper) : Eq (Paper.mean paper).num (Paper.mean paper).den :=
  mean_full (paper_full h)

theorem papers_full {papers : Papers} (h : Papers.Reached papers) : Parts.Full (Papers.parts papers) :=
  Papers.Reached.rec (motive := fun papers _ => Parts.Full (Papers.parts papers)) Parts.Full.nil
    (fun h _ ih => Parts.Full.cons 1 (paper_one h) ih) h

/-- O-Eval is 1 for an answer at or beyond every reference. -/
theorem oEval_one {anchor : Paper} {papers : Papers} (h : Paper.Reached anchor) (hs : Papers.Reached papers) :
    Eq (oEval anchor papers).num (oEval anchor papers).den :=
  Papers.rec (motive := fun papers => Parts.Full (Papers.parts papers) →
      Eq (oEval anchor papers).num (oEval anchor papers).den)
    (fun _ => paper_one h) (fun _ _ _ full => mean_full full) papers (papers_full hs)

/-! ## What does not count -/

/-- A part of 0 adds nothing to the numerator ... -/
theorem num_of_zero (w d : Nat) (ps : Parts) :
    Eq (Parts.num (Parts.cons w Nat.zero d ps)) (Nat.mul d (Parts.num ps)) :=
  Eq.cong (Nat.add (Nat.mul d (Parts.num ps))) (Nat.zero_mul (Parts.den ps))

/-- ... and its weight stays in the denominator. -/
theorem weight_of_part (w n d : Nat) (ps : Parts) :
    Eq (Parts.weight (Parts.cons w n d ps)) (Nat.add w (Parts.weight ps)) :=
  Eq.refl (Nat.add w (Parts.weight ps))

/-- A metric that does not count adds nothing to R. -/
theorem paper_uncounted (m : Metric) (reference : Signed) (resolution : Nat) (rest : Paper)
    (h : Eq (Metric.counts m) Bool.false) :
    Eq (Parts.num (Paper.parts (Paper.cons m reference resolution rest)))
      (Nat.mul (Metric.den m reference resolution) (Parts.num (Paper.parts rest))) :=
  Eq.trans
    (Eq.cong
      (fun n => Parts.num (Parts.cons (Metric.heft m) n (Metric.den m reference resolution) (Paper.parts rest)))
      (metric_uncounted m reference resolution h))
    (num_of_zero (Metric.heft m) (Metric.den m reference resolution) (Paper.parts rest))

/-! ## Order does not matter -/

/-- The same parts in another order. -/
inductive Parts.Perm : Parts → Parts → Prop where
  | nil : Perm Parts.nil Parts.nil
  | skip (w n d : Nat) {ps qs : Parts} (h : Perm ps qs) : Perm (Parts.cons w n d ps) (Parts.cons w n d qs)
  | swap (w n d w' n' d' : Nat) (ps : Parts) :
      Perm (Parts.cons w n d (Parts.cons w' n' d' ps)) (Parts.cons w' n' d' (Parts.cons w n d ps))
  | trans {ps qs rs : Parts} (h : Perm ps qs) (k : Perm qs rs) : Perm ps rs

theorem den_perm {ps qs : Parts} (h : Parts.Perm ps qs) : Eq (Parts.den ps) (Parts.den qs) :=
  Parts.Perm.rec (motive := fun ps qs _ => Eq (Parts.den ps) (Parts.den qs)) (Eq.refl 1)
    (fun _ _ d {_} {_} _ ih => Eq.cong (Nat.mul d) ih)
    (fun _ _ d _ _ d' ps => Nat.mul_left_comm d d' (Parts.den ps))
    (fun _ _ ih ik => Eq.trans ih ik) h

theorem weight_perm {ps qs : Parts} (h : Parts.Perm ps qs) : Eq (Parts.weight ps) (Parts.weight qs) :=
  Parts.Perm.rec (motive := fun ps qs _ => Eq (Parts.weight ps) (Parts.weight qs)) (Eq.refl 0)
    (fun w _ _ {_} {_} _ ih => Eq.cong (Nat.add w) ih)
    (fun w _ _ w' _ _ ps => Nat.add_left_comm w w' (Parts.weight ps))
    (fun _ _ ih ik => Eq.trans ih ik) h

/-- d * (d' * r + k' * D) + k * (d' * D) = d' * (d * r + k * D) + k' * (d * D). -/
theorem num_swap (d d' k k' r D : Nat) :
    Eq (Nat.add (Nat.mul d (Nat.add (Nat.mul d' r) (Nat.mul k' D))) (Nat.mul k (Nat.mul d' D)))
      (Nat.add (Nat.mul d' (Nat.add (Nat.mul d r) (Nat.mul k D))) (Nat.mul k' (Nat.mul d D))) :=
  Eq.trans
    (Eq.cong₂ Nat.add
      (Eq.trans (Nat.mul_add d (Nat.mul d' r) (Nat.mul k' D))
        (Eq.cong₂ Nat.add (Nat.mul_left_comm d d' r) (Nat.mul_left_comm d k' D)))
      (Nat.mul_left_comm k d' D))
    (Eq.trans
      (Nat.add_right_comm (Nat.mul d' (Nat.mul d r)) (Nat.mul k' (Nat.mul d D)) (Nat.mul d' (Nat.mul k D)))
      (Eq.cong (fun x => Nat.add x (Nat.mul k' (Nat.mul d D)))
        (Eq.symm (Nat.mul_add d' (Nat.mul d r) (Nat.mul k D)))))

theorem num_perm {ps qs : Parts} (h : Parts.Perm ps qs) : Eq (Parts.num ps) (Parts.num qs) :=
  Parts.Perm.rec (motive := fun ps qs _ => Eq (Parts.num ps) (Parts.num qs)) (Eq.refl 0)
    (fun w n d {_} {_} h ih =>
      Eq.cong₂ (fun x y => Nat.add (Nat.mul d x) (Nat.mul (Nat.mul w n) y)) ih (den_perm h))
    (fun w n d w' n' d' ps => num_swap d d' (Nat.mul w n) (Nat.mul w' n') (Parts.num ps) (Parts.den ps))
    (fun _ _ ih ik => Eq.trans ih ik) h

/-- A weighted mean does not depend on order. -/
theorem mean_perm {ps qs : Parts} (h : Parts.Perm ps qs) : Eq (Parts.mean ps) (Parts.mean qs) :=
  Eq.cong₂ Frac.mk (num_perm h) (Eq.cong₂ Nat.mul (den_perm h) (weight_perm h))

/-- The same metrics of a paper in another order. -/
inductive Paper.Perm : Paper → Paper → Prop where
  | nil : Perm Paper.nil Paper.nil
  | skip (m : Metric) (o : Signed) (r : Nat) {p q : Paper} (h : Perm p q) : Perm (Paper.cons m o r p) (Paper.cons m o r q)
  | swap (m : Metric) (o : Signed) (r : Nat) (m' : Metric) (o' : Signed) (r' : Nat) (p : Paper) :
      Perm (Paper.cons m o r (Paper.cons m' o' r' p)) (Paper.cons m' o' r' (Paper.cons m o r p))
  | trans {p q s : Paper} (h : Perm p q) (k : Perm q s) : Perm p s

theorem paper_parts_perm {p q : Paper} (h : Paper.Perm p q) : Parts.Perm (Paper.parts p) (Paper.parts q) :=
  Paper.Perm.rec (motive := fun p q _ => Parts.Perm (Paper.parts p) (Paper.parts q)) Parts.Perm.nil
    (fun m o r {_} {_} _ ih => Parts.Perm.skip (Metric.heft m) (Metric.num m o r) (Metric.den m o r) ih)
    (fun m o r m' o' r' p => Parts.Perm.swap (Metric.heft m) (Metric.num m o r) (Metric.den m o r)
      (Metric.heft m') (Metric.num m' o' r') (Metric.den m' o' r') (Paper.parts p))
    (fun _ _ ih ik => Parts.Perm.trans ih ik) h

/-- R does not depend on the order of metrics. -/
theorem paper_perm {p q : Paper} (h : Paper.Perm p q) : Eq (Paper.mean p) (Paper.mean q) :=
  mean_perm (paper_parts_perm h)

/-- The same papers in another order, or with metrics in another order. -/
inductive Papers.Perm : Papers → Papers → Prop where
  | nil : Perm Papers.nil Papers.nil
  | skip {p q : Paper} {ps qs : Papers} (h : Paper.Perm p q) (hs : Perm ps qs) :
      Perm (Papers.cons p ps) (Papers.cons q qs)
  | swap (p q : Paper) (ps : Papers) : Perm (Papers.cons p (Papers.cons q ps)) (Papers.cons q (Papers.cons p ps))
  | trans {ps qs rs : Papers} (h : Perm ps qs) (k : Perm qs rs) : Perm ps rs

theorem papers_parts_perm {ps qs : Papers} (h : Papers.Perm ps qs) :
    Parts.Perm (Papers.parts ps) (Papers.parts qs) :=
  Papers.Perm.rec (motive := fun ps qs _ => Parts.Perm (Papers.parts ps) (Papers.parts qs)) Parts.Perm.nil
    (fun {p} {_} {ps} {qs} h _ ih =>
      Eq.turn (fun (f : Frac) => Parts.Perm (Papers.parts (Papers.cons p ps)) (Parts.cons 1 f.num f.den (Papers.parts qs)))
        (paper_perm h) (Parts.Perm.skip 1 (Paper.mean p).num (Paper.mean p).den ih))
    (fun p q ps => Parts.Perm.swap 1 (Paper.mean p).num (Paper.mean p).den 1 (Paper.mean q).num (Paper.mean q).den
      (Papers.parts ps))
    (fun _ _ ih ik => Parts.Perm.trans ih ik) h

/-- O-Eval depends neither on the order of papers nor on the order of metrics in a paper. -/
theorem oEval_perm {a b : Paper} {ps qs : Papers} (h : Paper.Perm a b) (hs : Papers.Perm ps qs) :
    Eq (oEval a ps) (oEval b qs) :=
  Eq.trans
    (Papers.Perm.rec (motive := fun ps qs _ => Eq (oEval a ps) (oEval a qs)) (Eq.refl (oEval a Papers.nil))
      (fun {_} {_} {_} {_} k ks _ => mean_perm (papers_parts_perm (Papers.Perm.skip k ks)))
      (fun p q ps => mean_perm (papers_parts_perm (Papers.Perm.swap p q ps)))
      (fun _ _ ih ik => Eq.trans ih ik) hs)
    (Papers.rec (motive := fun qs => Eq (oEval a qs) (oEval b qs)) (paper_perm h)
      (fun q rest _ => Eq.refl (oEval b (Papers.cons q rest))) qs)

end TBMM
