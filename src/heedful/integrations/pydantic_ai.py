"""Pydantic AI: a capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.run import AgentRunResult

from heedful.integrations.turns import AnyMemory, Memories, Turns
from heedful.model import DEFAULT_DATASET, Metadata


@dataclass
class HeedfulCapability(AbstractCapability[Any]):
    """Recalls before a run's first request to the model, and stores the answer.

    The conversation is the session, and the id of the run is the answer's external id:
    `memory.sessions.rate(result.run_id, "up")` rates it.
    """

    memory: AnyMemory
    dataset: str = DEFAULT_DATASET
    top_k: int = 5
    where: Metadata | None = None
    _turns: Turns = field(init=False, repr=False)
    _memories: Memories | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._turns = Turns(self.memory, dataset=self.dataset, top_k=self.top_k, where=self.where)

    async def for_run(self, ctx: RunContext[Any]) -> HeedfulCapability:
        """A capability of the run's own, so that runs at the same time don't mix."""
        own = replace(self)
        own._turns = self._turns
        return own

    def get_instructions(self) -> Callable[[RunContext[Any]], Awaitable[str]]:
        async def memories(ctx: RunContext[Any]) -> str:
            if self._memories is None:
                self._memories = await self._turns.arecall(_question(ctx))
            return self._memories.prompt

        return memories

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        memories = self._memories or Memories(_question(ctx))
        await self._turns.astore(str(ctx.conversation_id), memories, str(result.output), ctx.run_id)
        return result


def _question(ctx: RunContext[Any]) -> str:
    if isinstance(ctx.prompt, str):
        return ctx.prompt
    return " ".join(part for part in ctx.prompt or () if isinstance(part, str))
