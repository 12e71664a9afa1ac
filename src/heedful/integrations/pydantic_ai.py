"""Pydantic AI: a capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Unpack

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import FunctionToolset

from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import AnyMemory, BlockingMemory, Memories, Options, Turns


class HeedfulCapability(AbstractCapability[Any]):
    """Recalls before a run's first request to the model, and stores the answer. Functions in the options take the
    `deps` of the run.

    The conversation is the session, and the id of the run is the answer's external id:
    `memory.sessions.rate(result.run_id, "up")` rates it. A run that waits for approval has no answer yet: that of the
    run that goes on is stored, under the question of the first.
    """

    def __init__(self, memory: AnyMemory, **options: Unpack[Options]) -> None:
        super().__init__()
        self._turns = Turns(memory, **options)
        self._memories: Memories | None = None

    async def for_run(self, ctx: RunContext[Any]) -> HeedfulCapability:
        """A capability of the run's own, so that runs at the same time don't mix."""
        own = copy(self)
        own._memories = None
        return own

    def get_instructions(self) -> Callable[[RunContext[Any]], Awaitable[str]]:
        async def memories(ctx: RunContext[Any]) -> str:
            if self._memories is None:
                self._memories = await self._turns.arecall(_question(ctx), ctx.deps)
            return self._memories.prompt

        return memories

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        if not isinstance(result.output, DeferredToolRequests):
            memories = self._memories or Memories(_question(ctx))
            self._turns.store(str(ctx.conversation_id), memories, result.output, ctx.run_id, ctx.deps)
        return result


def _question(ctx: RunContext[Any]) -> str:
    """The words of the user, or their last ones if a run goes on without another word."""
    prompt: Any = ctx.prompt
    if prompt is None:
        requests = [message for message in ctx.messages if isinstance(message, ModelRequest)]
        said = [part.content for request in requests for part in request.parts if isinstance(part, UserPromptPart)]
        prompt = said[-1] if said else ""
    return prompt if isinstance(prompt, str) else " ".join(part for part in prompt if isinstance(part, str))


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> FunctionToolset[Any]:
    """The tools `recall`, `remember` and `correct`: `Agent(…, toolsets=[heedful_tools(memory)])`. Functions in the
    options take the `deps` of the run."""
    return FunctionToolset(MemoryTools(memory, **options).functions(lambda run: run.deps, "ctx", RunContext[Any]))
