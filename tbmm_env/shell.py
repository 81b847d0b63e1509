"""Text in, text out: what of an action may be run, and what an agent sees of a command's result.

Nothing here depends on a clock, a path, an id or a duration: the same result gives the same observation.
"""

from __future__ import annotations

import re

from tbmm_env.limits import Limits
from tbmm_env.record import CommandResult, Observation

_OSC = r"\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_OTHER = r"\x1b[ -/]*[0-Z\\^-~]"
_ESCAPES = re.compile(f"{_OSC}|{_CSI}|{_OTHER}")
_CUT_ESCAPE = re.compile(r"\x1b[^\n\x07]{0,64}\Z")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
"""C0 and C1 controls but tab and newline; marks that turn the direction of text; byte order marks."""
_LINE_ENDS = re.compile(r"\r+\n")
_OTHER_LINE_ENDS = str.maketrans({"\u2028": "\n", "\u2029": "\n"})

NOTICE_BYTES = 2048
"""More than all notices of one observation take."""
_REPLACEMENT_GROWTH = 3
"""A byte that is not UTF-8 becomes U+FFFD, three bytes."""


def terminal_bytes(limits: Limits) -> int:
    """Return the most UTF-8 bytes that the terminal text of one observation can have."""
    return _REPLACEMENT_GROWTH * limits.step_output_bytes + NOTICE_BYTES


def refuse(action: str, limits: Limits) -> str | None:
    """Return the notice an agent sees instead of a result, or None when the action may be run.

    Args:
        action: any text.
        limits: its ``action_bytes`` bounds the UTF-8 length.
    """
    length = len(action.encode("utf-8", "surrogatepass"))
    if length > limits.action_bytes:
        why = (
            f"the action has {length} bytes; the limit is {limits.action_bytes} bytes."
            " Write long files in parts, with `cat >> FILE <<'END'`"
        )
    elif "\0" in action:
        why = f"the action has a NUL character at position {action.index(chr(0))}; a shell takes none"
    elif any("\ud800" <= character <= "\udfff" for character in action):
        why = "the action has a lone surrogate, which is not text"
    else:
        return None
    return f"[not run: {why}]\n"


def observe(result: CommandResult, limits: Limits, wall_s: float | None = None) -> Observation:
    """Return what the agent sees of a result: sanitised output, then notices, then the exit status.

    Args:
        result: of the box.
        limits: named in the notices.
        wall_s: wall limit that was given to the command; one below ``step_wall_s`` is the rest of the episode.
    """
    parts = []
    if result.dropped_bytes:
        parts.append(_text(_whole_end(result.head), cut=True))
        parts.append(
            f"[... {result.dropped_bytes} bytes not shown; an action shows {limits.step_output_bytes} bytes,"
            " half of them from its end ...]"
        )
        parts.append(_text(_whole_start(result.tail)))
    else:
        parts.append(_text(result.head + result.tail))
    parts += _notices(result, limits, wall_s)
    terminal = "".join(part if part.endswith("\n") else part + "\n" for part in parts if part)
    return Observation(terminal=terminal, figures=tuple(image.pixels for image in result.images))


def _notices(result: CommandResult, limits: Limits, wall_s: float | None) -> list[str]:
    notices = []
    if result.ending == "wall_limit":
        if wall_s is not None and wall_s < limits.step_wall_s:
            notices.append(f"[stopped: the episode's {limits.episode_wall_s:g} s of wall time are used up]")
        else:
            notices.append(
                f"[stopped: the action reached its limit of {limits.step_wall_s:g} s wall time."
                " Run longer work in the background: COMMAND > log 2>&1 &]"
            )
    elif result.ending == "awaiting_input":
        notices.append(
            f"[nothing was printed for {limits.no_output_s:g} s and the program waits for input: the next action is"
            " typed to it. ^C as an action interrupts it, ^D ends its input]"
        )
    elif result.ending == "shell_restarted":
        notices.append(
            "[the shell ended and was started anew in /workspace: variables and functions are gone,"
            " files and background jobs stay]"
        )
    elif result.ending == "box_died":
        notices.append(
            f"[the box died: it used up its memory ({limits.memory_bytes} bytes) or its processes ({limits.pids});"
            " the episode ends]"
        )
    if result.evidence.startswith("oom_kill") and result.ending != "box_died":
        notices.append(f"[a process was killed: the box's memory of {limits.memory_bytes} bytes was used up]")
    if result.submitted:
        notices.append("[submitted: the episode ends]")
    if result.exit_status is not None:
        notices.append(f"[exit status {result.exit_status}]")
    return notices


def _text(data: bytes, *, cut: bool = False) -> str:
    """Decode terminal output and keep what a reader would see at the end."""
    text = data.decode("utf-8", "replace")
    if cut:
        text = _CUT_ESCAPE.sub("", text)
    text = _ESCAPES.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text.translate(_OTHER_LINE_ENDS))


def _overwritten(line: str) -> str:
    """Return the last state of a line that was rewritten with carriage returns or backspaces."""
    shown = next((part for part in reversed(line.split("\r")) if part), "")
    if "\b" not in shown:
        return shown
    kept: list[str] = []
    for character in shown:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def _whole_end(data: bytes) -> bytes:
    """Drop the first bytes of a character that was cut at the end."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            whole = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if back >= whole else data[:-back]
        if byte < 0x80:
            return data
    return data


def _whole_start(data: bytes) -> bytes:
    """Drop the last bytes of a character that was cut at the start."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]
