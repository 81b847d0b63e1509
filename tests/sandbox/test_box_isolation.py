"""What a box shows of the host, of its helper and of other boxes: nothing that helps."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]

CALLS = r"""
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    return "ok" if libc.syscall(*arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
print("keyctl", call(250, 0, -3, 0), "add_key", call(248, 0, 0, 0, 0, 0), "io_uring", call(425, 8, 0))
print("bpf", call(321, 0, 0, 0), "perf", call(298, 0, 0, -1, -1, 0), "userfaultfd", call(323, 0))
print("mount", call(165, 0, 0, 0, 0, 0), "unshare", call(272, 0x10000000), "setns", call(308, 0, 0))
print("umount", call(166, b"/task", 0), "pivot", call(155, b".", b"."), "x32", call(0x40000000 + 39))
print("prlimit", call(302, 1, 0, 0, 0), "nice", call(141, 0, 1, 19), "nice all", call(141, 2, 0, 19))
print("affinity", call(203, 1, 8, 0), "scheduler", call(144, 1, 0, 0))
print("own prlimit", call(302, 0, 7, 0, 0), "own affinity", len(os.sched_getaffinity(0)) > 0, "own nice", os.nice(1))
for family in (40, 38, 17, 15):
    try: socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM); print(family, "opened")
    except OSError as error: print(family, error.errno == errno.EAFNOSUPPORT or error.errno == errno.EPERM)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the calls are those of x86_64")
def test_system_calls(tried: Any) -> None:
    words = tried.text(f"python3 - <<'E'\n{CALLS}\nE")
    assert "ok" not in words.split("own prlimit")[0].split(), words
    assert "own prlimit ok own affinity True own nice 1\n" in words
    assert words.endswith("40 True\n38 True\n17 True\n15 True\n")


def test_privileges(tried: Any) -> None:
    status = tried.text("grep -E '^(Cap|NoNew|Seccomp:|Uid|Groups)' /proc/self/status")
    fields = dict(line.split(":\t") for line in status.splitlines())
    assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert fields["Uid"].split() == ["10001"] * 4
    assert tried.text("find / -xdev -perm /6000 2>/dev/null") == ""
    assert tried.run("unshare -r true").exit_status != 0
    assert tried.run("mount -t tmpfs x /tmp").exit_status != 0
    assert tried.text("cat /proc/self/oom_score_adj") == "1000\n"


def test_the_helper_cannot_be_read_or_harmed(tried: Any) -> None:
    for command in (
        "cat /proc/1/environ", "cat /proc/1/mem", "cat /proc/1/maps", "ls /proc/1/fd", "readlink /proc/1/exe",
        "readlink /proc/1/cwd", "cat /proc/1/syscall", "echo x > /proc/1/fd/1", "echo x > /proc/1/fd/0",
        "echo -1000 > /proc/1/oom_score_adj", "prlimit --pid 1 --nofile=0", "prlimit --pid 1 --cpu=0",
        "prlimit --pid 1 --as=1", "renice 19 1", "chrt -i -p 0 1", "taskset -p 1 1", "head -c 1 < /proc/1/fd/0",
    ):  # fmt: skip
        assert tried.run(command).exit_status != 0, command
    tried.text("for s in HUP INT QUIT KILL USR1 USR2 TERM STOP TSTP CONT PIPE ALRM SEGV BUS XCPU; do kill -$s 1; done")
    program = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint([libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0)])\n"
        "print(libc.process_vm_readv(1, 0, 0, 0, 0, 0))"
    )
    assert tried.text(f"python3 - <<'E'\n{program}\nE").startswith("[-1, -1]\n")
    assert tried.text("echo fine") == "fine\n"


def test_no_open_file_of_the_owner_arrives(tried: Any) -> None:
    listed = tried.text("python3 -c \"import os; print(*sorted(os.listdir('/proc/self/fd'), key=int))\"")
    assert set(listed.split()) <= {"0", "1", "2", "3", "250", "251"}
    targets = tried.text("for p in /proc/[0-9]*; do ls -l $p/fd 2>/dev/null | sed -n 's/.*-> //p'; done")
    assert "docker" not in targets
    assert not [
        line
        for line in targets.splitlines()
        if line.startswith("/") and not line.startswith(("/dev/", "/proc/", "/memfd:command"))
    ]


def test_environment_and_secrets_of_the_owner_are_absent(
    start: Start, monkeypatch: pytest.MonkeyPatch, search_box: Callable[..., list[str]]
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "tbmm-secret-5f1c9d03")
    with os.fdopen(os.memfd_create("secret"), "wb", buffering=0) as secret:
        secret.write(b"tbmm-secret-5f1c9d03")
        tried = start({"public": b"tbmm-public-77aa"})
        tried.text("echo tbmm-own-1234 > mine; sleep 300 &")
        assert search_box(tried.box, b"tbmm-secret-5f1c9d03") == []
    assert search_box(tried.box, b"tbmm-public-77aa") == ["/task/public"]
    assert "/workspace/mine" in search_box(tried.box, b"tbmm-own-1234")  # the search finds what is there


def test_no_network(tried: Any) -> None:
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
        server.bind(("127.0.0.1", 0))
        server.listen()
        local.bind("\0tbmm-test-of-isolation")
        local.listen()
        port = server.getsockname()[1]
        program = (
            "import socket\n"
            f"for address in (('127.0.0.1', {port}), ('192.0.2.1', 80), ('169.254.169.254', 80)):\n"
            "  try: socket.create_connection(address, 2); print('connected')\n"
            "  except OSError as error: print(error.strerror)\n"
            "try: socket.getaddrinfo('example.org', 80); print('resolved')\n"
            "except OSError: print('no name')\n"
            "try: socket.socket(socket.AF_UNIX).connect('\\0tbmm-test-of-isolation'); print('connected')\n"
            "except OSError as error: print(error.strerror)\n"
            "print([name for _, name in socket.if_nameindex()])\n"
        )
        assert tried.text(f"python3 - <<'E'\n{program}\nE").splitlines() == [
            "Connection refused", "Network is unreachable", "Network is unreachable", "no name", "Connection refused",
            "['lo']",
        ]  # fmt: skip


def test_host_things_are_absent(tried: Any) -> None:
    assert (
        tried.text("ls -d /var/run/docker.sock /run/* /home/* /root/* /etc/shadow /lib/modules 2>/dev/null; true") == ""
    )
    assert tried.run("head -c 1 /dev/kmsg").exit_status != 0
    assert tried.text("find /dev -type b") == ""
    assert os.uname().nodename not in tried.text("hostname; cat /etc/hostname; uname -n")
    assert int(tried.text("echo /proc/[0-9]* | wc -w")) < 10
    assert tried.run("echo c > /proc/sysrq-trigger").exit_status != 0
    assert tried.run("echo 1 > /proc/sys/kernel/panic").exit_status != 0


def test_two_boxes_do_not_see_each_other(start: Start) -> None:
    one, two = start(), start()
    one.text("echo one > /dev/shm/x; echo one > /tmp/x; echo one > x; sleep 1234 & ipcmk -M 100 > /dev/null")
    assert two.run("cat /dev/shm/x /tmp/x x").head.count(b"No such file") == 3
    assert two.run("pgrep -f 1234").exit_status == 1
    assert two.text("ipcs -m | grep -c 0x; true") == "0\n"
    listen = (
        "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'meet'); s.listen(); time.sleep(60)"
    )
    one.text(f'python3 -c "{listen}" & sleep 0.5')
    reach = "import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + 'meet')"
    assert one.run(f'python3 -c "{reach}"').exit_status == 0
    assert two.run(f'python3 -c "{reach}"').exit_status == 1


def test_a_freshly_written_program_runs(tried: Any) -> None:
    assert (
        tried.text("printf '#!/bin/sh\\necho run\\n' > p; chmod +x p; ./p; cp /usr/bin/echo /tmp/e; /tmp/e e")
        == "run\ne\n"
    )
    numba = "import numba\n@numba.njit\ndef f(n):\n  s = 0\n  for i in range(n): s += i\n  return s\nprint(f(10))"
    assert tried.text(f"python3 - <<'E'\n{numba}\nE", 60.0) == "45\n"


def test_many_boxes_from_passing_threads(start: Start) -> None:
    boxes: list[Any] = []
    threads = [threading.Thread(target=lambda: boxes.append(start())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [box.text("echo alive") for box in boxes] == ["alive\n"] * 4  # none died with the thread that started it
