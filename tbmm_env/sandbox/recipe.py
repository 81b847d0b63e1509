"""What the root filesystem consists of; its key is the hash of everything said here and of the in-box programs.

Debian packages are named without versions (the suite fixes them up to point releases); Python packages are pinned,
the whole closure, and installed without dependency resolution.
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

SUITE = "trixie"
PYTHON = "3.13"
RECIPE = 1
"""Raised when the way of building changes the result without changing a list below."""

AGENT_UID = 10001
AGENT_GID = 10001
WORKSPACE = "/workspace"

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Machine names as the kernel says them, and as Debian does."""

DEBIAN_PACKAGES = (
    "base-files",
    "bash",
    "bzip2",
    "coreutils",
    "dash",
    "debianutils",
    "diffutils",
    "file",
    "findutils",
    "fonts-wqy-microhei",
    "grep",
    "gzip",
    "hostname",
    "less",
    "libc-bin",
    "libgomp1",
    "mawk",
    "ncurses-base",
    "ncurses-bin",
    "perl-base",
    "procps",
    "python3",
    "sed",
    "tar",
    "tmux",
    "tzdata",
    "util-linux",
    "xz-utils",
)

PYTHON_PACKAGES = (
    "cloudpickle==3.1.3",
    "contourpy==1.4.0",
    "cycler==0.12.1",
    "et-xmlfile==2.0.0",
    "fonttools==4.68.0",
    "formulaic==1.2.2",
    "highspy==1.16.0",
    "interface-meta==2.0.1",
    "joblib==1.6.0",
    "kiwisolver==1.5.1",
    "llvmlite==0.50.0",
    "matplotlib==3.11.2",
    "mpmath==1.3.0",
    "narwhals==2.29.0",
    "networkx==3.7",
    "numba==0.68.1",
    "numpy==2.5.5",
    "openpyxl==3.1.5",
    "packaging==26.4",
    "pandas==3.1.1",
    "patsy==1.0.3",
    "pillow==13.0.0",
    "pyparsing==3.3.3",
    "pypdfium2==5.15.2",
    "python-dateutil==4.0.0",
    "scikit-learn==1.9.1",
    "scipy==1.18.1",
    "statsmodels==0.15.0",
    "sympy==1.14.0",
    "threadpoolctl==3.8.0",
    "typing-extensions==4.16.0",
    "tzdata==2026.6",
    "wrapt==2.5.2",
)

IMPORTED = (
    "highspy", "matplotlib.pyplot", "networkx", "numba", "numpy.testing", "openpyxl", "pandas", "PIL.Image",
    "pypdfium2", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "statsmodels.api", "sympy",
)  # fmt: skip
"""Modules that must import in a finished image."""

SITE_PACKAGES = f"usr/local/lib/python{PYTHON}/dist-packages"

DROPPED = (
    "usr/share/doc",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/zoneinfo/right",
    "usr/lib/systemd",
    "usr/share/perl5/Debconf",
    "var/cache",
    "var/lib",
)
"""Folders removed after unpacking, relative to the root."""

TESTS_DROPPED = (
    "matplotlib",
    "mpmath",
    "networkx",
    "numba",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "statsmodels",
    "sympy",
)
"""Packages whose folders named ``tests`` are removed."""

MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "run", "task", "workspace", "root", "home", "var/tmp")
"""Empty folders that both backends mount upon, or that programs expect."""

ETC_FILES = {
    "passwd": (
        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        f"agent:x:{AGENT_UID}:{AGENT_GID}:agent:{WORKSPACE}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "group": f"root:x:0:\ntty:x:5:\nagent:x:{AGENT_GID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "hostname": "box\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "timezone": "Etc/UTC\n",
}

LINKS = {
    "usr/bin/awk": "mawk",
    "usr/bin/which": "which.debianutils",
    "usr/bin/pager": "less",
    "usr/bin/python": "python3",
    "etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
    "etc/mtab": "/proc/self/mounts",
}
"""What maintainer scripts would have made: path and target."""

INBOX = Path(__file__).parent / "inbox"
INBOX_FILES = {
    "call.py": ("usr/local/bin/submit", "usr/local/bin/check", "usr/local/bin/view"),
    "decode.py": ("usr/local/lib/tbmm/decode.py",),
}
"""In-box programs: source file in ``inbox/`` and where it is installed (mode 0755)."""

ENVIRONMENT = {
    "HOME": WORKSPACE,
    "LANG": "C.UTF-8",
    "LOGNAME": "agent",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/.matplotlib",
    "NUMBA_CACHE_DIR": "/tmp/.numba",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PAGER": "cat",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
    "SHELL": "/bin/bash",
    "TERM": "dumb",
    "TZ": "UTC",
    "USER": "agent",
}
"""Environment of every process of the agent, the same in both backends."""


def machine() -> str:
    """Return the kernel's name of this machine's architecture, such as ``x86_64``."""
    return platform.machine()


def key() -> str:
    """Return the 16 hex digits that name the root filesystem this version of the package needs."""
    digest = hashlib.sha256()
    for part in (
        str(RECIPE), SUITE, PYTHON, machine(), str(AGENT_UID), *DEBIAN_PACKAGES, *PYTHON_PACKAGES, *DROPPED,
        *TESTS_DROPPED, *MOUNT_POINTS, *(f"{k}={v}" for group in (ETC_FILES, LINKS) for k, v in group.items()),
    ):  # fmt: skip
        digest.update(part.encode() + b"\0")
    for source, targets in INBOX_FILES.items():
        digest.update((INBOX / source).read_bytes() + b"\0" + "\0".join(targets).encode() + b"\0")
    return digest.hexdigest()[:16]
