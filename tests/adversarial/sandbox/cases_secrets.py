"""What is to be found in a box: nothing of its owner's environment, descriptors, host or hidden files."""

from __future__ import annotations

import os

import box_search
from host_state import TOKEN
from hostile_case import Case, Played, Step, python

CANARY = "tbmm-canary-" + "7f1c2e9a"
HOST_NAME = os.uname().nodename if len(os.uname().nodename) > 8 else TOKEN
"""A short name may be an ordinary word."""

DESCRIPTORS = r"""
import os
found = []
for process in [name for name in os.listdir("/proc") if name.isdigit()]:
    try: names = os.listdir(f"/proc/{process}/fd")
    except OSError: continue
    for name in names:
        try: target = os.readlink(f"/proc/{process}/fd/{name}")
        except OSError: continue
        shell_s = ("/dev/pts/", "/dev/tty", "/memfd:command", "/memfd:begun", "pipe:")
        if not target.startswith((*shell_s, f"/proc/{os.getpid()}/fd")):
            found.append((process, name, target))
print(found, sorted(map(int, os.listdir("/proc/self/fd"))))
"""


NEEDLES = (CANARY, TOKEN, HOST_NAME, "tbmm-public-" + "77aa", "tbmm-own-" + "1234")


def _clean(played: Played) -> None:
    for number, needle in enumerate(NEEDLES[:3]):
        assert box_search.found(played.text(1), number) == [], needle
    assert box_search.found(played.text(1), 3) == ["/task/public"]  # the search finds what is there
    assert "/workspace/mine" in box_search.found(played.text(1), 4)


CASES = (
    Case(
        name="secret_search_of_every_readable_byte",
        files={"public": b"tbmm-public-77aa"},
        steps=(
            Step(command="echo tbmm-own-1234 > mine; sleep 300 &"),
            Step(command=box_search.command(*map(str.encode, NEEDLES)), wall_s=180.0),
        ),
        check=_clean,
    ),
    Case(
        name="secret_descriptors_of_the_owner",
        steps=(Step(command=python(DESCRIPTORS), prints="[] [0, 1, 2, 3, 250, 251, 252]\n"),),
    ),
    Case(
        name="secret_environment",
        steps=(
            Step(
                command="cat /proc/[0-9]*/environ 2> /dev/null | tr '\\0' '\\n' | grep -icE 'token|docker|secret|tbmm'",
                fault="command_failed",
                prints="0\n",
            ),
            Step(command="hostname; cat /etc/hostname; uname -n; date +%Z", prints="box\nbox\nbox\nUTC\n"),
            Step(
                command="ls -A /home /root /run /var/tmp /lib/modules /boot /mnt /srv /media 2> /dev/null | grep -v :",
                fault=("none", "command_failed"),
                hides=("tbmm", "docker"),
            ),
        ),
    ),
)
