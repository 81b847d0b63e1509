"""Splits: which one an instance belongs to, and evaluation sets that are private until their secret is revealed."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tbmm_env import instances, splits, tasks
from tbmm_env.cli import main
from tbmm_env.errors import UsageError
from tbmm_env.record import Instance

TASK = tasks.load("cumcm-2024-a")
SECRET = bytes(range(32))
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampling without the search for a well-posed instance: the parameters are a function of the seed."""

    def sampled(task: Any, seed: int) -> Instance:
        return Instance(task=task.id, version=task.version, seed=seed, parameters={"boards": seed % 1009, "板": 0.5})

    monkeypatch.setattr(splits, "sampled", sampled)


# ---------------------------------------------------------------- which split


@pytest.mark.parametrize(
    ("seed", "split"),
    [(0, "training"), (2**31 - 1, "training"), (2**31, "evaluation"), (2**63 - 1, "evaluation"), (None, "given")],
)
def test_the_seed_says_the_split(seed: int | None, split: str) -> None:
    instance = dataclasses.replace(instances.sampled(TASK, 3), seed=seed)
    assert splits.split_of(instance) == split


def test_official_parameters_are_official_whatever_the_seed() -> None:
    official = instances.official(TASK)
    assert splits.split_of(official) == "official"
    assert splits.split_of(dataclasses.replace(official, seed=3)) == "official"
    assert splits.split_of(instances.given(TASK, dict(official.parameters))) == "official"


@pytest.mark.parametrize(("seed", "split"), [(None, "given"), (3, "training"), (2**40, "evaluation")])
def test_a_task_that_is_not_here_is_judged_by_its_seed(seed: int | None, split: str) -> None:
    assert splits.split_of(Instance(task="probe", version="1", seed=seed, parameters={})) == split


def test_evaluation_seeds_can_be_sampled() -> None:
    assert splits.split_of(instances.sampled(TASK, 2**62 + 1)) == "evaluation"


# ---------------------------------------------------------------- seeds and commitments


def test_seeds_are_outside_of_training_and_a_function_of_secret_task_version_and_index() -> None:
    seeds = [splits.evaluation_seed(SECRET, TASK, index) for index in range(2000)]
    assert len(set(seeds)) == 2000
    assert all(2**31 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62 > min(seeds)
    assert seeds[:2] == [splits.evaluation_seed(SECRET, TASK, index) for index in (0, 1)]
    others = (
        splits.evaluation_seed(SECRET[::-1], TASK, 0),
        splits.evaluation_seed(SECRET, dataclasses.replace(TASK, version="9"), 0),
        splits.evaluation_seed(SECRET, dataclasses.replace(TASK, id="cumcm-2024-b"), 0),
    )
    assert len({seeds[0], *others}) == 4


def test_seeds_and_commitments_are_what_the_page_says() -> None:
    """Written anew from the module's docstring, so that a set made today can be checked for ever."""
    tail = b"\0cumcm-2024-a\0" + TASK.version.encode() + b"\0" + (5).to_bytes(8, "big")
    digest = hmac.digest(SECRET, b"tbmm-env evaluation seed 1" + tail, "sha256")
    seed = 2**31 + int.from_bytes(digest, "big") % (2**63 - 2**31)
    assert splits.evaluation_seed(SECRET, TASK, 5) == seed
    instance = Instance(task=TASK.id, version=TASK.version, seed=seed, parameters={"z": 1, "板": [0.5, None]})
    content = (
        f'{{"parameters":{{"z":1,"板":[0.5,null]}},"seed":{seed},"task":"cumcm-2024-a","version":"{TASK.version}"}}'
    )
    expected = hmac.digest(SECRET, b"tbmm-env evaluation commitment 1" + tail + b"\0" + content.encode(), "sha256")
    assert splits.commitment(SECRET, TASK, 5, instance) == expected.hex()


def test_a_commitment_is_no_bare_hash_and_covers_everything() -> None:
    instance = Instance(task=TASK.id, version=TASK.version, seed=2**40, parameters={"a": 1})
    text = json.dumps(instances.instance_json(instance), sort_keys=True, separators=(",", ":"))
    published = splits.commitment(SECRET, TASK, 0, instance)
    assert published != hashlib.sha256(text.encode()).hexdigest()
    changes = (
        splits.commitment(SECRET[::-1], TASK, 0, instance),
        splits.commitment(SECRET, TASK, 1, instance),
        splits.commitment(SECRET, TASK, 0, dataclasses.replace(instance, seed=2**40 + 1)),
        splits.commitment(SECRET, TASK, 0, dataclasses.replace(instance, parameters={"a": 1.0})),
    )
    assert len({published, *changes}) == 5


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("count", [0, -1, splits.MAX_INSTANCES + 1])
def test_the_number_of_instances_is_bounded(count: int) -> None:
    with pytest.raises(UsageError, match=f"{count} evaluation instances .* must be 1 to 10000"):
        splits.draw(SECRET, TASK, count)


def test_a_task_with_too_few_instances_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = [Instance(task=TASK.id, version=TASK.version, seed=1, parameters={"n": number}) for number in range(8)]
    monkeypatch.setattr(splits, "sampled", lambda task, seed: bank[seed % len(bank)])
    with pytest.raises(UsageError, match=r"evaluation instances \d and \d of cumcm-2024-a have the same parameters"):
        splits.draw(SECRET, TASK, 9)


# ---------------------------------------------------------------- the secret


def secret_file(folder: Path, data: bytes = SECRET, mode: int = 0o600) -> Path:
    path = folder / "秘密"
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("data", [SECRET[:16], SECRET * 128, b"\0" * 10 + SECRET + b"\n"])
def test_a_secret_is_read_as_it_is(data: bytes, tmp_path: Path) -> None:
    assert splits.read_secret(secret_file(tmp_path, data)) == data
    assert splits.read_secret(secret_file(tmp_path, data, 0o400)) == data


@pytest.mark.parametrize(
    ("data", "mode", "message"),
    [
        (SECRET[:15], 0o600, "has 15 bytes; it must have 16 to 4096"),
        (b"", 0o600, "has 0 bytes"),
        (SECRET * 128 + b"a", 0o600, "has more than 4096 bytes"),
        (b"abcdefg" * 5, 0o600, "fewer than 8 different bytes"),
        (SECRET, 0o640, "has mode 0640; .*chmod 600"),
        (SECRET, 0o604, "has mode 0604"),
    ],
)
def test_a_poor_secret_is_refused(data: bytes, mode: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        splits.read_secret(secret_file(tmp_path, data, mode))


def test_what_is_no_file_is_no_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path, message in (("none", "No such file.*head -c 32 /dev/urandom"), ("pipe", "not a plain file")):
        with pytest.raises(UsageError, match=message):
            splits.read_secret(tmp_path / path)
    with pytest.raises(UsageError, match="not a plain file"):
        splits.read_secret(tmp_path)


# ---------------------------------------------------------------- files


@pytest.mark.usefixtures("quick")
def test_only_commitments_are_public(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    made = splits.make_evaluation(SECRET, TASK, 12, tmp_path / "评测", lambda *pair: progress.append(pair))
    assert progress[-1] == (12, 12)
    assert [path.name for path in made.instances][::11] == ["cumcm-2024-a-00.json", "cumcm-2024-a-11.json"]
    public = made.public.read_text(encoding="utf-8")
    assert set(json.loads(public)) == {"format", "task", "version", "commitments"}
    for index, path in enumerate(made.instances):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        written = json.loads(path.read_text(encoding="utf-8"))
        assert written["seed"] == splits.evaluation_seed(SECRET, TASK, index)
        assert str(written["seed"]) not in public
    assert stat.S_IMODE(made.instances[0].parent.stat().st_mode) == 0o700
    assert "boards" not in public
    with pytest.raises(UsageError, match="is not empty; nothing is overwritten"):
        splits.make_evaluation(SECRET, TASK, 1, tmp_path / "评测")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be written"):
        splits.make_evaluation(SECRET, TASK, 1, tmp_path / "file")


def change_commitment(folder: Path) -> None:
    path = folder / "public.json"
    public = json.loads(path.read_text(encoding="utf-8"))
    public["commitments"][1] = public["commitments"][0]
    path.write_text(json.dumps(public), encoding="utf-8")


def change_private(folder: Path) -> None:
    first, second = sorted((folder / "private").iterdir())
    first.write_bytes(second.read_bytes())


@pytest.mark.parametrize(
    ("tamper", "fault"),
    [
        (change_commitment, "commitment 1 is not that of the instance"),
        (change_private, "0.json: is not instance 0 which this secret draws"),
        (lambda folder: next((folder / "private").iterdir()).unlink(), "1 private files for 2 commitments"),
        (lambda folder: next((folder / "private").iterdir()).write_text("{}"), "field task is None"),
    ],
)
def test_a_set_that_was_tampered_with_is_found_out(
    tamper: Callable[[Path], None], fault: str, tmp_path: Path, capsys: Capture
) -> None:
    folder, secret = tmp_path / "set", str(secret_file(tmp_path))
    made = ["instances", "make-eval", TASK.id, "--secret-file", secret, "-n", "2", "--out", str(folder)]
    assert main([*made, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["count"], len(printed["private"])) == (2, 2)
    task_instance = instances.read_instance(TASK, Path(printed["private"][1]))
    assert splits.split_of(task_instance) == "evaluation"
    verify = ["instances", "verify-eval", str(folder / "public.json"), "--secret-file", secret]
    assert main(verify) == 0
    assert "every commitment holds" in capsys.readouterr().out
    tamper(folder)
    assert main([*verify, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["holds"] is False
    assert any(fault in one for one in result["faults"]), result


@pytest.mark.usefixtures("quick")
def test_another_secret_opens_nothing(tmp_path: Path) -> None:
    made = splits.make_evaluation(SECRET, TASK, 3, tmp_path / "set")
    for path in made.instances:
        path.unlink()
    made.instances[0].parent.rmdir()
    assert splits.verify_evaluation(SECRET, TASK, made.public) == []
    assert len(splits.verify_evaluation(SECRET[::-1], TASK, made.public)) == 3
    with pytest.raises(UsageError, match="was made for cumcm-2024-a .*; this is cumcm-2024-a 9: verify it with"):
        splits.verify_evaluation(SECRET, dataclasses.replace(TASK, version="9"), made.public)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no", "cannot be read as JSON"),
        ("[]", "is no evaluation set"),
        ('{"format": "other"}', "is no evaluation set"),
        ('{"format": "tbmm-env evaluation set 1", "task": "a"}', "must hold format, task, version"),
        ('{"format": "tbmm-env evaluation set 1", "task": 1, "version": "", "commitments": []}', "must be text"),
        ('{"format": "tbmm-env evaluation set 1", "task": "a", "version": "", "commitments": ["A"]}', "64 lower-case"),
    ],
)
def test_a_public_file_of_another_form_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "public.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        splits.read_public(tmp_path / "public.json")
