"""OpenTelemetry: results of evaluations (`gen_ai.evaluation.result` events) as ratings of answers, and spans of what a
memory is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast

import orjson
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider, get_tracer

from heedful.api import checks
from heedful.errors import HeedfulError, Invalid
from heedful.integrations.turns import AnyMemory, BlockingMemory, Guard, logger
from heedful.ledger.votes import normalise_rating
from heedful.model import DEFAULT_DATASET, VISITOR, ForgetResult, Recall, RememberResult, Supersession
from heedful.version import __version__

EVENT = "gen_ai.evaluation.result"
LABELS: Mapping[str, bool] = {
    "pass": True,
    "fail": False,
    "correct": True,
    "incorrect": False,
    "relevant": True,
    "not_relevant": False,
}
"""The meaning of labels of the semantic conventions."""


class HeedfulEvaluationExporter(LogRecordExporter):
    """Rates answers by the events of evaluators: `BatchLogRecordProcessor(HeedfulEvaluationExporter(memory))`.

    The external id of an answer is the id of the event's trace, of its span, or `gen_ai.response.id`, as hexadecimal
    digits where it is a number; `answer_id` says which. An evaluator is a visitor, `visitor-otel/<name of the
    evaluation>`, whose ratings are counted and change nothing, unless `author` names who vouches for all of them. Each
    author has one opinion of an answer, the latest. `labels` says what labels mean; a score without a label that is
    known is a number on the `scale` from worst to best. Other log records are left alone.
    """

    def __init__(
        self,
        memory: BlockingMemory,
        *,
        answer_id: Literal["trace", "span", "response"] = "trace",
        scale: Sequence[float] = (0, 1),
        labels: Mapping[str, Any] = LABELS,
        author: str | None = None,
    ) -> None:
        self._memory = memory
        self._answer_id = answer_id
        self._scale = scale
        self._labels = labels
        self._author = checks.author("author", author)
        self._guard = Guard()

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        with self._guard.guarded("rate by evaluations"):
            for record in batch:
                if record.log_record.event_name == EVENT:
                    self._rate(record)
            return LogRecordExportResult.SUCCESS
        return LogRecordExportResult.FAILURE

    def shutdown(self) -> None:
        """Nothing: the memory is its owner's to close."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True

    def _rate(self, record: ReadableLogRecord) -> None:
        attributes = record.log_record.attributes or {}
        name, external_id = attributes.get("gen_ai.evaluation.name"), self._external_id(record)
        label, value = (attributes.get(f"gen_ai.evaluation.score.{part}") for part in ("label", "value"))
        explanation = attributes.get("gen_ai.evaluation.explanation")
        rating: Any = self._labels.get(str(label), label) if value is None or str(label) in self._labels else value
        scale = self._scale if rating is value and value is not None else None
        if external_id is None or name is None or (rating is None and not explanation):
            return
        try:
            normalise_rating(rating, scale=scale)
        except Invalid as error:
            logger.warning("the evaluation %s of %s is left out: %s", name, external_id, error)
            return
        comment = None if explanation is None else str(explanation)
        author = self._author or f"{VISITOR}otel/{name}"
        self._memory.sessions.rate(external_id, rating, comment=comment, scale=scale, author=author)

    def _external_id(self, record: ReadableLogRecord) -> str | None:
        log = record.log_record
        if self._answer_id == "response":
            found = (log.attributes or {}).get("gen_ai.response.id")
            return None if found is None else str(found)
        if self._answer_id == "span":
            return f"{log.span_id:016x}" if log.span_id else None
        return f"{log.trace_id:032x}" if log.trace_id else None


Traced = TypeVar("Traced", bound=AnyMemory)

OPERATIONS: Mapping[str, str] = {
    "recall": "search_memory",
    "remember": "upsert_memory",
    "supersede": "update_memory",
    "forget": "delete_memory",
}
"""The names of the semantic conventions for the calls that get a span."""


def traced(memory: Traced, *, tracer_provider: TracerProvider | None = None, content: bool = False) -> Traced:
    """The same memory, whose `recall`, `remember`, `supersede` and `forget` each make a span, for any adapter.

    The span is named as the conventions name the operation, has the dataset as `gen_ai.memory.store.id`, how many facts
    it was about, and `heedful.recall_id`, by which the recall can be rated. Questions and facts are only in it if
    `content` is true.
    """
    return cast("Traced", _Traced(memory, tracer_provider, content))


class _Traced:
    """Passes everything on."""

    def __init__(self, memory: Any, tracer_provider: TracerProvider | None, content: bool) -> None:
        self._memory = memory
        self._tracer = get_tracer("heedful", __version__, tracer_provider)
        self._content = content

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        return self._with_span(name, found) if name in OPERATIONS else found

    def __enter__(self) -> Any:
        self._memory.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._memory.__exit__(*error)

    async def __aenter__(self) -> Any:
        await self._memory.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._memory.__aexit__(*error)

    def _with_span(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def traced_call(*args: Any, **kwargs: Any) -> Any:
            with self._span(name, args, kwargs) as span:
                result = call(*args, **kwargs)
                self._describe(span, result)
                return result

        async def traced_later(*args: Any, **kwargs: Any) -> Any:
            with self._span(name, args, kwargs) as span:
                result = await call(*args, **kwargs)
                self._describe(span, result)
                return result

        return traced_later if inspect.iscoroutinefunction(call) else traced_call

    @contextmanager
    def _span(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Span]:
        attributes = {"gen_ai.operation.name": OPERATIONS[name], "gen_ai.provider.name": "heedful"}
        dataset = kwargs.get("dataset", DEFAULT_DATASET if name in ("recall", "remember") else None)
        if dataset is not None:
            attributes["gen_ai.memory.store.id"] = str(dataset)
        if name == "recall" and self._content:
            attributes["gen_ai.memory.query.text"] = str(args[0] if args else kwargs.get("query"))
        with self._tracer.start_as_current_span(
            OPERATIONS[name],
            kind=SpanKind.CLIENT,
            attributes=attributes,
            # What an error says may hold what was asked.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_status(StatusCode.ERROR)
                kind = error.code if isinstance(error, HeedfulError) else type(error).__name__
                span.set_attribute("error.type", kind)
                raise

    def _describe(self, span: Span, result: Any) -> None:
        ids: list[str] = []
        if isinstance(result, Recall):
            ids = [hit.fact_id for hit in result.hits]
            span.set_attribute("heedful.recall_id", result.recall_id)
            if self._content:
                records = [{"content": hit.text, "id": hit.fact_id, "score": hit.score} for hit in result.hits]
                span.set_attribute("gen_ai.memory.records", orjson.dumps(records).decode())
        elif isinstance(result, RememberResult):
            ids = result.fact_ids
        elif isinstance(result, Supersession):
            ids = [result.fact_id]
        count = result.facts if isinstance(result, ForgetResult) else len(ids)
        span.set_attribute("gen_ai.memory.record.count", count)
        if len(ids) == 1:
            span.set_attribute("gen_ai.memory.record.id", ids[0])
