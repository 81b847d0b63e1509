"""How a rollout is counted and shown."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tbmm_env.rollout import display
from tbmm_env.rollout.display import Display, figures
from tbmm_env.rollout.jobs import Job
from tbmm_env.rollout.run import INTERRUPTED
from tbmm_env.rollout.tally import NAMED_JOBS, Tally
from tbmm_env.rollout.worker import Failure, Report


def tallied() -> Tally:
    tally = Tally(planned=10, skipped=2, running=2)
    tally.started_s -= 100.0
    tally.finished(Report(key="a", outcome="scored", reward=0.5, parts_s={"judge": 1.0}))
    tally.finished(Report(key="b", outcome="infeasible", reward=0.0, parts_s={"judge": 2.0, "store": 0.5}))
    tally.failed(Failure(kind="BoxLost", message="gone [red]"))
    return tally


def test_figures() -> None:
    summary = tallied().summary()
    assert summary.reward_mean == 0.25
    assert dict(summary.parts_s) == {"judge": 3.0, "store": 0.5}
    assert summary.eta_s == pytest.approx(300, abs=5)
    line = figures(summary)
    for part in ("running 2", "2 from before", "reward 0.250", "scored 1", "infeasible 1", "BoxLost x1", "72 episodes"):
        assert part in line


def test_figures_of_an_end() -> None:
    tally = Tally(planned=4, running=1, stopped=INTERRUPTED)
    assert "Ctrl-C again" in figures(tally.summary())
    tally.running = 0
    assert figures(tally.summary()).endswith("stopped")
    tally.stopped = "3 failures in a row"
    assert "stopped: 3 failures in a row" in figures(tally.summary())
    assert tally.summary().eta_s is None


def test_failures_in_a_row_end_with_an_episode() -> None:
    tally = tallied()
    assert tally.in_a_row == 1
    tally.finished(Report(key="c", outcome="scored"))
    assert tally.in_a_row == 0


def test_a_summary_names_a_bounded_number_of_jobs() -> None:
    tally = Tally(planned=1000)
    for seed in range(NAMED_JOBS + 50):
        tally.gave_up(Job(task="a", seed=seed))
    summary = tally.summary()
    assert (summary.unfinished, len(summary.unfinished_jobs)) == (NAMED_JOBS + 50, NAMED_JOBS)


@pytest.mark.parametrize("terminal", [True, False])
def test_display(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "PLAIN_EVERY_S", 0.0)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=200)
    with Display(console) as shown:
        shown(tallied().summary())
        shown(tallied().summary())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("gone [red]") == 1
    assert "4/10" in text
    assert "scored 1" in text
