"""Nothing of a box outlives it, however it or its owner ends."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.errors import BoxLost
from tbmm_env.sandbox import folders
from tbmm_env.sandbox.base import Sandbox

Start = Callable[..., Any]
PATIENCE_S = 20.0
"""For a loaded machine; benchmarks/soak.py measures how long it takes."""

OWNER = """
import os, sys, time
from dataclasses import replace
from tbmm_env.limits import TRAIN
from tbmm_env.sandbox import image
from tbmm_env.sandbox.base import BoxSpec, select
box = select(sys.argv[1]).start(BoxSpec(limits=TRAIN, files={"a": b"1"}, image=image.find()))
word = sys.argv[2]
three = f"setsid nohup sleep {word} > /dev/null 2>&1 & sleep {word} & (trap '' HUP TERM INT; sleep {word}) &"
box.run(three, wall_s=10, on_check=lambda _: "")
if len(sys.argv) > 3 and os.fork() == 0:
    time.sleep(300)  # a copy of the owner that lives on
print("up", flush=True)
time.sleep(300)
"""


def processes(word: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and words[0] in (b"sleep", b"/usr/bin/sleep"):
            found.append(folder.name)
    return found


def leftovers(owner_pid: int) -> list[str]:
    """Control groups, folders and watchers that name an owner."""
    found = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/tbmm/*-{owner_pid}-*")]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"tbmm/*-{owner_pid}-*")]
    found += [str(path) for path in folders.parent().glob(f"*-{owner_pid}-*")]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"-{owner_pid}-".encode() in (folder / "cmdline").read_bytes():
                found.append(f"process {folder.name}")
        except OSError:
            continue
    return found


def containers(docker_client: Any, owner_pid: int) -> list[str]:
    every = docker_client.containers.list(all=True, filters={"label": "tbmm.owner"}, ignore_removed=True)
    return [one.id for one in every if f"-{owner_pid}-" in one.labels["tbmm.owner"]]


def own_mounts() -> list[str]:
    """The mounts of this process but those of a Docker daemon, which serves others too; ``containers`` looks there."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not re.search(r"/(overlay2|containers|netns)/| - nsfs ", line)]


def until_gone(what: Callable[[], list[str]]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (left := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def everything_of(sandbox: Sandbox, word: str, owner_pid: int) -> Callable[[], list[str]]:
    def look() -> list[str]:
        found = processes(word) + leftovers(owner_pid)
        if sandbox.name == "docker":
            found += containers(sandbox._connected(), owner_pid)  # type: ignore[attr-defined]
        return found

    return look


def test_close_leaves_nothing(start: Start, sandbox: Sandbox) -> None:
    for _ in range(8):  # then what one process keeps for all its boxes, such as the SDK's pool of connections, is there
        start().box.close()
        if sandbox.name == "docker":
            containers(sandbox._connected(), os.getpid())  # type: ignore[attr-defined]
    mounts, descriptors = own_mounts(), len(list(Path("/proc/self/fd").iterdir()))
    word = f"9{os.getpid()}.25"
    tried = start({"a": b"1"})
    tried.text(
        f"setsid nohup sleep {word} > /dev/null 2>&1 & (trap '' HUP TERM; sleep {word}) & head -c 20M /dev/zero > f"
    )
    until(lambda: len(processes(word)) == 2)
    started = time.monotonic()
    tried.box.close()
    assert time.monotonic() - started < 5.0
    assert processes(word) == []
    assert not [path for path in leftovers(os.getpid()) if "cgroup" in path]
    if sandbox.name == "docker":
        assert containers(sandbox._connected(), os.getpid()) == []  # type: ignore[attr-defined]
    tried.box.close()
    assert own_mounts() == mounts
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    for use in (lambda: tried.run("true"), tried.box.collect):
        with pytest.raises(BoxLost, match="closed"):
            use()


def test_the_context_closes(start: Start) -> None:
    tried = start()
    with tried.box as box:
        assert box is tried.box
    with pytest.raises(BoxLost):
        tried.run("true")


def test_close_from_another_thread_ends_a_command(start: Start) -> None:
    tried = start()
    threading.Timer(0.5, tried.box.close).start()
    started = time.monotonic()
    with pytest.raises(BoxLost, match="closed meanwhile"):
        tried.run("sleep 60", 60.0)
    assert time.monotonic() - started < 10.0


@pytest.mark.parametrize("forked", [False, True], ids=["alone", "with-a-forked-copy"])
def test_kill_9_of_the_owner_leaves_nothing(sandbox: Sandbox, image: Any, forked: bool) -> None:
    word = f"8{os.getpid()}.5"
    command = [sys.executable, "-W", "ignore", "-c", OWNER, sandbox.name, word, *(["fork"] if forked else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"up\n"
            until(lambda: len(processes(word)) == 3)
            owner.kill()
            owner.wait()
            until_gone(everything_of(sandbox, word, owner.pid))
        finally:
            os.killpg(owner.pid, signal.SIGKILL) if forked else owner.kill()


CHURN = """
import sys, threading
from tbmm_env.limits import TRAIN
from tbmm_env.sandbox import image
from tbmm_env.sandbox.base import BoxSpec, select
from tbmm_env.sandbox.pool import Pool
spec = BoxSpec(limits=TRAIN, files={"a": b"1" * 100000}, image=image.find())
pool = Pool(select(sys.argv[1]), boxes=2)
print("up", flush=True)
def churn():
    while True:
        with pool.start(spec) as box:
            box.run(f"setsid sleep {sys.argv[2]} & echo 1 > answer.json", wall_s=10, on_check=lambda _: "")
            box.collect()
for _ in range(2): threading.Thread(target=churn).start()
"""


def test_kill_9_at_any_moment_leaves_nothing(sandbox: Sandbox) -> None:
    moments = random.Random(4)
    word = f"7{os.getpid()}.75"
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", CHURN, sandbox.name, word], stdout=subprocess.PIPE
        ) as owner:
            try:
                assert owner.stdout is not None
                assert owner.stdout.readline() == b"up\n"
                time.sleep(moments.uniform(0.0, 0.8))
            finally:
                owner.kill()
            owner.wait()
            until_gone(everything_of(sandbox, word, owner.pid))


def test_a_box_that_is_ended_from_outside_is_our_failure(start: Start, sandbox: Sandbox) -> None:
    tried = start()
    if sandbox.name == "docker":
        tried.box._channel._container.kill()
    else:
        signal.pidfd_send_signal(tried.box._channel._helper, signal.SIGKILL)
    with pytest.raises(BoxLost, match="its helper ended"):
        tried.run("true")
    with pytest.raises(BoxLost):
        tried.box.collect()


def test_the_next_box_is_normal_after_a_bad_one(start: Start) -> None:
    bad = start(pids=30)
    bad.text("head -c 1G /dev/zero > fill; mkfifo answer.json")
    bad.run(":(){ :|:& };:", 0.5)
    bad.box.close()
    good = start()
    assert good.text("echo fine; ls") == "fine\n"
    assert good.box.collect().status == "missing"


@pytest.mark.bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has ids and groups to give back")
def test_ids_and_groups_are_given_back(bwrap_sandbox: Sandbox, image: Any) -> None:
    from tbmm_env.limits import TRAIN
    from tbmm_env.sandbox import cgroups, uids
    from tbmm_env.sandbox.base import BoxSpec

    for _ in range(5):
        first = uids.BoxUid()
        first.release()
        for _ in range(3):
            with bwrap_sandbox.start(BoxSpec(limits=TRAIN, files={}, image=image)):
                pass
        again = uids.BoxUid()
        again.release()
        if again.number == first.number:  # else another process of this machine has taken or given back one meanwhile
            break
    assert again.number == first.number
    left = Path("/sys/fs/cgroup/pids/tbmm/0-1-1.1")  # of an owner in another pid namespace: not ours to remove
    if left.parent.is_dir():
        left.mkdir()
        cgroups.sweep()
        assert left.is_dir()
        left.rmdir()


ORDINARY = """
import os, sys
from dataclasses import replace
from tbmm_env.limits import TRAIN
from tbmm_env.sandbox import image
from tbmm_env.sandbox.base import BoxSpec
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
spec = BoxSpec(limits=replace(TRAIN, pids=60), files={"a": b"1"}, image=image.find())
def run(box, command): return box.run(command, wall_s=20, on_check=lambda _: "")
with BubblewrapSandbox().start(spec) as box: run(box, "true")  # loads what is loaded late, while files can be read
os.setgroups([]); os.setgid(54323); os.setuid(54323)
with BubblewrapSandbox().start(spec) as one, BubblewrapSandbox().start(spec) as two:
    many = "n=0; for i in $(seq 40); do sleep 9 & done; jobs -r | wc -l"
    print(run(one, many).head.split()[-1], run(two, many).head.split()[-1])  # the limit is each box's own
    print(run(two, "python3 -c 'bytearray(4 << 30)'").exit_status, run(two, "id -u").head)
    print(run(two, "touch /usr/x /task/x").exit_status)
    run(two, "echo 1 > answer.json")
    print(two.collect().data)
others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
print([name for name in others if os.stat(f"/proc/{name}").st_uid == 54323])
"""


@pytest.mark.bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user; as one, every other test is this test")
def test_an_ordinary_user(bwrap_sandbox: Sandbox) -> None:
    done = subprocess.run([sys.executable, "-c", ORDINARY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["b'40' b'40'", "1 b'10001\\n'", "1", "b'1\\n'", "[]"]
