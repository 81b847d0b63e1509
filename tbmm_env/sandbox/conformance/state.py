"""What a shell remembers from one action to the next."""

from __future__ import annotations

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab

THEME = Theme("state")


@THEME
def folder(lab: Lab) -> None:
    """The working directory lives on, one with a Chinese name too."""
    box = lab.start()
    box.prints("mkdir -p /tmp/数据/子; cd /tmp/数据/子", "")
    box.prints("pwd; cd ..; pushd / > /dev/null", "/tmp/数据/子\n")
    box.prints("pwd; popd > /dev/null; pwd; cd -  > /dev/null; pwd", "/\n/tmp/数据\n/\n")


@THEME
def variables(lab: Lab) -> None:
    """Variables live on, exported ones reach programs, arrays and unset ones are as they were left."""
    box = lab.start()
    box.prints("x='a b'; export Y=2; list=(p 'q r'); declare -A map=([k]=v); HOME2=$HOME; unset HOME2", "")
    box.prints("echo $x; env | grep -c ^Y=2; env | grep ^x= ; echo ${list[1]} ${map[k]} [$HOME2]", "a b\n1\nq r v []\n")
    box.prints("python3 -c \"import os; print(os.environ['Y'])\"; PATH=/nowhere; type -t ls; PATH=/usr/bin", "2\n")
    box.prints("echo $PATH", "/usr/bin\n")


@THEME
def functions_and_aliases(lab: Lab) -> None:
    """Functions, aliases and traps live on."""
    box = lab.start()
    box.prints(
        "f() { echo f$1; }; alias g='echo aliased'; trap 'echo caught' USR1; . /dev/stdin <<< 'h() { f 4; }'", ""
    )
    box.prints("f 3; g; h; kill -USR1 $$", "f3\naliased\nf4\ncaught\n")


@THEME
def options(lab: Lab) -> None:
    """Options of the shell, its file mask and its limits live on."""
    box = lab.start()
    box.prints("set -o pipefail -o noclobber; shopt -s nullglob extglob; umask 077; ulimit -n 100; set -- p q", "")
    box.prints("false | true; echo $?; echo *.none; umask; ulimit -n; echo $#", "1\n\n0077\n100\n2\n")
    box.prints("echo 1 > f; (echo 2 > f) 2> /dev/null || cat f; echo !(f)", "1\n\n")


@THEME
def exit_status(lab: Lab) -> None:
    """``$?`` is the exit status of the action before."""
    box = lab.start()
    box.ends("(exit 7)", "exited", 7)
    box.prints("echo $?", "7\n")
    box.prints("echo $?", "0\n")
