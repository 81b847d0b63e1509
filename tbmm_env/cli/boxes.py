"""``tbmm sandbox ps|sweep``: the boxes on this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from rich.table import Table

from tbmm_env.cli.console import Commands, action, command, out, print_json
from tbmm_env.sandbox import reaper


def _sandbox(args: argparse.Namespace) -> int:
    if args.action == "ps":
        found = reaper.boxes()
        if args.json:
            print_json([asdict(box) for box in found])
        else:
            table = Table("box", "backend", "owner", "", "parts")
            for box in found:
                state = "[yellow]ownerless[/]" if box.ownerless else "owned"
                table.add_row(box.name, box.backend, str(box.owner_pid), state, ", ".join(box.parts))
            out.print(table)
        return 0
    removed = reaper.sweep()
    left = [box for box in reaper.boxes() if box.ownerless]
    if args.json:
        print_json({"removed": removed, "left": [box.name for box in left]})
    else:
        out.print(f"removed what was left of {removed} boxes; {len(left)} could not be removed", highlight=False)
    return 1 if left else 0


def add(commands: Commands) -> None:
    """Add the commands."""
    boxes = command(commands, "sandbox", _sandbox, "list boxes, or remove those whose owner is gone")
    actions = boxes.add_subparsers(dest="action", required=True)
    action(actions, "ps", "list the boxes on this machine and their owners")
    action(actions, "sweep", "remove what is left of boxes whose owner is surely gone")
