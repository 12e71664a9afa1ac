"""Tools for models that decide themselves what to recall and to remember, for all frameworks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict

from pydantic_core import to_json

from heedful.errors import HeedfulError, Invalid, NotFound, Unavailable
from heedful.integrations.turns import BlockingMemory, Scoped, Turns, fitting, in_context, scoped
from heedful.interfaces.mcp import agent_tools
from heedful.model import Metadata
from heedful.model.limits import MAX_QUERY
from heedful.providers.llm import NOTICE

ONLY = "only"
"""The condition that also passes what everybody may see."""


class ToolOptions(TypedDict, total=False):
    """The options of tools, besides the memory."""

    dataset: Scoped[str]
    top_k: int
    where: Scoped[Metadata | None]
    """Conditions on what may be recalled and corrected. What is remembered has their values as metadata, so each needs
    one: `{"user": "ada"}`, or `{"user": {"only": ["ada"]}}`."""
    author: Scoped[str | None]
    """Who corrects."""
    deadline: float


class MemoryTools(Turns):
    """`recall`, `remember` and `correct`, described as over MCP. Their results are words for a model, also when they
    fail."""

    def __init__(
        self, memory: BlockingMemory, *, author: Scoped[str | None] = None, where: Any = None, **options: Any
    ) -> None:
        super().__init__(memory, where=where, **options)
        self.require_sync()
        self._author = author

    def functions(
        self, context_of: Callable[[Any], Any], parameter: str | None = None, kind: Any = None, *, awaited: bool = True
    ) -> list[Callable[..., Any]]:
        """The tools as functions. Their first parameter is for the framework's own context, if it has a name;
        `context_of` makes of it what functions in the options take."""
        place = inspect.Parameter.POSITIONAL_OR_KEYWORD
        first = [inspect.Parameter(parameter, place, annotation=kind)] if parameter else []
        return [
            self._function(method, context_of, first, awaited)
            for method in (self._recall, self._remember, self._correct)
        ]

    def _function(
        self,
        method: Callable[..., str],
        context_of: Callable[[Any], Any],
        first: list[inspect.Parameter],
        awaited: bool,
    ) -> Callable[..., Any]:
        # Without what the method itself is given as context.
        _, *own = inspect.signature(method, eval_str=True).parameters.values()
        signature = inspect.Signature([*first, *own], return_annotation=str)

        def call(args: Any, kwargs: Any) -> partial[str]:
            if not self._connection.breaker.allows():
                raise HeedfulError("it failed a moment ago")
            given = signature.bind(*args, **kwargs).arguments
            return partial(method, context_of(given.pop(first[0].name) if first else None), **given)

        def run(*args: Any, **kwargs: Any) -> str:
            try:
                return self._within(self._seconds, call(args, kwargs))
            except HeedfulError as error:
                return self._failure(error)

        async def arun(*args: Any, **kwargs: Any) -> str:
            try:
                return await self._awithin(self._seconds, call(args, kwargs))
            except HeedfulError as error:
                return self._failure(error)

        made: Callable[..., Any] = arun if awaited else run
        made.__name__ = made.__qualname__ = method.__name__.lstrip("_")
        made.__doc__ = inspect.getdoc(getattr(agent_tools, made.__name__))
        made.__signature__ = signature  # type: ignore[attr-defined]
        made.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()} | {"return": str}
        return made

    def _failure(self, error: HeedfulError) -> str:
        if isinstance(error, Unavailable):
            self._connection.breaker.failed()
        return f"Not done: {error}"

    def _recall(self, context: Any, query: str) -> str:
        found = self._memory.recall(fitting(query, MAX_QUERY), **scoped(self._options, context))
        facts = [{"fact_id": hit.fact_id, "text": hit.text} for hit in found]
        return to_json({"notice": NOTICE, "recall_id": found.recall_id, "facts": facts}).decode()

    def _remember(self, context: Any, text: str) -> str:
        given = scoped(self._options, context)
        stored = self._memory.remember(text, dataset=given["dataset"], metadata=metadata_for(given["where"]))
        return f"Remembered as {', '.join(stored.fact_ids)}."

    def _correct(self, context: Any, fact_id: str, text: str) -> str:
        given = scoped(self._options, context)
        fact = self._memory.fact(fact_id)
        passes = (_passes(fact.metadata, name, condition) for name, condition in (given["where"] or {}).items())
        if fact.dataset != given["dataset"] or not all(passes):
            raise NotFound(f"there is no fact {fact_id!r}", field="fact_id", value=fact_id)
        corrected = self._memory.supersede(fact_id, text, author=in_context(self._author, context))
        return f"Corrected: {corrected.superseded_by} is recalled from now on."


def metadata_for(where: Metadata | None) -> Metadata:
    """The metadata of a fact that only these conditions pass."""
    return {name: _value(name, condition) for name, condition in (where or {}).items()}


def _value(name: str, condition: Any) -> Any:
    """The value of a fact that passes a condition and belongs to nobody else."""
    choices = condition.get(ONLY) if isinstance(condition, Mapping) and set(condition) == {ONLY} else condition
    value = choices[0] if isinstance(choices, list) and len(choices) == 1 else choices
    if "." in name or not isinstance(value, str | int | float | bool):
        raise Invalid(f"the condition on {name} has not one value, which a fact could have", field="where")
    return value


def _passes(metadata: Metadata, name: str, condition: Any) -> bool:
    value = _value(name, condition)
    return bool(metadata.get(name, value if isinstance(condition, Mapping) else None) == value)
