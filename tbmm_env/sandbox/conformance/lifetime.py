"""The life of boxes: closing, and several at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import WALL_S, Lab, LabBox, Violation, holds, lost, output, same

THEME = Theme("lifetime")
WORDS = ("one", "two", "three", "four")


@THEME
def close(lab: Lab) -> None:
    """A box can be closed again and again; any use after that is BoxLost."""
    box = lab.start()
    same("exit status", box.run("true").exit_status, 0)
    box.box.close()
    box.box.close()
    lost("run after close", lambda: box.run("true"))
    lost("collect after close", box.box.collect)
    box.box.close()


@THEME
def context(lab: Lab) -> None:
    """A ``with`` block gives the box and closes it, after an error too."""
    box = lab.start()
    with box.box as entered:
        holds("the block has the box itself", entered is box.box, entered)
    lost("run after the block", lambda: box.run("true"))
    box = lab.start()
    try:
        with box.box:
            raise KeyError("of the caller")
    except KeyError:
        lost("run after the block that failed", lambda: box.run("true"))
    else:
        raise Violation("an error in the block: expected KeyError, found nothing raised")


@THEME
def close_while_a_command_runs(lab: Lab) -> None:
    """``close`` from another thread ends a command that runs: it is BoxLost, soon."""
    box = lab.start()
    timer = threading.Timer(0.5, box.box.close)
    started = time.monotonic()
    timer.start()
    lost("the command", lambda: box.run("sleep 50", WALL_S))
    holds("it ends soon", time.monotonic() - started < 25.0, time.monotonic() - started)
    timer.join()


@THEME
def close_a_busy_box(lab: Lab) -> None:
    """A box full of processes that ignore signals, jobs and files closes soon."""
    box = lab.start()
    box.text("for i in 1 2 3 4 5 6; do (trap '' HUP INT TERM; setsid sleep 300 &) ; done; head -c 20M /dev/zero > f")
    box.ends("cat", "awaiting_input")
    started = time.monotonic()
    box.box.close()
    holds("it closes soon", time.monotonic() - started < 25.0, time.monotonic() - started)


@THEME
def next_box_is_new(lab: Lab) -> None:
    """Nothing of a box is in the next one, and a bad box does not harm it."""
    bad = lab.start({"old": b"1"}, pids=30)
    bad.text("head -c 20M /dev/zero > fill; echo x > /tmp/x; mkfifo answer.json; export LEFT=1")
    bad.run(":(){ :|:& };:", 0.5)
    bad.box.close()
    good = lab.start({"new": b"2"})
    good.prints(
        "ls -A /workspace /tmp /dev/shm /task; echo [$LEFT]", "/dev/shm:\n\n/task:\nnew\n\n/tmp:\n\n/workspace:\n[]\n"
    )
    same("status of the answer", good.box.collect().status, "missing")


@THEME
def several_boxes(lab: Lab) -> None:
    """Boxes that are open at once have each their own answer, and closing one closes no other."""
    boxes = {word: lab.start() for word in WORDS}
    for word, box in boxes.items():
        box.run(f"echo {word} > answer.json")
    boxes["two"].box.close()
    for word, box in boxes.items():
        if word != "two":
            same(f"answer of box {word}", box.box.collect().data, f"{word}\n".encode())
            same(f"check in box {word}", output(box.run("check")), f"checked: regular {len(word) + 1}\n".encode())
    lost("the closed one", lambda: boxes["two"].run("true"))


@THEME
def several_threads(lab: Lab) -> None:
    """Boxes are started, used and closed from several threads at once; files, variables and output stay apart."""

    def live(word: str, box: LabBox) -> None:
        box.text(f"v={word}; echo {word} > same; cd /tmp; echo {word} > same")
        for number in range(5):
            box.prints(f"echo $v {number}; cat same /workspace/same", f"{word} {number}\n{word}\n{word}\n")
        seen = box.text("sleep 200 & until pgrep -x sleep > /dev/null; do :; done; pgrep -cx sleep").split()[-1]
        same(f"processes named sleep that box {word} sees", seen, "1")
        box.text("echo '{}' > /workspace/answer.json; submit")
        same(f"answer of box {word}", box.box.collect().data, b"{}\n")

    def one(word: str) -> None:
        for _ in range(2):
            box = lab.start({"same": word.encode()})
            box.prints("cat /task/same", word)
            live(word, box)
            box.box.close()

    with ThreadPoolExecutor(len(WORDS)) as pool:
        for done in [pool.submit(one, word) for word in WORDS]:
            done.result()


@THEME
def one_dies_alone(lab: Lab) -> None:
    """A box that kills all its processes harms no other one."""
    one, other = lab.start(), lab.start()
    other.text("x=kept; sleep 300 & echo $! > pid")
    one.run("bash -c 'kill -9 -1'")
    other.prints("echo $x; kill -0 $(cat pid) && echo job", "kept\njob\n")
