"""A model of Strands' that says what it is told to, and remembers what it was given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from loop import ANSWER
from strands.models.model import Model


class Scripted(Model):
    """Says the same always, after a call of a tool if there is one."""

    def __init__(self, tool: str | None = None, arguments: str = "{}", *, answer: str = ANSWER, fails: int = 0) -> None:
        self._arguments = arguments
        self._said = answer
        self._fails = fails
        self.seen: list[str] = []
        self.conversations: list[list[Any]] = []
        self._tool = tool

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.conversations.append(messages)
        self.seen.append("\n".join(block["text"] for block in messages[-1]["content"] if "text" in block))
        if self._fails:
            self._fails -= 1
            raise RuntimeError("the model is down")
        yield {"messageStart": {"role": "assistant"}}
        if self._tool and not any("toolResult" in block for block in messages[-1]["content"]):
            yield {"contentBlockStart": {"start": {"toolUse": {"name": self._tool, "toolUseId": "1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": self._arguments}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        yield {"contentBlockStart": {"start": {}}}
        for part in self._said.partition(" at "):
            yield {"contentBlockDelta": {"delta": {"text": part}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}
