"""Programs that are not ours read what we write: datasets, pyarrow, pandas, ray.data, Harbor and TRL."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import export_samples as samples
import pytest

from tbmm_env.datasets.atif import export_atif
from tbmm_env.datasets.chats import ChatOptions, export_rs, export_sft
from tbmm_env.datasets.grpo import export_grpo
from tbmm_env.datasets.parquet import export_parquet
from tbmm_env.datasets.selection import Selection
from tbmm_env.datasets.turns import export_turns
from tbmm_env.trajectory.store import Store

CONSUMERS = Path(__file__).parent / "consumers"
HARBOR, TRL = "harbor==0.26.0", "trl==1.16.0"
WALL_S = 500.0

Missing = Callable[[object], NoReturn]


def run(python: str | Path, script: str, *arguments: str | Path, path: Path | None = None) -> dict[str, Any]:
    """Run a consumer and return the JSON object of its last line."""
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    done = subprocess.run(
        [str(python), str(CONSUMERS / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=WALL_S,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def installed(missing: Missing, python: str | Path, *steps: Sequence[str]) -> Path:
    """Install packages into a folder of the user's cache, once for all runs; ``steps`` are arguments of pip."""
    version = subprocess.run(
        [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tbmm-env-tests"
    name = "_".join(word for step in steps for word in step if not word.startswith("-")).replace("==", "-")
    target = cache / f"{name}-py{version}"
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=cache))
    try:
        for step in steps:
            command = [str(python), "-m", "pip", "install", "--quiet", "--target", str(work), *step]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WALL_S)
            if done.returncode:
                missing(f"{' '.join(step)} cannot be installed: {done.stderr[-500:]}")
        try:
            work.rename(target)
        except OSError:  # another run was faster
            assert target.is_dir()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def python_312(missing: Missing) -> Path:
    """A Python that Harbor runs on: this one, or one of the machine."""
    if sys.version_info >= (3, 12):
        return Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [*pyenv.glob("3.12.*/bin/python"), *pyenv.glob("3.13.*/bin/python")]
    found += [Path(path) for name in ("python3.12", "python3.13") if (path := shutil.which(name))]
    for python in found:
        probe = [str(python), "-c", "import pip, sys; sys.exit(sys.version_info < (3, 12))"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return python
    missing("Harbor needs Python 3.12 with pip: there is none on PATH nor with pyenv")


@pytest.fixture(scope="module")
def exports(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every export of the 100-record store."""
    root = tmp_path_factory.mktemp("all")
    export_rs(store, root / "rs", Selection(), top_k=2)
    export_sft(store, root / "sft", Selection())
    export_sft(store, root / "string", Selection(), options=ChatOptions(arguments="string", images="none"))
    export_sft(store, root / "data-uri", Selection(), options=ChatOptions(images="data-uri"))
    export_grpo(store, root / "grpo", Selection())
    export_turns(store, root / "prime-rl", Selection(), shape="prime-rl")
    export_turns(store, root / "verl", Selection(), shape="verl", logprobs="drop")
    export_turns(store, root / "skyrl", Selection(), shape="skyrl")
    export_turns(store, root / "trl", Selection(), shape="trl")
    export_parquet(store, root / "parquet", Selection(include_official=True), rows_per_file=40)
    export_atif(store, root / "atif", Selection(include_official=True))
    return root


def lines(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]


def rounded(value: Any) -> Any:
    """Floats to 9 decimals: ``datasets`` takes rows with JSON columns through a text of 10 decimals."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 9) if isinstance(value, float) else value


def test_datasets_pyarrow_and_pandas_load_them(exports: Path, tmp_path: Path) -> None:
    names = sorted(path.name for path in exports.iterdir() if path.name != "atif")
    found = run(sys.executable, "load_datasets.py", tmp_path / "cache", *(f"{name}={exports / name}" for name in names))
    assert sorted(found) == names
    parquet = found.pop("parquet")
    assert parquet["rows"] == parquet["pandas"] == 87
    assert parquet["types"]["reward"] == "double"
    for name, loaded in found.items():
        written = lines(exports / name)
        assert loaded["rows"] == len(written), name
        assert loaded["columns"] == list(written[0]), name
        assert rounded(loaded["last"]) == rounded(written[-1]), name
    for name in ("rs", "sft", "string", "data-uri"):
        last = lines(exports / name)[-1]
        assert found[name]["verl"] == {"messages": last["messages"], "tools": last["tools"]}, name
    for name in ("rs", "sft", "grpo"):
        assert found[name]["figure"] == [7, 5]
    assert parquet["figure"] == [7, 5]


def test_datasets_loads_what_begins_empty(tmp_path: Path) -> None:
    """The first megabytes have no image, no second action, no seed; the library would guess types from them."""
    size = 100_000
    plain = samples.Observation(terminal="x" * size, figures=())
    made = [
        samples.episode(
            f"early-{n}", n, "scored", Fraction(1, 2), first_observation=plain, steps=(samples.step(0, "submit"),)
        )
        for n in range(120)
    ]
    made += [samples.episode(f"late-{n}", n, "scored", Fraction(1, 2)) for n in range(5)]
    export_sft(samples.build(tmp_path / "store", made), tmp_path / "out", Selection())
    written = lines(tmp_path / "out")
    assert [row["images"] != [] for row in written] == [False] * 120 + [True] * 5
    found = run(sys.executable, "load_datasets.py", tmp_path / "cache", f"data-uri={tmp_path / 'out'}")
    assert found["data-uri"]["rows"] == 125
    assert found["data-uri"]["last"] == written[-1]


def test_ray_data_reads_the_parquet(exports: Path, missing: Missing) -> None:
    if importlib.util.find_spec("ray") is None:
        missing("ray is not installed: pip install 'tbmm-env[ray]'")
    found = run(sys.executable, "read_ray.py", exports / "parquet")
    summary = json.loads((exports / "parquet" / "summary.json").read_text(encoding="utf-8"))
    assert found["rows"] == summary["episodes"] == 87
    assert found["reward"] == pytest.approx(87 * summary["mean_reward"])
    assert found["steps"] == 196


def test_harbor_accepts_the_trajectories(exports: Path, tmp_path: Path, missing: Missing) -> None:
    python = python_312(missing)
    path = installed(missing, python, ["--no-deps", HARBOR], ["pydantic==2.13.*"])
    found = run(python, "harbor_accepts.py", exports / "atif", path=path)
    assert found["errors"] == {}
    assert len(found["rewards"]) == found["multimodal"] == 87
    assert found["rewards"]["official-0"] == 0.9
    assert found["completion_tokens"] == 24 * 3
    broken = tmp_path / "broken"
    shutil.copytree(exports / "atif", broken)
    one, two, three = sorted(broken.glob("*-*.json"))[:3]
    for file, change in (
        (one, lambda made: made["steps"][0].update(step_id=7)),
        (two, lambda made: made.update(reward=1.0)),
        (three, lambda made: made["steps"][0]["message"][1]["source"].update(path="images/none.png")),
    ):
        made = json.loads(file.read_text(encoding="utf-8"))
        change(made)
        file.write_text(json.dumps(made), encoding="utf-8")
    assert set(run(python, "harbor_accepts.py", broken, path=path)["errors"]) == {one.name, two.name, three.name}


def test_trl_fills_every_image_place(exports: Path, missing: Missing) -> None:
    path = installed(missing, sys.executable, ["--no-deps", TRL])
    folders = [exports / name for name in ("rs", "sft", "string", "data-uri")]
    found = run(sys.executable, "trl_accepts.py", path / "trl" / "data_utils.py", *folders)
    written = [row for folder in folders for row in lines(folder)]
    assert found["rows"] == found["conversational"] == len(written)
    assert found["images"] == found["places"] == sum(len(row.get("images", [])) for row in written)


def test_trl_refuses_images_in_tool_messages(exports: Path, tmp_path: Path, missing: Missing) -> None:
    """Why figures are in user messages: TRL does not fill the places of a tool's message."""
    path = installed(missing, sys.executable, ["--no-deps", TRL])
    row = next(row for row in lines(exports / "sft") if row["episode_id"] == "group-3-1")
    tool, user = row["messages"][3], row["messages"].pop(4)
    assert (tool["role"], user["role"]) == ("tool", "user")
    tool["content"] = user["content"]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="does not match number of image placeholders"):
        run(sys.executable, "trl_accepts.py", path / "trl" / "data_utils.py", tmp_path)
