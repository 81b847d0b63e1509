"""The commands of the box: submit and check."""

from __future__ import annotations

from tbmm_env.record import Artifact
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import WALL_S, Lab, Violation, holds, lost, output, same

THEME = Theme("requests")


@THEME
def submit(lab: Lab) -> None:
    """``submit`` marks the result of its action, and of no other."""
    box = lab.start()
    holds("an action without submit is not marked", not box.run("true").submitted, True)
    result = box.ends("submit", "exited", 0)
    holds("the action with it is", result.submitted, result)
    holds("the next action is not", not box.run("true").submitted, True)


@THEME
def submit_from_anywhere(lab: Lab) -> None:
    """``submit`` works from any program, folder and ending of the action; words after it are refused."""
    box = lab.start()
    result = box.ends("submit; echo more", "exited", 0)
    same("output", output(result), b"submitted; the episode ends when this action does\nmore\n")
    for command in (
        "python3 -c \"import os; os.system('cd /tmp && submit')\"", "submit & wait; (exit 4)", "submit; exit 4",
        "env -i /usr/local/bin/submit", "submit > /dev/null 2>&1",
    ):  # fmt: skip
        holds(f"{command!r} submits", box.run(command).submitted, False)
    result = box.ends("submit; sleep 60", "wall_limit", wall_s=2.0)
    holds("an action that is stopped after it has submitted", result.submitted, result)
    for command, status in (("submit now", 2), ("submit --help", 2), ("echo submit", 0)):
        result = box.ends(command, "exited", status)
        holds(f"{command!r} does not submit", not result.submitted, result)


@THEME
def between_actions(lab: Lab) -> None:
    """``submit`` and ``check`` of a background job are refused while no action runs."""
    box = lab.start()
    box.text("(sleep 0.5; submit > log 2>&1; check >> log 2>&1; echo $? >> log) & echo $! > pid")
    lab.rest(1.5)
    result = box.run("while kill -0 $(cat pid) 2> /dev/null; do sleep 0.1; done; cat log")
    holds("nothing was submitted", not result.submitted, result)
    holds("the refusal is said", b"submit: no action is running" in output(result), result)
    same("checks that were answered", box.checked, [])


@THEME
def check(lab: Lab) -> None:
    """``check`` hands the present answer to the owner and prints what the owner says."""
    box = lab.start()
    box.prints("check", "checked: missing 0\n")
    box.text("echo one > answer.json")
    box.prints("check", "checked: regular 4\n")
    same("answers that were handed over", [artifact.data for artifact in box.checked], [b"", b"one\n"])


@THEME
def check_among_the_living(lab: Lab) -> None:
    """``check`` ends nobody, follows no link, and comes any number of times in an action up to ``checks``."""
    box = lab.start()
    box.text("sleep 300 & echo $! > /tmp/pid; echo '{}' > answer.json")
    box.prints(
        "check; cd /; ln -sf /etc/passwd /workspace/answer.json; check; kill -0 $(cat /tmp/pid) && echo job",
        "checked: regular 3\nchecked: link 0\njob\n",
    )
    same("answers that were handed over", [artifact.data for artifact in box.checked], [b"{}\n", b""])


@THEME
def checks(lab: Lab) -> None:
    """``check`` works ``checks`` times in an action, is refused after that, and works again in the next."""
    box = lab.start(checks=3)
    refused = "check: used 4 times in this action; the limit is 3 times\n1\n"
    box.prints("check; check; check; check; echo $?", "checked: missing 0\n" * 3 + refused)
    same("checks that were answered", len(box.checked), 3)
    box.prints("check", "checked: missing 0\n")


@THEME
def check_prints_any_text(lab: Lab) -> None:
    """What the owner says is printed whatever language and length it has, up to 32 KiB."""
    box = lab.start()
    for said in ("", "很好\n", "x" * 32_000 + "\n", "a\r\n\x1b[1m"):
        result = box.box.run("check", wall_s=WALL_S, on_check=lambda _, said=said: said)  # type: ignore[misc]
        same("what is printed", output(result), said.encode())


@THEME
def an_error_of_the_owners(lab: Lab) -> None:
    """An error in the owner's ``on_check`` comes out of ``run``, and the box is lost after that."""
    box = lab.start()

    def on_check(artifact: Artifact) -> str:
        raise KeyError("of the caller")

    try:
        found = box.box.run("check", wall_s=WALL_S, on_check=on_check)
    except KeyError:
        lost("the box after that", lambda: box.run("true"))
        return
    raise Violation(f"an error in on_check: expected KeyError, found {found}")
