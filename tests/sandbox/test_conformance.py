"""The conformance suite: real backends keep it, but for gaps named with reasons; backends with faults do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.errors import BoxLost, SandboxUnavailable, UsageError
from tbmm_env.limits import GIB, MIB
from tbmm_env.record import Artifact, CommandResult
from tbmm_env.sandbox import conformance
from tbmm_env.sandbox.base import Box, BoxSpec, PreparingSandbox, Sandbox
from tbmm_env.sandbox.conformance import Check, Finding
from tbmm_env.sandbox.image import Image
from tbmm_env.sandbox.pool import Pool
from tbmm_env.sandbox.scripted import Scripted, ScriptedBox, ScriptedSandbox, printed

CHECKS = conformance.checks()
NO_IMAGE = Image(path=Path("/nowhere"), key="0" * 16, docker_tag="none")
WORDS = ("one", "two", "three", "four")

each_check = pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])


def only(sandbox: Sandbox, name: str, image: Image = NO_IMAGE, **known: str) -> Finding:
    (finding,) = conformance.run(sandbox, image=image, only=[name], known=known)
    return finding


# ---------------------------------------------------------------- real backends


@each_check
def test_a_real_backend(sandbox: Sandbox, image: Image, check: Check) -> None:
    known = conformance.known_gaps(sandbox.name, root=os.geteuid() == 0)
    (finding,) = conformance.run(sandbox, image=image, known=known, only=[check.name])
    assert finding.status == ("known_gap" if check.name in known else "kept"), finding.detail


ORDINARY = """
import json, os
from tbmm_env.sandbox import conformance, image
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
found = image.find()
def run(**more): return conformance.run(BubblewrapSandbox(), image=found, **more)
run(only=["state.folder", "view.pixels"])  # loads what is loaded late, while files can be read
os.setgroups([]); os.setgid(54321); os.setuid(54321)
findings = run(known=conformance.known_gaps("bwrap", root=False))
print(json.dumps([[finding.check.name, finding.status, finding.detail] for finding in findings]))
"""


@pytest.mark.bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user; as one, the test above is this test")
def test_bubblewrap_of_an_ordinary_user(bwrap_sandbox: Sandbox) -> None:
    done = subprocess.run([sys.executable, "-c", ORDINARY], capture_output=True, text=True, check=False, timeout=590)
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert [name for name, _, _ in findings] == [check.name for check in CHECKS]
    assert [finding for finding in findings if finding[1] not in ("kept", "known_gap")] == []
    gaps = {name for name, status, _ in findings if status == "known_gap"}
    assert gaps == set(conformance.known_gaps("bwrap", root=False))


@pytest.mark.bwrap
@pytest.mark.parametrize("theme", ["files", "state", "requests", "collect", "lifetime"])
def test_warm_boxes_of_a_pool(bwrap_sandbox: Sandbox, image: Image, theme: str) -> None:
    names = [check.name for check in CHECKS if check.theme == theme and check.name != "files.scientific-programs"]
    known = {name: why for name, why in conformance.known_gaps("bwrap", root=True).items() if name in names}
    assert isinstance(bwrap_sandbox, PreparingSandbox)
    with Pool(bwrap_sandbox, boxes=2) as pool:
        findings = conformance.run(pool, image=image, only=names, known=known)
    assert len(findings) == len(names)
    assert [finding for finding in findings if finding.status not in ("kept", "known_gap")] == []


# ---------------------------------------------------------------- the scripted fake


def leave(word: str) -> Callable[[ScriptedBox], CommandResult]:
    def write(box: ScriptedBox) -> CommandResult:
        box.files["/workspace/answer.json"] = f"{word}\n".encode()
        return printed("")

    return write


def fake(**results: Scripted) -> ScriptedSandbox:
    """The fake with the few commands that the checks of the protocol itself need."""
    return ScriptedSandbox(results={f"echo {word} > answer.json": leave(word) for word in WORDS} | results)


NO_PROCESS = "no process is started"
FAKE_GAPS = {
    name: reason
    for reason, names in {
        NO_PROCESS: """
            files.task-names files.task-bytes files.task-is-read-only files.workspace files.nothing-else-is-writable
            files.program-in-workspace files.program-in-tmp files.program-in-dev-shm files.shared-memory
            files.environment files.scientific-programs
            state.folder state.variables state.functions-and-aliases state.options state.exit-status
            status.exit-statuses status.signals status.default-signals status.many-lines status.characters
            status.largest-action
            terminal.next-action-is-typed terminal.every-way-of-waiting terminal.silent-work-is-left-alone
            terminal.silence-until-the-wall-limit terminal.no-output-s terminal.heredocs-and-pipes-are-no-terminal
            terminal.several-lines-are-typed terminal.a-dialogue terminal.ctrl-c terminal.ctrl-d terminal.ctrl-z
            terminal.ctrl-backslash terminal.stopped-waiting-meanwhile terminal.wall-limit-of-a-waiting-program
            terminal.a-typed-line-that-is-too-long
            screens.top screens.less screens.curses screens.tmux screens.tmux-waits-for-input
            screens.a-terminal-left-in-raw-mode
            output.every-byte output.controls-arrive output.multibyte-text output.characters-written-in-parts
            output.order output.no-output output.step-output-bytes output.long-output output.a-flood
            output.a-pipe-is-fast output.output-between-actions
            jobs.a-job-does-not-hold-an-action jobs.jobs-live-on jobs.a-job-that-prints-does-not-hold-an-action
            jobs.job-control jobs.a-result-in-the-background
            endings.the-shell-is-restarted endings.what-stays-after-exit endings.everybody-is-killed
            endings.the-shell-dies-between-actions endings.deletions
            limits.step-wall-s limits.the-shell-outlives-the-wall-limit limits.partial-output limits.cpus
            limits.memory-of-one-process limits.memory-of-all-processes limits.death-by-memory limits.pids
            limits.pids-of-each-box limits.a-fork-bomb limits.descriptors limits.startup-wall-s
            storage.workspace-bytes storage.tmp-bytes storage.shm-bytes storage.inodes storage.many-files
            storage.sparse-files storage.a-full-disk
            faults.of-commands faults.of-what-is-printed faults.of-memory faults.of-processes
            requests.submit-from-anywhere requests.between-actions requests.check-among-the-living requests.checks
            view.pixels view.formats view.pages view.view-pixels view.view-files view.view-file-bytes
            view.what-is-no-picture
            collect.any-bytes collect.artifact-bytes collect.links collect.what-is-no-file collect.folders
            collect.nobody-writes-meanwhile collect.links-that-are-swapped collect.the-box-works-on
            collect.while-a-program-waits
            lifetime.close-while-a-command-runs lifetime.close-a-busy-box lifetime.next-box-is-new
            lifetime.several-threads lifetime.one-dies-alone
""",
    }.items()
    for name in names.split()
}


@each_check
def test_the_scripted_fake(check: Check) -> None:
    (finding,) = conformance.run(fake(), image=NO_IMAGE, known=FAKE_GAPS, only=[check.name])
    assert finding.status == ("known_gap" if check.name in FAKE_GAPS else "kept"), finding.detail


# ---------------------------------------------------------------- the suite itself


def test_checks_are_named_and_told() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) > 100
    for check in CHECKS:
        theme, _, rest = check.name.partition(".")
        assert theme == check.theme
        assert rest.replace("-", "").isalnum(), check.name
        assert check.text.endswith("."), check.name
        assert "\n" not in check.text, check.name


@pytest.mark.parametrize("name", ["bwrap", "docker", "mine"])
@pytest.mark.parametrize("root", [True, False])
def test_known_gaps_name_checks(name: str, root: bool) -> None:
    gaps = conformance.known_gaps(name, root=root)
    assert set(gaps) <= {check.name for check in CHECKS}
    assert all(gaps.values())
    assert bool(gaps) == (name == "bwrap")


def test_statuses() -> None:
    kept, violated = "lifetime.close", "state.folder"
    assert only(fake(), kept).status == "kept"
    assert only(fake(), kept).detail == ""
    finding = only(fake(), kept, **{kept: "said to be so"})
    assert (finding.status, "said to be so" in finding.detail) == ("unexpectedly_kept", True)
    finding = only(fake(), violated)
    assert finding.status == "violated"
    assert "output of 'pwd" in finding.detail
    assert "expected '/tmp/数据/子\\n', found ''" in finding.detail
    finding = only(fake(), violated, **{violated: NO_PROCESS})
    assert finding.status == "known_gap"
    assert finding.detail.startswith(NO_PROCESS)


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no conformance check 'state\.nothing'"):
        conformance.run(fake(), image=NO_IMAGE, only=["state.nothing"])
    with pytest.raises(UsageError, match=r"no conformance check 'state\.nothing'"):
        conformance.run(fake(), image=NO_IMAGE, known={"state.nothing": "typing error"}, only=[])


def test_a_backend_that_cannot_be_used_is_no_finding() -> None:
    with pytest.raises(SandboxUnavailable):
        conformance.run(ScriptedSandbox(unavailable=SandboxUnavailable("no daemon")), image=NO_IMAGE, only=[])


def test_a_check_that_hangs_is_ended_by_closing_its_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(box: ScriptedBox) -> CommandResult:
        while not box.closed:
            pass
        raise BoxLost("the box was closed meanwhile")

    monkeypatch.setattr("tbmm_env.sandbox.conformance.check.CHECK_WALL_S", 0.2)
    finding = only(fake(check=hang), "requests.check")
    assert finding.status == "violated"
    assert "the box was closed meanwhile" in finding.detail


# ---------------------------------------------------------------- backends with a fault


class Faulty(ScriptedBox):
    """A box with the fault that its class attribute names."""

    fault = ""

    def run(self, command: str, *, wall_s: float, on_check: Any) -> CommandResult:
        if self.fault == "a used box lives on":
            self.closed = False
        if self.fault == "errors of on_check are swallowed" and command == "check":
            try:
                return super().run(command, wall_s=wall_s, on_check=on_check)
            except KeyError:
                return printed("")
        found = super().run(command, wall_s=wall_s, on_check=on_check)
        if self.fault == "submit is remembered" and "submit" in self.commands:
            return replace(found, submitted=True)
        if self.fault == "commands outlast their limit":
            return replace(found, wall_s=wall_s + 100.0)
        return found

    def collect(self, path: str = "/workspace/answer.json", max_bytes: int | None = None) -> Artifact:
        found = super().collect(path, None if self.fault == "max_bytes is not heeded" else max_bytes)
        if self.fault == "links are followed" and found.status == "missing":
            return Artifact(status="link")
        if self.fault == "the hash is wrong":
            return replace(found, sha256="0" * 64)
        return found

    def close(self) -> None:
        if self.fault == "closing twice fails" and self.closed:
            raise BoxLost("it is closed")
        super().close()

    def __enter__(self) -> Any:
        return ScriptedBox(self.spec, {}, {}) if self.fault == "a block gives another box" else self


class FaultySandbox(ScriptedSandbox):
    """Boxes with a fault, or with one file system for all."""

    fault = ""

    def start(self, spec: BoxSpec) -> ScriptedBox:
        box = super().start(spec)
        faulty = Faulty(box.spec, box.results, self.shared if self.fault == "boxes share files" else box.files)
        faulty.fault = self.fault
        return faulty

    shared: dict[str, bytes | Artifact]


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("a used box lives on", "lifetime.close"),
        ("closing twice fails", "lifetime.close"),
        ("a block gives another box", "lifetime.context"),
        ("boxes share files", "lifetime.several-boxes"),
        ("errors of on_check are swallowed", "requests.an-error-of-the-owners"),
        ("submit is remembered", "requests.submit"),
        ("commands outlast their limit", "requests.submit"),
        ("max_bytes is not heeded", "collect.too-large"),
        ("links are followed", "collect.nothing"),
        ("the hash is wrong", "collect.a-regular-file"),
    ],
)
def test_a_fault_of_a_backend_is_found(fault: str, name: str) -> None:
    assert only(fake(), name).status == "kept"
    sandbox = FaultySandbox(results=fake().results)
    sandbox.fault, sandbox.shared = fault, {}
    finding = only(sandbox, name)
    assert finding.status == "violated", fault
    assert finding.detail


class OtherLimits:
    """A real backend whose boxes have another limit than they were asked for."""

    name = "other"

    def __init__(self, sandbox: Sandbox, **limits: Any) -> None:
        self.sandbox, self.limits = sandbox, limits

    def probe(self) -> None:
        self.sandbox.probe()

    def start(self, spec: BoxSpec) -> Box:
        return self.sandbox.start(replace(spec, limits=replace(spec.limits, **self.limits)))


@pytest.mark.bwrap
@pytest.mark.parametrize(
    ("limit", "name", "lax", "strict"),
    [
        ("step_output_bytes", "output.step-output-bytes", 2000, 500),
        ("no_output_s", "terminal.no-output-s", 12.0, 0.1),
        ("memory_bytes", "limits.memory-of-one-process", 2 * GIB, 200 * MIB),
        ("pids", "limits.pids", 200, 15),
        ("workspace_bytes", "storage.workspace-bytes", 64 * MIB, 16 * MIB),
        ("tmp_bytes", "storage.tmp-bytes", 32 * MIB, 8 * MIB),
        ("shm_bytes", "storage.shm-bytes", 16 * MIB, 4 * MIB),
        ("artifact_bytes", "collect.artifact-bytes", 200_000, 50_000),
        ("checks", "requests.checks", 9, 1),
        ("view_files", "view.view-files", 9, 1),
        ("view_pixels", "view.view-pixels", 1 << 20, 5000),
        ("view_file_bytes", "view.view-file-bytes", 1 << 20, 1000),
    ],
)
def test_another_limit_is_found(
    bwrap_sandbox: Sandbox, image: Image, limit: str, name: str, lax: float, strict: float
) -> None:
    for value in (lax, strict):
        finding = only(OtherLimits(bwrap_sandbox, **{limit: value}), name, image)
        assert finding.status == "violated", value


@pytest.mark.bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="a known gap of an ordinary user")
def test_another_processor_share_is_found(bwrap_sandbox: Sandbox, image: Image) -> None:
    for cpus in (2.0, 0.05):
        assert only(OtherLimits(bwrap_sandbox, cpus=cpus), "limits.cpus", image).status == "violated", cpus


@pytest.mark.docker
def test_another_number_of_inodes_is_found(docker_sandbox: Sandbox, image: Image) -> None:
    for inodes in (2000, 300):
        assert only(OtherLimits(docker_sandbox, inodes=inodes), "storage.inodes", image).status == "violated"
