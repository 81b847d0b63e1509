"""``tbmm judge|certify|audit|check-task|audit-panel``: answers, certificates, tasks and panels held to their word."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.markup import escape

from tbmm_env import audit, contracts, instances, panel, tasks
from tbmm_env.cli.console import Commands, command, out, print_json, progress, sandbox_argument
from tbmm_env.errors import UsageError
from tbmm_env.judge.artifact import read_artifact
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import PRESETS
from tbmm_env.record import Judgement
from tbmm_env.report import judgement_json, print_judgement


def _judge(args: argparse.Namespace) -> int:
    task = tasks.load(args.task)
    artifact_bytes = PRESETS["contest"].artifact_bytes
    instance = instances.read_instance(task, args.instance_file) if args.instance_file else instances.official(task)
    with (
        progress.status("replay, gate, score, certificate"),
        Judge(task, artifact_bytes=artifact_bytes) as judge,
    ):
        judgement = judge.judge(instance, read_artifact(args.answer, artifact_bytes))
    result = judgement_json(judgement)
    path = _write_certificate(judgement, args.certificate)
    if isinstance(result["certificate"], dict) and result["certificate"]:
        result["certificate"]["path"] = path
    if args.json:
        print_json(result)
    else:
        print_judgement(out, result)
    return 0


def _write_certificate(judgement: Judgement, path: Path | None) -> str | None:
    if path is None:
        return None
    if judgement.certificate is None:
        progress.print(
            f"[yellow]a {judgement.outcome} answer has no certificate; {escape(str(path))} is not written[/]"
        )
        return None
    try:
        path.write_text(judgement.certificate.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--certificate {path}: cannot be written: {error}") from error
    return str(path)


def _certify(args: argparse.Namespace) -> int:
    return audit.certify_command(args.file, args.judgement, as_json=args.json, out=out)


def _audit(args: argparse.Namespace) -> int:
    return audit.audit_command(args.store, args.workers, as_json=args.json, out=out, progress=progress)


def _check_task(args: argparse.Namespace) -> int:
    return contracts.command(
        args.task, sandbox=args.sandbox, oracle=not args.no_oracle, as_json=args.json, out=out, progress=progress
    )


def _audit_panel(args: argparse.Namespace) -> int:
    return panel.command(
        args.task, write=args.write, freeze_as=args.freeze, as_json=args.json, out=out, progress=progress
    )


def add(commands: Commands) -> None:
    """Add the commands."""
    judge = command(commands, "judge", _judge, "judge an answer file")
    judge.add_argument("task")
    judge.add_argument("answer", type=Path)
    judge.add_argument("--instance-file", type=Path, help="instance.json; default: the official instance")
    judge.add_argument("--certificate", type=Path, help="write the Lean certificate here")

    certify = command(commands, "certify", _certify, "re-check a certificate file")
    certify.add_argument("file", type=Path)
    certify.add_argument("--judgement", type=Path, help="what `tbmm judge --json` printed: it must be that one's")
    store = command(commands, "audit", _audit, "re-check every certificate of a trajectory store")
    store.add_argument("store", type=Path)
    store.add_argument("--workers", type=int, default=1, help="Lean servers at work at the same time; default 1")

    contract = command(commands, "check-task", _check_task, "hold a task to its contracts")
    contract.add_argument("task")
    sandbox_argument(contract)
    contract.add_argument("--no-oracle", action="store_true", help="leave out the contract that needs a box")

    panels = command(
        commands, "audit-panel", _audit_panel, "replay every published value and compare it with its status"
    )
    panels.add_argument("task")
    panels.add_argument("--write", action="store_true", help="write the table into the task's README.md")
    panels.add_argument("--freeze", metavar="VERSION", help="freeze the panel under a new version")
