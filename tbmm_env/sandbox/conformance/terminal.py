"""Programs that read the terminal: who waits for input is told apart from who works, and keys reach a program."""

from __future__ import annotations

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, output, same

THEME = Theme("terminal")

WAITS = {
    "read x; echo got $x": "got word",
    "head -1 | cat": "word",
    "python3 -c \"import select,sys; select.select([0],[],[]); print('s', input())\"": "s word",
    "python3 -c \"import select; p=select.poll(); p.register(0,1); p.poll(); print('p', input())\"": "p word",
    "python3 -c \"import select; p=select.epoll(); p.register(0,1); p.poll(); print('e', input())\"": "e word",
    "python3 -c \"import threading as t; t.Thread(target=lambda: print('t', input())).start()\"": "t word",
    "bash -c 'read x < /dev/tty; echo tty $x'": "tty word",
    'python3 -c "import getpass; print(getpass.getpass())"': "word",
    "(sleep 0.1; read x; echo nested $x)": "nested word",
}  # fmt: skip
"""Ways of waiting for the terminal, and what is printed when ``word`` is typed."""

WORKS = (
    "sleep 0.6",
    'python3 -c \'import subprocess; subprocess.run(["sleep", "0.6"], capture_output=True)\'',
    "python3 -c 'import time; t = time.time()\nwhile time.time() < t + 0.6: pass'",
    "sleep 0.6 | python3 -c 'import os; os.read(0, 1)'",
    "sleep 0.6 | cat",
    "python3 -c 'import threading as t; x = t.Timer(0.6, lambda: 0); x.start(); x.join()'",
    "sleep 0.6 & wait",
)
"""Ways of being silent without waiting for the terminal."""


@THEME
def next_action_is_typed(lab: Lab) -> None:
    """A program that waits for input gives its prompt back, and the next action is typed to it."""
    box = lab.start()
    command = "python3 -c \"print('hello', input('name? '), input('age? '))\"; false"
    result = box.ends(command, "awaiting_input")
    same("prompt and exit status", (result.head, result.exit_status), (b"name? ", None))
    same("the second prompt", output(box.ends("李明", "awaiting_input")), b"age? ")
    result = box.ends("9", "exited", 1)
    same("what the program says in the end", output(result).decode(), "hello 李明 9\n")


@THEME
def every_way_of_waiting(lab: Lab) -> None:
    """Waiting is seen however a program does it: read, select, poll, epoll, a thread, a child, /dev/tty, no echo."""
    box = lab.start()
    for command, said in WAITS.items():
        box.ends(command, "awaiting_input")
        found = output(box.ends("word", "exited", 0)).decode()
        holds(f"{command!r} prints {said!r} after `word` was typed", said in found, found)


@THEME
def silent_work_is_left_alone(lab: Lab) -> None:
    """A program that prints nothing and does not read the terminal runs on: sleeping, computing, reading a pipe."""
    box = lab.start()
    for command in WORKS:
        result = box.ends(command, "exited", 0)
        holds(f"{command!r} ran for its 0.6 s", result.wall_s > 0.55, result)


@THEME
def silence_until_the_wall_limit(lab: Lab) -> None:
    """A silent program that does not read the terminal is stopped by its wall limit, not before."""
    box = lab.start()
    result = box.ends("sleep 60", "wall_limit", wall_s=1.2)
    holds("it ran for its 1.2 s", result.wall_s >= 1.1, result)


@THEME
def no_output_s(lab: Lab) -> None:
    """The prompt comes back after ``no_output_s`` of silence: a shorter wait is not seen, what prints is not silent."""
    box = lab.start(no_output_s=2.0)
    box.prints("read -t 1 x; echo $?", "142\n")
    result = box.ends("read x", "awaiting_input")
    holds("the prompt comes back after 2 s", 1.9 <= result.wall_s < 10.0, result)
    box.ends("done", "exited", 0)


@THEME
def heredocs_and_pipes_are_no_terminal(lab: Lab) -> None:
    """A program that reads a heredoc, a pipe or a file meets its end there."""
    box = lab.start()
    box.prints("python3 -c 'print(input(), input())' <<'E'\n一\n二\nE", "一 二\n")
    box.prints("printf 'a\\nb\\n' > f; while read x; do echo [$x]; done < f; echo c | cat", "[a]\n[b]\nc\n")
    box.ends("python3 -c 'input()' < /dev/null 2> /dev/null", "exited", 1)


@THEME
def several_lines_are_typed(lab: Lab) -> None:
    """Each line of an action is a line that is typed; ``^D`` ends the input."""
    box = lab.start()
    box.ends("cat > /tmp/typed", "awaiting_input")
    box.ends("第一行\nsecond", "awaiting_input")
    box.ends("^D", "exited", 0)
    box.prints("cat /tmp/typed", "第一行\nsecond\n")


@THEME
def a_dialogue(lab: Lab) -> None:
    """An interpreter and a second shell take actions until they are left."""
    box = lab.start()
    box.ends("python3 -q", "awaiting_input")
    holds("6 * 7 is printed", b"42" in output(found := box.ends("print(6 * 7)", "awaiting_input")), found)
    box.ends("exit(5)", "exited", 5)
    box.ends("bash --norc", "awaiting_input")
    holds("7 * 8 is printed", b"56" in output(found := box.ends("echo $((7 * 8))", "awaiting_input")), found)
    box.ends("exit 6", "exited", 6)
    box.prints("echo back", "back\n")


@THEME
def ctrl_c(lab: Lab) -> None:
    """``^C`` interrupts a program that waits; a program that handles it goes on."""
    box = lab.start()
    box.ends("cat", "awaiting_input")
    box.ends("^C", "exited", 130)
    handler = "try: input('a')\nexcept KeyboardInterrupt: input('caught')"
    box.ends(f'python3 -c "{handler}"', "awaiting_input")
    same("what the handler prints", output(box.ends("^C", "awaiting_input")), b"caught")
    box.ends("x", "exited", 0)
    box.prints("echo back", "back\n")


@THEME
def ctrl_d(lab: Lab) -> None:
    """``^D`` ends the input of a program that waits, and only that."""
    box = lab.start()
    box.ends("cat; echo -; wc -l", "awaiting_input")
    result = box.ends("^D", "awaiting_input")
    same("what comes after the first end", output(result), b"-\n")
    same("the count after the second", output(box.ends("^D", "exited", 0)), b"0\n")


@THEME
def ctrl_z(lab: Lab) -> None:
    """``^Z`` stops a program that waits; ``fg`` continues it."""
    box = lab.start()
    box.ends("cat > f", "awaiting_input")
    box.ends("^Z", "exited", 148)
    holds("the job is stopped", "Stopped" in (found := box.text("jobs")), found)
    box.ends("fg", "awaiting_input")
    box.ends("line", "awaiting_input")
    box.ends("^D", "exited", 0)
    box.prints("cat f", "line\n")


@THEME
def ctrl_backslash(lab: Lab) -> None:
    r"""``^\`` ends a program that ignores ``^C``."""
    box = lab.start()
    box.ends("(trap '' INT; cat)", "awaiting_input")
    box.ends("^C", "awaiting_input")
    box.ends("^\\", "exited", 131)
    box.prints("echo back", "back\n")


@THEME
def stopped_waiting_meanwhile(lab: Lab) -> None:
    """If a program stops waiting between two actions, the next one is a command again."""
    box = lab.start()
    box.ends("read -t 0.8 x", "awaiting_input")
    lab.rest(1.5)
    box.prints("echo [$x] run", "[] run\n")


@THEME
def wall_limit_of_a_waiting_program(lab: Lab) -> None:
    """A program that waits is stopped if its wall limit comes first."""
    box = lab.start(no_output_s=60.0)
    box.ends("read x", "wall_limit", wall_s=0.5)
    box.ends("cat", "wall_limit", wall_s=0.5)
    box.prints("echo fine", "fine\n")


@THEME
def a_typed_line_that_is_too_long(lab: Lab) -> None:
    """A typed line is cut where a terminal cuts it, at 4095 bytes, and that is said."""
    box = lab.start()
    box.ends("cat > /tmp/long", "awaiting_input")
    same("output after a line of 4095 bytes", output(box.ends("v" * 4095, "awaiting_input")), b"")
    result = box.ends("w" * 5000, "awaiting_input")
    holds("the output says that the line was cut at 4095 bytes", b"4095 bytes" in output(result), result)
    box.ends("^D", "exited", 0)
    box.prints("tr -cd v < /tmp/long | wc -c; tr -cd w < /tmp/long | wc -c", "4095\n4095\n")
