"""Every attack on every backend: what it comes to, that the host is unharmed, and that the next box is fine."""

from __future__ import annotations

import cases_answer
import cases_memory
import cases_network
import cases_output
import cases_privileges
import cases_processes
import cases_secrets
import cases_shell
import cases_terminal
import pytest
from host_state import MOST_GROWTH_BYTES, Host, own_memory_bytes, settled
from hostile_case import NEXT, Case, play

from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.image import Image

MODULES = (
    cases_processes, cases_memory, cases_output, cases_shell, cases_terminal, cases_network, cases_privileges,
    cases_secrets, cases_answer,
)  # fmt: skip
CASES: tuple[Case, ...] = tuple(case for module in MODULES for case in module.CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_attack(case: Case, sandbox: Sandbox, image: Image, host: Host) -> None:
    before, memory = host.state(), own_memory_bytes()
    wrong = play(case, sandbox, image, host)
    wrong += [f"next: {text}" for text in play(NEXT, sandbox, image, host)]
    wrong += settled(host, before)
    grown = own_memory_bytes() - memory
    if grown > MOST_GROWTH_BYTES:
        wrong.append(f"this process grew by {grown} bytes; the limit is {MOST_GROWTH_BYTES} bytes")
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_the_suite_is_whole() -> None:
    assert len(CASES) >= 45
    assert len({case.name for case in CASES}) == len(CASES)


def test_what_a_backend_does_not_promise_is_in_its_table(sandbox: Sandbox) -> None:
    named = {entry.partition(":")[0] for entry in sandbox.known_gaps}  # type: ignore[attr-defined]
    assert {case.gap[sandbox.name] for case in CASES if sandbox.name in case.gap} <= named
