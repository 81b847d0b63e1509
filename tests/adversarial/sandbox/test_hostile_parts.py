"""The suite's own checkers reject what they must: a host with something left, a result that was not asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from host_state import CGROUPS, Host, State, differences
from hostile_case import Case, Step, _uncollected

from tbmm_env.record import Artifact, CommandResult
from tbmm_env.sandbox import owner

GOOD = CommandResult(
    head=b"fine\n", tail=b"", dropped_bytes=0, ending="exited", exit_status=0, evidence="", submitted=False, images=(),
    wall_s=1.0,
)  # fmt: skip
ASKED = Step(command="x", wall_s=1.0, ending="exited", status=0, prints="fine\n", shows=("ine",), hides=("bad",))


def test_a_good_result_has_no_complaint() -> None:
    assert list(ASKED.complaints(GOOD)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"exit_status": 3}, "is command_failed, not none"),
        ({"exit_status": 137, "evidence": "oom_kill 1"}, "is limit_hit, not none"),
        ({"ending": "wall_limit", "exit_status": None}, "ended by wall_limit, not exited"),
        ({"ending": "box_died", "exit_status": None}, "is agent_broke_box, not none"),
        ({"wall_s": 99.0}, "took 99.0 s; its limit was 1 s"),
        ({"head": b"fine"}, "did not print just 'fine\\n'"),
        ({"head": b"f"}, "does not show 'ine'"),
        ({"tail": b"bad"}, "shows 'bad'"),
    ],
)
def test_a_step_complains(change: dict[str, Any], said: str) -> None:
    assert said in list(ASKED.complaints(replace(GOOD, **change)))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("missing", Artifact(status="link")),
        ("missing", Artifact(status="missing", data=b"x")),
        (b"right", Artifact(status="regular", data=b"wrong")),
        (b"", Artifact(status="missing")),
    ],
)
def test_what_is_collected_is_compared(asked: Any, found: Artifact) -> None:
    assert list(_uncollected(Case(name="", steps=(), collected=asked), found))


def left_process() -> Callable[[], None]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    def end() -> None:
        child.kill()
        child.wait()

    return end


def left_file() -> Callable[[], None]:
    path = Path(tempfile.gettempdir()) / "left"
    path.touch()
    return path.unlink


def left_descriptor() -> Callable[[], None]:
    descriptor = os.memfd_create("left")
    return lambda: os.close(descriptor)


def left_shared_memory() -> Callable[[], None]:
    path = Path(f"/dev/shm/tbmm-left-{os.getpid()}")
    path.touch()
    return path.unlink


def left_group() -> Callable[[], None]:
    folder = GROUPED / "tbmm" / f"{owner.label()}.left"
    folder.mkdir(parents=True)
    return folder.rmdir


GROUPED = CGROUPS / "pids" if (CGROUPS / "pids").is_dir() else CGROUPS
LEFT = {
    "processes": left_process, "files": left_file, "open_files": left_descriptor, "shared_memory": left_shared_memory,
}  # fmt: skip
if os.access(GROUPED, os.W_OK):
    LEFT["groups"] = left_group


@pytest.mark.bwrap
@pytest.mark.parametrize("field", LEFT)
def test_what_is_left_on_the_host_is_seen(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    host = Host()
    before = host.state()
    undo = LEFT[field]()
    try:
        assert [text for text in differences(before, host.state()) if text.startswith(field)]
    finally:
        undo()
    assert differences(before, host.state()) == []


@pytest.mark.docker
def test_a_container_that_is_left_is_seen(
    docker_sandbox: Any, image: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    client = docker_sandbox._connected()
    host = Host(client=client)
    before = host.state()
    container = client.containers.create(
        image.docker_tag, ["sleep", "60"], labels={"tbmm.owner": owner.label()}, network_mode="none", volumes=["/task"]
    )
    try:
        container.start()
        host.mark()
        wrong = differences(before, host.state())
    finally:
        container.remove(force=True, v=True)
    assert any(text.startswith("containers: ") for text in wrong)
    assert any(text.startswith("processes: ") for text in wrong)
    assert any("overlay" in text for text in wrong if text.startswith("left: "))
    assert any("cgroup" in text for text in wrong if text.startswith("left: "))
    assert any(text.count(" ") == 1 for text in wrong if text.startswith("left: "))  # the volume


def test_every_part_of_the_host_is_compared() -> None:
    state = State(
        processes=frozenset(), groups=frozenset(), containers=frozenset(), mounts=frozenset(), marked=frozenset(),
        ipc="", shared_memory=frozenset(), files=frozenset(), open_files=(), sockets=1, name="host",
    )  # fmt: skip
    assert differences(state, state) == []
    for change in (
        {"mounts": frozenset({"one"})}, {"marked": frozenset({"one"})}, {"ipc": "one"}, {"sockets": 20}, {"name": "x"},
        {"containers": frozenset({"one"})},
    ):  # fmt: skip
        assert differences(state, replace(state, **change)), change
