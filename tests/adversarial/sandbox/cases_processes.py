"""Processes that multiply, hide, refuse to end, or end everybody."""

from __future__ import annotations

from hostile_case import Case, Played, Step, python

ANSWER = Step(command="echo '{}' > answer.json")
ANY = ("none", "command_failed", "limit_hit")
"""Where processes race: what the action comes to does not matter, but that the next one is fine."""

DAEMON = r"""
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            if number not in (9, 19, 32, 33): signal.signal(number, signal.SIG_IGN)
        for descriptor in range(256):
            try: os.close(descriptor)
            except OSError: pass
        while True: os.execvp("sleep", ["daemon-of-the-agent", "3600"])
    os._exit(0)
os.wait()
"""

STORM = r"""
import os, signal, time
for number in range(1, 65):
    if number not in (9, 19, 32, 33): signal.signal(number, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
end = time.monotonic() + {for_s}
while time.monotonic() < end:
    try: os.kill({target}, {number})
    except ProcessLookupError: pass
"""


def storm(target: str, number: int, for_s: float) -> str:
    """Return an action that leaves a process that sends signals all the time."""
    return python(STORM.format(target=target, number=number, for_s=for_s))


TRACED = "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nlibc.ptrace.argtypes = [ctypes.c_long] * 4\n"
TRACER = (
    "shell = os.getppid()\nif os.fork(): time.sleep(0.5); os._exit(0)\nos.setsid()\n"
    "libc.ptrace(0x4206, shell, 0, 0)\ntime.sleep(600)"
)


COSTLY_LOOK = r"""
import os, select, threading
read, write = os.pipe()
held = [os.dup(read) for n in range(3900)]
def wait():
    poll = select.poll()
    for one in held: poll.register(one, select.POLLIN)
    poll.poll()
for n in range(100): threading.Thread(target=wait, daemon=True).start()
print("begun", flush=True)
for n in range(130):
    if os.fork() == 0:
        os.setsid()
        while True: pass
wait()
"""


def _bounded(played: Played) -> None:
    assert all(result.wall_s < 30.0 for result in played.results), played.results


CASES = (
    Case(
        name="process_fork_bomb_of_bash",
        steps=(
            ANSWER,
            Step(command=":(){ :|:& };:", wall_s=1.0, fault=ANY),
            Step(command="echo among them", wall_s=3.0, fault=ANY),
        ),
        limits={"pids": 60},
        collected=b"{}\n",
        check=_bounded,
    ),
    Case(
        name="process_fork_bomb_of_python",
        steps=(
            ANSWER,
            Step(
                command=python(
                    "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n"
                    "  try: os.fork(); os.setsid()\n  except OSError: pass"
                ),
                wall_s=1.0,
                fault="limit_hit",
            ),
            Step(command="echo among them", wall_s=3.0, fault=ANY),
        ),
        limits={"pids": 60},
        collected=b"{}\n",
    ),
    Case(
        name="process_thread_bomb",
        steps=(
            Step(
                command=python(
                    "import threading, time\nn = 0\ntry:\n  while True: threading.Thread(target=time.sleep, args=(60,),"
                    " daemon=True).start(); n += 1\nexcept RuntimeError as error: print(20 < n < 60, error)"
                ),
                shows=("True can't start new thread",),
            ),
        ),
        limits={"pids": 60},
    ),
    Case(
        name="process_limit_is_evidence",
        steps=(
            Step(
                command=python(
                    "import os, time\nfor n in range(90):\n  if os.fork() == 0: time.sleep(60); os._exit(0)"
                ),
                fault="limit_hit",
                ending="exited",
                status=1,
                shows=("BlockingIOError",),
            ),
        ),
        limits={"pids": 60},
    ),
    Case(
        name="process_daemon_by_double_fork",
        steps=(
            ANSWER,
            Step(command=python(DAEMON), ending="exited"),
            Step(command="pgrep -fc daemon-of-the-agent", prints="1\n"),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="process_daemons_are_ended_before_collecting",
        steps=(
            Step(
                command=python(
                    "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nn = 0\n"
                    "while True:\n  n += 1\n  with open('/workspace/answer.json', 'w') as f: f.write('daemon ' * 9999)"
                ),
            ),
            Step(command="until test -s answer.json; do sleep 0.05; done"),
        ),
        check=lambda played: _same_twice(played),
        collected="regular",
    ),
    Case(
        name="process_kill_everybody",
        steps=(
            ANSWER,
            Step(command="sleep 300 & kill -9 -1", fault=("none", "command_failed")),
            Step(command="bash -c 'kill -9 -1'", fault="command_failed", ending="shell_restarted", status=137),
            Step(command="pgrep -c sleep", fault="command_failed", prints="0\n"),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="process_storm_of_kills_on_everybody",
        steps=(
            ANSWER,
            Step(command=storm("-1", 9, 60.0), fault=ANY),
            *[Step(command="echo under fire", wall_s=3.0, fault=ANY)] * 3,
        ),
        collected=b"{}\n",
    ),
    Case(
        name="process_storm_of_stops_on_everybody",
        steps=(
            ANSWER,
            Step(command=storm("-1", 19, 60.0), wall_s=0.5, fault=ANY),
            Step(command="echo under fire", wall_s=0.5, fault=ANY),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="process_storm_of_signals_on_the_helper",
        steps=(
            ANSWER,
            *[Step(command=storm("1", number, 60.0)) for number in (9, 17, 15, 1, 64)],
            Step(command="echo under fire", prints="under fire\n"),
            Step(command="sleep 60", wall_s=0.5, fault="limit_hit"),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="process_stop_everybody",
        steps=(
            Step(command="bash -c 'kill -STOP -1'; sleep 60", wall_s=1.0, fault="limit_hit"),
            Step(command="echo fine", prints="fine\n"),
        ),
    ),
    Case(
        name="process_stop_oneself",
        steps=(
            Step(command="sh -c 'kill -STOP $$'", fault="command_failed", ending="exited"),
            Step(command="echo fine", prints="fine\n"),
        ),
    ),
    Case(
        name="process_ignored_signals",
        steps=(
            Step(
                command=python(
                    "import signal\nfor n in range(1, 65):\n  if n not in (9, 19, 32, 33): signal.signal(n,"
                    " signal.SIG_IGN)\nprint('ignoring', flush=True)\nwhile True: signal.pause()"
                ),
                wall_s=1.5,
                fault="limit_hit",
                shows=("ignoring",),
            ),
            Step(command="trap '' HUP INT QUIT TERM TSTP; while :; do sleep 1; done", wall_s=0.5, fault="limit_hit"),
            Step(command="pgrep -c '^(sleep|python3)$' -P $$", fault="command_failed", prints="0\n"),
        ),
    ),
    Case(
        name="process_flood_of_zombies",
        steps=(
            Step(
                command=python(
                    "import os\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: os._exit(0)\n    n += 1\n"
                    "except OSError as error: print(n > 20, error.strerror)"
                ),
                prints="True Resource temporarily unavailable\n",
            ),
            Step(command="for i in $(seq 2000); do (: &) ; done 2> /dev/null; echo orphaned", shows=("orphaned\n",)),
            Step(command="sleep 0.3; ps -eo stat | grep -c Z", fault="command_failed", prints="0\n"),
        ),
        limits={"pids": 60},
    ),
    Case(
        name="process_busy_in_the_background",
        steps=(
            Step(command="for i in $(seq 50); do (nice -n -5 sh -c 'while :; do :; done') & done 2> /dev/null"),
            Step(command="sleep 60", wall_s=0.5, fault="limit_hit"),
        ),
        limits={"cpus": 0.5, "pids": 250},
    ),
    Case(
        name="process_time_bombs",
        steps=(
            Step(
                command=python(
                    "import os, signal\nsignal.setitimer(signal.ITIMER_REAL, 0.2)\nos.execvp('sleep', ['sleep', '30'])"
                ),
                fault="command_failed",
                status=142,
            ),
            Step(command="ulimit -t 1; while :; do :; done", fault="command_failed", ending="shell_restarted"),
            Step(command="(sleep 0.5; kill -9 $$) & sleep 30", fault="command_failed", ending="shell_restarted"),
            Step(command="ulimit -t", prints="unlimited\n"),
        ),
    ),
    Case(
        name="process_vfork_and_ptrace_hold_children",
        steps=(
            ANSWER,
            Step(
                command=python(
                    "import ctypes, os, signal, time\nlibc = ctypes.CDLL(None)\nfor n in range(5):\n"
                    "  child = os.fork()\n"
                    "  if child == 0:\n    libc.ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP)\n"
                    "    time.sleep(60)\nif os.fork() == 0: os.setsid(); time.sleep(600)\n"
                    "print('traced', flush=True); time.sleep(60)"
                ),
                wall_s=1.5,
                fault="limit_hit",
                shows=("traced",),
            ),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="process_busy_while_the_helper_looks_at_many",
        limits={"cpus": 0.5, "pids": 256},
        steps=(Step(command=python(COSTLY_LOOK), wall_s=3.0, fault="limit_hit", shows=("begun",)),),
    ),
    Case(
        name="process_shell_traced_by_the_helper",
        steps=(
            Step(
                command="exec " + python(TRACED + "libc.ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), 19)\ntime.sleep(60)"),
                wall_s=1.0,
                fault=ANY,
            ),
            Step(command="echo fine", wall_s=3.0, shows=("fine\n",)),
        ),
    ),
    Case(
        name="process_shell_traced_by_a_daemon",
        steps=(
            Step(command=python(TRACED + TRACER)),
            Step(command="kill -9 $$", wall_s=1.0, fault=ANY),
            Step(command="echo fine", wall_s=3.0, shows=("fine\n",)),
        ),
    ),
)


def _same_twice(played: Played) -> None:
    assert played.collected.status == "regular"
    again = played.box.collect()
    assert again == played.collected
