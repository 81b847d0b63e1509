"""Memory, disk, inodes and kernel objects used up."""

from __future__ import annotations

from hostile_case import Case, Played, Step, ordinary_bwrap, python

from tbmm_env.limits import KIB, MIB

KILLED = ("limit_hit", "agent_broke_box")
"""The kernel chooses whom it takes for memory; either way it is the agent's doing."""
FULL = {"memory_bytes": 96 * MIB, "workspace_bytes": 60 * MIB, "tmp_bytes": 16 * MIB, "shm_bytes": 16 * MIB}
HOG = "python3 -c 'x = bytearray({} << 20); import time; time.sleep({})'"

SYSV = r"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
for n in range(1000):
    number = libc.shmget(0, 8 << 20, 0o1600)
    where = libc.shmat(number, None, 0)
    ctypes.memset(where, 1, 8 << 20)
    libc.shmdt(ctypes.c_void_p(where))
"""

MANY_SMALL = r"""
import os, time
with open("/proc/self/oom_score_adj", "w") as file:
    try: file.write("0")
    except OSError: pass
for n in range(200):
    try:
        if os.fork() == 0: x = bytearray(4 << 20); time.sleep(60)
    except OSError: time.sleep(0.1)
time.sleep(60)
"""

QUEUES = r"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
filled = 0
for n in range(40000):
    queue = libc.msgget(0, 0o1600)
    if queue < 0: break
    while libc.msgsnd(queue, (ctypes.c_char * 8200)(1), 8192, 0o4000) == 0: filled += 1
print("filled", filled > 10)
"""

KERNEL_OBJECTS = r"""
import ctypes, os, resource, select, socket
libc = ctypes.CDLL(None, use_errno=True)
def exhaust(name, make):
    n = 0
    try:
        while n < 300000:
            if make() < 0: raise OSError(ctypes.get_errno(), "")
            n += 1
        print(name, "never ends")
    except OSError: print(name, "ends")
    os.closerange(3, 4096)
timer = (ctypes.c_char * 64)()
exhaust("timers", lambda: libc.timer_create(0, None, timer))
exhaust("inotify", lambda: libc.inotify_init1(0))
exhaust("epoll", lambda: libc.epoll_create1(0))
exhaust("pipes", lambda: os.pipe()[0])
exhaust("memory files", lambda: os.memfd_create("x"))
"""

TERMINALS = r"""
import os, time
taken = 0
try:
    for n in range(300): os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY); taken += 1; time.sleep(0.01)
except OSError as error: print(error.strerror)
print("taken", taken)
"""

FILL_INODES = r"""
import os
n = 0
try:
    while n < 400000:
        os.close(os.open(f"/workspace/{n}", os.O_CREAT | os.O_WRONLY)); n += 1
except OSError as error: print(n < 2100, error.strerror)
print("made", n)
"""

DEEP = r"""
import os
for n in range(10000):
    os.mkdir("d"); os.chdir("d")
    if n % 100 == 0: os.mkdir("深" * 85)
os.chdir("/workspace")
print("deep")
"""


def _inodes(played: Played) -> None:
    """Docker refuses more files than ``inodes``; bubblewrap counts their memory."""
    if played.sandbox.name == "docker":
        assert played.text(0).startswith("True No space left on device"), played.results


def _one_pool(played: Played) -> None:
    if not ordinary_bwrap(played.sandbox):
        assert any("oom" in result.evidence for result in played.results), played.results


CASES = (
    Case(
        name="memory_of_one_process",
        steps=(
            Step(command=HOG.format(900, 0), fault="limit_hit", ending="exited", status=137, hides=("MemoryError",)),
            Step(command="echo fine", prints="fine\n"),
        ),
    ),
    Case(
        name="memory_of_many_processes",
        steps=(
            Step(
                command=f"for i in 1 2 3 4 5 6 7 8; do {HOG.format(60, 3)} & done;"
                " for i in $(seq 8); do wait -n || exit 1; done",
                fault="limit_hit",
            ),
        ),
    ),
    Case(
        name="memory_of_small_processes_that_outlive_the_helper",
        steps=(
            Step(command=python(MANY_SMALL), wall_s=4.0, fault=KILLED),
            *[Step(command="echo x", wall_s=4.0, fault=("none", "command_failed", *KILLED))] * 2,
        ),
        again=False,
        collected="missing",
    ),
    Case(
        name="memory_in_files",
        limits=FULL,
        steps=(
            Step(command="head -c 1G /dev/zero > /workspace/f", fault="command_failed", shows=("No space left",)),
            Step(command=HOG.format(60, 0), fault=KILLED),
        ),
        check=_one_pool,
    ),
    Case(
        name="memory_in_dev_shm",
        limits=FULL,
        steps=(
            Step(command="head -c 1G /dev/zero > /dev/shm/f", fault="command_failed", shows=("No space left",)),
            Step(command="head -c 1G /dev/zero > /tmp/f", fault="command_failed", shows=("No space left",)),
            Step(command=HOG.format(80, 0), fault=KILLED),
        ),
        check=_one_pool,
    ),
    Case(
        name="memory_in_segments_that_no_process_holds",
        steps=(
            Step(command=python(SYSV), fault=KILLED),
            *[Step(command="python3 -c 'x = bytearray(64 << 20)'", fault=KILLED)] * 2,
        ),
        again=False,
        check=_one_pool,
    ),
    Case(
        name="memory_in_message_queues",
        steps=(Step(command=python(QUEUES), fault=("none", *KILLED)),),
    ),
    Case(
        name="memory_of_kernel_objects",
        steps=(
            Step(
                command=python(KERNEL_OBJECTS),
                wall_s=60.0,
                fault=("none", "limit_hit"),
                hides=("never ends",),
            ),
            Step(command="echo fine", prints="fine\n"),
        ),
    ),
    Case(
        name="memory_of_terminals",
        steps=(
            Step(command=python(TERMINALS), fault=("none", "command_failed", "limit_hit"), hides=("taken 300",)),
            Step(command="echo fine", shows=("fine\n",)),
        ),
    ),
    Case(
        name="disk_full",
        steps=(
            Step(
                command="for d in /workspace /tmp /dev/shm; do head -c 1G /dev/zero > $d/fill; done",
                fault="command_failed",
                shows=("No space left on device",),
            ),
            Step(command="cat <<'E'\nhere\nE", prints="here\n"),
            Step(command="echo '{}' > answer.json", fault="command_failed", shows=("No space left on device",)),
            Step(command="check; rm fill; echo '{}' > answer.json", prints="checked: regular 0\n"),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="disk_of_inodes",
        steps=(Step(command=python(FILL_INODES), wall_s=60.0, fault=("none", *KILLED)),),
        limits=FULL | {"inodes": 2000},
        again=False,
        check=_inodes,
        gap={"bwrap": "inodes"},
    ),
    Case(
        name="disk_sparse_answer",
        steps=(Step(command="truncate -s 1T answer.json; check", prints="checked: too_large 1099511627776\n"),),
        collected="too_large",
    ),
    Case(
        name="disk_deep_folders_and_long_names",
        steps=(
            Step(command=python(DEEP), wall_s=60.0, prints="deep\n"),
            Step(command="echo '{}' > answer.json"),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="descriptors_exhausted",
        steps=(
            Step(
                command=python(
                    "import os\nn = 0\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(n, e.strerror)"
                ),
                shows=(" Too many open files\n",),
            ),
            Step(
                command="exec 9< /dev/null; while { exec {fd}<&9; } 2> /dev/null; do :; done; echo $?",
                fault=("none", "command_failed", "limit_hit"),
            ),
            Step(command="exit", fault=("none", "command_failed", "limit_hit"), wall_s=5.0),
        ),
    ),
    Case(
        name="arguments_of_a_megabyte",
        limits={"memory_bytes": 1024 * MIB},
        steps=(
            Step(command="/bin/true $(seq 100000)"),
            Step(command="/bin/true $(seq 1000000)", fault="command_failed", status=126),
            Step(
                command="x=$(head -c 200000 /dev/zero | tr '\\0' x); /bin/true $x", fault="command_failed", status=126
            ),
            Step(command="export HUGE=$x; ls", fault="command_failed", status=126),
            Step(command="unset HUGE; ls", prints=""),
        ),
    ),
    Case(
        name="input_of_50_mib",
        steps=(Step(command="head -c 50M /dev/zero | wc -c", prints=f"{50 * MIB}\n"),),
    ),
    Case(
        name="output_line_of_30_mib",
        steps=(Step(command="head -c 30M /dev/zero | tr '\\0' x", wall_s=60.0),),
        check=lambda played: _kept(played, 30 * MIB),
    ),
)


def _kept(played: Played, said: int) -> None:
    result = played.results[0]
    assert len(result.head) + len(result.tail) == 64 * KIB
    assert result.dropped_bytes == said - 64 * KIB
