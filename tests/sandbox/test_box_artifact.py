"""Collecting the answer: nobody else alive, no link followed, nothing blocked on, sizes bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]
LIMIT_BYTES = 100_000


@pytest.fixture
def tried(start: Start) -> Any:
    return start(artifact_bytes=LIMIT_BYTES)


def test_bytes_and_hash(tried: Any) -> None:
    tried.text(r"printf '{\"名\": 1}\n\377\000' > answer.json")
    artifact = tried.box.collect()
    assert artifact.status == "regular"
    assert artifact.data == '{"名": 1}\n'.encode() + b"\xff\x00"
    assert artifact.sha256 == hashlib.sha256(artifact.data).hexdigest()
    assert artifact.size_bytes == len(artifact.data)


def test_every_other_kind_of_thing(tried: Any) -> None:
    cases = {
        "true": "missing",
        "ln -s /etc/passwd answer.json": "link",
        "ln -s nowhere answer.json": "link",
        "ln -s answer.json answer.json": "link",
        "echo 1 > b; ln b answer.json": "hard_link",
        "mkdir answer.json": "not_regular",
        "mkfifo answer.json": "not_regular",
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('answer.json')\"": "not_regular",
        f"head -c {LIMIT_BYTES + 1} /dev/zero > answer.json": "too_large",
        "truncate -s 1T answer.json": "too_large",
        "echo 1 > answer.json; chmod 000 answer.json": "unreadable",
        f"head -c {LIMIT_BYTES} /dev/zero > answer.json": "regular",
        ": > answer.json": "regular",
    }
    for command, status in cases.items():
        tried.run("rm -rf answer.json b")
        assert tried.run(command).exit_status == 0, command
        artifact = tried.box.collect()
        assert artifact.status == status, command
        assert (artifact.data == b"") == (artifact.size_bytes == 0 or status != "regular"), command


def test_the_folder_on_the_way_may_be_no_link(tried: Any) -> None:
    tried.text("mkdir out; echo 1 > out/x; ln -s out link; mkdir -p a/b; echo 2 > a/b/y")
    assert tried.box.collect("/workspace/out/x").data == b"1\n"
    assert tried.box.collect("/workspace/a/b/y").data == b"2\n"
    assert tried.box.collect("/workspace/link/x").status == "link"
    assert tried.box.collect("/workspace/a/../out/x").status == "link"
    assert tried.box.collect("/workspace/out/x/z").status == "missing"
    assert tried.box.collect("/workspace/out/x", max_bytes=1).status == "too_large"
    assert tried.run("rmdir /workspace; mv /workspace /w").exit_status != 0


def test_nobody_writes_while_the_answer_is_read(tried: Any) -> None:
    program = (
        "import os, signal\n[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]\n"
        "for n in range(10):\n  if os.fork() == 0: os.setsid(); break\n"
        "while True:\n"
        "  name = f'/tmp/{os.getpid()}'\n"
        "  open(name, 'w').write(f'{os.getpid()} ' * 1000)\n"
        "  os.rename(name, '/tmp/a'); os.replace('/tmp/a', '/tmp/b')\n"
        "  open('/workspace/answer.json', 'w').write(f'{os.getpid()} ' * 1000)\n"
    )
    tried.text(f"cat > swap.py <<'E'\n{program}\nE\nnohup python3 swap.py > /dev/null 2>&1 & sleep 0.3")
    first = tried.box.collect()
    assert tried.box.collect() == first
    assert tried.text("ps -eo comm | grep -c python") == "1\n"  # the helper


def test_links_swapped_in_a_loop(tried: Any) -> None:
    tried.text(
        "echo good > good; while :; do ln -sf /etc/passwd l; mv l answer.json; cp good g; mv g answer.json; done &"
        " sleep 0.3"
    )
    artifact = tried.box.collect()
    assert artifact.status in ("link", "regular")
    assert artifact.data in (b"", b"good\n")


def test_kill_everybody_then_collect(tried: Any) -> None:
    tried.text("echo '{}' > answer.json")
    result = tried.run("bash -c 'kill -9 -1'")
    assert (result.ending, result.exit_status) == ("shell_restarted", 137)
    assert tried.text("echo back; submit").startswith("back\n")
    assert tried.box.collect().data == b"{}\n"


def test_the_box_works_on_after_collecting(tried: Any) -> None:
    tried.text("x=1; cd /tmp; sleep 100 &")
    assert tried.box.collect().status == "missing"
    assert tried.text("echo [$x] $PWD; pgrep sleep") == "[] /workspace\n"


def test_check_reads_while_processes_live(tried: Any) -> None:
    assert tried.text("check") == "checked: missing 0\n"
    tried.text("sleep 300 & echo $! > /tmp/pid; echo '{}' > answer.json")
    assert tried.text("check; ln -sf /etc/passwd answer.json; check; kill -0 $(cat /tmp/pid) && echo job") == (
        "checked: regular 3\nchecked: link 0\njob\n"
    )
    assert [artifact.data for artifact in tried.seen] == [b"", b"{}\n", b""]
