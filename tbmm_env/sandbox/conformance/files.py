"""Files of a box: what is there in the beginning, and where programs may write and run."""

from __future__ import annotations

import hashlib
import zlib

from tbmm_env.limits import GIB
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, LabBox, holds, same

THEME = Theme("files")

IMPORTED = (
    "numpy scipy.optimize pandas sklearn.linear_model matplotlib.pyplot openpyxl statsmodels.api highspy networkx"
    " sympy PIL.Image pypdfium2 numba"
)
ENVIRONMENT = {
    "HOME": "/workspace", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "Agg", "TERM": "dumb", "USER": "agent",
}  # fmt: skip


@THEME
def task_names(lab: Lab) -> None:
    """Files of /task have the names they were given: in Chinese, with blanks and marks, in nested folders."""
    names = {"题目/附件 1.csv": b"1,2\n", "说明.md": "中文\n".encode(), "a/b/c/d": b"", "-dash": b"d\n"}
    box = lab.start(names | {'it\'s $x "q".txt': b"q\n"})
    box.prints("cat /task/说明.md '/task/题目/附件 1.csv'; ls /task/a/b/c", "中文\n1,2\nd\n")
    box.prints('cat /task/-dash "/task/it\'s \\$x \\"q\\".txt"; wc -c < /task/a/b/c/d', "d\nq\n0\n")
    box.prints("cd /task; find . -type f | wc -l", "5\n")


@THEME
def task_bytes(lab: Lab) -> None:
    """Files of /task have exactly the bytes they were given, megabytes of any values too."""
    data = bytes(range(256)) * 17
    large = zlib.compress(bytes(range(256))) * 20_000
    box = lab.start({"data.bin": data, "large.bin": large})
    sums = [hashlib.sha256(one).hexdigest() for one in (data, large)]
    same("hashes of two files", box.text("cd /task; sha256sum data.bin large.bin | cut -d' ' -f1").split(), sums)


@THEME
def task_is_read_only(lab: Lab) -> None:
    """Nothing in /task can be changed, removed, renamed or added to."""
    box = lab.start({"d/a": b"first"})
    for command in (
        "echo x > /task/d/a", "rm -f /task/d/a", "touch /task/new", "chmod 777 /task/d/a", "mv /task /tmp/t",
        "ln /task/d/a /workspace/a", "mkdir /task/d/e", "rmdir /task", "truncate -s 0 /task/d/a",
    ):  # fmt: skip
        holds(f"{command!r} fails", box.run(command).exit_status not in (0, None), 0)
    box.prints("cat /task/d/a; ls /task /task/d", "first/task:\nd\n\n/task/d:\na\n")


@THEME
def workspace(lab: Lab) -> None:
    """A box begins in /workspace, which is empty, and there files of every kind are made, changed and removed."""
    box = lab.start({"说明.md": b"x\n"})
    box.prints("pwd; ls -A", "/workspace\n")
    box.prints("mkdir -p 结果/子; cp /task/说明.md 结果/图.md; chmod u+w 结果/图.md; echo y >> 结果/图.md", "")
    box.prints("cat 结果/图.md; mv 结果/图.md 结果/子/新.md; find . -type f", "x\ny\n./结果/子/新.md\n")
    box.prints("ln -s 结果 l; ln 结果/子/新.md h; mkfifo p; stat -c %h l/子/新.md; rm -r 结果 l h p; ls -A", "2\n")


@THEME
def nothing_else_is_writable(lab: Lab) -> None:
    """Besides /workspace, /tmp and /dev/shm nothing can be written."""
    found = lab.start().text(
        "find / -xdev -writable \\( -type d -o -type f \\) 2>/dev/null; for d in /dev /run /var/tmp /home /etc"
        " /usr/local /proc/sys/kernel /sys /workspace /tmp /dev/shm; do touch $d/x 2>/dev/null && echo $d; done"
    )
    same("writable folders", set(found.split()), {"/workspace", "/tmp", "/dev/shm"})


def _runs(box: LabBox, folder: str) -> None:
    box.prints(
        f"printf '#!/bin/sh\\necho ran $0\\n' > {folder}/p; chmod +x {folder}/p; {folder}/p", f"ran {folder}/p\n"
    )
    box.prints(f"cp /usr/bin/echo {folder}/e; {folder}/e binary", "binary\n")


@THEME
def program_in_workspace(lab: Lab) -> None:
    """A program that was just written to /workspace runs."""
    _runs(lab.start(), "/workspace")


@THEME
def program_in_tmp(lab: Lab) -> None:
    """A program that was just written to /tmp runs."""
    _runs(lab.start(), "/tmp")


@THEME
def program_in_dev_shm(lab: Lab) -> None:
    """A program that was just written to /dev/shm runs."""
    _runs(lab.start(), "/dev/shm")


@THEME
def shared_memory(lab: Lab) -> None:
    """Processes share memory and semaphores by name."""
    program = (
        "import multiprocessing as m, os\nfrom multiprocessing import shared_memory as s\n"
        "block = s.SharedMemory(create=True, size=1 << 20); lock = m.get_context('fork').Lock()\n"
        "child = os.fork()\nif child == 0:\n  lock.acquire(); other = s.SharedMemory(block.name); other.buf[5] = 7\n"
        "  os._exit(0)\n"
        "os.waitpid(child, 0); print(block.buf[5], lock.acquire(False)); block.close(); block.unlink()"
    )
    text = lab.start().text(f"python3 -W ignore - <<'E' 2> /dev/null\n{program}\nE")
    same("what another process has written and locked", text, "7 False\n")


@THEME
def environment(lab: Lab) -> None:
    """Variables, user, host name, time zone and terminal are the same in every box."""
    box = lab.start()
    names = " ".join(ENVIRONMENT)
    found = box.text(f"for n in {names}; do echo ${{!n}}; done").split("\n")[:-1]
    same("variables", dict(zip(ENVIRONMENT, found, strict=True)), ENVIRONMENT)
    box.prints("hostname; id -un; id -u; pwd; umask; date +%Z", "box\nagent\n10001\n/workspace\n0022\nUTC\n")
    box.prints("test -t 0 && test -t 1 && test -t 2 && stty size", "40 120\n")


@THEME
def scientific_programs(lab: Lab) -> None:
    """The scientific Python of the image can be imported and used."""
    box = lab.start(memory_bytes=2 * GIB)
    program = f"import importlib\nfor name in '{IMPORTED}'.split(): importlib.import_module(name)\nprint('all')"
    box.prints(f"python3 -W error - <<'END'\n{program}\nEND", "all\n", 200.0)
    lp = "from scipy.optimize import linprog; print(linprog([1, 1], A_ub=[[-1, -1]], b_ub=[-2]).fun)"
    same("the least x + y with x + y >= 2", float(box.text(f'python3 -c "{lp}"', 200.0)), 2.0)
