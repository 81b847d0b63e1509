"""Limits of time, processors, memory and processes: what stays under one works, what goes over it is stopped."""

from __future__ import annotations

import time
from contextlib import suppress

from tbmm_env.errors import BoxLost
from tbmm_env.limits import MIB
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, LabBox, holds, output, same

THEME = Theme("limits")

STUBBORN = (
    "echo before; sleep 60",
    "echo before; while true; do sleep 0.05; done",
    "echo before; while :; do :; done",
    "echo before; python3 -c 'while True: pass'",
    "echo before; python3 -c 'import signal; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]; signal.pause()'",
    "echo before; (sleep 60; sleep 60) | cat",
    "echo before; kill -STOP $BASHPID; sleep 60",
)
"""Actions that do not end by themselves."""
SPAWN = (
    "import subprocess, sys\nn = 0\ntry:\n  for n in range(int(sys.argv[1])): subprocess.Popen(['sleep', '30'])\n"
    "except OSError as error: print(error.strerror)\nprint(n)"
)
BURN = """python3 - <<'E'
import os, time
begin, end, parent = sum(os.times()[:4]), time.time() + 1, os.getpid()
for _ in range(3):
  if os.getpid() == parent: os.fork()
while time.time() < end: pass
if os.getpid() == parent:
  for _ in range(3): os.wait()
  print(sum(os.times()[:4]) - begin)
E"""
"""Prints the processor seconds that four processes together get within a second."""


@THEME
def step_wall_s(lab: Lab) -> None:
    """An action that does not end is stopped at its wall limit, whatever it is, and its output so far is returned."""
    box = lab.start()
    box.ends("sleep 0.5", "exited", 0)
    box.text("sleep 300 & echo $! > /tmp/pid")
    for command in STUBBORN:
        result = box.run(command, 0.4)
        holds(f"{command!r} is stopped", result.ending == "wall_limit", result)
        same(f"exit status of {command!r}", result.exit_status, None)
        holds(f"{command!r} has its output", b"before\n" in output(result), result)
        holds(f"{command!r} ends soon after its limit", 0.3 < result.wall_s < 15.0, result)
    count = "n=$(ps -eo pid,comm --no-headers | awk '$1 > 1 && /sleep|python/' | wc -l); [ $n = 1 ] && break"
    left = box.text(f"for t in 1 2 3 4 5 6 7 8 9; do {count}; sleep 0.2; done; echo $n")
    same("processes that are left, the job alone", left, "1\n")
    box.prints("kill -0 $(cat /tmp/pid) && echo job", "job\n")


@THEME
def the_shell_outlives_the_wall_limit(lab: Lab) -> None:
    """A wall limit ends the command and not the shell; where the shell cannot be kept, the output says so."""
    box = lab.start()
    box.text("x=kept; cd /tmp")
    box.ends("while true; do sleep 0.1; done", "wall_limit", wall_s=0.5)
    box.prints("echo $x $PWD", "kept /tmp\n")
    result = box.ends("trap '' INT; while :; do :; done", "wall_limit", wall_s=0.5)
    holds("the output says that the shell is new", b"started anew in /workspace" in output(result), result)
    box.prints("echo $x $PWD", "/workspace\n")


@THEME
def partial_output(lab: Lab) -> None:
    """Of an action that prints until its wall limit, what it printed last is there too."""
    box = lab.start()
    result = box.ends("python3 -uc 'import itertools, time\nfor n in itertools.count(): print(n); time.sleep(0.05)'",
                      "wall_limit", wall_s=1.5)  # fmt: skip
    lines = output(result).split()
    holds("the numbers are shown from 0 on", lines[:3] == [b"0", b"1", b"2"], result)
    box.prints("echo fine", "fine\n")


@THEME
def cpus(lab: Lab) -> None:
    """A box with a twentieth of a processor gets no more, and one with a whole processor gets more than that."""
    slow = float(lab.start(cpus=0.05).text(BURN))
    holds("processor seconds of a twentieth of a processor within 1 s are below 0.15", slow < 0.15, slow)
    box, fast = lab.start(cpus=1.0), 0.0
    for _ in range(5):  # others may be busy on this machine
        fast = max(fast, float(box.text(BURN)))
        if fast > 0.15:
            break
    holds("processor seconds of a whole processor within 1 s are above 0.15", fast > 0.15, fast)


@THEME
def memory_of_one_process(lab: Lab) -> None:
    """A program may take memory up to ``memory_bytes``; one that takes more ends, and nothing else does."""
    box = lab.start()
    box.text("x=kept")
    box.prints("python3 -c 'print(len(bytearray(300 << 20)))'", f"{300 * MIB}\n")
    result = box.ends("python3 -c 'print(len(bytearray(900 << 20)))'", "exited")
    holds("the program ends with 137 or an error of its own", result.exit_status in (1, 137), result)
    box.prints("echo $x", "kept\n")


@THEME
def memory_of_all_processes(lab: Lab) -> None:
    """``memory_bytes`` is of all processes together: one is ended, and the shell stays."""
    box = lab.start()
    box.text("x=kept")
    hog = "python3 -c 'x = bytearray(150 << 20); import time; time.sleep(1)'"
    result = box.ends(f"for i in 1 2; do {hog} & done; wait -n; echo $?; wait -n; echo $?", "exited", 0)
    same("two of 150 MiB", [line for line in output(result).split(b"\n") if line.isdigit()], [b"0", b"0"])
    result = box.run(f"{hog} & {hog} & {hog} & {hog} & {hog} & wait")
    holds("one of five is killed", b"Killed" in output(result), result)
    box.prints("echo $x", "kept\n")


@THEME
def death_by_memory(lab: Lab) -> None:
    """A box whose memory is filled for good died by the agent's doing: there is evidence, and no exception."""
    box = lab.start(memory_bytes=64 * MIB, workspace_bytes=40 * MIB, tmp_bytes=16 * MIB, shm_bytes=7 * MIB)
    result = box.run("echo begin; for f in /workspace/a /tmp/b /dev/shm/c; do head -c 60M /dev/zero > $f; done")
    for _ in range(20):  # whoever keeps the box alive is the last one to be taken
        if result.ending == "box_died":
            break
        result = box.run("python3 -c 'x = bytearray(64 << 20)'")
    same("ending", result.ending, "box_died")
    holds("there is evidence", bool(result.evidence), result)
    same("status of the answer", box.box.collect().status, "missing")
    same("ending of a later command", box.run("echo again").ending, "box_died")
    lab.start().prints("echo next", "next\n")


@THEME
def pids(lab: Lab) -> None:
    """Processes up to ``pids`` can be started; one more is refused, and the shell stays."""
    box = lab.start(pids=40)
    box.text(f"x=kept; cat > s.py <<'E'\n{SPAWN}\nE")
    box.prints("python3 s.py 20", "19\n")
    refused = box.text("python3 s.py 60").splitlines()
    same("what is said of the process too much", refused[0], "Resource temporarily unavailable")
    holds("fewer than 40 were started", int(refused[1]) < 40, refused)
    box.text("kill -9 $(pgrep sleep); sleep 0.5")
    box.prints("echo $x", "kept\n")
    box.prints("for i in $(seq 30); do sleep 0.01; done; echo made room", "made room\n")


@THEME
def pids_of_each_box(lab: Lab) -> None:
    """``pids`` is of each box: what one uses up, another has."""
    boxes = [lab.start(pids=60), lab.start(pids=60)]
    for box in boxes:
        box.text(f"cat > s.py <<'E'\n{SPAWN}\nE")
        box.prints("python3 s.py 45", "44\n")


@THEME
def a_fork_bomb(lab: Lab) -> None:
    """A fork bomb is held by ``pids``; the answer is collected and the box works on after that."""
    box = lab.start(pids=60)
    box.text("echo '{}' > answer.json")
    box.run(":(){ :|:& };:", 1.0)
    box.run("echo still", 2.0)
    same("answer", box.box.collect().data, b"{}\n")
    _fine(box)


@THEME
def descriptors(lab: Lab) -> None:
    """A program that opens as many descriptors as it can is refused more, and arguments have a length."""
    box = lab.start()
    program = "import os\nn = 0\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(n > 100, e.strerror)"
    box.prints(f"python3 - <<'E'\n{program}\nE", "True Too many open files\n")
    box.ends("/bin/true $(seq 1000000)", "exited", 126)
    _fine(box)


@THEME
def startup_wall_s(lab: Lab) -> None:
    """A box that cannot answer within ``startup_wall_s`` is BoxLost and nothing else; one that could works."""
    started = time.monotonic()
    with suppress(BoxLost):
        _fine(lab.start(startup_wall_s=1e-9))
    holds("that is found out soon", time.monotonic() - started < 60.0, time.monotonic() - started)
    _fine(lab.start(startup_wall_s=60.0))


def _fine(box: LabBox) -> None:
    text = box.text("echo fine")
    holds("`echo fine` prints it", text.endswith("fine\n"), text)
