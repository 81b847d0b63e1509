"""Output of an action: every byte as it was written, in bounded size."""

from __future__ import annotations

from tbmm_env.limits import MIB
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, output, same

THEME = Theme("output")


@THEME
def every_byte(lab: Lab) -> None:
    """Bytes of every value arrive as they were written; no carriage return is put in or taken out."""
    found = lab.start().ends("python3 -c 'import os; os.write(1, bytes(range(256)) * 4)'", "exited", 0)
    same("output", output(found), bytes(range(256)) * 4)


@THEME
def controls_arrive(lab: Lab) -> None:
    """Escape sequences and progress bars arrive as they were written; cleaning them is not the box's business."""
    found = lab.start().ends(r"printf '\377\000\033[31m\r\n\200'; printf '10%%\r20%%\r100%%\n'", "exited", 0)
    same("output", output(found), b"\xff\x00\x1b[31m\r\n\x8010%\r20%\r100%\n")


@THEME
def multibyte_text(lab: Lab) -> None:
    """Long text of three-byte characters arrives whole."""
    box = lab.start()
    box.prints("python3 -c \"import sys; sys.stdout.write('数学建模' * 4000)\"", "数学建模" * 4000)


@THEME
def characters_written_in_parts(lab: Lab) -> None:
    """A character whose bytes are written one at a time, with pauses, arrives whole."""
    program = "import os, time\nfor b in '模🧮é'.encode(): os.write(1, bytes([b])); time.sleep(0.06)"
    lab.start().prints(f"python3 - <<'E'\n{program}\nE", "模🧮é")


@THEME
def order(lab: Lab) -> None:
    """Standard output and error come in the order in which they were written, the last word too."""
    box = lab.start()
    box.prints("for i in 1 2 3; do echo o$i; echo e$i >&2; done", "o1\ne1\no2\ne2\no3\ne3\n")
    for number in range(20):
        box.prints(f"head -c 9000 /dev/zero | tr '\\0' x; printf {number}", "x" * 9000 + str(number))


@THEME
def no_output(lab: Lab) -> None:
    """An action that prints nothing has no output: no prompt, no echo, nothing of ours."""
    box = lab.start()
    for command in ("true", "x=1", "cd /tmp", "read x <<< y", ":\n:\n", "(exit 3)"):
        same(f"output of {command!r}", output(box.ends(command, "exited")), b"")
    box.prints("echo $x", "y\n")


@THEME
def step_output_bytes(lab: Lab) -> None:
    """Output up to ``step_output_bytes`` is kept whole; of more, both ends, and what lies between is counted."""
    box = lab.start(step_output_bytes=1000)
    found = box.ends("head -c 1000 /dev/zero | tr '\\0' a", "exited", 0)
    same("output of 1000 bytes", (output(found), found.dropped_bytes), (b"a" * 1000, 0))
    found = box.ends("head -c 1001 /dev/zero | tr '\\0' a", "exited", 0)
    same("what is kept and dropped of 1001 bytes", (len(output(found)), found.dropped_bytes), (1000, 1))
    found = box.ends("printf start; head -c 5000 /dev/zero | tr '\\0' a; printf end", "exited", 0)
    same("dropped bytes", found.dropped_bytes, 4008)
    same("head and tail", (found.head, found.tail), (b"start" + b"a" * 495, b"a" * 497 + b"end"))


@THEME
def long_output(lab: Lab) -> None:
    """Of megabytes of output the first and last bytes are kept exactly, and the count between is exact."""
    box = lab.start()
    written = "".join(f"{number}\n" for number in range(1, 300_001)).encode()
    half = box.limits.step_output_bytes // 2
    found = box.ends("seq 300000", "exited", 0)
    same("dropped bytes", found.dropped_bytes, len(written) - 2 * half)
    same("the first half", found.head, written[:half])
    same("the last half", found.tail, written[-half:])


@THEME
def a_flood(lab: Lab) -> None:
    """Endless output without a newline ends at the wall limit, with both ends of it."""
    box = lab.start()
    found = box.ends("printf begin; tr '\\0' y < /dev/zero", "wall_limit", wall_s=1.0)
    half = box.limits.step_output_bytes // 2
    same("lengths of head and tail", (len(found.head), len(found.tail)), (half, half))
    holds("the head has the first word", found.head.startswith(b"beginyyy"), found.head)
    holds("more than a megabyte was dropped", found.dropped_bytes > MIB, found.dropped_bytes)
    box.prints("echo fine", "fine\n")


@THEME
def a_pipe_is_fast(lab: Lab) -> None:
    """What goes through a pipe and not to the terminal does not count as output."""
    lab.start().prints("head -c 50M /dev/zero | wc -c", f"{50 * MIB}\n")


@THEME
def output_between_actions(lab: Lab) -> None:
    """What a background job prints between two actions is shown with a later one."""
    box = lab.start()
    box.ends("(sleep 0.3; echo late news) &", "exited", 0)
    found = output(box.ends("sleep 1", "exited", 0))
    holds("the job's words are shown", b"late news\n" in found, found)
    box.prints("echo own", "own\n")
