"""The built wheel in a new environment: it judges an answer, and no box shows a hidden file, whoever owns it.

One installation serves root and an ordinary user: its interpreter and folder are readable by everybody.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import box_search
import pytest

from tbmm_env import tasks
from tbmm_env.sandbox.base import Sandbox

REPOSITORY = Path(__file__).resolve().parent.parent
ORDINARY_UID = 54_321

CANARY = b"tbmm-" + b"canary-7f1c2e9a"

PLAY = """
import json, sys
import gymnasium, tbmm_env
search, sandbox = sys.stdin.read(), sys.argv[1]
env = gymnasium.make("tbmm/cumcm-2024-a", sandbox=sandbox, budget="train")
env.reset(seed=1)
texts = [env.step(search)[0]["terminal"]]
env.step("echo tbmm-canary-" + "7f1c2e9a > /workspace/planted")
texts.append(env.step(search)[0]["terminal"])
env.close()
json.dump({"texts": texts, "file": tbmm_env.__file__}, sys.stdout)
"""


@dataclass(frozen=True)
class Installed:
    """A new environment with the wheel in it."""

    python: Path
    tbmm: Path
    home: Path

    def command(self, *, ordinary: bool, groups: tuple[int, ...] = ()) -> tuple[list[str], dict[str, str]]:
        """Return the words that run this Python, and the environment, as root or as an ordinary user."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "XDG", "TBMM"))}
        if not ordinary:
            return [str(self.python), "-I"], environment
        some = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
        become = ["setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", *some, "--inh-caps=-all"]
        return [*become, str(self.python), "-I"], environment | {"HOME": str(self.home)}


def readable_by_all(path: Path) -> bool:
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in [path, *path.parents])


def interpreter() -> Path:
    """Return a supported interpreter that everybody may run."""
    names = ["python3", "python3.11", "python3.12", "python3.13"]
    for path in [Path(sys.executable).resolve(), *(Path("/usr/bin") / name for name in names)]:
        if path.exists() and readable_by_all(path.resolve()):
            code = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
            if subprocess.run([path, "-c", code], check=False).returncode == 0:
                return path
    raise AssertionError("no Python 3.11-3.13 that everybody may run; install python3 from Debian")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = Path("/tmp") / f"tbmm-wheel-test-{os.getpid()}"  # pytest's own folders are private to their owner
    folder.mkdir(mode=0o755)
    try:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        built = tmp_path_factory.mktemp("wheel")
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", built, REPOSITORY], check=True)
        (wheel,) = built.glob("*.whl")
        environment = folder / "venv"
        subprocess.run([interpreter(), "-m", "venv", "--without-pip", environment], check=True)
        python = environment / "bin" / "python"
        subprocess.run([*pip, "--python", python, "install", f"{wheel}[docker,lean]"], check=True)
        home = folder / "home"
        home.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(home, ORDINARY_UID, ORDINARY_UID)
        yield Installed(python=python, tbmm=environment / "bin" / "tbmm", home=home)
    finally:
        shutil.rmtree(folder)


@pytest.mark.lean
def test_installed_wheel_judges_an_answer(installed: Installed, tmp_path: Path) -> None:
    answer = tmp_path / "答案.json"
    submissions = tasks.load("cumcm-2024-a").folder / "submissions"
    answer.write_bytes((submissions / "scored" / "five_percent_worse.json").read_bytes())
    words, environment = installed.command(ordinary=False)
    done = subprocess.run(
        [*words, str(installed.tbmm), "judge", "cumcm-2024-a", str(answer), "--json"],
        cwd=tmp_path, env=environment, capture_output=True, check=True,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["outcome"] == "scored"
    assert result["certificate"]["accepted"] is True


@pytest.fixture(params=["root", "ordinary"])
def ordinary(request: pytest.FixtureRequest) -> bool:
    if os.geteuid() != 0 and request.param == "root":
        pytest.skip("the tests do not run as root")
    return bool(request.param == "ordinary" and os.geteuid() == 0)


def socket_groups(sandbox: str) -> tuple[int, ...]:
    """Return the group that may talk to the Docker daemon: that right is the user's, not the box's."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return (Path(address.removeprefix("unix://")).stat().st_gid,) if sandbox == "docker" else ()


def test_no_box_shows_a_hidden_file(installed: Installed, sandbox: Sandbox, ordinary: bool, tmp_path: Path) -> None:
    words, environment = installed.command(ordinary=ordinary, groups=socket_groups(sandbox.name))
    done = subprocess.run(
        [*words, "-c", PLAY, sandbox.name], input=box_search.command(CANARY).encode(), cwd="/", env=environment,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    played = json.loads(done.stdout)
    assert played["file"].startswith(str(installed.python.parent.parent))
    clean, planted = (box_search.found(text) for text in played["texts"])
    assert clean == []
    assert planted == ["/workspace/planted"]  # and the search can find
