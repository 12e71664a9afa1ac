"""OpenTelemetry: results of evaluations (`gen_ai.evaluation.result` events) as ratings of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from heedful.errors import Invalid
from heedful.integrations.turns import Guard, logger
from heedful.ranking.ratings import normalise_rating

if TYPE_CHECKING:
    from heedful.engine import Heedful
    from heedful.interfaces.client.surface import RemoteHeedful

EVENT = "gen_ai.evaluation.result"
LABELS: Mapping[str, bool] = {
    "pass": True,
    "fail": False,
    "correct": True,
    "incorrect": False,
    "relevant": True,
    "not_relevant": False,
}
"""What labels of the semantic conventions mean."""


class HeedfulEvaluationExporter(LogRecordExporter):
    """Rates answers by the events of evaluators: `BatchLogRecordProcessor(HeedfulEvaluationExporter(memory))`.

    The external id of an answer is the id of the event's trace, of its span, or `gen_ai.response.id`, as hexadecimal
    digits where it is a number; `answer_id` says which. The author is `otel/<name of the evaluation>`, so an evaluator
    has one opinion of an answer, the latest. `labels` says what labels mean; a score without a label that is known is a
    number on the `scale` from worst to best. Other log records are left alone.
    """

    def __init__(
        self,
        memory: Heedful | RemoteHeedful,
        *,
        answer_id: Literal["trace", "span", "response"] = "trace",
        scale: Sequence[float] = (0, 1),
        labels: Mapping[str, Any] = LABELS,
    ) -> None:
        self._memory = memory
        self._answer_id = answer_id
        self._scale = scale
        self._labels = labels
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
        label, value = (attributes.get(f"gen_ai.evaluation.score.{each}") for each in ("label", "value"))
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
        self._memory.sessions.rate(
            external_id,
            rating,
            comment=None if explanation is None else str(explanation),
            scale=scale,
            author=f"otel/{name}",
        )

    def _external_id(self, record: ReadableLogRecord) -> str | None:
        log = record.log_record
        if self._answer_id == "response":
            found = (log.attributes or {}).get("gen_ai.response.id")
            return None if found is None else str(found)
        if self._answer_id == "span":
            return f"{log.span_id:016x}" if log.span_id else None
        return f"{log.trace_id:032x}" if log.trace_id else None
