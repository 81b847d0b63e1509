"""Certificates: deterministic, lean, bounded, accepted when Python is right and rejected when it is not."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from tbmm_env.errors import BadTask, CertificateRejected, JudgeError
from tbmm_env.judge import certificate as module
from tbmm_env.judge import lean
from tbmm_env.judge import score as score_module
from tbmm_env.judge.certificate import certify, draft
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.score import band as real_band
from tbmm_env.judge.score import reward, score
from tbmm_env.judge.score import shape_score as real_shape_score
from tbmm_env.judge.score import shortfall as real_shortfall
from tbmm_env.record import Obligation, Panel, ReferenceValue, Score
from tbmm_env.specs import Form, MetricSpec, ObligationSpec

pytestmark = pytest.mark.lean

GOOD: dict[str, Any] = {"t": Fraction(100), "xs": [Fraction(-1), Fraction("1.5"), Fraction("2.5")]}
BAD: dict[str, Any] = {"t": Fraction(500), "xs": [Fraction(-1), Fraction("2.5"), Fraction("1.5")]}


def obligation(name: str, form: Form, *terms: str, **fields: Any) -> ObligationSpec:
    fields["tolerance"] = Fraction(fields.get("tolerance", 0))
    return ObligationSpec(id=name, form=form, question="q1", terms=terms, unit="s", source="physics", text="", **fields)


SPECS = [
    obligation("t_end", "bound", "answer:t", upper="replay:first", tolerance="0.00001"),
    obligation("all_within", "bound", "answer:xs[*]", lower="-5", upper="3.5"),
    obligation("rising", "order", "answer:xs[*]"),
    obligation("adds_up", "sum", "answer:xs[*]", "3.001", tolerance="0.001"),
    obligation("t_is_given", "equality", "answer:t", "100"),
    obligation("if_late", "implication", "answer:xs[*]", lower="0", when=("answer:t", "0", "50")),
    obligation("number", "count", "answer:xs[*]", lower="1", upper="3"),
    obligation("gone", "bound", "answer:absent", lower="0"),
]


def metric(key: str, **fields: Any) -> MetricSpec:
    defaults: dict[str, Any] = {
        "question": "q1",
        "unit": "m",
        "kind": "replayed",
        "direction": "higher_is_better",
        "shape": "linear",
        "weight": Fraction(1),
        "tolerance": Fraction("0.01"),
        "grid": Fraction("0.001"),
        "value": "replay:x",
        "domain": (Fraction(-1000), Fraction(1000)),
        "reason": "",
    }
    return MetricSpec(key=key, **(defaults | fields))


METRICS = [
    metric("a_m", weight=Fraction("0.3")),
    metric("b_m", weight=Fraction("0.7"), direction="lower_is_better", requires=("all_within",)),
    metric("c_m", direction="target_value", shape="ladder", ladder=(Fraction("0.1"), Fraction("0.05"))),
    metric("d_m", direction="exact_value", shape="exact"),
    metric("e_m", requires=("gone",)),
    metric("f_m"),
    metric("g_m", kind="reported"),
]
VALUES = {
    "a_m": Fraction("95.123"),
    "b_m": Fraction(31),
    "c_m": Fraction("95.001"),
    "d_m": Fraction(-7),
    "e_m": Fraction(9),
    "g_m": Fraction(1),
}
WEIGHED = [spec.key for spec in METRICS if spec.kind != "reported"]
PANEL = Panel(
    version="1",
    references=tuple(
        ReferenceValue(paper=paper, metric=key, value=Fraction(value), resolution=Fraction(resolution))
        for paper, key, value, resolution in [
            ("p1", "a_m", "100.5", "0.1"),
            ("p1", "b_m", "33.33", "0.01"),
            ("p2", "a_m", "120", "1"),
            ("p2", "c_m", "99", "1"),
            ("p3", "e_m", "7", "1"),
            ("p3", "d_m", "-7", "1"),
            ("p3", "g_m", "7", "1"),
            ("p4", "g_m", "7", "1"),
        ]
    ),
    anchor=dict.fromkeys(WEIGHED, Fraction(100)),
    baseline=dict.fromkeys(WEIGHED, Fraction(30)) | {"a_m": Fraction("99.9")},
)


def judged(
    answer: dict[str, Any] = GOOD, specs: Sequence[ObligationSpec] = SPECS
) -> tuple[list[Obligation], Score, Fraction]:
    obligations = list(resolve(specs, answer, {"first": Fraction("412.4738377")}, {}))
    result = score(METRICS, PANEL, VALUES, {entry.spec.id: entry.state for entry in obligations}, {})
    return obligations, result, reward(obligations, result)


class TestAccepted:
    def test_feasible(self) -> None:
        obligations, result, final = judged()
        found = certify(METRICS, PANEL, VALUES, obligations, result, final)
        assert final > 0
        assert found.accepted
        assert found.axioms == ()
        assert found.sha256 == hashlib.sha256(found.text.encode()).hexdigest()
        assert [name.rpartition(".")[2] for name in found.theorems] == ["holds_0", "verified", "o_eval", "reward"]
        assert f"reward gate anchor papers) {final.numerator} {final.denominator})" in found.text

    def test_infeasible(self) -> None:
        obligations, result, final = judged(BAD)
        found = certify(METRICS, PANEL, VALUES, obligations, result, final)
        assert final == 0
        names = [name.rpartition(".")[2] for name in found.theorems]
        violated = ["violated_0_t_end", "violated_2_rising", "violated_4_t_is_given"]
        assert names == ["holds_0", *violated, "verified", "o_eval", "reward"]
        assert "TBMM.reward gate anchor papers) 0 1)" in found.text

    def test_every_form_violated(self) -> None:
        specs = [
            obligation("b_low", "bound", "answer:xs[*]", lower="-0.9"),
            obligation("sum", "sum", "answer:xs[*]", "3.0011", tolerance="0.001"),
            obligation("if", "implication", "answer:xs[*]", lower="0", when=("answer:t", "0", "500")),
            obligation("count", "count", "answer:xs[*]", lower="4"),
            obligation("all_within", "bound", "1", lower="0"),
            obligation("gone", "bound", "answer:absent", lower="0"),
        ]
        obligations, result, final = judged(GOOD, specs)
        assert [entry.state for entry in obligations] == ["violated"] * 4 + ["holds", "unwitnessed"]
        assert certify(METRICS, PANEL, VALUES, obligations, result, final).accepted

    def test_without_obligations_or_papers(self) -> None:
        metrics, panel = METRICS[:1], dataclasses.replace(PANEL, references=())
        result = score(metrics, panel, VALUES, {}, {})
        assert certify(metrics, panel, VALUES, [], result, result.o_eval).accepted

    def test_many_obligations_and_terms(self) -> None:
        specs = [obligation(f"o{index}", "bound", "answer:xs[*]", lower="0") for index in range(120)]
        specs += [
            obligation("all_within", "order", "answer:xs[*]"),
            obligation("gone", "bound", "answer:none", lower="0"),
        ]
        specs += [
            obligation("long", "order", "answer:long[*]"),
            obligation("mixed", "bound", "answer:mixed[*]", lower="-9"),
        ]
        answer = {
            "xs": [Fraction(1)],
            "long": [Fraction(index, 7) for index in range(1234)],
            "mixed": [Fraction((-1) ** index * index, 1000) for index in range(1001)],
        }
        obligations, result, final = judged(answer, specs)
        found = certify(METRICS, PANEL, VALUES, obligations, result, final)
        assert [name for name in found.theorems if "holds" in name] == [f"{lean.NAMESPACE}.holds_{k}" for k in range(3)]

    def test_large_numbers(self) -> None:
        big = Fraction(2**510 + 1, 3)
        specs = [obligation("all_within", "bound", str(10**150), upper=str(10**150))]
        specs += [obligation("gone", "equality", "answer:x", "answer:x")]
        obligations = list(resolve(specs, {"x": big}, {}, {}))
        metrics = [metric("a_m", domain=(Fraction(0), big))]
        panel = Panel(version="1", references=(), anchor={"a_m": big}, baseline={"a_m": Fraction(1, 10**40 + 7)})
        result = score(metrics, panel, {"a_m": Fraction(10**100)}, {}, {})
        assert certify(metrics, panel, {"a_m": Fraction(10**100)}, obligations, result, result.o_eval).accepted


class TestRejected:
    @pytest.mark.parametrize("answer", [GOOD, BAD])
    @pytest.mark.parametrize("field", ["verified", "o_eval", "reward"])
    def test_a_wrong_result(self, answer: dict[str, Any], field: str) -> None:
        obligations, result, final = judged(answer)
        little = Fraction(1, 10**20)
        if field == "reward":
            final += little
        else:
            result = dataclasses.replace(result, **{field: getattr(result, field) + little})
        with pytest.raises(CertificateRejected, match=r"(?s)[Tt]ype mismatch.*\.is"):
            certify(METRICS, PANEL, VALUES, obligations, result, final)

    @pytest.mark.parametrize("index", range(7))
    def test_a_violation_passed_over(self, index: int) -> None:
        """Each obligation's state is turned round; the kernel must not accept it."""
        obligations, result, final = judged()
        assert obligations[index].state == "holds"
        obligations[index] = dataclasses.replace(obligations[index], state="violated")
        with pytest.raises(CertificateRejected, match="Type mismatch"):
            certify(METRICS, PANEL, VALUES, obligations, result, final)

    def test_a_violation_called_held(self) -> None:
        obligations, result, _ = judged(BAD)
        called = [dataclasses.replace(entry, state="holds") for entry in obligations if entry.state != "unwitnessed"]
        called += [entry for entry in obligations if entry.state == "unwitnessed"]
        with pytest.raises(CertificateRejected, match="Type mismatch"):
            certify(METRICS, PANEL, VALUES, called, result, result.o_eval)

    def test_an_infeasible_answer_with_a_reward(self) -> None:
        obligations, result, _ = judged(BAD)
        with pytest.raises(CertificateRejected, match="Type mismatch"):
            certify(METRICS, PANEL, VALUES, obligations, result, result.o_eval)

    @pytest.mark.parametrize(
        ("key", "fields"),
        [
            ("a_m", {"weight": Fraction("0.31")}),
            ("a_m", {"tolerance": Fraction("0.6")}),
            ("a_m", {"domain": (Fraction(0), Fraction(95))}),
            ("a_m", {"direction": "lower_is_better"}),
            ("c_m", {"ladder": (Fraction("0.1"), Fraction("0.08"))}),
            ("b_m", {"requires": ("gone",)}),
            ("e_m", {"requires": ()}),
        ],
    )
    def test_a_score_of_other_declarations(self, key: str, fields: dict[str, Any]) -> None:
        obligations, result, final = judged()
        other = [dataclasses.replace(spec, **fields) if spec.key == key else spec for spec in METRICS]
        with pytest.raises(CertificateRejected, match="Type mismatch"):
            certify(other, PANEL, VALUES, obligations, result, final)

    @pytest.mark.parametrize("part", ["anchor", "baseline"])
    def test_a_score_of_another_panel(self, part: str) -> None:
        obligations, result, final = judged()
        other = dataclasses.replace(PANEL, **{part: getattr(PANEL, part) | {"a_m": Fraction(60)}})
        with pytest.raises(CertificateRejected, match="Type mismatch"):
            certify(METRICS, other, VALUES, obligations, result, final)


EDGES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # what is at its limit: declaration, value, reference, baseline
    "band_of_2_percent": ({}, "99", "100", "98"),
    "band_under_2_percent": ({}, "99", "100", "98.000001"),
    "band_of_a_negative_reference": ({}, "-101", "-100", "-100"),
    "band_at_zero_is_the_tolerance": ({"tolerance": Fraction(1, 2)}, "-0.75", "0", "0"),
    "band_at_zero_is_one": ({"tolerance": Fraction(0)}, "-0.25", "0", "0"),
    "shortfall_of_the_tolerance": ({"shape": "exact"}, "99.99", "100", "50"),
    "shortfall_over_the_tolerance": ({"shape": "exact"}, "99.9899999", "100", "50"),
    "excess_of_the_band": ({}, "49.99", "100", "50"),
    "excess_over_the_band": ({}, "40", "100", "50"),
    "excess_of_a_rung": ({"shape": "ladder", "ladder": (Fraction("0.1"), Fraction("0.02"))}, "98.99", "100", "50"),
    "low_end": ({"domain": (Fraction(75), Fraction(100))}, "75", "100", "50"),
    "below_low_end": ({"domain": (Fraction(75), Fraction(100))}, "74.999", "100", "50"),
    "high_end": ({"domain": (Fraction(0), Fraction(75)), "direction": "lower_is_better"}, "75", "50", "100"),
    "beyond": ({}, "101", "100", "50"),
    "target_beyond": ({"direction": "target_value"}, "101", "100", "50"),
}


def edges() -> tuple[list[MetricSpec], Panel, dict[str, Fraction]]:
    metrics = [
        metric(key, weight=Fraction(2**index), **fields) for index, (key, (fields, *_)) in enumerate(EDGES.items())
    ]
    panel = Panel(
        version="1",
        references=(),
        anchor={key: Fraction(reference) for key, (_, _, reference, _) in EDGES.items()},
        baseline={key: Fraction(baseline) for key, (_, _, _, baseline) in EDGES.items()},
    )
    return metrics, panel, {key: Fraction(value) for key, (_, value, _, _) in EDGES.items()}


class TestEdges:
    def test_both_implementations_agree(self) -> None:
        metrics, panel, values = edges()
        result = score(metrics, panel, values, {}, {})
        assert certify(metrics, panel, values, [], result, result.o_eval).accepted

    @pytest.mark.parametrize(
        ("function", "mutant"),
        [
            ("NARROW", Fraction("0.020000001")),
            ("NARROW", Fraction("0.019999")),
            ("WIDENED", Fraction("0.0500001")),
            ("band", lambda o, b, t: abs(o - b) or t or Fraction(1)),
            ("band", lambda o, b, t: real_band(o, b, t) if o or b else Fraction(1)),
            ("band", lambda o, b, t: real_band(o, b, t) if o or b else t or Fraction(2)),
            ("shape_score", lambda s, e, w: real_shape_score(s, e + Fraction(1, 10**9), w)),
            ("shape_score", lambda s, e, w: 1 - e / w if s.shape == "linear" else real_shape_score(s, e, w)),
            ("shortfall", lambda d, o, x: real_shortfall("higher_is_better" if d == "target_value" else d, o, x)),
            ("_why_not_counted", lambda s, v, n: "" if s.domain[0] < v < s.domain[1] else "out"),
            ("_why_not_counted", lambda s, v, n: ""),
        ],
    )
    def test_a_mutant_of_the_score_is_rejected(
        self, monkeypatch: pytest.MonkeyPatch, function: str, mutant: Any
    ) -> None:
        metrics, panel, values = edges()
        monkeypatch.setattr(score_module, function, mutant)
        result = score(metrics, panel, values, {}, {})
        with pytest.raises(CertificateRejected, match="Type mismatch"):
            certify(metrics, panel, values, [], result, result.o_eval)


class TestText:
    def test_is_a_function_of_the_numbers(self) -> None:
        first, second = (draft(METRICS, PANEL, VALUES, *judged()) for _ in range(2))
        assert first == second
        shuffled = dataclasses.replace(PANEL, references=PANEL.references[::-1])
        result = score(METRICS, shuffled, VALUES, {entry.spec.id: entry.state for entry in judged()[0]}, {})
        assert result.o_eval == judged()[1].o_eval

    def test_holds_nothing_that_is_refused(self) -> None:
        for answer in (GOOD, BAD):
            assert lean.refusals(draft(METRICS, PANEL, VALUES, *judged(answer)).text) == ()

    def test_states_the_judged_numbers(self) -> None:
        """The operands read back from the text are the operands that were judged."""
        obligations, *rest = judged()
        lines = draft(METRICS, PANEL, VALUES, obligations, *rest).text.splitlines()
        written = next(line for line in lines if " o_1_all_within " in line)
        scale, tolerance = map(int, re.findall(r"\.bound (\d+) (\d+)", written)[0])
        signed = {"up": 1, "down": -1}
        numbers = [Fraction(signed[way] * int(n), scale) for way, n in re.findall(r"\.(up|down) (\d+)", written)]
        assert numbers == [obligations[1].lower, obligations[1].upper, *obligations[1].terms]
        assert tolerance == 0

    @pytest.mark.parametrize("name", ["", "A", "a-b", "a b", "é", "x" * 81, "a.b", "a\n#eval"])
    def test_an_id_that_could_be_text_is_refused(self, name: str) -> None:
        obligations, result, final = judged()
        renamed = dataclasses.replace(obligations[0], spec=dataclasses.replace(obligations[0].spec, id=name))
        with pytest.raises(BadTask, match="does not match"):
            draft(METRICS, PANEL, VALUES, [renamed, *obligations[1:]], result, final)

    def test_ids_of_eighty_characters_and_keywords(self) -> None:
        specs = [obligation("x" * 80, "bound", "1", lower="0"), obligation("sorry", "bound", "1", lower="2")]
        obligations = list(resolve(specs, {}, {}, {}))
        metrics = [metric("by", requires=("x" * 80,))]
        panel = Panel(version="1", references=(), anchor={"by": Fraction(1)}, baseline={"by": Fraction(0)})
        states = {entry.spec.id: entry.state for entry in obligations}
        result = score(metrics, panel, {"by": Fraction(1)}, states, {})
        assert certify(metrics, panel, {"by": Fraction(1)}, obligations, result, Fraction(0)).accepted


class TestBounds:
    @pytest.mark.parametrize(
        ("number", "message"),
        [
            (Fraction(2**512), "an operand has 513 bits; a certificate takes 512 bits"),
            (Fraction(1, 2**512), "an operand has 513 bits; a certificate takes 512 bits"),
        ],
    )
    def test_an_operand_too_large(self, number: Fraction, message: str) -> None:
        obligations = list(resolve([obligation("all_within", "bound", "answer:x", lower="0")], {"x": number}, {}, {}))
        with pytest.raises(JudgeError, match=message):
            draft(METRICS, PANEL, VALUES, obligations, judged()[1], Fraction(0))

    def test_denominators_without_a_bounded_common_one(self) -> None:
        values = {"x": [Fraction(1, 2**400 + 1), Fraction(1, 2**400 + 3)]}
        obligations = list(resolve([obligation("it", "bound", "answer:x[*]", lower="0")], values, {}, {}))
        with pytest.raises(JudgeError, match="a common denominator has over 512 bits"):
            draft(METRICS, PANEL, VALUES, obligations, judged()[1], Fraction(0))

    def test_too_many_operands(self, monkeypatch: pytest.MonkeyPatch) -> None:
        obligations, result, final = judged()
        count = sum(len(entry.terms) for entry in obligations)
        monkeypatch.setattr(module, "TERMS", count)
        assert draft(METRICS, PANEL, VALUES, obligations, result, final).text
        monkeypatch.setattr(module, "TERMS", count - 1)
        with pytest.raises(JudgeError, match=f"the obligations have {count} operands; a certificate takes {count - 1}"):
            draft(METRICS, PANEL, VALUES, obligations, result, final)

    def test_a_result_too_large(self) -> None:
        obligations, result, _ = judged()
        with pytest.raises(JudgeError, match="a result has 65537 bits"):
            draft(METRICS, PANEL, VALUES, obligations, result, Fraction(1, 2**65536))

    def test_a_long_result_is_written_in_hexadecimal(self) -> None:
        obligations, result, _ = judged()
        text = draft(METRICS, PANEL, VALUES, obligations, result, Fraction(1, 2**5000)).text
        assert f"1 {hex(2**5000)})" in text
        assert lean.refusals(text) == ()
