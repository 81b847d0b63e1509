"""The one root filesystem of both backends: found, built, exported, imported, handed to Docker.

It is built without privileges and without a registry of images: apt resolves and downloads the closure of
``recipe.DEBIAN_PACKAGES`` into a private state, the packages are unpacked (no maintainer script runs), pip installs
the pinned wheels for the image's own Python. The result lies at ``<folder>/<key>/root``, world-readable.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

import zstandard

from tbmm_env.errors import ImageError, SandboxUnavailable
from tbmm_env.sandbox import build_root, recipe

if TYPE_CHECKING:
    import docker

Progress = Callable[[int, int, str], None]
"""Called with the step that begins (from 1), the number of steps and a short text."""

SYSTEM_FOLDER = Path("/var/lib/tbmm/images")
MANIFEST = "image.json"
WAY_OUT = "run `tbmm image build` (needs apt and pip), or `tbmm image import FILE` with a file from `tbmm image export`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A root filesystem on this machine.

    Attributes:
        path: folder that is ``/`` in the box.
        key: hash of the recipe, 16 hex digits.
        docker_tag: name under which Docker has it, once ``ensure_docker`` was called.
    """

    path: Path
    key: str
    docker_tag: str


def folders() -> tuple[Path, ...]:
    """Return where images are looked for, in order; the last one is where an image is built."""
    chosen = os.environ.get("TBMM_IMAGE_DIR")
    if chosen:
        return (Path(chosen).resolve(),)
    if os.geteuid() == 0:
        return (SYSTEM_FOLDER,)
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return (SYSTEM_FOLDER, Path(data).expanduser() / "tbmm" / "images")


def _image(folder: Path, key: str) -> Image:
    return Image(path=folder / key / "root", key=key, docker_tag=f"tbmm-box:{key}")


def expected() -> Image:
    """Return the image that this version of the package needs: where it is, or else where it would be built."""
    key = recipe.key()
    for folder in folders():
        with suppress(PermissionError):  # another user's: it is not here for this one
            if (folder / key / MANIFEST).is_file():
                return _image(folder, key)
    return _image(folders()[-1], key)


def find() -> Image:
    """Return the image that this version of the package needs.

    Raises:
        ImageError: if it is not on this machine; the message names the commands that bring it.
    """
    image = expected()
    if not os.access(image.path.parent / MANIFEST, os.R_OK):
        places = " and ".join(str(folder) for folder in folders())
        raise ImageError(f"the box image {image.key} was not found in {places}; {WAY_OUT}")
    return image


def build(progress: Progress | None = None) -> Image:
    """Build the image unless it is there, and give it to Docker if a daemon answers; safe when several build at once.

    Args:
        progress: told of every step that begins.

    Returns:
        The image found or built.

    Raises:
        ImageError: if a tool is missing or fails; the message names the tool and the way out.
    """
    with _placing() as (folder, work):
        if work is not None:
            facts = build_root.build_root(work / "root", work / "scratch", progress or _silent)
            shutil.rmtree(work / "scratch")
            _place(folder, work, facts)
    image = find()
    _offer_to_docker(image, progress)
    return image


def export(file: Path, progress: Progress | None = None) -> None:
    """Write the image to a ``.tar.zst`` file, with root as the owner of everything.

    Raises:
        ImageError: if there is no image, or the file cannot be written.
    """
    image = find()
    (progress or _silent)(1, 1, f"write {file}")
    part = file.with_name(file.name + ".part")
    try:
        with part.open("wb") as raw, zstandard.ZstdCompressor(level=6, threads=-1).stream_writer(raw) as packed:
            write_tar(image.path.parent, packed)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ImageError(f"the image could not be written to {file}: {error}") from error


def import_(file: Path, progress: Progress | None = None) -> Image:
    """Unpack a file written by ``export``.

    Raises:
        ImageError: if the file is damaged, or holds the image of another version of this package.
    """
    (progress or _silent)(1, 2, f"read {file}")
    facts = _facts(file)
    if facts.get("key") != recipe.key():
        raise ImageError(
            f"{file} holds image {facts.get('key')}, this version of tbmm-env needs {recipe.key()};"
            " export it with the same version, or run `tbmm image build`"
        )
    with _placing() as (folder, work):
        if work is not None:
            (progress or _silent)(2, 2, f"unpack {file}")
            with _archive(file) as archive:
                archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # older Pythons have none
                archive.extractall(work, members=_inside(archive))
            (work / MANIFEST).unlink()
            _place(folder, work, facts)
    image = find()
    _offer_to_docker(image, progress)
    return image


@contextmanager
def _archive(file: Path) -> Iterator[tarfile.TarFile]:
    """Open a file written by ``export``; whatever is wrong with it is said with its name."""
    try:
        with (
            file.open("rb") as raw,
            zstandard.ZstdDecompressor().stream_reader(raw) as packed,
            tarfile.open(fileobj=packed, mode="r|") as archive,
        ):
            yield archive
    except (OSError, EOFError, ValueError, tarfile.TarError, zstandard.ZstdError) as error:
        raise ImageError(f"{file} is not a whole image file: {error}; export it again") from error


def _facts(file: Path) -> dict[str, object]:
    """Return the manifest in a file written by ``export``."""
    with _archive(file) as archive:
        for entry in _inside(archive):
            if PurePosixPath(entry.name) == PurePosixPath(MANIFEST) and entry.isfile():
                found = archive.extractfile(entry)
                facts = json.loads(found.read(1 << 20) if found else b"")
                if isinstance(facts, dict):
                    return facts
                break
        raise ValueError(f"there is no {MANIFEST} in it")


def _offer_to_docker(image: Image, progress: Progress | None) -> None:
    """Give the image to Docker if a daemon answers."""
    from tbmm_env.sandbox.docker import connect

    try:
        client = connect()
    except SandboxUnavailable:
        return
    try:
        ensure_docker(image, client, progress)
    finally:
        client.close()


def _inside(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the entries of an archive, refusing one that lies outside of it."""
    for entry in archive:
        if entry.name.startswith("/") or ".." in entry.name.split("/"):
            raise tarfile.TarError(f"entry {entry.name!r} lies outside of the archive")
        yield entry


def _silent(step: int, steps: int, text: str) -> None:
    """Take no notice of progress."""


@contextmanager
def _placing() -> Iterator[tuple[Path, Path | None]]:
    """Hold the folder's lock; yield it and a scratch folder in it, or None when the image is already there."""
    folder = folders()[-1]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w", encoding="utf-8")
    except OSError as error:
        raise ImageError(f"{folder} cannot be written: {error}; set TBMM_IMAGE_DIR to a folder of yours") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in folder.glob(".build-*"):
            shutil.rmtree(stale, ignore_errors=True)
        if (folder / recipe.key() / MANIFEST).is_file():
            yield folder, None
            return
        work = Path(tempfile.mkdtemp(prefix=".build-", dir=folder))
        try:
            yield folder, work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _place(folder: Path, work: Path, facts: dict[str, object]) -> None:
    """Write the manifest and move the finished folder to its name in one step."""
    target = folder / recipe.key()
    (work / MANIFEST).write_text(json.dumps(facts | {"key": recipe.key()}, indent=1, sort_keys=True), encoding="utf-8")
    work.chmod(0o755)
    shutil.rmtree(target, ignore_errors=True)  # without a manifest it is a leftover
    work.rename(target)


def write_tar(folder: Path, stream: IO[bytes]) -> None:
    """Write a folder as a tar stream owned by root, names sorted, without times of access."""

    def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        return entry

    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        archive.add(folder, arcname=".", filter=owned_by_root)


def ensure_docker(image: Image, client: docker.DockerClient, progress: Progress | None = None) -> None:
    """Give the image to a Docker daemon unless it has it.

    Raises:
        SandboxUnavailable: if the daemon refuses it.
    """
    import docker.errors

    try:
        client.images.get(image.docker_tag)
        return
    except docker.errors.ImageNotFound:
        pass
    (progress or _silent)(1, 1, f"import {image.docker_tag} into Docker")
    repository, tag = image.docker_tag.split(":")
    changes = [
        f"USER {recipe.AGENT_UID}:{recipe.AGENT_GID}",
        f"WORKDIR {recipe.WORKSPACE}",
        f"LABEL tbmm.key={image.key}",
        *(f"ENV {name}={value}" for name, value in recipe.ENVIRONMENT.items()),
        'CMD ["bash"]',
    ]
    read_end, write_end = os.pipe()

    def feed() -> None:
        with open(write_end, "wb") as sink:  # noqa: PTH123 (a descriptor)
            try:
                write_tar(image.path, sink)
            except BrokenPipeError:
                return  # the daemon's own error is raised below

    thread = threading.Thread(target=feed, name="tbmm-image-tar", daemon=True)
    thread.start()
    try:
        with open(read_end, "rb") as source:  # noqa: PTH123 (a descriptor)
            chunks = iter(lambda: source.read(1 << 20), b"")
            client.api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=changes)
        client.images.get(image.docker_tag)
    except docker.errors.DockerException as error:
        raise SandboxUnavailable(f"Docker did not take the image {image.docker_tag}: {error}") from error
    finally:
        thread.join(timeout=60.0)
