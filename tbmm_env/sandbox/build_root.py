"""Unpack packages and wheels into a root filesystem; needs apt, dpkg, tar and pip, but no privileges."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tbmm_env.errors import ImageError
from tbmm_env.sandbox import bwrap_program, recipe

STEPS = 6
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ELSEWHERE = (
    "on a system without apt, build on one that has it and carry the image with `tbmm image export` and `import`"
)


def build_root(root: Path, scratch: Path, progress: Callable[[int, int, str], None]) -> dict[str, object]:
    """Build the root filesystem.

    Args:
        root: folder to make; becomes ``/`` of the box.
        scratch: folder to make for downloads; the caller removes it.
        progress: told of every step that begins.

    Returns:
        Facts for the manifest: the versions of all Debian and Python packages.

    Raises:
        ImageError: if a tool is missing or fails.
    """
    if recipe.machine() not in recipe.ARCHITECTURES:
        raise ImageError(
            f"this machine is a {recipe.machine()}; images exist for {', '.join(recipe.ARCHITECTURES)} (Linux) only"
        )
    scratch.mkdir()
    progress(1, STEPS, "look up Debian packages")
    apt = _private_apt(scratch)
    _run([*apt, "update"])
    progress(2, STEPS, "download Debian packages")
    _run([*apt, "install", "--yes", "--download-only", *recipe.DEBIAN_PACKAGES])
    archives = sorted((scratch / "cache" / "archives").glob("*.deb"))
    progress(3, STEPS, f"unpack {len(archives)} Debian packages")
    _unpack(archives, root)
    progress(4, STEPS, f"install {len(recipe.PYTHON_PACKAGES)} Python packages")
    _pip_install(root, scratch)
    progress(5, STEPS, "finish the tree")
    _finish(root)
    progress(6, STEPS, "compile Python files")
    _compile(root)
    _normalise(root)
    return {
        "debian": [archive.stem for archive in archives],
        "python": list(recipe.PYTHON_PACKAGES),
        "suite": recipe.SUITE,
    }


def _run(command: list[str], **more: str) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **more}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            check=False,
        )
    except FileNotFoundError as error:
        raise ImageError(
            f"the program {command[0]} is needed to build the image and was not found; {ELSEWHERE}"
        ) from error
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise ImageError(
            f"building the image failed: `{' '.join(command[:1] + command[-3:])}` ended with {done.returncode}:\n{last}"
        )
    return done.stdout


def _mirror() -> str:
    """Return the Debian mirror this machine's apt uses, or the one the user names."""
    chosen = os.environ.get("TBMM_DEBIAN_MIRROR")
    if chosen:
        return chosen
    for line in _run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(SUITE) $(REPO_URI)", "Created-By: Packages"]
    ).splitlines():
        origin, _, address = line.partition(" ")
        address = address.split()[-1] if address.split() else ""
        if origin == "Debian" and "security" not in address:
            return address
    raise ImageError(
        "apt on this machine knows no Debian mirror; set TBMM_DEBIAN_MIRROR to one (https://www.debian.org/mirror/list),"
        f" or run `apt-get update` if it was never run; {ELSEWHERE}"
    )


def _private_apt(scratch: Path) -> list[str]:
    """Return an apt-get command that sees only the image's suite and an empty package state."""
    if not KEYRING.is_file():
        raise ImageError(
            f"{KEYRING} was not found; install it with `apt-get install debian-archive-keyring`; {ELSEWHERE}"
        )
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(
        f"deb [signed-by={KEYRING}] {_mirror()} {recipe.SUITE} main\n", encoding="utf-8"
    )
    architecture = recipe.ARCHITECTURES[recipe.machine()]
    options = {
        "Dir::State": scratch / "state",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "Dir::Log": scratch,
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "0",
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    return ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def _unpack(archives: list[Path], root: Path) -> None:
    """Unpack packages over each other in a tree whose top folders are links into /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for archive in archives:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as source:
            tar = ["tar", "-x", "-C", str(root), "--keep-directory-symlink", "--no-same-owner", "--no-same-permissions"]
            subprocess.run(tar, stdin=source.stdout, check=True)
        if source.returncode != 0:
            raise ImageError(
                f"dpkg-deb could not unpack {archive.name}: it ended with {source.returncode}; is the disk full?"
            )


def _pip() -> list[str]:
    """Return a pip command: the one beside this Python, else the wheel that Python bundles."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        return [sys.executable, "-m", "pip"]
    bundled = sorted(Path(os.__file__).parent.glob("ensurepip/_bundled/pip-*.whl"))
    if bundled:
        return [sys.executable, str(bundled[-1] / "pip")]
    for name in ("pip3", "pip"):
        if shutil.which(name):
            return [name]
    raise ImageError(f"pip is needed to build the image and was not found; install it for {sys.executable}")


def _pip_install(root: Path, scratch: Path) -> None:
    requirements = scratch / "requirements.txt"
    requirements.write_text("\n".join(recipe.PYTHON_PACKAGES) + "\n", encoding="utf-8")
    platforms = [f"--platform={tag}_{recipe.machine()}" for tag in ("manylinux_2_28", "manylinux2014")]
    _run(
        [
            *_pip(), "install", "--quiet", "--no-deps", "--no-compile", "--only-binary=:all:",
            "--disable-pip-version-check",
            "--implementation=cp", f"--python-version={recipe.PYTHON}", *platforms,
            f"--target={root / recipe.SITE_PACKAGES}", f"--requirement={requirements}",
        ],
        PIP_USER="0",
    )  # fmt: skip


def _finish(root: Path) -> None:
    """Do what maintainer scripts would have done, put our programs in, and drop what no box needs."""
    for name in recipe.DROPPED:
        shutil.rmtree(root / name, ignore_errors=True)
    site = root / recipe.SITE_PACKAGES
    for package in recipe.TESTS_DROPPED:
        for folder in sorted((site / package).rglob("tests"), reverse=True):
            if folder.is_dir():
                shutil.rmtree(folder)
    shutil.rmtree(site / "bin", ignore_errors=True)  # scripts with this machine's path to Python in them
    for name in recipe.MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in recipe.ETC_FILES.items():
        (root / "etc" / name).unlink(missing_ok=True)
        (root / "etc" / name).write_text(text, encoding="utf-8")
    for name, target in recipe.LINKS.items():
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
    for source, targets in recipe.INBOX_FILES.items():
        for target in targets:
            (root / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(recipe.INBOX / source, root / target)
            (root / target).chmod(0o755)


COMPILE = f"""
import compileall, py_compile
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
for folder in ("/{recipe.SITE_PACKAGES}", "/usr/lib/python{recipe.PYTHON}"):
    compileall.compile_dir(folder, quiet=2, force=True, invalidation_mode=mode)
import {", ".join(recipe.IMPORTED)}
"""


def _compile(root: Path) -> None:
    """Compile every Python file with the image's own Python (else each box would do it again), and try the imports."""
    try:
        enter = bwrap_program.build_command(root)
    except ImageError:
        if os.geteuid() != 0:
            raise
        enter = ["chroot", str(root)]
    _run(
        [*enter, "/usr/bin/python3", "-I", "-c", COMPILE],
        PYTHONDONTWRITEBYTECODE="",
        OPENBLAS_NUM_THREADS="1",
        HOME="/tmp",
    )
    for name in ("root", "run", "tmp"):  # caches of the imports
        shutil.rmtree(root / name)
        (root / name).mkdir()


def _normalise(root: Path) -> None:
    """Make everything readable by all and nothing set-uid, whatever the umask and the packages said."""
    for folder, names, files in os.walk(root):
        here = Path(folder)
        here.chmod(0o755)
        for name in files:
            path = here / name
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(0o755 if mode & 0o111 else 0o644)
        names[:] = [name for name in names if not (here / name).is_symlink()]
