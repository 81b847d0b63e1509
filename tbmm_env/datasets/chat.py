"""Episodes as chats: system, user, and then a call of one tool and its result for every action.

The statement's figures stand before its text. What an action made visible follows the tool's message in a user message
of its own: OpenAI's tool messages take no images, and TRL fills image places of every role but ``tool``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from tbmm_env.datasets.output import ImageMode, Pictures, dump
from tbmm_env.datasets.plain import Plain
from tbmm_env.record import Episode, Language, Step

ArgumentMode = Literal["object", "string"]
Message = dict[str, Any]

TOOL_NAME: Final = "bash"
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": TOOL_NAME,
            "description": "Type text into the persistent bash of the sandbox and see what the terminal shows.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "what is typed"}},
                "required": ["command"],
            },
        },
    }
]
"""The one tool, the same in every row of every file."""

SYSTEM: Final[dict[Language, str]] = {
    "en": "You solve mathematical modelling problems. You work in a Linux sandbox through the tool `bash`, leave your"
    " answer in /workspace/answer.json and end with the command `submit`.",
    "zh": "你负责求解数学建模问题。你通过工具 `bash` 在 Linux 沙箱中工作,把答案写入 /workspace/answer.json,"
    "最后用命令 `submit` 提交。",
}
_SEEN: Final[dict[Language, str]] = {"en": "Figures of the last action.", "zh": "上一个动作显示的图片。"}

_TOOL_CALL = re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)

REPEATED: Final = "turns whose text still holds the action beside the tool call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat and the images of its places ``{"type": "image"}``, in order."""

    messages: list[Message]
    images: list[str]


class ChatWriter:
    """Makes chats of episodes.

    Content is text with images ``none``, else a list of parts in every message, so that a column has one type.

    Args:
        plain: makes texts valid.
        pictures: keeps figures.
        arguments: of a tool call: a JSON ``object``, as chat templates take it, or its ``string``, as OpenAI has it.
        notes: what is counted on the way.
    """

    def __init__(self, plain: Plain, pictures: Pictures, arguments: ArgumentMode, notes: Counter[str]) -> None:
        """Make nothing yet."""
        self._plain = plain
        self._pictures = pictures
        self._arguments = arguments
        self._notes = notes

    @property
    def images(self) -> ImageMode:
        """What becomes of figures."""
        return self._pictures.mode

    def prompt(self, episode: Episode) -> Chat:
        """Return system and user message of an episode."""
        images = self._pictures.add(episode.first_observation.figures)
        messages = [
            {"role": "system", "content": self._content(SYSTEM[episode.language])},
            {"role": "user", "content": self._content(episode.first_observation.terminal, len(images))},
        ]
        return Chat(messages=messages, images=images)

    def answer(self, episode: Episode) -> Chat:
        """Return what follows the prompt, up to the last message of the assistant; the rest trains nothing."""
        messages: list[Message] = []
        images: list[str] = []
        for number, step in enumerate(episode.steps):
            last = number == len(episode.steps) - 1
            for message, shown in self._exchange(number, step, episode.language, last):
                messages.append(message)
                images += shown
        return Chat(messages=messages, images=images)

    def _exchange(self, number: int, step: Step, language: Language, last: bool) -> Iterator[tuple[Message, list[str]]]:
        call = call_id(number)
        arguments: Any = {"command": self._plain.text(step.action)}
        function = {"name": TOOL_NAME, "arguments": arguments if self._arguments == "object" else dump(arguments)}
        yield (
            {
                "role": "assistant",
                "content": self._content(self._reasoning(step)),
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            },
            [],
        )
        if last:
            return
        content = self._content(step.observation.terminal)
        yield {"role": "tool", "tool_call_id": call, "name": TOOL_NAME, "content": content}, []
        if shown := self._pictures.add(step.observation.figures):
            yield {"role": "user", "content": self._content(_SEEN[language], len(shown))}, shown

    def _reasoning(self, step: Step) -> str:
        """Return what a model wrote beside the action."""
        text = reasoning(step)
        if text and step.action.strip() and step.action.strip() in text:
            self._notes[REPEATED] += 1
        return text

    def _content(self, text: str, images: int = 0) -> str | list[dict[str, str]]:
        plain = self._plain.text(text)
        if self.images == "none":
            return plain
        return [*({"type": "image"} for _ in range(images)), {"type": "text", "text": plain}]


def call_id(number: int) -> str:
    """Return the id of the tool call of an episode's action, counted from 0."""
    return f"call{number:05d}"


def reasoning(step: Step) -> str:
    """Return the completion of a turn without the action in it.

    Taken out are ``<tool_call>`` blocks, code fences that hold the action and nothing else, and a completion that is
    the action itself; anything else stays as the model wrote it.
    """
    if step.turn is None:
        return ""
    action = step.action.strip()
    text = _TOOL_CALL.sub("", step.turn.completion)
    text = _FENCE.sub(lambda found: "" if found[1].strip() == action else found[0], text).strip()
    return "" if text == action else text


def mask(messages: list[Message]) -> list[int]:
    """Return for each message whether it is trained on: 1 for the assistant's, else 0."""
    return [int(message["role"] == "assistant") for message in messages]
