"""The OpenAI Agents SDK: hooks for runs, which also filter what the model is given."""

from __future__ import annotations

import inspect
from typing import Any, Unpack

from agents import Agent, RunConfig, RunContextWrapper, RunHooks, Tool, function_tool
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData
from agents.tracing import get_current_trace

from heedful.errors import Invalid
from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import AnyMemory, BlockingMemory, Memories, RunOptions, Runs, Scoped, Turns

NO_TRACE = "no-op"
"""The id of a trace where tracing is off."""

SECONDS = 600
"""How long one is followed that doesn't end."""


class HeedfulRun(RunHooks[Any]):
    """Recalls before the first call of the model in a run, and stores the answer. Functions in the options take the
    `context` of the run; with one for `session_id`, it serves all runs.

    `Runner.run(agent, question, hooks=run, run_config=run.config())` gives it both places it needs. The answer's
    external id is `external_id`, or else that of the SDK's trace: `memory.sessions.rate(trace_id, "up")` rates it.
    """

    def __init__(self, memory: AnyMemory, session_id: Scoped[str], **options: Unpack[RunOptions]) -> None:
        self._turns = Turns(memory, session_id=session_id, **options)
        # By the context of the run, which is kept with it, as an id means nothing without; and by the question.
        self._recalled = Runs(SECONDS)
        self._has_hooks = False
        self.qa_id: str | None = None
        """The id of the last answer, for feedback; None before there is one."""

    def config(self, *, call_model_input_filter: CallModelInputFilter | None = None, **options: Any) -> RunConfig:
        """The configuration of a run whose model is shown the memories; `options` are those of `RunConfig`. A filter of
        yours comes first."""

        async def show(data: CallModelData[Any]) -> ModelInputData:
            given = data.model_data if call_model_input_filter is None else call_model_input_filter(data)
            return await self._show(await given if inspect.isawaitable(given) else given, data.context)

        return RunConfig(call_model_input_filter=show, **options)

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:
        self._has_hooks = True

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        question = _question(context.turn_input)
        _, memories = self._recalled.pop((id(context.context), question), (None, None))
        if memories is None and question:
            self._complain("recall", "run_config=run.config()")
        trace = get_current_trace()
        trace_id = None if trace is None or trace.trace_id == NO_TRACE else trace.trace_id
        memories = memories or Memories(question)
        self.qa_id = self._turns.store("openai-agents", memories, output, trace_id, context.context)

    async def _show(self, given: ModelInputData, context: Any) -> ModelInputData:
        if not self._has_hooks:
            self._complain("store the answer", "hooks=run")
        question = _question(given.input)
        _, memories = self._recalled.get((id(context), question), (None, None))
        if memories is None:
            memories = await self._turns.arecall(question, context)
            self._recalled.put((id(context), question), (context, memories))
        if not memories.prompt:
            return given
        parts = [given.instructions, memories.prompt]
        return ModelInputData(input=given.input, instructions="\n\n".join(part for part in parts if part))

    def _complain(self, doing: str, missing: str) -> None:
        with self._turns.guarded(doing):
            raise Invalid(f"the run is without {missing}", remedy=f"Pass {missing} to Runner.run")


def _question(items: list[Any]) -> str:
    """The last text of the user."""
    content = next((item["content"] for item in reversed(items) if item.get("role") == "user"), "")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if "text" in part)


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[Tool]:
    """The tools `recall`, `remember` and `correct`. Functions in the options take the `context` of the run."""
    tools = MemoryTools(memory, **options)
    functions = tools.functions(lambda wrapper: wrapper.context, "wrapper", RunContextWrapper[Any])
    return [function_tool(each) for each in functions]
