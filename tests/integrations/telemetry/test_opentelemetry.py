"""Events of OpenTelemetry that rate answers, through its own SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from loop import ANSWER, AT_SIX, QUESTION, SESSION, Broken, Memory, opened, run_examples
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, use_span

import heedful
from heedful import NotFound
from heedful.integrations.opentelemetry import HeedfulEvaluationExporter, traced
from heedful.testing import WordEmbedder

RESULT = "gen_ai.evaluation.result"


@pytest.fixture(params=["open", "connect"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with opened(request.param, tmp_path) as memory:
        yield memory


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Memory]:
    with opened("open", tmp_path) as memory:
        yield memory


class Agent:
    """Answers in a span, and has its answer evaluated there."""

    def __init__(self, memory: Any, **options: Any) -> None:
        self._memory = memory
        self._tracer = TracerProvider().get_tracer("agent")
        self._provider = LoggerProvider()
        self._provider.add_log_record_processor(SimpleLogRecordProcessor(HeedfulEvaluationExporter(memory, **options)))
        self._logger = self._provider.get_logger("evaluator")

    def answer(self, *evaluations: Mapping[str, Any], by: str = "trace", event: str = RESULT) -> str:
        with self._tracer.start_as_current_span("invoke_agent") as span:
            context = span.get_span_context()
            external_id = f"{context.trace_id:032x}" if by == "trace" else f"{context.span_id:016x}"
            if not isinstance(self._memory, Broken):
                self._memory.sessions.add_entry(SESSION, QUESTION, ANSWER, external_id=external_id)
            for each in evaluations:
                attributes = {f"gen_ai.evaluation.{name}": value for name, value in each.items()}
                self._logger.emit(LogRecord(event_name=event, attributes=attributes))
        return external_id


def rated(memory: Memory) -> list[tuple[int | None, str | None]]:
    return [(each.feedback_score, each.feedback_text) for each in memory.sessions.entries(SESSION).items]


def test_evaluations_rate_the_answer_of_their_trace(memory: Memory) -> None:
    agent = Agent(memory)
    agent.answer({"name": "Relevance", "score.value": 0.9, "explanation": "It says when."})
    agent.answer({"name": "Correctness", "score.label": "fail", "score.value": 3.0})
    agent.answer({"name": "Tone", "score.label": "negative"})
    agent.answer({"name": "Tone", "score.label": "so-so"})
    agent.answer({"name": "Tone", "score.value": 1.0}, event="gen_ai.other")
    # The same evaluator again: its latest counts.
    agent.answer({"name": "Tone", "score.value": 1.0}, {"name": "Tone", "score.value": 0.0})
    assert [score for score, _ in rated(memory)] == [5, 1, 2, None, None, 1]
    assert rated(memory)[0][1] == "It says when."


def test_answers_may_be_named_by_spans_and_responses(memory: Memory) -> None:
    Agent(memory, answer_id="span", scale=(1, 5)).answer({"name": "Stars", "score.value": 4}, by="span")
    assert rated(memory) == [(4, None)]
    memory.sessions.add_entry(SESSION, QUESTION, ANSWER, external_id="resp-1")
    exporter = HeedfulEvaluationExporter(memory, answer_id="response")
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    attributes = {
        "gen_ai.evaluation.name": "Tone",
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.response.id": "resp-1",
    }
    provider.get_logger("evaluator").emit(LogRecord(event_name=RESULT, attributes=attributes))
    assert rated(memory) == [(4, None), (5, None)]


def test_a_program_goes_on_when_heedful_fails(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(Broken())
    with caplog.at_level(logging.WARNING, "heedful.integrations"):
        for _ in range(2):
            agent.answer({"name": "Tone", "score.value": 1.0})
    assert len([record for record in caplog.records if "the server is down" in record.message]) == 1


def test_the_page_says_what_works(embedded: Memory) -> None:
    embedded.sessions.add_entry(SESSION, QUESTION, ANSWER, external_id="0" * 31 + "1")
    given: dict[str, Any] = {"memory": embedded}
    run_examples("scores", given, "OpenTelemetry")
    where = NonRecordingSpan(SpanContext(1, 1, is_remote=False))
    attributes = {"gen_ai.evaluation.name": "Tone", "gen_ai.evaluation.score.label": "pass"}
    with use_span(where):
        given["provider"].get_logger("evaluator").emit(LogRecord(event_name=RESULT, attributes=attributes))
    given["provider"].shutdown()
    assert rated(given["memory"]) == [(5, None)]


class Spans:
    """Where spans go."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def taken(self) -> tuple[ReadableSpan, ...]:
        spans = self._exporter.get_finished_spans()
        self._exporter.clear()
        return spans


def described(span: ReadableSpan) -> dict[str, Any]:
    return {name.removeprefix("gen_ai."): value for name, value in dict(span.attributes or {}).items()}


def test_what_a_memory_is_asked_makes_spans(memory: Memory) -> None:
    spans = Spans()
    seen = traced(memory, tracer_provider=spans.provider)
    with spans.provider.get_tracer("agent").start_as_current_span("invoke_agent") as agent:
        result = seen.recall(QUESTION)
        (fact,) = seen.remember("The pool is closed.", dataset="pool").fact_ids
        seen.supersede(fact, "The pool is open.")
        seen.forget(dataset="pool")
        assert seen.sessions.list().items == []
    *made, _ = spans.taken()
    assert [span.name for span in made] == ["search_memory", "upsert_memory", "update_memory", "delete_memory"]
    assert {span.kind for span in made} == {SpanKind.CLIENT}
    assert {span.parent.span_id for span in made if span.parent} == {agent.get_span_context().span_id}
    common = {"provider.name": "heedful"}
    assert [described(span) for span in made] == [
        {
            **common,
            "operation.name": "search_memory",
            "memory.store.id": "main_dataset",
            "memory.record.count": 2,
            "heedful.recall_id": result.recall_id,
        },
        {
            **common,
            "operation.name": "upsert_memory",
            "memory.store.id": "pool",
            "memory.record.count": 1,
            "memory.record.id": fact,
        },
        {**common, "operation.name": "update_memory", "memory.record.count": 1, "memory.record.id": fact},
        {**common, "operation.name": "delete_memory", "memory.store.id": "pool", "memory.record.count": 2},
    ]


def test_what_was_said_is_in_a_span_only_if_it_is_wanted(memory: Memory) -> None:
    spans = Spans()
    with pytest.raises(NotFound):
        traced(memory, tracer_provider=spans.provider).supersede("01a1e82b-7ddd-73f7-9fa3-86edbfae445f", "secret words")
    (failed,) = spans.taken()
    assert (failed.status.status_code, failed.events) == (StatusCode.ERROR, ())
    assert "secret" not in failed.to_json()
    assert described(failed)["error.type"] == "not_found"
    traced(memory, tracer_provider=spans.provider, content=True).recall(QUESTION, top_k=1)
    (span,) = spans.taken()
    assert described(span)["memory.query.text"] == QUESTION
    assert AT_SIX in described(span)["memory.records"]


def test_calls_that_are_awaited_make_spans_too(tmp_path: Path) -> None:
    spans = Spans()

    async def ask() -> None:
        plain = await heedful.aopen(tmp_path / "store.db", embedding=WordEmbedder(), worker=False)
        async with traced(plain, tracer_provider=spans.provider) as memory:
            await memory.remember(AT_SIX)
            assert [hit.text for hit in await memory.recall(QUESTION)] == [AT_SIX]

    asyncio.run(ask())
    assert [span.name for span in spans.taken()] == ["upsert_memory", "search_memory"]
