"""Which split an instance belongs to, and evaluation sets that can be checked without being known beforehand.

Training seeds are public: 0 <= seed < 2**31, which is also what the environment draws when it is given none.
Evaluation seeds are 2**31 <= seed < 2**63. Whoever holds an evaluation set derives them from a secret,

    seed_i = 2**31 + HMAC-SHA256(secret, "tbmm-env evaluation seed 1" 0 task 0 version 0 i) mod (2**63 - 2**31),

with i as 8 bytes, big-endian, and 0 a zero byte. What is published are commitments, one an instance,

    HMAC-SHA256(secret, "tbmm-env evaluation commitment 1" 0 task 0 version 0 i 0 JSON of the instance),

where the JSON has sorted keys, no blanks and is UTF-8. They are keyed because a bare hash of an instance can be
searched: its parameters are a few rounded numbers, and the seeds of a small set can be tried one by one; without the
secret a keyed one says nothing. It binds all the same: whoever revealed another secret that opens the same
commitments would have found a collision of SHA-256. When the secret is revealed, everybody derives seeds, instances
and commitments anew. For a task whose instances come from a bank (seed modulo its size) no seed is private; such a
set is refused once it draws the same parameters twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from tbmm_env.errors import UnknownTask, UsageError
from tbmm_env.instances import instance_json, read_instance, sampled
from tbmm_env.problems import module_for
from tbmm_env.record import Instance, JsonValue
from tbmm_env.tasks import Task

Split = Literal["official", "training", "evaluation", "given"]

TRAINING_SEEDS: Final = 2**31
"""Training seeds are 0 to 2**31 - 1, known to everybody; seeds from 2**31 to 2**63 - 1 are for evaluation only."""

SECRET_BYTES: Final = (16, 4096)
"""Least and greatest length of a secret."""
_DISTINCT_BYTES = 8
MAX_INSTANCES: Final = 10_000
"""Most instances of one evaluation set."""

_FORMAT = "tbmm-env evaluation set 1"
_SEED_LABEL, _COMMITMENT_LABEL = b"tbmm-env evaluation seed 1", b"tbmm-env evaluation commitment 1"
_PUBLIC, _PRIVATE = "public.json", "private"
_COMMITMENT = re.compile(r"[0-9a-f]{64}")

OnInstance = Callable[[int, int], None]
"""Is told how many instances are done, of how many."""


def split_of(instance: Instance) -> Split:
    """Return the split of an instance.

    ``official``: the parameters of the official problem, whatever its seed. ``training``: drawn from a public seed,
    0 <= seed < 2**31. ``evaluation``: drawn from a seed of 2**31 or more. ``given``: parameters of a caller's own,
    which may have been taken from anywhere. Only ``training`` may enter a training export without being named.
    """
    try:
        if dict(instance.parameters) == dict(module_for(instance.task).OFFICIAL):
            return "official"
    except UnknownTask:
        pass  # a record of a task that this version does not have; its seed still speaks
    if instance.seed is None:
        return "given"
    return "training" if 0 <= instance.seed < TRAINING_SEEDS else "evaluation"


# ---------------------------------------------------------------- secret, seeds, commitments


def read_secret(path: Path) -> bytes:
    """Read a secret file, its bytes as they are.

    Raises:
        UsageError: it is not a plain file, others may read it, or it is too short, too long or too simple.
    """
    make = f"make one with: head -c 32 /dev/urandom > {path}; chmod 600 {path}"
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"secret file {path}: cannot be read: {error.strerror}; {make}") from error
    try:
        mode = os.fstat(file).st_mode
        secret = os.read(file, SECRET_BYTES[1] + 1) if stat.S_ISREG(mode) else b""
    finally:
        os.close(file)
    if not stat.S_ISREG(mode):
        raise UsageError(f"secret file {path}: is not a plain file; {make}")
    if mode & 0o077:
        raise UsageError(
            f"secret file {path}: has mode {stat.S_IMODE(mode):04o}; others than its owner must have no rights:"
            f" chmod 600 {path}"
        )
    if not SECRET_BYTES[0] <= len(secret) <= SECRET_BYTES[1]:
        size = f"{len(secret)} bytes" if len(secret) <= SECRET_BYTES[1] else f"more than {SECRET_BYTES[1]} bytes"
        raise UsageError(f"secret file {path}: has {size}; it must have {SECRET_BYTES[0]} to {SECRET_BYTES[1]}; {make}")
    if len(set(secret)) < _DISTINCT_BYTES:
        raise UsageError(f"secret file {path}: has fewer than {_DISTINCT_BYTES} different bytes, no secret; {make}")
    return secret


def _keyed(secret: bytes, label: bytes, task: Task, index: int, more: bytes = b"") -> hmac.HMAC:
    parts = (label, task.id.encode(), task.version.encode(), index.to_bytes(8, "big"))
    return hmac.new(secret, b"\0".join(parts) + more, hashlib.sha256)


def evaluation_seed(secret: bytes, task: Task, index: int) -> int:
    """Return the seed of an evaluation instance, in [2**31, 2**63)."""
    drawn = int.from_bytes(_keyed(secret, _SEED_LABEL, task, index).digest(), "big")
    return TRAINING_SEEDS + drawn % (2**63 - TRAINING_SEEDS)


def commitment(secret: bytes, task: Task, index: int, instance: Instance) -> str:
    """Return what is published of an instance: 64 lower-case hex digits."""
    text = json.dumps(
        instance_json(instance), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return _keyed(secret, _COMMITMENT_LABEL, task, index, b"\0" + text.encode()).hexdigest()


def draw(secret: bytes, task: Task, count: int, on_instance: OnInstance = lambda done, total: None) -> list[Instance]:
    """Draw the instances of an evaluation set.

    Raises:
        UsageError: the count is not 1 to 10,000, or two of them are the same.
    """
    if not 1 <= count <= MAX_INSTANCES:
        raise UsageError(f"{count} evaluation instances are asked for; it must be 1 to {MAX_INSTANCES}")
    seen: dict[str, int] = {}
    drawn: list[Instance] = []
    for index in range(count):
        instance = sampled(task, evaluation_seed(secret, task, index))
        text = json.dumps(dict(instance.parameters), sort_keys=True)
        if text in seen:
            raise UsageError(
                f"evaluation instances {seen[text]} and {index} of {task.id} have the same parameters: the task has too"
                " few instances to keep a set of this size private; ask for fewer"
            )
        seen[text] = index
        drawn.append(instance)
        on_instance(index + 1, count)
    return drawn


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """What was written: the public file, and one private ``instance.json`` an instance."""

    public: Path
    instances: tuple[Path, ...]


def make_evaluation(
    secret: bytes, task: Task, count: int, out: Path, on_instance: OnInstance = lambda done, total: None
) -> EvaluationSet:
    """Draw an evaluation set and write it: ``public.json`` for everybody, ``private/`` for nobody else.

    Args:
        secret: as :func:`read_secret` returns it.
        task: whose instances.
        count: how many, 1 to 10,000.
        out: a folder that is not there yet, or empty.
        on_instance: is told of the progress.

    Raises:
        UsageError: the folder holds something or cannot be written, or :func:`draw` refuses.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty; nothing is overwritten: name a new folder")
        drawn = draw(secret, task, count, on_instance)
        private = out / _PRIVATE
        private.mkdir(mode=0o700)
        digits = len(str(count - 1))
        paths = tuple(private / f"{task.id}-{index:0{digits}}.json" for index in range(count))
        for path, instance in zip(paths, drawn, strict=True):
            _write(path, instance_json(instance), 0o600)
        commitments: list[JsonValue] = [commitment(secret, task, index, one) for index, one in enumerate(drawn)]
        public: dict[str, JsonValue] = {
            "format": _FORMAT,
            "task": task.id,
            "version": task.version,
            "commitments": commitments,
        }
        _write(out / _PUBLIC, public, 0o644)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error}") from error
    return EvaluationSet(public=out / _PUBLIC, instances=paths)


def _write(path: Path, value: Mapping[str, JsonValue], mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def read_public(path: Path) -> dict[str, Any]:
    """Read a public file: ``task``, ``version`` and the list of ``commitments``.

    Raises:
        UsageError: it cannot be read or is no such file.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(raw, dict) or raw.get("format") != _FORMAT:
        raise UsageError(f"{path}: is no evaluation set; its format must be {_FORMAT!r}")
    commitments = raw.get("commitments")
    if set(raw) != {"format", "task", "version", "commitments"} or not isinstance(commitments, list):
        raise UsageError(f"{path}: must hold format, task, version and a list of commitments, nothing else")
    if any(not isinstance(raw[name], str) for name in ("task", "version")):
        raise UsageError(f"{path}: task and version must be text")
    if any(not isinstance(one, str) or not _COMMITMENT.fullmatch(one) for one in commitments):
        raise UsageError(f"{path}: a commitment has 64 lower-case hex digits")
    return raw


def verify_evaluation(
    secret: bytes, task: Task, public: Path, on_instance: OnInstance = lambda done, total: None
) -> list[str]:
    """Derive an evaluation set anew from its revealed secret and return what does not fit, a sentence each.

    The private files are compared too where they lie beside the public one.

    Raises:
        UsageError: the public file cannot be read, or is of another task or version.
    """
    stated = read_public(public)
    if (stated["task"], stated["version"]) != (task.id, task.version):
        raise UsageError(
            f"{public}: was made for {stated['task']} {stated['version']}; this is {task.id} {task.version}: verify it"
            " with the tbmm-env that made it"
        )
    commitments = stated["commitments"]
    faults: list[str] = []
    drawn = draw(secret, task, len(commitments), on_instance)
    for index, (instance, published) in enumerate(zip(drawn, commitments, strict=True)):
        if not hmac.compare_digest(commitment(secret, task, index, instance), published):
            faults.append(f"commitment {index} is not that of the instance which this secret draws")
    private = public.parent / _PRIVATE
    if private.is_dir():
        faults += _private_faults(task, drawn, sorted(private.iterdir()))
    return faults


def _private_faults(task: Task, drawn: list[Instance], paths: list[Path]) -> list[str]:
    if len(paths) != len(drawn):
        return [f"there are {len(paths)} private files for {len(drawn)} commitments"]
    faults = []
    for index, (path, instance) in enumerate(zip(paths, drawn, strict=True)):
        try:
            found = read_instance(task, path)
        except UsageError as error:
            faults.append(str(error))
            continue
        if instance_json(found) != instance_json(instance):
            faults.append(f"{path}: is not instance {index} which this secret draws")
    return faults
