"""Boxes beside and after each other: no channel between two, nothing left for the next.

What two boxes share in spite of that is in the backend's table. Timing, and numbers that the kernel keeps for the whole
machine (memory in use, load), are no part of the promise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest
from host_state import Host, settled
from hostile_case import SMALL, Played, Step, act, python

from tbmm_env.sandbox.base import BoxSpec, Sandbox
from tbmm_env.sandbox.image import Image

Pair = Callable[[], tuple[Played, Played]]

LEAVE = r"""
echo left > /workspace/left; echo left > /tmp/left; echo left > /dev/shm/left; mkdir -p /tmp/.X11-unix /workspace/.cache
ipcmk -M 4096 -Q -S 1 > /dev/null; echo '* * * * * echo left' > /tmp/cron; export LEFT=left; alias ls='echo left'
printf 'echo left' | tee .bashrc .profile > .bash_logout; mkfifo fifo; ln -s /etc/passwd answer.json
"""
OBJECTS = r"""
import ctypes, os, socket, time
libc = ctypes.CDLL("libc.so.6", use_errno=True)
libc.mq_open.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
queue = libc.mq_open(b"/tbmm-left", os.O_CREAT | os.O_RDWR, 0o666, None)
segment = libc.shmget(0x7b3a, 4096, 0o1666)
group = libc.semget(0x7b3a, 1, 0o1666)
letters = libc.msgget(0x7b3a, 0o1666)
meeting = socket.socket(socket.AF_UNIX); meeting.bind("\0tbmm-left"); meeting.listen()
port = socket.socket(); port.bind(("127.0.0.1", 40404)); port.listen()
print(queue >= 0, segment >= 0, group >= 0, letters >= 0, flush=True)
if os.fork(): os._exit(0)
os.setsid(); time.sleep(600)
"""
LOOK = r"""
import ctypes, errno, os, socket
libc = ctypes.CDLL("libc.so.6", use_errno=True)
def seen(result): return "there" if result >= 0 else errno.errorcode[ctypes.get_errno()]
print("queue", seen(libc.mq_open(b"/tbmm-left", os.O_RDWR)))
print("segment", seen(libc.shmget(0x7b3a, 0, 0)), "semaphore", seen(libc.semget(0x7b3a, 0, 0)))
print("letters", seen(libc.msgget(0x7b3a, 0)))
for family, address in ((socket.AF_UNIX, "\0tbmm-left"), (socket.AF_INET, ("127.0.0.1", 40404))):
    try: socket.socket(family).connect(address); print("connected")
    except OSError as error: print(errno.errorcode[error.errno])
for path in ("/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/net/unix"):
    print(path, len(open(path).read().splitlines()) - 1)
print(sorted(os.listdir("/workspace") + os.listdir("/tmp") + os.listdir("/dev/shm")), os.environ.get("LEFT"))
"""
NOTHING = (
    "queue ENOENT\nsegment ENOENT semaphore ENOENT\nletters ENOENT\nECONNREFUSED\nECONNREFUSED\n"
    "/proc/sysvipc/shm 0\n/proc/sysvipc/msg 0\n/proc/sysvipc/sem 0\n/proc/net/unix 1\n[] None\n"
)
"""One socket is there: the helper's."""


@pytest.fixture
def boxes(sandbox: Sandbox, image: Image, host: Host) -> Pair:
    """Two boxes at once; both are gone, and the host is as it was, when the test is over."""
    before = host.state()
    with ExitStack() as stack:

        def start() -> tuple[Played, Played]:
            both = []
            for _ in range(2):
                box = stack.enter_context(sandbox.start(BoxSpec(limits=SMALL, files={}, image=image)))
                both.append(Played(sandbox=sandbox, host=host, box=box, limits=SMALL, started_ns=0))
            host.mark()
            return both[0], both[1]

        yield start
    assert settled(host, before) == []


def must(played: Played, step: Step) -> str:
    """Have a box run an action that comes to what the step says; return its text."""
    wrong = act(played, step)
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    return played.text(-1)


def test_leftovers_are_not_there_for_the_next(boxes: Pair, sandbox: Sandbox, image: Image) -> None:
    one, two = boxes()
    must(one, Step(command=LEAVE))
    must(one, Step(command=python(OBJECTS), prints="True True True True\n"))
    assert "queue there" in must(one, Step(command=python(LOOK)))  # the look finds what is there
    must(two, Step(command=python(LOOK), prints=NOTHING))
    one.box.close()
    with sandbox.start(BoxSpec(limits=SMALL, files={}, image=image)) as box:
        must(replace(two, box=box, results=[]), Step(command=python(LOOK), prints=NOTHING))


def test_signals_and_processes_of_a_neighbour(boxes: Pair) -> None:
    one, two = boxes()
    must(one, Step(command="exec -a marked-by-one sleep 600 & echo $! > pid"))
    must(
        two,
        Step(
            command="kill -9 -1; for p in $(seq 2 400); do kill -9 $p; done 2> /dev/null",
            fault=("none", "command_failed"),
        ),
    )
    must(two, Step(command="grep -l marked-by-one /proc/[0-9]*/cmdline", fault="command_failed", prints=""))
    must(one, Step(command="kill -0 $(cat pid) && echo alive", prints="alive\n"))


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A way to say one bit: what one box does, what the other looks at, and the entry of the table where it is open."""

    name: str
    act: str
    look: str
    gaps: Mapping[str, str] = field(default_factory=dict)


LOCK = "import fcntl, os\nfd = os.open('{}', {})\ntry: fcntl.{}(fd, 6); print(0)\nexcept OSError: print(1)"
HOLD = "\nif os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(600)"
CHANNELS = (
    Channel(
        name="flock on a file of the image",
        act="import fcntl, os, time\nfd = os.open('/usr/bin/true', 0)\nfcntl.flock(fd, fcntl.LOCK_EX)" + HOLD,
        look=LOCK.format("/usr/bin/true", 0, "flock"),
        gaps={"bwrap": "shared files"},
    ),
    Channel(
        name="flock on a device",
        act="import fcntl, os, time\nfd = os.open('/dev/null', 0)\nfcntl.flock(fd, fcntl.LOCK_EX)" + HOLD,
        look=LOCK.format("/dev/null", 0, "flock"),
        gaps={"bwrap": "shared files"},
    ),
    Channel(
        name="record lock on a device",
        act="import fcntl, os, time\nif os.fork(): os._exit(0)\nos.setsid()\nfd = os.open('/dev/zero', 2)\n"
        "fcntl.lockf(fd, 2)\ntime.sleep(600)",
        look=LOCK.format("/dev/zero", 2, "lockf"),
        gaps={"bwrap": "shared files"},
    ),
    Channel(
        name="lock of an open file description",
        act="import fcntl, os, struct, time\nfd = os.open('/tmp/f', 0o102)\n"
        "fcntl.fcntl(fd, 37, struct.pack('hhqqi', 1, 0, 7212345, 0, 0))" + HOLD,
        look="print(int('7212345 EOF' in open('/proc/locks').read()))",
        gaps={"bwrap": "locks", "docker": "locks"},
    ),
    Channel(
        name="number of inotify instances of a user",
        act="import ctypes, os, time\nwhile ctypes.CDLL(None).inotify_init1(0) >= 0: pass" + HOLD,
        look="import ctypes\nprint(int(ctypes.CDLL(None).inotify_init1(0) < 0))",
        gaps={"docker": "user counts"},
    ),
    Channel(
        name="bytes of message queues of a user",
        act="import ctypes, os, time\nlibc = ctypes.CDLL('libc.so.6')\nn = 0\n"
        "while libc.mq_open(b'/q%d' % n, 0o102, 0o600, None) >= 0: n += 1" + HOLD,
        look="import ctypes\nprint(int(ctypes.CDLL('libc.so.6').mq_open(b'/one', 0o102, 0o600, None) < 0))",
    ),
    Channel(
        name="number of queued signals of a user",
        act="import ctypes, os, time\nlibc = ctypes.CDLL(None)\nt = (ctypes.c_char * 64)()\n"
        "for n in range(200):\n  if os.fork() == 0:\n    while libc.timer_create(0, None, t) >= 0: pass\n"
        "    time.sleep(600)\ntime.sleep(0.1)" + HOLD,
        look="import ctypes\nprint(int(ctypes.CDLL(None).timer_create(0, None, (ctypes.c_char * 64)()) < 0))",
        gaps={"docker": "user counts"},
    ),
)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name.replace(" ", "_"))
def test_channels(channel: Channel, boxes: Pair) -> None:
    one, two = boxes()
    look = python(channel.look)
    must(two, Step(command=look, prints="0\n"))
    must(one, Step(command=python(channel.act)))
    must(one, Step(command=look, prints="1\n"))  # the look finds it in the same box
    must(two, Step(command=look, prints="1\n" if two.sandbox.name in channel.gaps else "0\n"))


WATCH = r"""
import ctypes, os, select
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0o4000)
for path in (b"/usr/bin/od", b"/dev/full"): libc.inotify_add_watch(watch, path, 0xfff)
print(len(select.select([watch], [], [], 2.0)[0]))
"""


def test_watching_the_image(boxes: Pair) -> None:
    one, two = boxes()
    must(two, Step(command=python(WATCH), prints="0\n"))  # nobody does anything
    must(two, Step(command=f"cat > watch.py <<'E'\n{WATCH}\nE\npython3 watch.py > seen & sleep 0.5"))
    must(
        one,
        Step(command="for i in 1 2 3 4; do od /dev/null; : < /dev/full; sleep 0.2; done"),
    )
    must(two, Step(command="wait; cat seen", shows=("1\n" if two.sandbox.name == "bwrap" else "0\n",)))


def test_open_channels_are_in_the_table(sandbox: Sandbox) -> None:
    named = {entry.partition(":")[0] for entry in sandbox.known_gaps}  # type: ignore[attr-defined]
    assert {channel.gaps[sandbox.name] for channel in CHANNELS if sandbox.name in channel.gaps} <= named
