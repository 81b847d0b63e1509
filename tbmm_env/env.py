"""The Gymnasium environment: one contest problem, a sandbox, and a reward at the end. Knows no mathematics."""

from __future__ import annotations

import io
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray
from PIL import Image as Pillow

import tbmm_env
from tbmm_env import instances, shell, tasks
from tbmm_env.errors import BadInstance, UsageError
from tbmm_env.judge.judge import JUDGE_VERSION, Judge, check_report
from tbmm_env.limits import MIB, PRESETS, BudgetName, Limits
from tbmm_env.record import (
    Artifact,
    CommandResult,
    Episode,
    Instance,
    JsonValue,
    Judgement,
    Language,
    Observation,
    Step,
)
from tbmm_env.report import judgement_json
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.base import Box, BoxSpec, PreparingSandbox, Sandbox, SandboxName, select
from tbmm_env.sandbox.fault import classify
from tbmm_env.sandbox.pool import Pool
from tbmm_env.spaces import Image, Utf8Text
from tbmm_env.trajectory.store import Store

ObservationDict = dict[str, Any]
Recorder = Callable[[Episode], object]
DECODED_FIGURES = 32


class ModelingEnv(gymnasium.Env[ObservationDict, str]):
    """One task as an environment: the agent types shell commands and leaves ``/workspace/answer.json``.

    Observation: ``{"terminal": str, "figures": tuple of uint8 (height, width, 3)}``. Action: any text. Reward: 0
    until the end, then the judged reward in [0, 1]. Terminated: the agent submitted. Truncated: a budget ran out, or
    the agent broke its box; the answer that is there is judged.

    Args:
        task: task id, for example ``cumcm-2024-a``.
        sandbox: ``auto``, ``docker``, ``bwrap``, or a sandbox object of the user's own.
        instance: ``official`` (evaluation only) or ``sampled``.
        level: difficulty of the sampled instances; default: any. The seed of :meth:`reset` then counts instances of
            this level: seed n plays instance seed ``n * levels + level - 1``.
        budget: ``contest`` or ``train``; see :mod:`tbmm_env.limits`.
        language: of statement and contract, ``en`` or ``zh``.
        limits: budgets of the user's own instead of the preset.
        warm: boxes kept ready for the next resets when the sandbox is given by name; 0 for none. Environments that
            share boxes are given one :class:`tbmm_env.sandbox.pool.Pool` as ``sandbox``.
        recorder: folder of a trajectory store, or a function that takes each finished episode.
        render_mode: ``ansi`` or None; :meth:`render` returns the last terminal text.

    Raises:
        UnknownTask: no such task.
        UsageError: a keyword is none of its values.
        TrajectoryError: the recorder's folder cannot be written.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        task: str,
        *,
        sandbox: SandboxName | Sandbox = "auto",
        instance: Literal["official", "sampled"] = "official",
        level: int | None = None,
        budget: BudgetName = "contest",
        language: Language = "en",
        limits: Limits | None = None,
        warm: int = 1,
        recorder: str | os.PathLike[str] | Recorder | None = None,
        render_mode: str | None = None,
    ) -> None:
        _one_of("instance", instance, ("official", "sampled"))
        _one_of("budget", budget, tuple(PRESETS))
        _one_of("language", language, ("en", "zh"))
        _one_of("render_mode", render_mode, (None, "ansi"))
        if warm < 0:
            raise UsageError(f"warm is {warm!r}; it must be a number of boxes, 0 or more")
        if isinstance(sandbox, str):
            _one_of("sandbox", sandbox, ("auto", "docker", "bwrap"))
        self.task = tasks.load(task)
        self.limits = limits or PRESETS[budget]
        self.language: Language = language
        self.render_mode = render_mode
        self._budget = budget
        self._which = instance
        self._level = level
        if level is not None:
            if instance != "sampled":
                raise UsageError(
                    f"level is {level!r}, and instance is {instance!r}; only sampled instances have levels"
                )
            instances.check_level(self.task, level)
        self._sandbox_choice = sandbox
        self._sandbox: Sandbox | None = None
        self._warm = warm
        self._pool: Pool | None = None
        self._recorder = _recorder(recorder)
        self._judge: Judge | None = None
        self._box: Box | None = None
        self._running = False
        self._terminal = ""
        text = Utf8Text(max(1 * MIB, shell.terminal_bytes(self.limits)))  # the statement has up to 1 MiB
        self.observation_space = spaces.Dict(
            {"terminal": text, "figures": spaces.Sequence(Image(self.limits.view_pixels))}
        )
        self.action_space = Utf8Text(self.limits.action_bytes)

    # ------------------------------------------------------------ Gymnasium

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[ObservationDict, dict[str, Any]]:
        """Start an episode in a fresh box.

        Args:
            seed: seeds ``np_random``; with ``instance="sampled"`` it is the instance's seed too (see ``level``).
            options: ``{"instance": {"seed": n}}`` or ``{"instance": {"parameters": {...}}}``.

        Raises:
            BadInstance: the options name no valid instance.
            SandboxUnavailable: no backend can be used; the message names the way out.
            LeanUnavailable: Lean cannot be run; said now, not after a long episode.
        """
        super().reset(seed=seed)
        self._close_box()
        self.instance = self._choose_instance(seed, options)
        judge = self._ready_judge()
        if self._sandbox is None:
            self._sandbox = self._choose_sandbox()
        self._image = images.expected()
        files = instances.public_files(self.task, self.instance, self.language)
        self._box = self._sandbox.start(BoxSpec(limits=self.limits, files=files, image=self._image))
        self._answer_judge = judge
        self._steps: list[Step] = []
        self._running = True
        self._started_unix_s = time.time()
        self._started_s = time.monotonic()
        text = instances.opening(self.task, self.instance, self.language, self.limits)
        pictures = tuple(decode_png(files[name]).copy() for name in sorted(files) if name.endswith(".png"))
        self._first = Observation(terminal=text, figures=pictures)
        return self._observe(self._first), {"task": self.task.id, "instance": instances.instance_json(self.instance)}

    def step(self, action: str) -> tuple[ObservationDict, float, bool, bool, dict[str, Any]]:
        """Run one action in the box.

        Args:
            action: text for the shell; one that is too long or holds NUL gets a notice and is not run.

        Returns:
            observation, reward, terminated, truncated, info; ``info["judgement"]`` at the end.

        Raises:
            ResetNeeded: before reset or after the end of an episode.
            BoxLost: the sandbox failed, without the agent's doing; there is no reward.
            JudgeError: the judge failed; there is no reward.
        """
        if not self._running or self._box is None:
            raise ResetNeeded("step() needs reset() first: no episode is running")
        started_s = time.monotonic() - self._started_s
        try:
            result, observation = self._run(action, started_s)
            self._steps.append(
                Step(
                    action=action,
                    observation=observation,
                    exit_status=result.exit_status if result else None,
                    ending=result.ending if result else None,
                    started_s=started_s,
                    wall_s=result.wall_s if result else 0.0,
                )
            )
            terminated = result is not None and result.submitted
            truncated = not terminated and self._out_of_budget(result)
            info: dict[str, Any] = {
                "exit_status": result.exit_status if result else None,
                "ending": result.ending if result else "refused",
                "fault": classify(result) if result else "none",
            }
            reward = 0.0
            if terminated or truncated:
                judgement = self._finish(result, terminated)
                info["judgement"] = judgement_json(judgement)
                reward = float(judgement.reward)
        except BaseException:
            self._close_box()
            raise
        return self._observe(observation), reward, terminated, truncated, info

    def render(self) -> str | None:
        """Return the last terminal text in ``ansi`` mode, else None."""
        return self._terminal if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End box and judge; idempotent, and a later reset starts anew."""
        self._close_box()
        if self._pool is not None:
            self._pool.close()
            self._pool = self._sandbox = None
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    @property
    def backend(self) -> str:
        """Name of the sandbox in use; empty before the first reset."""
        return self._sandbox.name if self._sandbox else ""

    # ------------------------------------------------------------ one step

    def _run(self, action: str, started_s: float) -> tuple[CommandResult | None, Observation]:
        assert self._box is not None
        refusal = shell.refuse(action, self.limits)
        if refusal is not None:
            return None, Observation(terminal=refusal, figures=())
        remaining_s = max(0.1, self.limits.episode_wall_s - started_s)
        wall_s = min(self.limits.step_wall_s, remaining_s)
        result = self._box.run(action, wall_s=wall_s, on_check=self._check)
        return result, shell.observe(result, self.limits, wall_s)

    def _check(self, artifact: Artifact) -> str:
        return check_report(self._answer_judge.read(artifact))

    def _out_of_budget(self, result: CommandResult | None) -> bool:
        if result is not None and result.ending == "box_died":
            return True
        return len(self._steps) >= self.limits.steps or time.monotonic() - self._started_s >= self.limits.episode_wall_s

    def _finish(self, result: CommandResult | None, terminated: bool) -> Judgement:
        assert self._box is not None
        died = result is not None and result.ending == "box_died"
        artifact = Artifact(status="missing") if died else self._box.collect(max_bytes=self.limits.artifact_bytes)
        self._close_box()
        judgement = self._answer_judge.judge(self.instance, artifact)
        if self._recorder is not None:
            self._recorder(self._episode(artifact, judgement, terminated))
        return judgement

    def _episode(self, artifact: Artifact, judgement: Judgement, terminated: bool) -> Episode:
        lean = judgement.certificate.lean_version if judgement.certificate else ""
        return Episode(
            episode_id=uuid.uuid4().hex,
            instance=self.instance,
            budget=self._budget,
            language=self.language,
            sandbox=self.backend,
            limits=asdict(self.limits),
            versions={
                "tbmm_env": tbmm_env.__version__,
                "task": self.task.version,
                "panel": self.task.panel_version,
                "judge": JUDGE_VERSION,
                "image": self._image.key,
                "lean": lean,
            },
            first_observation=self._first,
            steps=tuple(self._steps),
            artifact=artifact,
            judgement=judgement_json(judgement),
            certificate_text=judgement.certificate.text if judgement.certificate else "",
            terminated=terminated,
            truncated=not terminated,
            started_unix_s=self._started_unix_s,
            wall_s=time.monotonic() - self._started_s,
        )

    # ------------------------------------------------------------ parts

    def _choose_instance(self, seed: int | None, options: Mapping[str, Any] | None) -> Instance:
        asked = (options or {}).get("instance")
        if asked is not None:
            if not isinstance(asked, Mapping) or len(asked) != 1 or not set(asked) <= {"seed", "parameters"}:
                raise BadInstance(
                    f'options["instance"] is {asked!r}; it must be {{"seed": n}} or {{"parameters": {{}}}}'
                )
            if "seed" in asked:
                return instances.sampled(self.task, asked["seed"])
            parameters: Mapping[str, JsonValue] = asked["parameters"]
            return instances.given(self.task, parameters)
        if self._which == "official":
            return instances.official(self.task)
        if self._level is None:
            return instances.sampled(self.task, int(self.np_random.integers(2**31)) if seed is None else seed)
        count = 2**31 // instances.levels(self.task)
        number = int(self.np_random.integers(count)) if seed is None else seed
        if not 0 <= number < count:
            raise BadInstance(f"seed is {seed!r}; with a level it must be an integer in [0, {count})")
        return instances.of_level(self.task, self._level, number)

    def _choose_sandbox(self) -> Sandbox:
        if not isinstance(self._sandbox_choice, str):
            return self._sandbox_choice
        chosen = select(self._sandbox_choice)
        if self._warm and isinstance(chosen, PreparingSandbox):
            self._pool = Pool(chosen, boxes=self._warm)
            return self._pool
        return chosen

    def _ready_judge(self) -> Judge:
        if self._judge is None:
            judge = Judge(self.task, artifact_bytes=self.limits.artifact_bytes)
            try:
                judge.probe()
            except BaseException:
                judge.close()
                raise
            self._judge = judge
        return self._judge

    def _observe(self, observation: Observation) -> ObservationDict:
        self._terminal = observation.terminal
        return {"terminal": observation.terminal, "figures": observation.figures}

    def _close_box(self) -> None:
        self._running = False
        box, self._box = self._box, None
        if box is not None:
            box.close()


@lru_cache(maxsize=DECODED_FIGURES)
def decode_png(data: bytes) -> NDArray[np.uint8]:
    """Return our own PNG file as uint8, shape (height, width, 3), read-only: the same figure is decoded once."""
    with Pillow.open(io.BytesIO(data)) as image:
        pixels = np.array(image.convert("RGB"), dtype=np.uint8)
    pixels.flags.writeable = False
    return pixels


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} is {value!r}; it must be one of {', '.join(repr(item) for item in allowed)}")


def _recorder(recorder: str | os.PathLike[str] | Recorder | None) -> Recorder | None:
    if recorder is None or callable(recorder):
        return recorder
    store = Store(recorder)
    store.prepare()
    return store.append
