"""Terminal text as the agent sees it, and actions that are not run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbmm_env import shell
from tbmm_env.limits import TRAIN
from tbmm_env.record import CommandResult, ViewedImage

LIMITS = replace(TRAIN, action_bytes=100, step_output_bytes=64)


def seen(head: bytes, tail: bytes = b"", **more: Any) -> str:
    fields: dict[str, Any] = {"dropped_bytes": 0, "ending": "exited", "exit_status": 0, "wall_s": 0.1} | more
    return shell.observe(CommandResult(head=head, tail=tail, **fields), LIMITS).terminal


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain", "plain\n"),
        (b"two\nlines\n", "two\nlines\n"),
        ("数学建模\t✓\n".encode(), "数学建模\t✓\n"),
        (b"\xff\xfe bad \xe4\xb8", "\ufffd\ufffd bad \ufffd\n"),
        (b"dos\r\nline\r\r\n", "dos\nline\n"),
        (b"\x1b[31mred\x1b[0m \x1b[1;4mb\x1b[m\n", "red b\n"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\n", "ab\n"),
        (b"\x1bPdcs\x1b\\c\x1b(Bd\x1b=e\x1b7f\n", "cdef\n"),
        (b"\x1b]0;never closed\nnext\n", "\nnext\n"),
        ("\x9b31mc1\x85\x9d\n".encode(), "c1\n"),
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"working\r", "working\n"),
        (b"a\r\r\nb\n", "a\nb\n"),
        (b"abc\b\bX\n", "aX\n"),
        (b"\b\bx\n", "x\n"),
        (b"N\bNA\bAM\bME\bE\n", "NAME\n"),
        (b"nul\0bel\x07del\x7fvt\x0bff\x0c\n", "nulbeldelvtff\n"),
        ("para\u2028graph\u2029end\n".encode(), "para\ngraph\nend\n"),
        ("\ufeffbom \u202eright\u2066x\n".encode(), "bom rightx\n"),
        (b"cut \x1b[3", "cut [3\n"),
    ],
)
def test_output_becomes_text(data: bytes, text: str) -> None:
    assert seen(data) == text + "[exit status 0]\n"


def test_a_character_cut_between_head_and_tail() -> None:
    data = "模型".encode()
    assert seen(data[:4], data[4:]) == "模型\n[exit status 0]\n"


@pytest.mark.parametrize("character", ["é", "模", "🧮", "a"])
def test_where_bytes_are_left_out_no_half_character_is_shown(character: str) -> None:
    data = character.encode() * 3
    for cut in range(1, len(data)):
        text = seen(data[:cut], data[cut:], dropped_bytes=7)
        assert "\ufffd" not in text
        assert "[... 7 bytes not shown; an action shows 64 bytes, half of them from its end ...]\n" in text


def test_an_escape_cut_at_the_end_of_the_head_is_dropped() -> None:
    text = seen(b"start \x1b[38;5", b"end\n", dropped_bytes=9)
    assert text.startswith("start \n[... 9 bytes")
    assert text.endswith("...]\nend\n[exit status 0]\n")


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 1) | st.integers(2, 10**12))
def test_any_bytes_give_clean_text(head: bytes, tail: bytes, dropped: int) -> None:
    limits = replace(TRAIN, step_output_bytes=600)
    result = CommandResult(
        head=head, tail=tail, dropped_bytes=dropped, ending="wall_limit", exit_status=None, submitted=True, wall_s=1.0
    )
    text = shell.observe(result, limits).terminal
    assert len(text.encode("utf-8")) <= shell.terminal_bytes(limits)
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029"]
    assert text == shell.observe(replace(result, wall_s=9.0), limits).terminal


# ---------------------------------------------------------------- notices


def test_each_ending_says_which_limit_and_how_to_go_on() -> None:
    assert seen(b"", exit_status=137) == "[exit status 137]\n"
    text = seen(b"part", ending="wall_limit", exit_status=None)
    assert text.startswith("part\n[stopped: the action reached its limit of 120 s wall time.")
    assert "background" in text
    text = seen(b"? ", ending="awaiting_input", exit_status=None)
    assert "nothing was printed for 10 s" in text
    assert "the next action is typed to it" in text
    text = seen(b"", ending="shell_restarted", exit_status=3)
    assert "started anew in /workspace" in text
    assert text.endswith("[exit status 3]\n")
    text = seen(b"", ending="box_died", exit_status=None, evidence="oom_kill 3 at 0x7f")
    assert "memory (2147483648 bytes)" in text
    assert "0x7f" not in text
    assert seen(b"", submitted=True) == "[submitted: the episode ends]\n[exit status 0]\n"


def test_a_wall_limit_below_the_steps_is_the_episodes() -> None:
    result = CommandResult(head=b"", tail=b"", dropped_bytes=0, ending="wall_limit", exit_status=None, wall_s=3.0)
    text = shell.observe(result, LIMITS, wall_s=2.7182).terminal
    assert text == "[stopped: the episode's 600 s of wall time are used up]\n"
    assert "120 s" in shell.observe(result, LIMITS, wall_s=LIMITS.step_wall_s).terminal


def test_figures_in_order() -> None:
    images = tuple(ViewedImage(path=str(n), pixels=np.full((n, 1, 3), n, np.uint8)) for n in (1, 2))
    result = CommandResult(
        head=b"", tail=b"", dropped_bytes=0, ending="exited", exit_status=0, images=images, wall_s=0.0
    )
    assert [figure.shape for figure in shell.observe(result, LIMITS).figures] == [(1, 1, 3), (2, 1, 3)]


# ---------------------------------------------------------------- actions


@pytest.mark.parametrize("action", ["", "true", "a" * 100, "模" * 33, "a\nb\r\n\t\x1b"])
def test_actions_that_may_run(action: str) -> None:
    assert shell.refuse(action, LIMITS) is None


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("a" * 101, "the action has 101 bytes; the limit is 100 bytes"),
        ("模" * 34, "the action has 102 bytes; the limit is 100 bytes"),
        ("echo \0", "the action has a NUL character at position 5"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_actions_that_are_not_run(action: str, why: str) -> None:
    notice = shell.refuse(action, LIMITS)
    assert notice is not None
    assert notice.startswith("[not run: ")
    assert why in notice
