"""Our failures. What an agent does wrong is data, never one of these.

The whole tree::

    TbmmError
    ├── UsageError (ValueError)        the caller gave something wrong; exit code 2
    │   ├── UnknownTask                no task of that name
    │   ├── BadTask                    a file of a task package breaks its format
    │   └── BadInstance                instance parameters, seed or file out of their stated ranges
    ├── SandboxError (RuntimeError)    the sandbox failed, not the agent; exit code 3
    │   ├── SandboxUnavailable         no backend can be used; the message names the way out
    │   ├── ImageError                 the root filesystem is absent, damaged or could not be built
    │   └── BoxLost                    a running box vanished without evidence of the agent's doing
    ├── JudgeError (RuntimeError)      the judge failed: there is no reward; exit code 3
    │   ├── ReplayFailed               the replay crashed or exceeded its budget on a valid answer
    │   ├── LeanUnavailable            Lean cannot be found or started
    │   └── CertificateRejected        the kernel did not accept what Python computed
    └── TrajectoryError (RuntimeError) a store cannot be written or read; exit code 3
        └── CorruptTrajectory          a record fails its checksum or format; says file and offset
"""

from __future__ import annotations


class TbmmError(Exception):
    """Base of every failure that is ours or the caller's."""


class UsageError(TbmmError, ValueError):
    """Raised when the caller gave something wrong."""


class UnknownTask(UsageError):
    """Raised when no task has the given name."""


class BadTask(UsageError):
    """Raised when a file of a task package breaks its format."""


class BadInstance(UsageError):
    """Raised when instance parameters, a seed or an instance file are out of their stated ranges."""


class SandboxError(TbmmError, RuntimeError):
    """Raised when the sandbox, not the agent, failed."""


class SandboxUnavailable(SandboxError):
    """Raised when no sandbox backend can be used; the message names the way out."""


class ImageError(SandboxError):
    """Raised when the root filesystem is absent, damaged or could not be built."""


class BoxLost(SandboxError):
    """Raised when a running box vanished without evidence of the agent's doing."""


class JudgeError(TbmmError, RuntimeError):
    """Raised when the judge failed; there is no reward then."""


class ReplayFailed(JudgeError):
    """Raised when the replay crashed or exceeded its budget on a schema-valid answer."""


class LeanUnavailable(JudgeError):
    """Raised when Lean cannot be found or started."""


class CertificateRejected(JudgeError):
    """Raised when the Lean kernel did not accept what Python computed."""


class TrajectoryError(TbmmError, RuntimeError):
    """Raised when a trajectory store cannot be written or read."""


class CorruptTrajectory(TrajectoryError):
    """Raised when a record fails its checksum or format; the message says file and offset."""
