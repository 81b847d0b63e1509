"""The command line, ``tbmm``: tasks, sandboxes, episodes, the trajectory store, exports, and the judge.

Exit codes: 0 judged or done, whatever the outcome; 1 a failing self-check; 2 wrong usage or bad input, with one clear
sentence; 3 our own failure. People read tables on stdout and progress on stderr; ``--json`` prints one JSON value.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Callable, Sequence

from rich.markup import escape

from tbmm_env import __version__
from tbmm_env.cli import boxes, episodes, exports, judging, looking, rescoring, stores
from tbmm_env.cli.console import print_json, progress
from tbmm_env.errors import TbmmError, UsageError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tbmm", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--version", action="version", version=f"tbmm-env {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for module in (looking, boxes, episodes, judging, stores, exports, rescoring):
        module.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments without the program's name; default: those of the process.

    Returns:
        The exit code.
    """
    args = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        return run(args)
    except UsageError as error:
        return _fail(args, error, 2)
    except TbmmError as error:
        return _fail(args, error, 3)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - the edge of the program: an unknown failure is ours
        traceback.print_exc()
        return _fail(args, error, 3)


def _fail(args: argparse.Namespace, error: Exception, code: int) -> int:
    if args.json:
        print_json({"error": str(error), "kind": type(error).__name__, "exit_code": code})
    progress.print(f"[bold red]{type(error).__name__}[/]: {escape(str(error))}", highlight=False, soft_wrap=True)
    return code
