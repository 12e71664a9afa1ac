"""The OpenAI Agents SDK: hooks for one run, which also filter what the model is given."""

from __future__ import annotations

from typing import Any

from agents import Agent, RunConfig, RunHooks
from agents.run_config import CallModelData, ModelInputData
from agents.tracing import get_current_trace

from heedful.integrations.turns import AnyMemory, Memories, Turns
from heedful.model import DEFAULT_DATASET, Metadata

NO_TRACE = "no-op"
"""The id of a trace where tracing is off."""


class HeedfulRun(RunHooks[Any]):
    """Recalls before the first call of the model in one run, and stores the answer. Make one for each run.

    `Runner.run(agent, question, hooks=run, run_config=run.config())` gives it both places it needs. The answer's
    external id is `external_id`, or else that of the trace: `memory.sessions.rate(trace_id, "up")` rates it.
    """

    def __init__(
        self,
        memory: AnyMemory,
        session_id: str,
        *,
        external_id: str | None = None,
        dataset: str = DEFAULT_DATASET,
        top_k: int = 5,
        where: Metadata | None = None,
    ) -> None:
        self._turns = Turns(memory, dataset=dataset, top_k=top_k, where=where)
        self._session_id = session_id
        self._memories: Memories | None = None
        self.external_id = external_id
        self.qa_id: str | None = None
        """The entry of the answer, for feedback; None before it is there, or if it could not be stored."""

    def config(self, **options: Any) -> RunConfig:
        """The configuration of a run whose model is shown the memories; `options` are those of `RunConfig`."""
        return RunConfig(call_model_input_filter=self._show, **options)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        if self._memories is None:
            return
        trace = get_current_trace()
        if self.external_id is None and trace is not None and trace.trace_id != NO_TRACE:
            self.external_id = trace.trace_id
        self.qa_id = await self._turns.astore(self._session_id, self._memories, str(output), self.external_id)

    async def _show(self, data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        if self._memories is None:
            self._memories = await self._turns.arecall(_question(given.input))
        if not self._memories.prompt:
            return given
        parts = [given.instructions, self._memories.prompt]
        return ModelInputData(input=given.input, instructions="\n\n".join(part for part in parts if part))


def _question(items: list[Any]) -> str:
    """The last text of the user."""
    content = next((item["content"] for item in reversed(items) if item.get("role") == "user"), "")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if "text" in part)
