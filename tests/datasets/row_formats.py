"""The row formats that trainers document, written down as checks.

Sources: TRL 1.16 ``docs/source/dataset_formats.md`` and ``trainer/grpo_trainer.py`` (rollout_func), verl
``experimental/agent_loop/agent_loop.py`` (AgentLoopOutput) and ``utils/dataset/multiturn_sft_dataset.py``, SkyRL
``skyrl/train/generators/base.py`` (GeneratorOutput), prime-rl ``transports/rollouts/types.py`` (TrainingSample).
Each check raises AssertionError.
"""

from __future__ import annotations

import json
import math
from typing import Any

Row = dict[str, Any]

ROLES = ("system", "user", "assistant", "tool")


def conversation(row: Row) -> None:
    """A TRL or verl multi-turn SFT row with tool calls: messages, tools, images in order of their places."""
    calls: set[str] = set()
    answered: set[str] = set()
    names = {tool["function"]["name"] for tool in row["tools"]}
    assert names, "no tools"
    for tool in row["tools"]:
        assert tool["type"] == "function"
        assert tool["function"]["parameters"]["type"] == "object"
    messages = row["messages"]
    assert isinstance(messages, list)
    assert messages, "no messages"
    kinds = {type(message["content"]) for message in messages}
    assert kinds in ({str}, {list}), f"content of several types: {kinds}"
    places = 0
    for message in messages:
        assert message["role"] in ROLES
        places += _places(message)
        for call in message.get("tool_calls", []):
            assert message["role"] == "assistant"
            assert call["type"] == "function"
            assert call["id"] not in calls, "a call id twice"
            calls.add(call["id"])
            arguments = call["function"]["arguments"]
            assert call["function"]["name"] in names
            assert isinstance(json.loads(arguments) if isinstance(arguments, str) else arguments, dict)
        if message["role"] == "tool":
            assert message["tool_call_id"] in calls - answered, "a result without its call"
            answered.add(message["tool_call_id"])
    assert messages[-1]["role"] == "assistant", "the last message trains nothing"
    assert places == len(row.get("images", [])), "as many images as places"
    assert row["message_mask"] == [int(message["role"] == "assistant") for message in messages]


def _places(message: Row) -> int:
    if isinstance(message["content"], str):
        return 0
    found = 0
    for part in message["content"]:
        assert part["type"] in ("text", "image")
        assert (part["type"] == "text") == isinstance(part.get("text"), str)
        found += part["type"] == "image"
    assert not found or message["role"] != "tool", "TRL fills no image places of tool messages"
    return found


def _integers(values: Any) -> None:
    assert isinstance(values, list)
    assert values, "no tokens"
    assert all(type(value) is int and value >= 0 for value in values)


def _mask(values: Any, length: int) -> None:
    assert len(values) == length, "mask of another length"
    assert set(values) <= {0, 1}
    assert any(values), "nothing to train on"


def _logprobs(values: Any, mask: list[int]) -> None:
    if values is None:
        return
    assert len(values) == len(mask), "logprobs of another length"
    assert all(isinstance(value, float) and math.isfinite(value) and value <= 0 for value in values)
    assert all(value == 0 for value, ours in zip(values, mask, strict=True) if not ours)


def prime_rl(row: Row) -> None:
    """TrainingSample."""
    _integers(row["token_ids"])
    length = len(row["token_ids"])
    assert all(type(value) is bool for value in row["mask"])
    _mask(row["mask"], length)
    assert row["logprobs"] is not None
    _logprobs(row["logprobs"], row["mask"])
    assert len(row["temperatures"]) == length
    assert isinstance(row["env_name"], str)
    assert row["advantages"] is None or len(row["advantages"]) == length
    known = {"token_ids", "mask", "logprobs", "temperatures", "env_name", "advantages"}
    assert set(row) == known | {"info"}


def verl(row: Row) -> None:
    """AgentLoopOutput: these fields without a default, and of these types."""
    _integers(row["prompt_ids"])
    _integers(row["response_ids"])
    _mask(row["response_mask"], len(row["response_ids"]))
    _logprobs(row["response_logprobs"], row["response_mask"])
    assert isinstance(row["reward_score"], float)
    assert type(row["num_turns"]) is int
    assert isinstance(row["metrics"], dict)
    assert isinstance(row["extra_fields"]["uid"], str)
    known = {"prompt_ids", "response_ids", "response_mask", "response_logprobs", "reward_score", "num_turns"}
    assert set(row) == known | {"metrics", "extra_fields"}


def skyrl(row: Row) -> None:
    """One place of every list of GeneratorOutput."""
    _integers(row["prompt_token_ids"])
    _integers(row["response_ids"])
    _mask(row["loss_masks"], len(row["response_ids"]))
    _logprobs(row["rollout_logprobs"], row["loss_masks"])
    assert isinstance(row["rewards"], float)
    assert isinstance(row["stop_reasons"], str)
    assert type(row["is_last_step"]) is bool
    assert set(row["trajectory_ids"]) == {"instance_id", "repetition_id"}
    assert type(row["trajectory_ids"]["repetition_id"]) is int


def trl(row: Row) -> None:
    """One sample of what a rollout_func returns: three keys it must have, env_mask it may."""
    _integers(row["prompt_ids"])
    _integers(row["completion_ids"])
    _mask(row["env_mask"], len(row["completion_ids"]))
    assert row["logprobs"] is not None
    _logprobs(row["logprobs"], row["env_mask"])
    assert isinstance(row["reward"], float)


SHAPES = {"prime-rl": prime_rl, "verl": verl, "skyrl": skyrl, "trl": trl}
