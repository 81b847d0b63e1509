"""Episodes as records and back: which fields a record has, of which type, and what is kept apart as a blob.

Both directions go through one table, so that what is written can be read, and bytes from strangers become
exactly an Episode or CorruptTrajectory. Images, artifacts and certificates are blobs: the record names their sha256.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from typing import Any, Final, cast

import numpy as np

from tbmm_env import record
from tbmm_env.errors import CorruptTrajectory, TrajectoryError
from tbmm_env.trajectory.codec import BlobKind, Fault, dump, load, load_some, shown
from tbmm_env.trajectory.kinds import (
    MAX_RECORD_BYTES,
    Certificate,
    Data,
    Fetch,
    Figure,
    Keep,
    Numbers,
    Optional,
    Plain,
    Record,
    Series,
    at,
    choice,
    is_integer,
    is_text_map,
    optional_plain,
)

SCHEMA_VERSION: Final = 2

# ---------------------------------------------------------------- the table


_TEXT = Plain("text", lambda value: type(value) is str)
_FLAG = Plain("true or false", lambda value: type(value) is bool)
_INTEGER = Plain("an integer", is_integer)
_NUMBER = Plain("a number", lambda value: is_integer(value) or isinstance(value, float | np.floating))
_MAPPING = Plain("a mapping", lambda value: isinstance(value, Mapping))
_TEXTS = Plain("a mapping of texts", is_text_map)

_INSTANCE = Record(
    record.Instance, {"task": _TEXT, "version": _TEXT, "seed": optional_plain(_INTEGER), "parameters": _MAPPING}
)
_OBSERVATION = Record(record.Observation, {"terminal": _TEXT, "figures": Series(Figure())})


def _logprobs_misfit(turn: Any) -> str:
    logprobs, tokens = np.size(turn.logprobs), np.size(turn.completion_token_ids)
    return "" if logprobs in (0, tokens) else f"{logprobs} logprobs for {tokens} completion tokens"


_TURN = Record(
    record.Turn,
    {
        "completion": _TEXT,
        "prompt_token_ids": Numbers("<i8"),
        "completion_token_ids": Numbers("<i8"),
        "logprobs": Numbers("<f4"),
        "finish_reason": _TEXT,
        "sampling": _MAPPING,
        "weight_version": _TEXT,
    },
    _logprobs_misfit,
)
_STEP_1 = Record(
    record.Step,
    {
        "action": _TEXT,
        "observation": _OBSERVATION,
        "exit_status": optional_plain(_INTEGER),
        "ending": optional_plain(choice(record.Ending)),
        "started_s": _NUMBER,
        "wall_s": _NUMBER,
    },
)
_STEP = Record(record.Step, {**_STEP_1.fields, "turn": Optional(_TURN)})
_ARTIFACT = Record(
    record.Artifact,
    {"status": choice(record.FileStatus), "data": Data(), "size_bytes": _INTEGER, "sha256": _TEXT},
)
_EPISODE_1 = Record(
    record.Episode,
    {
        "episode_id": _TEXT,
        "instance": _INSTANCE,
        "budget": _TEXT,
        "language": choice(record.Language),
        "sandbox": _TEXT,
        "limits": _MAPPING,
        "versions": _TEXTS,
        "first_observation": _OBSERVATION,
        "steps": Series(_STEP_1),
        "artifact": _ARTIFACT,
        "judgement": _MAPPING,
        "certificate_text": Certificate(),
        "terminated": _FLAG,
        "truncated": _FLAG,
        "started_unix_s": _NUMBER,
        "wall_s": _NUMBER,
        "extra": _MAPPING,
    },
)
_EPISODE = Record(
    record.Episode,
    {
        **{name: kind for name, kind in _EPISODE_1.fields.items() if name != "extra"},
        "steps": Series(_STEP),
        "job": _TEXT,
        "group_id": _TEXT,
        "sample_id": _INTEGER,
        "policy": _TEXT,
        "extra": _MAPPING,
    },
)
_EPISODES: Final[Mapping[int, Record]] = {1: _EPISODE_1, 2: _EPISODE}
"""The table of every schema version ever written; entries are added, never changed."""

# ---------------------------------------------------------------- episodes


def encode(episode: record.Episode, keep: Keep) -> bytes:
    """Return the record of an episode.

    Args:
        episode: what is to be stored; in its free mappings exactly None, bool, int, float, str, bytes, list, tuple,
            mappings with text keys, Fraction, numpy numbers and numpy arrays of numbers are taken.
        keep: is given every image (as a binary PPM), the artifact's bytes and the certificate's text, repeated ones
            too, before the record that names them is returned.

    Raises:
        TrajectoryError: when a value is of another type, or the record is over MAX_RECORD_BYTES.
    """
    try:
        packed = _EPISODES[SCHEMA_VERSION].pack(episode, keep)
    except Fault as fault:
        raise TrajectoryError(f"episode{fault.path} cannot be stored: {fault}") from fault
    data = dump({"schema_version": SCHEMA_VERSION, **packed})
    if len(data) > MAX_RECORD_BYTES:
        raise TrajectoryError(
            f"episode {shown(episode.episode_id)} has {len(data)} bytes; the limit is {MAX_RECORD_BYTES} bytes"
        )
    return data


def decode(data: bytes, fetch: Fetch) -> record.Episode:
    """Return the episode of a record; its arrays are read-only, mappings come back as dict.

    Args:
        data: what ``encode`` returned.
        fetch: returns the bytes of a blob; asked once for each.

    Raises:
        CorruptTrajectory: when the bytes are not a record of a known schema version.
        TrajectoryError: when the record was written under a later schema version.
    """
    seen: dict[tuple[BlobKind, str], bytes] = {}

    def fetch_once(kind: BlobKind, sha256: str) -> bytes:
        if (kind, sha256) not in seen:
            seen[kind, sha256] = fetch(kind, sha256)
        return seen[kind, sha256]

    with _damage():
        fields, table = _opened(load(data))
        return cast(record.Episode, table.unpack(fields, fetch_once))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one needs to know of an episode to list, count or choose it; read without its blobs.

    Attributes:
        episode_id: as the episode's; so are all fields that are not named here.
        steps: number of actions.
        outcome: of the judgement; empty when it has none.
        reward: of the judgement; None when it has none.
        artifact_sha256: lower-case hex; empty when there is no answer.
    """

    episode_id: str
    instance: record.Instance
    budget: str
    language: record.Language
    sandbox: str
    versions: Mapping[str, str]
    steps: int
    outcome: str
    reward: float | None
    artifact_sha256: str
    terminated: bool
    truncated: bool
    started_unix_s: float
    wall_s: float
    job: str = ""
    group_id: str = ""
    sample_id: int = 0
    policy: str = ""


def summarise(data: bytes) -> Summary:
    """Return the summary of a record, with the defaults of what its version does not have; raises as ``decode``."""
    with _damage():
        fields, table = _opened(load_some(data, _TAKEN | {"schema_version", "judgement", "artifact"}, {"steps"}))
        if fields.keys() != table.fields.keys():
            raise Fault(f"not of type Episode: its fields must be exactly {', '.join(table.fields)}")
        steps, judgement, artifact = fields["steps"], fields["judgement"], fields["artifact"]
        if type(judgement) is not dict or type(artifact) is not dict:
            raise Fault("judgement or artifact is not a mapping")
        taken: dict[str, Any] = {
            name: at(f".{name}", kind.unpack, fields[name], _no_blob)
            for name, kind in table.fields.items()
            if name in _TAKEN
        }
        outcome, reward, sha256 = judgement.get("outcome"), judgement.get("reward"), artifact.get("sha256")
        return Summary(
            **taken,
            steps=cast(int, steps),
            outcome=outcome if type(outcome) is str else "",
            reward=float(reward) if isinstance(reward, int | float) else None,
            artifact_sha256=sha256 if type(sha256) is str else "",
        )


_TAKEN = {field.name for field in fields_of(Summary)} - {"steps", "outcome", "reward", "artifact_sha256"}


def _no_blob(kind: BlobKind, sha256: str) -> bytes:
    raise Fault(f"{kind} {sha256} does not belong here")


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except Fault as fault:
        raise CorruptTrajectory(f"record{fault.path} is damaged: {fault}") from fault


def _opened(value: object) -> tuple[dict[str, object], Record]:
    """Return the fields of a record, its version taken out, and the table of that version."""
    version = value.pop("schema_version", None) if type(value) is dict else None
    if type(version) is not int or not 1 <= version < 2**16:
        raise Fault("not a map with a schema_version from 1 to 65535")
    if version not in _EPISODES:
        raise TrajectoryError(
            f"record has schema version {version}; this tbmm-env reads versions up to {SCHEMA_VERSION}: use a later one"
        )
    return cast(dict[str, object], value), _EPISODES[version]
