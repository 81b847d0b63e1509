"""The helper that is process 1 of every box, and the one command line that delivers it.

Its modules use the standard library only. They reach the box as text in the argument list of the image's Python, so
the image does not change with them and nothing has to be mounted.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

MODULES = ("wire", "capture", "artifact", "blocked", "counted", "lockdown", "terminal", "requests", "viewing", "main")
"""In the order of their imports."""

_LOADER = """\
import sys, types
def load(name, text=""):
    module = types.ModuleType(name); module.__path__ = []
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent: setattr(sys.modules[parent], last, module)
    exec(compile(text, name, "exec"), module.__dict__)
    return module
for package in ("tbmm_env", "tbmm_env.sandbox", "tbmm_env.sandbox.guest"): load(package)
for name, text in {sources!r}: last = load("tbmm_env.sandbox.guest." + name, text)
last.main()
"""


@cache
def command() -> tuple[str, ...]:
    """Return the words that start the helper in a box."""
    folder = resources.files(__name__)
    sources = [(name, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    return ("/usr/bin/python3", "-I", "-S", "-c", _LOADER.replace("{sources!r}", repr(sources)))
