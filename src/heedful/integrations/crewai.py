"""CrewAI: a block in which the tasks of crews are given memories, and their outputs are stored."""

from __future__ import annotations

from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, Self, Unpack
from uuid import UUID

from crewai import Crew
from crewai.hooks import InterceptionPoint
from crewai.hooks.contexts import ExecutionEndContext, InputContext, StepContext
from crewai.hooks.dispatch import HookFn, get_scoped_hooks, scoped_hooks
from crewai.tasks.task_output import TaskOutput
from crewai.tools import BaseTool, tool

from heedful.integrations.tools import MemoryTools, ToolOptions
from heedful.integrations.turns import BlockingMemory, Memories, Options, Turns

_KICKOFFS: ContextVar[tuple[tuple[Crew, dict[str, Any]], ...]] = ContextVar("kickoffs", default=())
"""The crews that are running here, each started by a task of the one before, and their inputs."""


class HeedfulRun:
    """Recalls for the tasks of crews, and stores their outputs at the end of the block. Functions in the options take
    the `inputs` of the crew.

    `with HeedfulRun(memory, session_id="chat-1") as run: crew.kickoff(…)` is one run; the session is `crewai` if none
    is given. The output of the last task is that of the crew: `memory.sessions.rate(run.qa_id, "up")` rates it. Nothing
    is stored if the block fails.
    """

    def __init__(self, memory: BlockingMemory, **options: Unpack[Options]) -> None:
        self._turns = Turns(memory, **options).require_sync()
        steps: Options = {**options, "external_id": None}
        self._steps = Turns(memory, **steps)
        self._recalled: dict[UUID, Memories] = {}
        self._answers: list[tuple[Memories, Any, dict[str, Any]]] = []
        self._scope = ExitStack()
        self.qa_ids: list[str] = []
        """The ids of the tasks' outputs for feedback, the last one's last. Empty until the end of the block."""

    @property
    def qa_id(self) -> str | None:
        """The id of the last output; None if there is nothing to store."""
        return self.qa_ids[-1] if self.qa_ids else None

    def __enter__(self) -> Self:
        # A scope replaces the one around it, whose hooks may be somebody else's.
        hooks: dict[InterceptionPoint, list[HookFn]] = {
            point: [hook for hook in get_scoped_hooks(point) if not _is_ours(hook)] for point in InterceptionPoint
        }
        hooks[InterceptionPoint.INPUT].append(self._begin)
        hooks[InterceptionPoint.PRE_STEP].append(self._show)
        hooks[InterceptionPoint.POST_STEP].append(self._keep)
        hooks[InterceptionPoint.EXECUTION_END].append(self._end)
        self._scope.enter_context(scoped_hooks(hooks))
        return self

    def __exit__(self, error_type: Any, error: Any, traceback: Any) -> None:
        self._scope.close()
        answers, self._answers = self._answers, []
        self._recalled.clear()
        if error is not None:
            return
        for left, (memories, answer, inputs) in zip(range(len(answers))[::-1], answers, strict=True):
            turns = self._steps if left else self._turns
            qa_id = turns.store("crewai", memories, answer, context=inputs)
            if qa_id is not None:
                self.qa_ids.append(qa_id)

    def _begin(self, context: InputContext) -> None:
        if context.crew is not None:
            _KICKOFFS.set((*_KICKOFFS.get(), (context.crew, context.inputs)))

    def _end(self, context: ExecutionEndContext) -> None:
        kickoffs = _KICKOFFS.get()
        ended = next((at for at, (crew, _) in enumerate(kickoffs) if crew is context.crew), len(kickoffs))
        _KICKOFFS.set(kickoffs[:ended])

    def _show(self, context: StepContext) -> str | None:
        """The context of a task, with the memories."""
        if context.kind != "task":
            return None
        memories = self._turns.recall(context.task.description, _inputs())
        self._recalled[context.task.id] = memories
        return "\n\n".join(part for part in (context.payload, memories.prompt) if part) or None

    def _keep(self, context: StepContext) -> None:
        if context.kind == "task":
            memories = self._recalled.pop(context.task.id, None) or Memories(context.task.description)
            self._answers.append((memories, _answer(context.payload), _inputs()))


def _is_ours(hook: HookFn) -> bool:
    return isinstance(getattr(hook, "__self__", None), HeedfulRun)


def _inputs() -> dict[str, Any]:
    kickoffs = _KICKOFFS.get()
    return kickoffs[-1][1] if kickoffs else {}


def _answer(output: TaskOutput) -> Any:
    return output.pydantic or output.json_dict or output.raw


def heedful_tools(memory: BlockingMemory, **options: Unpack[ToolOptions]) -> list[BaseTool]:
    """The tools `recall`, `remember` and `correct`. Functions in the options take the `inputs` of the crew within the
    block of a `HeedfulRun`, and an empty mapping elsewhere."""
    functions = MemoryTools(memory, **options).functions(lambda _: _inputs(), awaited=False)
    tools: list[BaseTool] = [tool(each) for each in functions]
    for each in tools:
        # The cache is that of the crew, and the next inputs may be another user's.
        each.cache_function = lambda *_: False
    return tools
