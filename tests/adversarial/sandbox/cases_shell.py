"""The shell turned against its helper: whatever it says, ends or holds, the next actions come to an end."""

from __future__ import annotations

from hostile_case import Case, Played, Step

ANY = ("none", "command_failed", "limit_hit")


def tried(*commands: str, wall_s: float = 0.8) -> tuple[Step, ...]:
    """Return steps that may come to anything, with a way out after each: ``exit``, which always gives a new shell."""
    steps = []
    for command in commands:
        steps += [Step(command=command, wall_s=wall_s, fault=ANY), *LEAVE]
    return tuple(steps)


LEAVE = (
    Step(command="exit", wall_s=0.8, fault=ANY),
    Step(command="exit", wall_s=0.8, fault=ANY),
    Step(command="echo fine", wall_s=5.0, shows=("fine\n",)),
)


def _run_whole_or_told_of_a_new_shell(played: Played) -> None:
    for number, result in enumerate(played.results[1:4], 1):
        if result.ending == "shell_restarted":
            assert result.exit_status == 137
        else:
            assert (result.ending, result.exit_status) == ("exited", 0)
            assert "under fire\n" in played.text(number)


CASES = (
    Case(
        name="shell_traps_and_options",
        steps=tried(
            "trap 'echo trapped; false' DEBUG EXIT ERR INT TERM HUP CHLD WINCH RETURN; set -T",
            "trap 'while :; do :; done' DEBUG",
            "set -e; set -u; set -o pipefail; set -f; set -n; set -v; set -x; shopt -s extdebug",
            "set -r",
        ),
    ),
    Case(
        name="shell_variables_made_read_only",
        steps=tried(
            "readonly PROMPT_COMMAND='true'",
            "readonly PS0 PS2 PS4 IFS=x",
            "declare -rx PROMPT_COMMAND; declare -A BASH_ALIASES; unset PATH HOME; TMOUT=1",
            "declare -n PROMPT_COMMAND=RANDOM; IFS='0123456789abcdef '",
        ),
    ),
    Case(
        name="shell_prompt_made_read_only",
        steps=tried("readonly PS1"),
    ),
    Case(
        name="shell_whose_home_is_closed",
        steps=(
            Step(command="chmod 000 /workspace; exit", fault="command_failed", ending="shell_restarted"),
            Step(command="chmod 755 /workspace", wall_s=2.0),
            Step(command="echo '{}' > /workspace/answer.json"),
        ),
        collected=b"{}\n",
    ),
    Case(
        name="shell_without_eval",
        steps=tried("enable -n eval"),
    ),
    Case(
        name="shell_builtins_replaced",
        steps=tried(
            "enable -n printf read exit kill",
            "alias eval=: printf=: '{'=: '}'=: exit=true; shopt -s expand_aliases",
            "eval() { :; }; printf() { sleep 60; }; exit() { :; }; readonly -f eval printf exit",
            "command_not_found_handle() { while :; do :; done; }; nothing-of-this-name",
        ),
    ),
    Case(
        name="shell_limits_lowered",
        steps=(
            *tried("ulimit -u 0", "ulimit -f 0; ulimit -s 64", "ulimit -v 1000"),
            Step(command="ulimit -n 3", wall_s=3.0, fault=ANY),
            Step(command="exit", wall_s=3.0, fault=ANY),
        ),
        again=False,
    ),
    Case(
        name="shell_killed_or_replaced",
        steps=(
            Step(command="kill -9 $$", fault="command_failed", ending="shell_restarted", status=137),
            Step(command="kill $$; kill -HUP $$", fault=ANY),
            Step(command="exec -a bash sleep 60", wall_s=1.0, fault="limit_hit"),
            Step(command="exec -a bash cat", wall_s=4.0, fault="none", ending="awaiting_input"),
            Step(command="^D", fault=ANY),
            Step(
                command="exec python3 -c 'import signal; signal.signal(2, signal.SIG_IGN); signal.pause()'",
                wall_s=1.0,
                fault="limit_hit",
            ),
            Step(command="exec setsid -f true", fault=ANY),
            Step(command="echo fine", shows=("fine\n",)),
        ),
    ),
    Case(
        name="shell_stopped",
        steps=(
            Step(command="kill -STOP $$", wall_s=1.0, fault=ANY),
            Step(command="true", wall_s=1.0, fault=ANY),
            Step(command="(sleep 0.1; kill -STOP $$) & sleep 60", wall_s=0.5, fault="limit_hit"),
            Step(command="suspend -f", wall_s=0.5, fault=ANY),
            Step(command="echo fine", wall_s=5.0, shows=("fine\n",)),
        ),
    ),
    Case(
        name="shell_killed_again_and_again",
        steps=(
            Step(
                command="cat > /tmp/k.py <<'E'\nimport glob, os\nwhile True:\n"
                "  for p in glob.glob('/proc/[0-9]*/comm'):\n"
                "    try:\n      if open(p).read() == 'bash\\n': os.kill(int(p.split('/')[2]), 9)\n"
                "    except OSError: pass\nE\nsetsid python3 /tmp/k.py > /dev/null 2>&1 &",
                fault=ANY,
            ),
            *[Step(command="sleep 0.2; echo under fire", wall_s=3.0, fault=("none", "command_failed"))] * 3,
        ),
        check=_run_whole_or_told_of_a_new_shell,
    ),
    Case(
        name="shell_with_busy_jobs_and_no_way_to_fork",
        limits={"pids": 40},
        steps=(
            Step(
                command="python3 -c 'import os, time\nwhile True:\n"
                "  try:\n    if os.fork() == 0: os.setsid(); time.sleep(99)\n"
                "  except OSError: time.sleep(0.01)' & sleep 1",
                fault=ANY,
            ),
            Step(command="ls", wall_s=3.0, fault=ANY),
            Step(command="view /etc/passwd", wall_s=3.0, fault=ANY),
            Step(command="kill -9 $$", wall_s=3.0, fault=ANY, ending="shell_restarted"),
            Step(command="echo fine", shows=("fine\n",)),
        ),
    ),
    Case(
        name="shell_of_the_last_process_id",
        steps=(
            Step(
                command="echo 400 > /proc/sys/kernel/ns_last_pid; echo 301 > /proc/sys/kernel/pid_max",
                wall_s=3.0,
                fault=ANY,
            ),
            Step(command="sleep 60 & sleep 60 &", wall_s=3.0, fault=ANY),
            Step(command="view /etc/passwd; ls", wall_s=8.0, fault=ANY),
            Step(command="kill -9 $$", wall_s=8.0, fault="command_failed", ending="shell_restarted"),
            Step(command="echo fine", shows=("fine\n",)),
        ),
    ),
)
