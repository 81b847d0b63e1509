"""Many environments of a task at once: each in a process of its own, with seeds and instances of its own.

``gym.make_vec("tbmm/cumcm-2024-a", num_envs=4, instance="sampled")``. Unlike Gymnasium's AsyncVectorEnv this one goes
on with each environment's seeds after autoreset, and outlives its workers: a worker that dies is replaced, and its
episode is reported as lost, never as one that was scored.
"""

from __future__ import annotations

import atexit
import multiprocessing
import operator
import os
import signal
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol, cast

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tbmm_env import errors
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import SandboxError, TbmmError, UsageError
from tbmm_env.limits import JUDGE, Limits
from tbmm_env.vector_schedule import Schedule, schedules

RESET_TRIES = 3
"""Tries of one reset, each in a worker that has not failed yet, before the failure is the caller's."""
MARGIN_S = 300.0
"""Added to the budgets of an action: the start of a worker and of its judge."""
CLOSE_WALL_S = 30.0

Observations = dict[str, tuple[Any, ...]]
Flags = NDArray[np.bool_]


class _Reply:
    """What a worker said: ``done`` with a value, or ``lost`` with a reason."""

    def __init__(self, value: Any = None, lost: str = "", kind: str = "") -> None:
        self.value = value
        self.lost = lost
        self.kind = kind


class _Pipe(Protocol):
    def send(self, obj: Any) -> None: ...
    def recv(self) -> Any: ...
    def close(self) -> None: ...


def _die_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _serve(pipe: _Pipe, task: str, keywords: Mapping[str, Any]) -> None:
    """Run in a worker: do what is asked until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells all processes; the owner decides
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_die_with, args=(parent.sentinel,), name="tbmm-parent", daemon=True).start()
    env = ModelingEnv(task, **keywords)
    try:
        while True:
            name, arguments = pipe.recv()
            try:
                pipe.send(("done", getattr(env, name)(**arguments)))
            except TbmmError as error:
                pipe.send((type(error).__name__, str(error)))
    except (EOFError, ConnectionError):
        return  # the owner has no more use for this worker
    finally:
        env.close()


class _Worker:
    """One environment in a process."""

    def __init__(self, number: int, task: str, keywords: Mapping[str, Any], answer_wall_s: float) -> None:
        self._make = (number, task, keywords)
        self._answer_wall_s = answer_wall_s
        self._start()

    def _start(self) -> None:
        number, task, keywords = self._make
        context = multiprocessing.get_context("spawn")  # a fork would inherit the other workers' pipes
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(theirs, task, keywords), name=f"tbmm-vector-{number}", daemon=False
        )
        self.process.start()
        theirs.close()
        self._asked_s = 0.0
        self._owes = False

    def ask(self, name: str, **arguments: Any) -> None:
        """Have the environment do something; :meth:`reply` tells what came of it, the worker's death included."""
        if self._owes:  # the caller was interrupted before it took the last answer
            with suppress(UsageError):
                self.reply()
        self._asked_s = time.monotonic()
        self._owes = True
        try:
            self.pipe.send((name, arguments))
        except ConnectionError:
            return  # reply() finds the end of the pipe

    def reply(self) -> _Reply:
        """Wait for the answer; a worker that is dead or late is replaced."""
        left_s = max(0.0, self._asked_s + self._answer_wall_s - time.monotonic())
        try:
            if not self.pipe.poll(left_s):
                return self._replaced(f"worker gave no answer within {self._answer_wall_s:g} s")
            kind, value = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join(CLOSE_WALL_S)
            return self._replaced(f"worker died with exit code {self.process.exitcode}")
        self._owes = False
        if kind == "done":
            return _Reply(value)
        if issubclass(getattr(errors, kind), UsageError):
            raise cast(UsageError, getattr(errors, kind)(value))
        return _Reply(lost=f"{kind}: {value}", kind=kind)

    def _replaced(self, reason: str) -> _Reply:
        self.end(now=True)
        self._start()
        return _Reply(lost=reason, kind="SandboxError")

    def end(self, *, now: bool) -> None:
        """End the process; waiting a while for it to put its box away unless ``now``."""
        self.pipe.close()
        if not now:
            self.process.join(CLOSE_WALL_S)
        self.process.kill()
        self.process.join()


class ModelingVectorEnv(VectorEnv[Observations, Sequence[str], NDArray[Any]]):
    """Environments of one task side by side; see :class:`tbmm_env.env.ModelingEnv` for what one of them is.

    ``reset(seed=s)`` gives environment i the seed s + i, and after each of its episodes that seed plus ``num_envs``; a
    list gives each its own first seed. ``options`` of reset:

    * ``{"group_size": G}``: G environments in a row share each instance; seeds then advance by the number of groups.
    * ``{"instances": [...]}``: for each environment an instance, ``{"seed": n}`` or ``{"parameters": {...}}``, or a
      list of those that it plays in turn.

    Every info has ``group`` and ``sample``: the environment's group and its place in it. A dict of an environment's
    info (``instance``, ``judgement``) is one object in an array of dtype object.

    An environment whose worker died or whose sandbox or judge failed is truncated with reward 0 and
    ``infos["infrastructure_failure"][i]`` True and the reason in ``infos["lost"][i]``; it has no judgement and must
    not be trained on. It then begins the same instance anew.

    Workers are spawned, so a program that uses this at the top of a script needs ``if __name__ == "__main__"``.

    Args:
        num_envs: environments, each a process.
        task: task id.
        autoreset_mode: ``AutoresetMode.NEXT_STEP`` or ``SAME_STEP``.
        answer_wall_s: wall time of one reset or step, after which a worker counts as dead; by default all budgets of
            an action and of the judge and a margin.
        **keywords: of each environment, for example ``instance="sampled"``; they must be picklable.

    Raises:
        UsageError: an argument is none of its values.
    """

    def __init__(
        self,
        num_envs: int,
        task: str,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        answer_wall_s: float | None = None,
        **keywords: Any,
    ) -> None:
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; it must be at least 1")
        mode = AutoresetMode(autoreset_mode)
        if mode == AutoresetMode.DISABLED:
            raise UsageError(f"autoreset_mode is {mode}; it must be NEXT_STEP or SAME_STEP")
        single = ModelingEnv(task, **keywords)  # starts nothing; tells what is wrong before any worker is
        self.num_envs = num_envs
        self.metadata = {**single.metadata, "autoreset_mode": mode}
        self.render_mode = single.render_mode
        self.single_observation_space = single.observation_space
        self.single_action_space = single.action_space
        self.observation_space = batch_space(single.observation_space, num_envs)
        self.action_space = batch_space(single.action_space, num_envs)
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._schedules: list[Schedule] = []
        self._last: list[dict[str, Any]] = []
        self._over: list[bool] = []
        wall_s = answer_wall_s or _answer_wall_s(single.limits)
        single.close()
        self._workers = [_Worker(number, task, keywords, wall_s) for number in range(num_envs)]
        _open.add(self)

    # ------------------------------------------------------------ Gymnasium

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode in every environment.

        Args:
            seed: first seed, or one for each environment; without one the seeds go on from the last episode, and are
                drawn from ``np_random`` at first.
            options: ``group_size``, ``instances``; see the class.

        Raises:
            BadInstance: an instance or seed is not valid.
            SandboxError: an environment could not be started in ``RESET_TRIES`` tries.
        """
        self._alive()
        first = operator.index(seed) if seed is not None and not isinstance(seed, Sequence | np.ndarray) else None
        super().reset(seed=first)
        if seed is not None or options or not self._schedules:
            if seed is None:
                seed = int(self.np_random.integers(2**31))
            self._schedules = schedules(self.num_envs, seed, options or {})
        else:
            for schedule in self._schedules:
                schedule.advance()
        infos: dict[str, Any] = {}
        self._over, self._last = [], []
        started = self._begin(range(self.num_envs))
        self._last = [started[number][0] for number in range(self.num_envs)]
        self._over = [False] * self.num_envs
        for number, (_, info) in started.items():
            self._add_info(infos, info, number)
        return self._batched(), infos

    def step(self, actions: Sequence[str]) -> tuple[Observations, NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Have every environment take its action; those whose episode is over begin another.

        Args:
            actions: one text for each environment.

        Raises:
            ResetNeeded: before the first reset.
            UsageError: there are not ``num_envs`` actions.
            SandboxError: an environment could not be started in ``RESET_TRIES`` tries.
        """
        self._alive()
        if not self._last:
            raise ResetNeeded("step() needs reset() first: no episode is running")
        if len(actions) != self.num_envs:
            raise UsageError(f"there are {len(actions)} actions; it must be {self.num_envs}, one for each environment")
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminations = np.zeros(self.num_envs, dtype=np.bool_)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        ended = [number for number in range(self.num_envs) if self._over[number]]
        for number in range(self.num_envs):
            if not self._over[number]:
                self._workers[number].ask("step", action=str(actions[number]))
        begun = self._begin(ended)
        for number, (observation, info) in begun.items():
            self._last[number] = observation
            self._add_info(infos, info, number)
        finals = {}
        for number in range(self.num_envs):
            if number in begun:
                self._over[number] = False
                continue
            info = self._stepped(number, rewards, terminations, truncations)
            self._over[number] = bool(terminations[number] or truncations[number])
            if self._over[number] and self._same_step:
                finals[number] = info
            else:
                self._add_info(infos, info, number)
        for number, (observation, info) in self._begin(list(finals)).items():
            final = {"final_obs": self._last[number], "final_info": finals[number]}
            self._last[number], self._over[number] = observation, False
            self._add_info(infos, {**info, **final}, number)
        return self._batched(), rewards, terminations, truncations, infos

    def render(self) -> tuple[str, ...] | None:
        """Return the last terminal texts in ``ansi`` mode, else None."""
        return tuple(seen["terminal"] for seen in self._last) if self.render_mode == "ansi" else None

    def close_extras(self, **_: Any) -> None:
        """End all workers and their boxes."""
        _open.discard(self)
        for worker in self._workers:
            worker.pipe.close()  # all at once, so that they put their boxes away side by side
        for worker in self._workers:
            worker.end(now=False)

    # ------------------------------------------------------------ parts

    def _alive(self) -> None:
        if self.closed:
            raise UsageError("the vector environment is closed; make another")

    def _stepped(self, number: int, rewards: NDArray[Any], terminations: Flags, truncations: Flags) -> dict[str, Any]:
        """Take the answer to a step and return its info."""
        reply = self._workers[number].reply()
        schedule = self._schedules[number]
        if reply.lost:
            truncations[number] = True
            schedule.repeat()
            return {"lost": reply.lost, "infrastructure_failure": True, **schedule.place}
        self._last[number], rewards[number], terminations[number], truncations[number], info = reply.value
        return {**info, **schedule.place}

    def _begin(self, numbers: Sequence[int] | range) -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
        """Reset some environments side by side; return observation and info of each."""
        begun: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        for number in numbers:
            if self._over and self._over[number]:
                self._schedules[number].advance()
        waiting = list(numbers)
        for tried in range(1, RESET_TRIES + 1):
            for number in waiting:
                self._workers[number].ask("reset", **self._schedules[number].arguments)
            failed = []
            for number in waiting:
                reply = self._workers[number].reply()
                if not reply.lost:
                    observation, info = reply.value
                    begun[number] = observation, {**info, **self._schedules[number].place}
                    continue
                failed.append(number)
                if tried == RESET_TRIES:
                    kind = getattr(errors, reply.kind, SandboxError)
                    raise kind(f"environment {number} could not be reset in {tried} tries: {reply.lost}")
            waiting = failed
        return begun

    def _batched(self) -> Observations:
        return {key: tuple(seen[key] for seen in self._last) for key in ("terminal", "figures")}

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        """Add an environment's info; a dict is one object, for two judgements need not have the same fields."""
        whole = {key: value for key, value in env_info.items() if isinstance(value, dict) and key != "final_info"}
        rest = {key: value for key, value in env_info.items() if key not in whole}
        for key, value in whole.items():
            array = vector_infos.setdefault(key, np.full(self.num_envs, None, dtype=object))
            mask = vector_infos.setdefault(f"_{key}", np.zeros(self.num_envs, dtype=np.bool_))
            array[env_num], mask[env_num] = value, True
        return super()._add_info(vector_infos, rest, env_num)

    def __del__(self) -> None:
        """End the workers of an environment that nobody closed."""
        if not self.closed and hasattr(self, "_workers"):
            self.close()


def _answer_wall_s(limits: Limits) -> float:
    return limits.startup_wall_s + limits.step_wall_s + JUDGE.wall_s + MARGIN_S


_open: weakref.WeakSet[ModelingVectorEnv] = weakref.WeakSet()


def _close_all() -> None:
    """Close what was left open; registered after multiprocessing's own atexit function, which waits for the workers."""
    for env in list(_open):
        env.close()


atexit.register(_close_all)
