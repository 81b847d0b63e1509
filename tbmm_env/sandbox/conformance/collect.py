"""Collecting the answer: nobody else is alive, no link is followed, nothing is waited for, sizes are bounded."""

from __future__ import annotations

import hashlib

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, same

THEME = Theme("collect")
LIMIT_BYTES = 100_000


def _kinds(lab: Lab, cases: dict[str, str]) -> None:
    box = lab.start(artifact_bytes=LIMIT_BYTES)
    for command, status in cases.items():
        box.run("rm -rf answer.json b")
        same(f"exit status of {command!r}", box.run(command).exit_status, 0)
        artifact = box.box.collect()
        same(f"status after {command!r}", artifact.status, status)
        if status != "regular":
            same(f"bytes after {command!r}", artifact.data, b"")


@THEME
def nothing(lab: Lab) -> None:
    """Without a file the artifact is ``missing``, again and again."""
    box = lab.start()
    for path in ("/workspace/answer.json", "/nowhere/at/all"):
        artifact = box.box.collect(path)
        same(f"status and bytes of {path}", (artifact.status, artifact.data), ("missing", b""))


@THEME
def a_regular_file(lab: Lab) -> None:
    """Of a regular file the bytes, their number and their SHA-256 come, and the same again."""
    box = lab.start()
    box.text("echo one > answer.json")
    artifact = box.box.collect()
    same("status and bytes", (artifact.status, artifact.data), ("regular", b"one\n"))
    same("size", artifact.size_bytes, 4)
    same("hash", artifact.sha256, hashlib.sha256(b"one\n").hexdigest())
    same("collected again", box.box.collect(), artifact)


@THEME
def any_bytes(lab: Lab) -> None:
    """Bytes of every value come as they are, an empty file too."""
    box = lab.start()
    box.text("python3 -c \"open('answer.json', 'wb').write(bytes(range(256)) * 100 + '名'.encode()); open('e', 'w')\"")
    same("bytes", box.box.collect().data, bytes(range(256)) * 100 + "名".encode())
    artifact = box.box.collect("/workspace/e")
    same("an empty file", (artifact.status, artifact.data, artifact.size_bytes), ("regular", b"", 0))


@THEME
def too_large(lab: Lab) -> None:
    """A file larger than what is asked for is ``too_large``, with its size and without its bytes."""
    box = lab.start()
    box.text("echo one > answer.json")
    artifact = box.box.collect(max_bytes=3)
    same("of 4 bytes, at most 3", (artifact.status, artifact.size_bytes, artifact.data), ("too_large", 4, b""))
    same("of 4 bytes, at most 4", box.box.collect(max_bytes=4).data, b"one\n")


@THEME
def artifact_bytes(lab: Lab) -> None:
    """A file of ``artifact_bytes`` is collected, one of a byte more is ``too_large``, and so is a sparse one."""
    _kinds(
        lab,
        {
            f"head -c {LIMIT_BYTES} /dev/zero > answer.json": "regular",
            f"head -c {LIMIT_BYTES + 1} /dev/zero > answer.json": "too_large",
            "truncate -s 1T answer.json": "too_large",
        },
    )


@THEME
def links(lab: Lab) -> None:
    """A symbolic link is ``link`` wherever it leads, and a file with a second name is ``hard_link``."""
    _kinds(
        lab,
        {
            "ln -s /etc/passwd answer.json": "link",
            "ln -s nowhere answer.json": "link",
            "ln -s answer.json answer.json": "link",
            "ln -s /proc/1/environ answer.json": "link",
            "echo 1 > b; ln b answer.json": "hard_link",
        },
    )


@THEME
def what_is_no_file(lab: Lab) -> None:
    """A folder, a FIFO and a socket are ``not_regular``, and nothing waits for them."""
    _kinds(
        lab,
        {
            "mkdir answer.json": "not_regular",
            "mkfifo answer.json": "not_regular",
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('answer.json')\"": "not_regular",
            "echo 1 > answer.json; chmod 000 answer.json": "unreadable",
        },
    )


@THEME
def folders(lab: Lab) -> None:
    """Any path can be collected; one that goes through a link or up is ``link``, through a file ``missing``."""
    box = lab.start()
    box.text("mkdir out; echo 1 > out/x; ln -s out link; mkdir -p a/结果; echo 2 > a/结果/y; echo 3 > /tmp/t")
    for path, data in (("/workspace/out/x", b"1\n"), ("/workspace/a/结果/y", b"2\n"), ("/tmp/t", b"3\n")):
        same(f"bytes of {path}", box.box.collect(path).data, data)
    for path, status in (("link/x", "link"), ("a/../out/x", "link"), ("out/x/z", "missing"), ("out", "not_regular")):
        same(f"status of {path}", box.box.collect(f"/workspace/{path}").status, status)
    holds("/workspace itself stays in its place", box.run("rmdir /workspace; mv /workspace /w").exit_status != 0, 0)


@THEME
def nobody_writes_meanwhile(lab: Lab) -> None:
    """Everybody in the box is ended before the file is read: processes that ignore signals and swap it too."""
    program = (
        "import os, signal\n[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]\n"
        "for n in range(10):\n  if os.fork() == 0: os.setsid(); break\n"
        "while True:\n"
        "  name = f'/tmp/{os.getpid()}'\n"
        "  open(name, 'w').write(f'{os.getpid()} ' * 1000)\n"
        "  os.rename(name, name + 'a'); os.replace(name + 'a', '/tmp/b')\n"
        "  open('/workspace/answer.json', 'w').write(f'{os.getpid()} ' * 1000)\n"
    )
    box = lab.start()
    box.text(f"cat > swap.py <<'E'\n{program}\nE\nnohup python3 swap.py > /dev/null 2>&1 & sleep 0.5")
    holds("the program runs", int(box.text("pgrep -fc swap.py").splitlines()[0]) > 0, 0)
    first = box.box.collect()
    same("collected again", box.box.collect(), first)
    box.prints("pgrep -fx 'python3 swap.py'; echo none", "none\n")


@THEME
def links_that_are_swapped(lab: Lab) -> None:
    """A file that is swapped for a link in a loop is the one or the other, never what the link leads to."""
    box = lab.start()
    box.text(
        "echo good > good; while :; do ln -sf /etc/passwd l; mv l answer.json; cp good g; mv g answer.json; done &"
        " sleep 0.3"
    )
    artifact = box.box.collect()
    holds("the status is link or regular", artifact.status in ("link", "regular"), artifact)
    holds("the bytes are none or the good ones", artifact.data in (b"", b"good\n"), artifact)


@THEME
def the_box_works_on(lab: Lab) -> None:
    """After collecting, the box has a new shell in /workspace, its files, and no job; it can be collected again."""
    box = lab.start()
    box.text("x=1; cd /tmp; echo 1 > kept; sleep 100 &")
    same("status", box.box.collect().status, "missing")
    box.prints("echo [$x] $PWD; pgrep sleep; cat /tmp/kept; echo one > answer.json", "[] /workspace\n1\n")
    same("bytes", box.box.collect().data, b"one\n")


@THEME
def while_a_program_waits(lab: Lab) -> None:
    """Collecting ends a program that waits for input, and the next action is a command again."""
    box = lab.start()
    box.text("echo one > answer.json")
    box.ends("cat", "awaiting_input")
    same("bytes", box.box.collect().data, b"one\n")
    box.prints("echo fine", "fine\n")
