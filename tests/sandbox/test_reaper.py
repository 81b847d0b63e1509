"""Boxes are listed with their owners; a sweep takes what is surely ownerless, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.cli import main
from tbmm_env.sandbox import cgroups, docker, folders, owner, reaper, watch_program
from tbmm_env.sandbox.base import Sandbox

DYING = """
import os, signal, sys
from tbmm_env.limits import TRAIN
from tbmm_env.sandbox import image, owner, watcher
from tbmm_env.sandbox.base import BoxSpec, select
sandbox = select(sys.argv[1])
box = sandbox.start(BoxSpec(limits=TRAIN, files={"a": b"1"}, image=image.find()))
os.kill(watcher._watcher._pid, signal.SIGKILL)  # else it would clean up
print(owner.label(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def named(label: str) -> list[reaper.Found]:
    return [found for found in reaper.boxes() if found.name.startswith(label + ".")]


def test_a_living_box_is_listed_and_kept(start: Callable[..., Any], sandbox: Sandbox, capsys: Any) -> None:
    tried = start({"a": b"1"})
    (found,) = named(owner.label())
    assert (found.backend, found.owner_pid, found.ownerless) == (sandbox.name, os.getpid(), False)
    assert "folder" in found.parts
    assert ("container running" in found.parts) == (sandbox.name == "docker")
    assert ("group" in found.parts) == (sandbox.name == "bwrap" and bool(cgroups.parents()))
    assert main(["sandbox", "sweep", "--json"]) in (0, 1)
    capsys.readouterr()
    assert main(["sandbox", "ps", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert listed[found.name]["owner_pid"] == os.getpid()
    assert main(["sandbox", "ps"]) == 0
    assert tried.text("cat /task/a") == "1"
    tried.box.close()
    assert named(owner.label()) == []


def test_what_a_killed_owner_and_watcher_left_is_swept(sandbox: Sandbox) -> None:
    command = [sys.executable, "-W", "ignore", "-c", DYING, sandbox.name]
    for _ in range(5):
        label = subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout.decode().strip()
        left = named(label)
        if left:  # else another process of this machine that uses sandboxes has swept it already
            break
    assert [found.ownerless for found in left] == [True]
    reaper.sweep()
    assert named(label) == []


@pytest.mark.docker
def test_a_container_that_was_never_started_is_swept(docker_sandbox: Any, image: Any) -> None:
    client = docker_sandbox._connected()
    gone, mine = f"{owner.pid_namespace()}-{os.getpid()}-1", owner.label()
    kept: list[Any] = []
    for label, boot in ((gone, docker.boot_id()), (mine, docker.boot_id()), (gone, "another boot"), ("?", "?")):
        labels = {docker.LABEL: label, docker.BOX_LABEL: f"{label}.1.docker", docker.BOOT_LABEL: boot}
        kept.append(client.containers.create(image.docker_tag, ["true"], network_mode="none", labels=labels))
    try:
        docker.sweep(client)
        left = {one["Id"] for one in client.api.containers(all=True)}
        assert [one.id in left for one in kept] == [False, True, True, True]
    finally:
        for one in kept[1:]:
            one.remove(force=True)


def test_folders_and_groups_of_others_are_left_alone() -> None:
    gone = f"{owner.pid_namespace()}-{os.getpid()}-1.1.bwrap"
    other = [f"0-{os.getpid()}-1.1.bwrap", "not ours", "1-2.3", f"{owner.label()}.99.bwrap"]
    for name in (gone, *other):
        (folders.parent() / name).mkdir()
        (folders.parent() / name / "file").write_bytes(b"1")
    try:
        folders.sweep()
        assert not (folders.parent() / gone).exists()
        assert all((folders.parent() / name / "file").exists() for name in other)
        assert "not ours" not in {found.name for found in reaper.boxes()}
    finally:
        for name in other:
            shutil.rmtree(folders.parent() / name)


def test_a_folder_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tbmm_env.errors import SandboxUnavailable

    monkeypatch.setattr(folders, "SYSTEM", tmp_path / "file" / "below")
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / f"tbmm-boxes-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(SandboxUnavailable, match="set TMPDIR"):
        folders.parent()


def test_files_of_a_box_are_as_given_whatever_the_umask(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o077)
    try:
        folder = folders.Folder(owner.new_name("bwrap"))
        folder.fill({"深/图.png": b"12", "a": b""})
    finally:
        os.umask(before)
    try:
        modes = {str(path.relative_to(folder.path)): path.stat().st_mode & 0o777 for path in folder.path.rglob("*")}
        assert modes == {"深": 0o755, "深/图.png": 0o444, "a": 0o444}
        assert {path.stat().st_mtime for path in folder.path.rglob("*")} == {0}
    finally:
        folder.remove()
        folder.remove()


def test_the_watcher_removes_only_what_is_its_owners(tmp_path: Path) -> None:
    for name in ("1-2-3.1.bwrap", "1-2-3.2.docker", "1-2-33.1.bwrap", "x"):
        (tmp_path / name).mkdir()
    text = f"tree {tmp_path}\n".encode()
    words = [sys.executable, "-I", "-S", str(watch_program.__file__), "1-2-3"]
    subprocess.run(words, input=text + b"bye\n", check=True, timeout=60)
    assert len(list(tmp_path.iterdir())) == 4
    subprocess.run(words, input=text, check=True, timeout=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1-2-33.1.bwrap", "x"]
    for name in ("1-2-3.1.bwrap", "1-2-3.2.bwrap"):
        (tmp_path / name).mkdir()
    assert watch_program.groups_left(str(tmp_path), "1-2-3") is False
    (tmp_path / "1-2-3.1.bwrap").mkdir()
    (tmp_path / "1-2-3.1.bwrap" / "busy").mkdir()
    assert watch_program.groups_left(str(tmp_path), "1-2-3") is True
    assert watch_program.containers_left(str(tmp_path / "no.sock"), "1-2-3") is True


STUCK = """
import os, subprocess, sys
from pathlib import Path
from tbmm_env.sandbox import bwrap_program, folders, owner
name = owner.new_name("bwrap")
folder = folders.Folder(name)
binary = os.open(bwrap_program.candidates()[0], os.O_PATH)
nobody, end = os.pipe()
os.close(nobody)  # as when the owner is killed before bubblewrap tells it about its child
done = subprocess.Popen(
    [f"/proc/self/fd/{binary}", "--unshare-user", "--unshare-pid", "--as-pid-1", "--die-with-parent",
     "--ro-bind", "/", "/", "--ro-bind", str(folder.path), "/mnt", "--info-fd", str(end), "--", "/bin/cat"],
    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=(binary, end), start_new_session=True,
)
done.wait(30)
print(owner.label(), flush=True)
os.kill(os.getpid(), 9)
"""


def stuck(label: str) -> list[str]:
    """Processes of bubblewrap that were to show a folder of an owner."""
    start = f"{folders.parent()}/{label}."
    return [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if start.encode() in watch_program._read(str(path))
    ]


@pytest.mark.bwrap
def test_a_bubblewrap_whose_owner_died_while_it_started_is_ended(bwrap_sandbox: Sandbox) -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, check=False)
    label = done.stdout.decode().strip()
    assert len(stuck(label)) == 1, "the fault of bubblewrap that this is about"
    assert folders.sweep() >= 1
    deadline = time.monotonic() + 30.0
    while stuck(label) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert stuck(label) == []
