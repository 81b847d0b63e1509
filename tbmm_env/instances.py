"""Instances of a task: official, drawn from a seed, given or read, and what the agent sees of one.

Public files (statement, figures, schema, instance without seed) are made here; hidden ones never leave this process.
"""

from __future__ import annotations

import copy
import json
import string
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from tbmm_env.errors import BadInstance, BadTask, UsageError
from tbmm_env.limits import KIB, MIB, Limits
from tbmm_env.problems import module_for
from tbmm_env.record import Instance, JsonValue, Language
from tbmm_env.tasks import Task


def official(task: Task) -> Instance:
    """Return the official instance: evaluation only, no seed."""
    return Instance(
        task=task.id, version=task.version, seed=None, parameters=copy.deepcopy(dict(module_for(task.id).OFFICIAL))
    )


def is_official(task: Task, instance: Instance) -> bool:
    """Whether an instance has the official parameters."""
    return dict(instance.parameters) == dict(module_for(task.id).OFFICIAL)


def sampled(task: Task, seed: object) -> Instance:
    """Return the instance drawn from ``seed``.

    Raises:
        BadInstance: when the seed is not an int in [0, 2**63).
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise BadInstance(f"instance seed is {seed!r}; it must be an integer in [0, 2**63)")
    return Instance(task=task.id, version=task.version, seed=seed, parameters=module_for(task.id).sample(seed))


def levels(task: Task) -> int:
    """Return how many difficulty levels sampled instances have; seed n is of level ``1 + n % levels``."""
    return module_for(task.id).LEVELS


def check_level(task: Task, level: object) -> None:
    """Refuse a level that a task does not have.

    Raises:
        UsageError: naming the levels there are.
    """
    most = levels(task)
    if isinstance(level, bool) or not isinstance(level, int) or not 1 <= level <= most:
        raise UsageError(f"level is {level!r}; {task.id} has levels 1 to {most}")


def of_level(task: Task, level: int, number: int) -> Instance:
    """Return sampled instance ``number``, from 0, of a level."""
    return sampled(task, number * levels(task) + level - 1)


def given(task: Task, parameters: Mapping[str, JsonValue]) -> Instance:
    """Return an instance with the caller's own parameters, checked against their ranges.

    Raises:
        BadInstance: when a parameter is missing, unknown or out of range.
    """
    module_for(task.id).check(parameters)
    return Instance(task=task.id, version=task.version, seed=None, parameters=copy.deepcopy(dict(parameters)))


def instance_json(instance: Instance) -> dict[str, JsonValue]:
    """Return the object of ``instance.json``, seed included; it shares nothing with the instance."""
    return {
        "task": instance.task,
        "version": instance.version,
        "seed": instance.seed,
        "parameters": copy.deepcopy(dict(instance.parameters)),
    }


def read_instance(task: Task, path: Path) -> Instance:
    """Read an ``instance.json``; with a seed it is drawn anew and compared.

    Raises:
        BadInstance: the message names the file, the field and the value.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInstance(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(raw, dict):
        raise BadInstance(f"{path}: is a {type(raw).__name__}; it must be an object")
    if unknown := set(raw) - {"task", "version", "seed", "parameters"}:
        raise BadInstance(f"{path}: unknown field {sorted(unknown)[0]!r}")
    for field, want in (("task", task.id), ("version", task.version)):
        if raw.get(field) != want:
            raise BadInstance(f"{path}: field {field} is {raw.get(field)!r}; it must be {want!r}")
    if not isinstance(raw.get("parameters"), dict):
        raise BadInstance(f"{path}: field parameters is missing or not an object")
    seed = raw.get("seed")
    try:
        instance = given(task, raw["parameters"])
        if seed is None:
            return instance
        drawn = sampled(task, seed)
    except BadInstance as error:
        raise BadInstance(f"{path}: {error}") from error
    if dict(drawn.parameters) != dict(instance.parameters):
        raise BadInstance(f"{path}: parameters are not those that seed {seed} draws; leave the seed out to use them")
    return drawn


def public_instance(instance: Instance) -> dict[str, JsonValue]:
    """Return what the agent may see of an instance: everything but the seed."""
    return {"task": instance.task, "version": instance.version, "parameters": copy.deepcopy(dict(instance.parameters))}


# ---------------------------------------------------------------- the agent's view


def _numeric(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose bounds, kept as decimal strings, are JSON numbers."""
    return {
        key: _numeric(value)
        if isinstance(value, dict)
        else float(Fraction(value))
        if key in ("minimum", "maximum")
        else value
        for key, value in schema.items()
    }


def json_schema(task: Task) -> dict[str, Any]:
    """Return the answer's schema as JSON Schema 2020-12 (units under the annotation ``unit``)."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"Answer of {task.id}"}
    return head | _numeric(task.answer_schema)


def statement(task: Task, instance: Instance, language: Language) -> str:
    """Render the statement of an instance.

    Raises:
        BadTask: when the template names a fact the problem module does not give.
    """
    path = task.folder / f"statement.{language}.md"
    try:
        return string.Template(path.read_text(encoding="utf-8")).substitute(
            module_for(task.id).facts(instance.parameters, language)
        )
    except (KeyError, ValueError) as error:
        raise BadTask(f"{task.id}/{path.name}: placeholder {error} has no value") from error
    except OSError as error:
        raise BadTask(f"{task.id}/{path.name}: cannot be read: {error}") from error


@lru_cache(maxsize=32)
def _figures(task_id: str, parameters: str, language: Language) -> tuple[tuple[str, bytes], ...]:
    return tuple(sorted(module_for(task_id).figures(json.loads(parameters), language).items()))


def figures(task: Task, instance: Instance, language: Language) -> dict[str, bytes]:
    """Return the statement's figures of an instance as PNG files by name (cached)."""
    parameters = json.dumps(dict(instance.parameters), sort_keys=True)
    return dict(_figures(task.id, parameters, language))


def public_files(task: Task, instance: Instance, language: Language) -> dict[str, bytes]:
    """Return the files that the box shows under /task/: statement, figures, schema and instance without seed."""

    def text(value: Any) -> bytes:
        return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()

    files = {f"figures/{name}": data for name, data in figures(task, instance, language).items()}
    files["statement.md"] = statement(task, instance, language).encode()
    files["schema.json"] = text(json_schema(task))
    files["instance.json"] = text(public_instance(instance))
    return files


_CONTRACT = {
    "en": """\
## The answer

Leave one JSON object at `/workspace/answer.json`. Its schema, with units and bounds, is `/task/schema.json`; this
instance's numbers are in `/task/instance.json`; the statement and its figures are under `/task/`. Only decisions are
scored: what they are worth is computed by the judge, over the whole domain. A decision that is left out scores 0 for
its metric; one that breaks a constraint makes the whole reward 0.

Commands in the box: `check` tells whether the present answer is well formed, `view FILE...` shows images (at most
{views} an action), `submit` ends the episode. Every action is typed into one persistent bash without network.

## The budget

{steps} actions, {episode:g} s in all, {step:g} s an action; {cpus:g} cores, {memory} MiB of memory,
{workspace} MiB at /workspace; {output} KiB of output are shown an action.
""",
    "zh": """\
## 答案

请在 `/workspace/answer.json` 留下一个 JSON 对象。其格式(含单位与范围)见 `/task/schema.json`,本题数据见
`/task/instance.json`,题面与插图在 `/task/` 下。只对决策评分:决策的价值由评审程序在整个定义域上重新计算。
缺少的决策使对应指标得 0 分;违反约束的决策使总奖励为 0。

沙箱内命令:`check` 检查当前答案的格式,`view FILE...` 显示图片(每个动作至多 {views} 张),`submit` 结束本轮。
所有动作都输入同一个持续运行的 bash,没有网络。

## 预算

共 {steps} 个动作,总时长 {episode:g} 秒,每个动作 {step:g} 秒;{cpus:g} 核,内存 {memory} MiB,
/workspace 容量 {workspace} MiB;每个动作最多显示 {output} KiB 输出。
""",
}


def opening(task: Task, instance: Instance, language: Language, limits: Limits) -> str:
    """Return the first observation's text: statement, answer contract and budget."""
    contract = _CONTRACT[language].format(
        views=limits.view_files,
        steps=limits.steps,
        episode=limits.episode_wall_s,
        step=limits.step_wall_s,
        cpus=limits.cpus,
        memory=limits.memory_bytes // MIB,
        workspace=limits.workspace_bytes // MIB,
        output=limits.step_output_bytes // KIB,
    )
    return f"{statement(task, instance, language).rstrip()}\n\n{contract}"
