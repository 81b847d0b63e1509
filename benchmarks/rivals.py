"""What people would otherwise use: docker exec, tmux as Terminal-Bench drives it, SWE-ReX, and a bare container."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import venv
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import docker
from measuring import PROGRESS, timed_ms

from tbmm_env.sandbox.image import Image
from tbmm_env.sandbox.recipe import AGENT_UID

SWE_REX = "swe-rex==1.4.0"
INSTALL_WALL_S = 600
LIFE_S = 7200
LABEL = {"tbmm.benchmark": "rivals"}

SERVER = """
import asyncio, json, logging, sys
logging.disable(logging.CRITICAL)
from swerex.runtime.abstract import BashAction, CreateBashSessionRequest
from swerex.runtime.local import LocalRuntime

async def main():
    runtime = LocalRuntime()
    await runtime.create_session(CreateBashSessionRequest(startup_timeout=30))
    replies = sys.stdout
    for line in sys.stdin:
        action = BashAction(command=json.loads(line), check="silent", timeout=300)
        said = await runtime.run_in_session(action)
        print(json.dumps({"bytes": len(said.output), "exit": said.exit_code}), file=replies, flush=True)
    await runtime.close()

asyncio.run(main())
"""


class Plain:
    """A plain container of our image, in which commands are run by ``docker exec``; tmux too."""

    def __init__(self, client: docker.DockerClient, image: Image) -> None:
        """Start it."""
        self._client, self._image = client, image
        self._container = self._made(tmpfs={"/tmp": f"uid={AGENT_UID},mode=0755"})  # where tmux has its socket
        try:
            self._container.start()
            self._exec("tmux", "new-session", "-d", "-s", "b")
        except BaseException:
            self.close()
            raise

    def _made(self, **more: Any) -> Any:
        words = ["sleep", str(LIFE_S)]
        return self._client.containers.create(
            self._image.docker_tag, words, network_mode="none", labels=LABEL, auto_remove=True, **more
        )

    def _exec(self, *words: str) -> bytes:
        done = self._container.exec_run(list(words))
        if done.exit_code != 0:
            raise SystemExit(f"{' '.join(words)} in a plain container: status {done.exit_code}, {done.output[-300:]!r}")
        return bytes(done.output)

    def run(self, command: str) -> bytes:
        """Run a command by one ``docker exec``."""
        return self._exec("bash", "-c", command)

    def step_ms(self) -> float:
        """Time ``docker exec true``."""
        return timed_ms(lambda: self._exec("true"))

    def tmux_ms(self) -> float:
        """Time ``true`` as Terminal-Bench does it: send the keys, wait for the signal, capture the pane."""

        def three() -> None:
            self._exec("tmux", "send-keys", "-t", "b", "true", "; tmux wait -S done", "Enter")
            self._exec("timeout", "60", "tmux", "wait", "done")
            self._exec("tmux", "capture-pane", "-p", "-t", "b")

        return timed_ms(three)

    def create_and_start_ms(self) -> float:
        """Time a bare create and start of the same image."""
        made: list[Any] = []

        def both() -> None:
            made.append(self._made())
            made[0].start()

        spent = timed_ms(both)
        made[0].remove(force=True)
        return spent

    def close(self) -> None:
        """Remove the container."""
        self._container.remove(force=True)

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close it."""
        self.close()


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "tbmm" / "benchmarks" / SWE_REX.replace("==", "-")


def swe_rex_python() -> Path:
    """Return the Python of a virtual environment that has SWE-ReX; made once, in the user's cache.

    Raises:
        SystemExit: when pip cannot install it: there is nothing to compare with then.
    """
    folder = _cache()
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        PROGRESS.print(f"installing {SWE_REX} into {folder}")
        venv.create(folder, clear=True, with_pip=True)
        words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", SWE_REX]
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_WALL_S, check=False)
        if done.returncode != 0:
            raise SystemExit(f"pip cannot install {SWE_REX}, and the comparison needs it:\n{done.stderr[-2000:]}")
        ready.touch()
    return python


class SweRex:
    """A SWE-ReX local runtime with one bash session, in a process and a virtual environment of its own.

    It runs outside of any container: what it costs here is its own way of driving a shell.
    """

    def __init__(self) -> None:
        """Start it and wait for the first answer."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            [swe_rex_python(), "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self.run("true")

    def run(self, command: str) -> dict[str, int]:
        """Run a command in the session and return how many characters it gave back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            self._errors.seek(0)
            raise SystemExit(f"SWE-ReX ended on {command!r}:\n{self._errors.read()[-2000:].decode('utf-8', 'replace')}")
        answer: dict[str, int] = json.loads(line)
        return answer

    def step_ms(self) -> float:
        """Time ``true``."""
        return timed_ms(lambda: self.run("true"))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close it."""
        self.close()
