"""The persistent shell: state, exit statuses, input, endings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tbmm_env.limits import GIB, KIB

Start = Callable[..., Any]


def test_state_lives_on(tried: Any) -> None:
    assert tried.text("cd /tmp; x='a b'; export Y=2; f() { echo f$1; }; alias g='echo aliased'") == ""
    assert tried.text("pwd; echo $x; env | grep ^Y=; f 3; g") == "/tmp\na b\nY=2\nf3\naliased\n"


def test_background_jobs_live_on_and_do_not_hold_the_step(tried: Any) -> None:
    result = tried.run("sleep 300 & echo $! > /tmp/pid")
    assert result.ending == "exited"
    assert result.wall_s < 5.0
    assert tried.text("kill -0 $(cat /tmp/pid) && echo alive") == "alive\n"
    result = tried.run("while sleep 0.01; do echo noise; done & sleep 0.2; echo done")  # it prints on the terminal
    assert result.ending == "exited"
    assert b"noise" in result.head
    assert b"done" in result.head + result.tail
    assert tried.run("kill %2").ending == "exited"


def test_exit_statuses(tried: Any) -> None:
    expected = {
        "true": 0,
        "false": 1,
        "(exit 7)": 7,
        "no-such-program": 127,
        "/etc/passwd": 126,
        "bash -c 'kill -9 $$'": 137,
        "bash -c 'kill -TERM $$'": 143,
        "python3 -c 'import os; os.abort()'": 134,
        "true | false": 1,
        "echo 'unbalanced": 2,
        "if true; then": 2,
        "": 0,
        "# a comment only": 0,
        "timeout 0.1 sleep 5": 124,
    }
    found = {command: tried.run(command) for command in expected}
    assert {command: result.ending for command, result in found.items()} == dict.fromkeys(expected, "exited")
    assert {command: result.exit_status for command, result in found.items()} == expected


def test_text_of_many_lines_is_one_command(tried: Any) -> None:
    assert tried.text("cat <<'END'\n$HOME 'one\ntwo\"\nEND\nfor i in 1 2; do\n  echo $i\ndone") == (
        "$HOME 'one\ntwo\"\n1\n2\n"
    )
    assert tried.text("python3 - <<'END'\nprint('模型' * 3)\nEND") == "模型模型模型\n"
    assert tried.text("echo 50% \\\n  more") == "50% more\n"
    assert tried.text("echo '!!' \"a!b\"") == "!! a!b\n"


def test_an_action_of_the_largest_size_runs(tried: Any) -> None:
    frame = "printf %s '' | wc -c"
    action = frame.replace("''", "'" + "y" * (64 * KIB - len(frame)) + "'")
    assert len(action) == 64 * KIB
    assert int(tried.text(action)) == 64 * KIB - len(frame)
    long_line = "echo " + "z" * 20_000  # longer than a terminal's line
    assert len(tried.text(long_line)) == 20_001


def test_a_multibyte_text_crosses_reads_unharmed(tried: Any) -> None:
    text = tried.text("python3 -c \"import sys; sys.stdout.write('数学建模' * 4000)\"")
    assert text == "数学建模" * 4000


def test_raw_bytes_arrive_as_they_are(tried: Any) -> None:
    result = tried.run(r"printf '\377\000\033[31m\r\n\200'")
    assert result.head == b"\xff\x00\x1b[31m\r\n\x80"


def test_a_program_that_reads_gets_the_next_action(tried: Any) -> None:
    result = tried.run("python3 -c \"print('hello', input('name? '))\"")
    assert (result.ending, result.exit_status, result.head) == ("awaiting_input", None, b"name? ")
    result = tried.run("李明")
    assert (result.ending, result.exit_status) == ("exited", 0)
    assert result.head.decode() == "hello 李明\n"


def test_every_way_of_waiting_for_the_terminal_is_seen(tried: Any) -> None:
    waits = {
        "read x; echo got $x": "got word",
        "head -1 | cat": "word",
        "python3 -c \"import select,sys; select.select([0],[],[]); print('s', input())\"": "s word",
        "python3 -c \"import select; p=select.poll(); p.register(0,1); p.poll(); print('p', input())\"": "p word",
        "python3 -c \"import select; p=select.epoll(); p.register(0,1); p.poll(); print('e', input())\"": "e word",
        "python3 -c \"import threading as t; t.Thread(target=lambda: print('t', input())).start()\"": "t word",
        "bash -c 'read x < /dev/tty; echo tty $x'": "tty word",
    }  # fmt: skip
    for command, said in waits.items():
        assert tried.run(command).ending == "awaiting_input", command
        assert said in tried.run("word").head.decode(), command


def test_silence_without_reading_is_not_waiting_for_input(tried: Any) -> None:
    for command in (
        'python3 -c \'import subprocess; subprocess.run(["sleep", "1"], capture_output=True)\'',
        "sleep 1 | python3 -c 'import os; os.read(0, 1)'",
        "sleep 1 | cat",
    ):
        result = tried.run(command)
        assert (result.ending, result.exit_status) == ("exited", 0), command


def test_keys_of_a_waiting_program(tried: Any) -> None:
    assert tried.run("cat > /tmp/typed").ending == "awaiting_input"
    assert tried.run("第一行\nsecond").ending == "awaiting_input"
    assert tried.run("^D").exit_status == 0
    assert tried.text("cat /tmp/typed") == "第一行\nsecond\n"
    assert tried.run("cat").ending == "awaiting_input"
    assert tried.run("^C").exit_status == 130
    assert tried.text("echo back") == "back\n"


def test_a_program_that_stops_waiting_between_actions(tried: Any) -> None:
    assert tried.run("read -t 1.2 x").ending == "awaiting_input"
    assert tried.run("sleep 1") is not None  # typed or run, whichever it is when it comes
    assert tried.text("echo fine") == "fine\n"


def test_a_long_typed_line_is_cut_with_a_word(tried: Any) -> None:
    assert tried.run("cat > /tmp/long").ending == "awaiting_input"
    result = tried.run("w" * 5000)
    assert b"a terminal cuts it there" in result.head
    tried.run("^D")
    assert int(tried.text("head -c 5000 /tmp/long | tr -d '\\n' | wc -c")) == 4095


def test_exit_restarts_the_shell(tried: Any) -> None:
    tried.text("x=1; touch kept; sleep 300 & echo $! > pid")
    result = tried.run("echo last words; exit 3")
    assert (result.ending, result.exit_status) == ("shell_restarted", 3)
    assert b"last words" in result.head
    assert tried.text("echo [$x] $PWD; ls kept; kill -0 $(cat pid) && echo job") == "[] /workspace\nkept\njob\n"


def test_a_shell_that_is_killed_or_replaced_is_restarted(tried: Any) -> None:
    assert tried.run("kill -9 $$").exit_status == 137
    assert tried.run("exec true").ending == "shell_restarted"
    assert tried.run("set -e; false").ending == "shell_restarted"
    assert tried.text("echo fine") == "fine\n"


def test_an_agent_that_breaks_its_own_shell_deceives_only_itself(tried: Any) -> None:
    for breakage in (
        "PROMPT_COMMAND='echo 00 0 >&251'",
        "exec 250>&-",
        "exec 251>&-",
        "exec >/dev/null 2>&1 </dev/null",
        "eval() { :; }; printf() { :; }; read() { :; }",
        "stty raw -echo; stty -a > /tmp/modes",
        "trap 'echo trapped' DEBUG EXIT INT",
        "for i in $(seq 300); do echo forged 0 >&251; done",
        "head -c 3000000 /dev/zero >&251",
        "set -x; PS4='$(echo 1)'",
        "printf 'exit 9\\n' > /dev/fd/250",
    ):
        result = tried.run(breakage, wall_s=3.0)
        assert result.ending in ("exited", "awaiting_input", "shell_restarted", "wall_limit"), breakage
        tried.run("kill -9 $$", wall_s=3.0)
        if tried.run("echo x", wall_s=3.0).ending == "awaiting_input":  # the flood took the word that it had ended
            tried.run("exit", wall_s=3.0)
        assert tried.text("echo fine") == "fine\n", breakage


def test_a_shell_that_can_no_longer_report_waits_and_is_left_by_exit(tried: Any) -> None:
    tried.run("readonly PROMPT_COMMAND")
    assert tried.run("true").ending == "awaiting_input"
    assert tried.run("exit").ending == "shell_restarted"
    assert tried.text("echo fine") == "fine\n"


def test_a_forged_end_does_not_shift_later_answers(tried: Any) -> None:
    read_word = 'word=$(echo "$PROMPT_COMMAND" | sed -n \'s/.*n" \\([0-9a-f]*\\) .*/\\1/p\')'
    forge = f'{read_word}; echo "$word 5" >&251; sleep 0.5; echo late'
    result = tried.run(forge)
    assert result.exit_status == 5  # it told itself so
    assert tried.run("sleep 1").ending == "exited"
    for number in range(5):
        assert tried.text(f"echo {number}").endswith(f"{number}\n")


def test_the_agents_environment(tried: Any) -> None:
    names = "HOME LANG TZ PYTHONHASHSEED OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS MPLBACKEND TERM"
    assert tried.text(f"for n in {names}; do echo ${{!n}}; done").split() == [
        "/workspace", "C.UTF-8", "UTC", "0", "1", "1", "1", "Agg", "dumb",
    ]  # fmt: skip
    assert tried.text("hostname; id -un; pwd; umask; date +%Z") == "box\nagent\n/workspace\n0022\nUTC\n"
    assert tried.text("test -t 0 && test -t 1 && stty size") == "40 120\n"


def test_the_scientific_programs_are_there(start: Start) -> None:
    tried = start(memory_bytes=2 * GIB)
    imports = (
        "numpy scipy.optimize pandas sklearn.linear_model matplotlib.pyplot openpyxl statsmodels.api highspy networkx"
        " sympy PIL.Image pypdfium2 numba"
    )
    program = f"import importlib\nfor name in '{imports}'.split(): importlib.import_module(name)\nprint('all')"
    assert tried.text(f"python3 -W error - <<'END'\n{program}\nEND", 120.0) == "all\n"
    lp = "from scipy.optimize import linprog; print(linprog([1, 1], A_ub=[[-1, -1]], b_ub=[-2]).fun)"
    assert float(tried.text(f'python3 -c "{lp}"', 60.0)) == 2.0


def test_chinese_names(start: Start) -> None:
    tried = start({"题目/附件 1.csv": b"1,2\n", "说明.md": "中文\n".encode(), "a/b/c": b""})
    assert tried.text("cat /task/说明.md '/task/题目/附件 1.csv'; ls /task/a/b") == "中文\n1,2\nc\n"
    assert tried.text("mkdir 结果; cp /task/说明.md 结果/图.md; ls 结果") == "图.md\n"


def test_task_files_are_read_only(start: Start) -> None:
    tried = start({"d/a": b"first", "b": b"x" * 3_000_000})
    for command in (
        "echo x > /task/d/a", "rm -f /task/d/a", "touch /task/new", "chmod 777 /task/d/a", "mv /task /tmp/t",
        "ln /task/d/a /workspace/a", "mkdir /task/d/e",
    ):  # fmt: skip
        assert tried.run(command).exit_status != 0, command
    assert tried.text("cat /task/d/a; wc -c < /task/b") == "first3000000\n"


def test_an_agent_that_breaks_its_terminal_harms_only_itself(tried: Any) -> None:
    start = "import fcntl, os, signal, struct, termios as t, time; "
    for attack in (
        "fcntl.ioctl(0, t.TIOCSETD, struct.pack('i', 27))",  # a line discipline that passes nothing on
        "fcntl.ioctl(0, t.TIOCEXCL)",
        "t.tcflow(0, t.TCOOFF); os.write(1, b'x')",
        "t.tcflow(0, t.TCIOFF)",
        "os.set_blocking(0, False)",
        "signal.signal(signal.SIGTTOU, signal.SIG_IGN); os.tcsetpgrp(0, 1)",
        "os.setpgid(0, 1); time.sleep(9)",
        "modes = t.tcgetattr(0); modes[3] |= t.ECHO | t.TOSTOP; modes[1] |= t.OPOST; t.tcsetattr(0, t.TCSANOW, modes)",
        "os.write(1, b'x' * 100000); fcntl.ioctl(0, t.TCFLSH, 2)",
    ):
        tried.run(f'python3 -c "{start}{attack}"', wall_s=0.5)
        assert tried.run("true", wall_s=2.0).ending in ("exited", "shell_restarted"), attack
        assert tried.text("echo fine").endswith("fine\n"), attack


def test_the_helper_answers_among_busy_processes(start: Start) -> None:
    tried = start(cpus=0.5, pids=120)
    tried.run("for i in $(seq 100); do (while :; do :; done) & done 2> /dev/null", 20.0)
    result = tried.run("sleep 60", 0.5)
    assert result.ending == "wall_limit"
    assert result.wall_s < 20.0
    assert tried.box.collect().status == "missing"
