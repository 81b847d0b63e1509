"""Cheap checks of the repository itself: every checker returns complaints and is tried on a tree it must reject."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import tbmm_env
from tbmm_env import errors

ROOT = Path(__file__).parents[1]
CANARY = "tbmm-canary-" + "7f1c2e9a-53d4-4c0e-9b86-1a0d5e8f2b47"
LINES = 400

ALLOWED_IMPORTS = {
    "subprocess": ("sandbox/", "judge/child.py"),
    "multiprocessing": ("vector.py",),
    "socket": ("sandbox/",),
    "docker": ("sandbox/",),
    "msgpack": ("trajectory/codec.py",),
    "ray": ("rollout/",),
    "pickle": (),
}
"""Where in ``tbmm_env`` a dangerous or heavy module may be imported."""
PROCESS_STARTERS = re.compile(r"fork(pty)?|popen|system|startfile|posix_spawnp?|(spawn|exec)[lv]p?e?")
"""Names in ``os`` that start programs; they are held to the rule of ``subprocess``."""
OFFICE_SUFFIXES = {".pdf", ".xls", ".xlsx", ".doc", ".docx"}
ELSEWHERE = re.compile(r"(?<![\w.~}/-])(?:" + "/" + r"work|/tmp/" + r"venv)(?![\w-])")
"""Absolute paths of a developer's machine (``/workspace`` is the agent's, and fine)."""


def files_of(root: Path) -> list[Path]:
    """Every file that is tracked, or would be by ``git add``; all files where there is no git."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (root / ".git").exists():
        names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        paths = [root / name for name in names if name]
    else:
        paths = [path for path in root.rglob("*") if "__pycache__" not in path.parts]
    return sorted(path for path in paths if path.is_file())


def modules_of(root: Path) -> Iterator[tuple[str, str]]:
    """Name below ``tbmm_env`` and text of every module."""
    package = root / "tbmm_env"
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")


# ---------------------------------------------------------------- checkers


def long_modules(root: Path) -> list[str]:
    return [
        f"{name} has {len(text.splitlines())} lines; the limit is {LINES} lines"
        for name, text in modules_of(root)
        if len(text.splitlines()) > LINES
    ]


def undocumented(root: Path) -> list[str]:
    found = []
    for name, text in modules_of(root):
        tree = ast.parse(text)
        if text.strip() and not ast.get_docstring(tree):
            found.append(f"{name} has no docstring")
        found += [
            f"{name}:{node.lineno} {node.name} has no docstring" for node in _public(tree.body) if not _said(node)
        ]
    return found


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _public(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body)
        elif isinstance(node, ast.If | ast.Try):
            yield from _public(node.body)


def _said(node: Definition) -> bool:
    decorators = {ast.unparse(item).split(".")[-1] for item in node.decorator_list}
    return bool(ast.get_docstring(node)) or bool(decorators & {"overload", "setter", "override"})


def forbidden_imports(root: Path) -> list[str]:
    found = []
    for name, text in modules_of(root):
        for line, imported in _imported(ast.parse(text)):
            places = ALLOWED_IMPORTS.get(imported)
            if places is not None and not any(_within(name, place) for place in places):
                found.append(f"{name}:{line} uses {imported}; only {', '.join(places) or 'nothing'} may")
    return found


def _within(name: str, place: str) -> bool:
    return name.startswith(place) if place.endswith("/") else name == place


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and top name of every module imported, ``os`` functions that start programs counted as subprocess."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, (node.module or "").split(".")[0]
            if node.module == "os" and any(PROCESS_STARTERS.fullmatch(alias.name) for alias in node.names):
                yield node.lineno, "subprocess"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.startswith("os.") and PROCESS_STARTERS.fullmatch(called.removeprefix("os.")):
                yield node.lineno, "subprocess"
            first = node.args[0] if node.args else None
            if called.split(".")[-1] in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value).split(".")[0]


Branch = tuple[str, str, tuple[str, ...]]
"""Parent, name and further bases of a class."""


def drawn_tree(docstring: str) -> list[Branch]:
    """The classes drawn in a docstring, from the top."""
    pattern = re.compile(r"^    ((?:[│ ]   )*(?:[├└]── )?)(\w+)(?: \((\w+(?:, \w+)*)\))?(?: .*)?$", re.MULTILINE)
    found: list[Branch] = []
    line: list[str] = []
    for match in pattern.finditer(docstring.partition("::")[2]):
        line = [*line[: len(match[1]) // 4], match[2]]
        found.append((line[-2] if len(line) > 1 else "", match[2], tuple(match[3].split(", ")) if match[3] else ()))
    return found


def class_tree(text: str) -> list[Branch]:
    """The classes defined in a module, from the first, in the order of definition."""
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    }

    def below(name: str, parent: str) -> Iterator[Branch]:
        yield parent, name, tuple(base for base in bases[name] if base not in bases and base != "Exception")
        for child in bases:
            if name in bases[child]:
                yield from below(child, name)

    return list(below(next(iter(bases)), ""))


def wrong_error_tree(text: str) -> list[str]:
    drawn, defined = drawn_tree(ast.get_docstring(ast.parse(text), clean=False) or ""), class_tree(text)
    if sorted(drawn) == sorted(defined) and drawn != defined:
        return ["drawn in another order than defined"]
    complaints = [f"drawn {one}, not defined so" for one in drawn if one not in defined]
    return complaints + [f"defined {one}, not drawn so" for one in defined if one not in drawn]


def official_materials(files: Iterable[Path], sums: frozenset[str]) -> list[str]:
    return [f"{path} is official material" for path in files if hashlib.sha256(path.read_bytes()).hexdigest() in sums]


def office_documents(files: Iterable[Path]) -> list[str]:
    return [f"{path} is an office document" for path in files if path.suffix.lower() in OFFICE_SUFFIXES]


def foreign_paths(files: Iterable[Path]) -> list[str]:
    found = []
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if ELSEWHERE.search(line):
                found.append(f"{path}:{number} names a path of somebody's machine")
    return found


def without_canary(root: Path, files: Iterable[Path]) -> list[str]:
    found = []
    for path in files:
        parts = path.relative_to(root).parts
        public = len(parts) == 3 and re.fullmatch(r"statement\.\w+\.md", parts[-1])
        if parts[0] == "tasks" and len(parts) > 2 and not public and CANARY.encode() not in path.read_bytes():
            found.append(f"{path} is hidden and does not carry the canary")
    return found


def wrong_front_page(root: Path) -> list[str]:
    page = (root / "README.md").read_text(encoding="utf-8")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    found = [
        f"README.md does not name `make {word}`" for word in ("demo", "test") if not re.search(rf"make {word}\b", page)
    ]
    targets = re.findall(r"make (\w+)", " ".join(re.findall(r"^make \w+|`make \w+", page, re.MULTILINE)))
    return found + [
        f"README.md names `make {word}`, which Makefile does not have"
        for word in sorted(set(targets))
        if not re.search(rf"^{word}:", makefile, re.MULTILINE)
    ]


def wrong_versions(root: Path, version: str) -> list[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    released = re.findall(r"^## \[(\d[^\]]*)\]", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    found = [f"pyproject.toml says {project}, tbmm_env says {version}"] if project != version else []
    if released[:1] != [version]:
        found.append(f"the newest version in CHANGELOG.md is {released[:1]}, tbmm_env says {version}")
    return found


# ---------------------------------------------------------------- the repository


def material_sums(folder: str | None) -> frozenset[str]:
    """The sha256 of every official file that a manifest lists; not run without one."""
    manifest = Path(folder or "") / "manifest.json"
    if not folder or not manifest.is_file():
        pytest.skip("not run: TBMM_MATERIALS is not set, or has no manifest.json")
    tasks = json.loads(manifest.read_text(encoding="utf-8"))
    return frozenset(entry["sha256"] for entries in tasks.values() for entry in entries)


def test_modules_are_short() -> None:
    assert long_modules(ROOT) == []


def test_public_names_are_documented() -> None:
    assert undocumented(ROOT) == []


def test_imports_stay_where_they_belong() -> None:
    assert forbidden_imports(ROOT) == []


def test_the_error_tree_is_drawn_as_it_is() -> None:
    assert wrong_error_tree(Path(errors.__file__).read_text(encoding="utf-8")) == []


def test_no_office_document_is_here() -> None:
    assert office_documents(files_of(ROOT)) == []


def test_no_official_material_is_here() -> None:
    assert official_materials(files_of(ROOT), material_sums(os.environ.get("TBMM_MATERIALS"))) == []


def test_no_path_of_a_developers_machine_is_named() -> None:
    assert foreign_paths(files_of(ROOT)) == []


def test_hidden_files_carry_the_canary() -> None:
    assert without_canary(ROOT, files_of(ROOT)) == []


def test_the_front_page_names_the_two_commands() -> None:
    assert wrong_front_page(ROOT) == []


def test_versions_agree() -> None:
    assert wrong_versions(ROOT, tbmm_env.__version__) == []


# ---------------------------------------------------------------- what the checkers must reject


def planted(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("checker", "name", "good", "bad", "message"),
    [
        (long_modules, "a.py", "x\n" * 400, "x\n" * 401, "a.py has 401 lines; the limit is 400 lines"),
        (undocumented, "a.py", '"""A."""\nx = 1\n', "x = 1\n", "a.py has no docstring"),
        (undocumented, "a.py", '"""A."""\ndef _f(): ...\n', '"""A."""\ndef f(): ...\n', "a.py:2 f has no docstring"),
        (undocumented, "b/a.py", '"""A."""\n', '"""A."""\nclass C:\n  pass\n', "b/a.py:2 C has no docstring"),
        (
            undocumented,
            "a.py",
            '"""A."""\nclass C:\n  """C."""\n  def _f(self): ...\n',
            '"""A."""\nclass C:\n  """C."""\n  async def f(self): ...\n',
            "a.py:4 f has no docstring",
        ),
        (undocumented, "a.py", "", '"""A."""\nif True:\n  def f(): ...\n', "a.py:3 f has no docstring"),
        (forbidden_imports, "a.py", "import os\n", "import os, subprocess\n", "a.py:1 uses subprocess; only sandbox/"),
        (
            forbidden_imports,
            "judge/child.py",
            "import subprocess\n",
            "import socket\n",
            "uses socket; only sandbox/ may",
        ),
        (forbidden_imports, "judge/lean.py", "", "import subprocess\n", "judge/lean.py:1 uses subprocess"),
        (forbidden_imports, "judge/child.python.py", "", "import subprocess\n", "uses subprocess"),
        (forbidden_imports, "sandbox/a.py", "import docker.errors\n", "import ray\n", "uses ray; only rollout/ may"),
        (forbidden_imports, "a.py", "from .docker import x\n", "from docker.errors import x\n", "uses docker"),
        (
            forbidden_imports,
            "trajectory/codec.py",
            "import msgpack\n",
            "import pickle\n",
            "uses pickle; only nothing may",
        ),
        (forbidden_imports, "trajectory/store.py", "", "def f():\n  import msgpack\n", "store.py:2 uses msgpack"),
        (forbidden_imports, "a.py", "os.path.exists(x)\n", "os.execve(x)\n", "a.py:1 uses subprocess"),
        (forbidden_imports, "a.py", "from os import path\n", "from os import posix_spawn\n", "a.py:1 uses subprocess"),
        (forbidden_imports, "a.py", "import_module(x)\n", "importlib.import_module('ray.util')\n", "a.py:1 uses ray"),
    ],
)
def test_package_checkers_reject(
    checker: Callable[[Path], list[str]], name: str, good: str, bad: str, message: str, tmp_path: Path
) -> None:
    planted(tmp_path, f"tbmm_env/{name}", good)
    assert checker(tmp_path) == []
    planted(tmp_path, f"tbmm_env/{name}", bad)
    (complaint,) = checker(tmp_path)
    assert message in complaint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class BoxLost(SandboxError)", "class BoxLost(JudgeError)", "drawn ('SandboxError', 'BoxLost', ())"),
        ("class UnknownTask(", "class UnknownTasks(", "defined ('UsageError', 'UnknownTasks', ())"),
        ("class JudgeError(TbmmError, RuntimeError)", "class JudgeError(TbmmError)", "('RuntimeError',)), not defined"),
        ("    │   └── BoxLost  ", "    └── BoxLost  ", "drawn ('TbmmError', 'BoxLost', ())"),
        ("    │   ├── UnknownTask     ", "    │   ├── x ", "defined ('UsageError', 'UnknownTask', ())"),
        ("UsageError (ValueError)", "UsageError (KeyError)", "drawn ('TbmmError', 'UsageError', ('KeyError',))"),
    ],
)
def test_the_error_tree_check_rejects(old: str, new: str, message: str) -> None:
    text = Path(errors.__file__).read_text(encoding="utf-8")
    assert old in text
    complaints = wrong_error_tree(text.replace(old, new))
    assert any(message in complaint for complaint in complaints), complaints


def test_the_error_tree_check_rejects_another_order() -> None:
    text = Path(errors.__file__).read_text(encoding="utf-8")
    swapped = text.replace("├── UnknownTask ", "├── BadTasks ", 1).replace("├── BadTask ", "├── UnknownTask ", 1)
    swapped = swapped.replace("├── BadTasks ", "├── BadTask ", 1)
    assert wrong_error_tree(swapped) == ["drawn in another order than defined"]


def test_the_material_checks_reject(tmp_path: Path) -> None:
    ours, theirs = planted(tmp_path, "a.txt", "ours"), planted(tmp_path, "b.txt", "theirs")
    manifest = {"task": [{"path": "b.txt", "sha256": hashlib.sha256(b"theirs").hexdigest()}]}
    planted(tmp_path, "m/manifest.json", json.dumps(manifest))
    assert official_materials([ours], material_sums(str(tmp_path / "m"))) == []
    assert official_materials([ours, theirs], material_sums(str(tmp_path / "m"))) == [f"{theirs} is official material"]
    assert office_documents([ours]) == []
    assert len(office_documents([ours, tmp_path / "A题.PDF", tmp_path / "附件.xlsx"])) == 2


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("/workspace/answer.json", "see " + "/" + "work/main"),
        ("{root}/work, my/work, ~/work", "'/" + "work'"),
        ("/tmp/venvs", "/tmp/" + "venv/bin/python"),
        ("/tmp/tbmm", "x=/" + "work"),
    ],
)
def test_the_path_check_rejects(good: str, bad: str, tmp_path: Path) -> None:
    path = planted(tmp_path, "a.md", f"first\n{good}\n")
    assert foreign_paths([path]) == []
    planted(tmp_path, "a.md", f"first\n{bad}\n")
    assert foreign_paths([path]) == [f"{path}:2 names a path of somebody's machine"]


def test_the_canary_check_rejects(tmp_path: Path) -> None:
    planted(tmp_path, "tasks/a/statement.en.md", "public")
    planted(tmp_path, "tasks/a/task.toml", f"# {CANARY}\n")
    planted(tmp_path, "other/task.toml", "")
    assert without_canary(tmp_path, files_of(tmp_path)) == []
    hidden = [
        planted(tmp_path, "tasks/a/references.toml", f"# {CANARY[:-1]}\n"),
        planted(tmp_path, "tasks/a/solution/statement.en.md", ""),
        planted(tmp_path, "tasks/a/statement.en.md.bak", ""),
        planted(tmp_path, "tasks/a/submissions/scored/one.json", "{}"),
    ]
    assert without_canary(tmp_path, files_of(tmp_path)) == [
        f"{path} is hidden and does not carry the canary" for path in sorted(hidden)
    ]


@pytest.mark.parametrize(
    ("page", "makefile", "message"),
    [
        ("`make demo`", "demo:\ntest:\n", "README.md does not name `make test`"),
        ("`make tests`, `make demo`", "demo:\ntest:\ntests:\n", "README.md does not name `make test`"),
        (
            "```\nmake demo   # a\nmake test\n```",
            "demo:\n",
            "README.md names `make test`, which Makefile does not have",
        ),
    ],
)
def test_the_front_page_check_rejects(page: str, makefile: str, message: str, tmp_path: Path) -> None:
    planted(tmp_path, "README.md", "`make demo` and `make test`; make sure")
    planted(tmp_path, "Makefile", "demo: a\ntest:\n")
    assert wrong_front_page(tmp_path) == []
    planted(tmp_path, "README.md", page)
    planted(tmp_path, "Makefile", makefile)
    assert wrong_front_page(tmp_path) == [message]


@pytest.mark.parametrize(
    ("changes", "project", "complaints"),
    [
        ("## [Unreleased]\n## [1.2.0] - x\n## [1.1.0] - x\n", "1.2.0", 0),
        ("## [1.1.0] - x\n## [1.2.0] - x\n", "1.2.0", 1),
        ("", "1.2.0", 1),
        ("## [1.2.0] - x\n", "1.2.1", 1),
    ],
)
def test_the_version_check_rejects(changes: str, project: str, complaints: int, tmp_path: Path) -> None:
    planted(tmp_path, "CHANGELOG.md", changes)
    planted(tmp_path, "pyproject.toml", f'[project]\nversion = "{project}"\n')
    assert len(wrong_versions(tmp_path, "1.2.0")) == complaints
