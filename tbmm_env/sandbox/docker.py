"""Boxes made by Docker: one container a box, whose process 1 is the helper; needs the ``docker`` extra and a daemon.

The owner holds the only attachment to the container's stdin. When the owner ends, however that happens, the helper
reads the end of its stdin and exits, and the daemon removes the container with its volume.
"""

from __future__ import annotations

import io
import os
import select
import socket
import struct
import tarfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from tbmm_env.errors import BoxLost, SandboxUnavailable
from tbmm_env.limits import Limits
from tbmm_env.sandbox import folders, guest, image, owner, recipe, watch_program, watcher
from tbmm_env.sandbox.base import BoxSpec
from tbmm_env.sandbox.fault import Counters
from tbmm_env.sandbox.session import SessionBox

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

EXTRA = "run `pip install 'tbmm-env[docker]'`"
LABEL, BOX_LABEL, BOOT_LABEL = watch_program.LABEL, "tbmm.box", "tbmm.boot"
PERIOD_US = 100_000
API_WALL_S = 120
"""A loaded daemon may be slow to answer; that is our failure, not the agent's."""
EVENTS_WALL_S = 3.0
STOP_PATIENCE_S = 5.0
STDOUT = 1
MOST_STDERR_BYTES = 4000


def connect() -> docker.DockerClient:
    """Return a client of the daemon that ``DOCKER_HOST`` or the default names.

    Raises:
        SandboxUnavailable: if the SDK is not installed or no daemon answers; the message names the way out.
    """
    try:
        import docker
        import docker.errors
        import docker.utils
        import requests.exceptions
    except ImportError as error:
        raise SandboxUnavailable(f"the Docker SDK is not installed ({error}); {EXTRA}") from error
    try:
        _knock(str(docker.utils.parse_host(os.environ.get("DOCKER_HOST"))))
        client = docker.from_env(timeout=API_WALL_S)
        client.ping()
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise SandboxUnavailable(
            f"no Docker daemon answers ({error}); start it, or set DOCKER_HOST, or use bubblewrap"
        ) from error
    return client


def _knock(address: str) -> None:
    """Try a local daemon's socket; the SDK leaves one open when nobody answers."""
    if address.startswith("http+unix://"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.connect(address.removeprefix("http+unix://"))


def _archive(files: dict[str, bytes]) -> bytes:
    """Return a tar file of files and folders that belong to root and that all may read."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder in sorted({str(parent) for name in files for parent in PurePosixPath(name).parents if parent.name}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o444
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _tmpfs(size: int, inodes: int, mode: str = "0755") -> str:
    owners = f"uid={recipe.AGENT_UID},gid={recipe.AGENT_GID}"
    return f"rw,exec,nosuid,nodev,size={size},nr_inodes={inodes},mode={mode},{owners}"


def _settings(limits: Limits, tag: str, name: str, folder: folders.Folder | None) -> dict[str, Any]:
    """Return the arguments of ``containers.create``; without a folder ``/task`` is a volume."""
    import docker.types

    task = (
        {"mounts": [docker.types.Mount("/task", str(folder.path), type="bind", read_only=True)]}
        if folder
        else {"volumes": ["/task"]}
    )
    return {
        "image": tag,
        "command": list(guest.command()),
        "hostname": "box",
        "user": f"{recipe.AGENT_UID}:{recipe.AGENT_GID}",
        "working_dir": recipe.WORKSPACE,
        "environment": recipe.ENVIRONMENT,
        "labels": {LABEL: owner.label(), BOX_LABEL: name, BOOT_LABEL: boot_id()},
        "stdin_open": True,
        "auto_remove": True,
        "init": False,
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": limits.pids,
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "cpu_period": PERIOD_US,
        "cpu_quota": max(1000, round(limits.cpus * PERIOD_US)),
        "tmpfs": {
            recipe.WORKSPACE: _tmpfs(limits.workspace_bytes, limits.inodes),
            "/tmp": _tmpfs(limits.tmp_bytes, limits.inodes, "1777"),
            "/dev/shm": _tmpfs(limits.shm_bytes, limits.inodes, "1777"),
        },
        **task,
        "log_config": {"Type": "none"},
    }


class _Channel:
    """The attachment to a container."""

    def __init__(self, client: docker.DockerClient, limits: Limits, tag: str, *, bound: bool) -> None:
        """Create a container, attach, start it.

        Raises:
            docker.errors.DockerException: if the daemon refuses.
        """
        self._name = owner.new_name("docker")
        self._said = bytearray()
        self._buffer = bytearray()
        self._closing = threading.Lock()
        self._container: Container | None = None
        self._stream: Any = None
        self._folder: folders.Folder | None = None
        watcher.watch(
            self._name, ("tree", str(folders.parent())), *[("docker", path) for path in _local_socket(client)]
        )
        try:
            self._folder = folders.Folder(self._name) if bound else None
            self._container = client.containers.create(**_settings(limits, tag, self._name, self._folder))
            wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = client.api.attach_socket(str(self._container.id), params=wanted)
            self._socket: socket.socket = getattr(self._stream, "_sock", self._stream)
            self._socket.settimeout(API_WALL_S)
            owner.hold(self)
            self._container.start()
        except BaseException:
            self.close()
            raise
        self._client = client

    def deliver(self, files: Mapping[str, bytes]) -> None:
        if self._folder:
            self._folder.fill(files)
        elif files and self._container:
            self._container.put_archive("/task", _archive(dict(files)))

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self, wait_s: float) -> bytes | None:
        """Return stdout of the container; its stderr is set aside."""
        deadline = time.monotonic() + wait_s
        while True:
            found = self._demultiplexed()
            if found:
                return found
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self._readable(left_s):
                return None
            chunk = self._socket.recv(1 << 20)
            if not chunk:
                return b""
            self._buffer += chunk

    def _readable(self, wait_s: float) -> bool:
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        pending = getattr(self._socket, "pending", None)  # a TLS connection may hold bytes already
        return bool(pending and pending()) or bool(poller.poll(wait_s * 1000))

    def _demultiplexed(self) -> bytes:
        found = bytearray()
        while len(self._buffer) >= 8:
            kind, length = struct.unpack_from(">BxxxI", self._buffer)
            if len(self._buffer) < 8 + length:
                break
            payload = self._buffer[8 : 8 + length]
            del self._buffer[: 8 + length]
            if kind == STDOUT:
                found += payload
            elif len(self._said) < MOST_STDERR_BYTES:
                self._said += payload[: MOST_STDERR_BYTES - len(self._said)]
        return bytes(found)

    def counters(self, *, silent: bool) -> Counters:
        """Ask the daemon what it saw: its events of a dead container, the counters of a silent one."""
        import docker.errors
        import requests.exceptions

        with suppress(docker.errors.DockerException, requests.exceptions.RequestException, OSError, ValueError):
            return self._statistics() if silent else Counters(oom_kills=self._oom_events())
        return Counters()

    def counters_now(self) -> None:
        """Leave it to the helper, which sees the container's own control groups."""

    def _oom_events(self) -> int:
        """Return the number of "oom" events before the container's end; the daemon keeps them after removal."""
        assert self._container is not None
        count, deadline = 0, time.monotonic() + EVENTS_WALL_S
        filters = {"container": self._container.id, "event": ["oom", "die", "destroy"], "type": "container"}
        events = self._client.api.events(since=1, filters=filters, decode=True)
        timer = threading.Timer(EVENTS_WALL_S, events.close)
        timer.start()
        try:
            for event in events:
                count += event.get("Action") == "oom"
                if event.get("Action") == "destroy" or time.monotonic() > deadline:
                    break
        finally:
            timer.cancel()
            events.close()
        return count

    def _statistics(self) -> Counters:
        assert self._container is not None
        stats = cast(dict[str, Any], self._container.stats(stream=False))
        memory, pids = stats.get("memory_stats", {}), stats.get("pids_stats", {})
        return Counters(
            memory_hits=memory.get("failcnt", 0),
            memory_share=memory.get("usage", 0) / memory.get("limit", float("inf")),
            pids_share=pids.get("current", 0) / pids.get("limit", float("inf")),
        )

    def diagnosis(self) -> str:
        said = self._said.decode("utf-8", "replace").strip()
        container = self._container.short_id if self._container else "not made"
        return f"container {container}" + (f"; it said: {said}" if said else "")

    def kill(self) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # the helper exits at the end of its stdin

    def close(self) -> None:
        with self._closing:
            self.kill()
            self.abandon()
            if self._container is not None and not _removed(self._container):
                return  # the watcher stays for it
            self._container = None
            if self._folder:
                self._folder.remove()
            watcher.forget(self._name)

    def abandon(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()
            with suppress(OSError):
                self._socket.close()


def _removed(container: Container) -> bool:
    """Remove a container, however busy the daemon is; return whether it is gone."""
    import docker.errors
    import requests.exceptions

    deadline = time.monotonic() + STOP_PATIENCE_S
    while time.monotonic() < deadline:
        try:
            container.remove(force=True, v=True)
        except docker.errors.NotFound:
            return True
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError):
            time.sleep(0.02)  # its removal is going on, or the daemon is busy; it removes the box in any case
    return False


class DockerSandbox:
    """The backend with a daemon."""

    name = "docker"
    known_gaps = (
        "user counts: inotify instances and queued signals are counted for the user of all boxes together",
        "locks: /proc/locks shows the locks of the whole machine",
        "host paths: /proc/self/mountinfo names folders of the daemon",
        "evidence: the daemon keeps its last 256 events; under heavy churn an end for memory may look like our failure",
    )
    """What the backend does not promise."""

    def __init__(self, client: docker.DockerClient | None = None) -> None:
        """Use the given client, or connect at the first use."""
        self._client = client
        self._sees_folders: bool | None = None
        self._starting = threading.Lock()

    def _connected(self) -> docker.DockerClient:
        if self._client is None:
            self._client = connect()
        return self._client

    def probe(self) -> None:
        """See ``Sandbox.probe``; asks the daemon for the image of this version."""
        import docker.errors

        client, key = self._connected(), recipe.key()
        try:
            client.images.get(f"tbmm-box:{key}")
        except docker.errors.ImageNotFound as error:
            raise SandboxUnavailable(f"Docker does not have the image tbmm-box:{key}; {image.WAY_OUT}") from error

    def start(self, spec: BoxSpec) -> SessionBox:
        """See ``Sandbox.start``."""
        return self.prepare(spec.limits, spec.image).furnish(spec.files)

    def prepare(self, limits: Limits, image: image.Image) -> SessionBox:
        """See ``PreparingSandbox.prepare``."""
        import docker.errors

        client = self._connected()
        with self._starting:
            if self._sees_folders is None:
                sweep(client)
                folders.sweep()
                self._sees_folders = self._try_folder(client, limits, image.docker_tag)
        try:
            channel = _Channel(client, limits, image.docker_tag, bound=self._sees_folders)
        except docker.errors.DockerException as error:
            raise SandboxUnavailable(f"Docker refused to start a box: {error}") from error
        return SessionBox(channel, limits, {})

    @staticmethod
    def _try_folder(client: docker.DockerClient, limits: Limits, tag: str) -> bool:
        """Return whether a folder of ours is seen in a box: a daemon may run elsewhere, or be kept from our folders."""
        import docker.errors

        if not _local_socket(client):
            return False
        try:
            with SessionBox(_Channel(client, limits, tag, bound=True), limits, {}) as box:
                box.furnish({"probe": b""})
        except (docker.errors.DockerException, BoxLost):
            return False
        return True


def _local_socket(client: docker.DockerClient) -> list[str]:
    """Return the path of the daemon's socket if it is one of this machine."""
    return [path for path in [getattr(client.api.adapters.get("http+docker://"), "socket_path", "")] if path]


def boot_id() -> str:
    """Return the number of this boot of the kernel: process ids mean nothing outside of it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def containers(client: docker.DockerClient) -> list[dict[str, Any]]:
    """Return every container of a box that was started under this kernel, by whomever, as the daemon lists them."""
    wanted = {"label": [LABEL, f"{BOOT_LABEL}={boot_id()}"]}
    return list(client.api.containers(all=True, filters=wanted))


def sweep(client: docker.DockerClient) -> int:
    """Remove containers whose owner is surely gone; return how many."""
    import docker.errors

    count = 0
    for container in containers(client):
        if owner.gone(container["Labels"][LABEL]):
            with suppress(docker.errors.DockerException):
                client.api.remove_container(container["Id"], force=True, v=True)
                count += 1
    return count
