"""Scores of observability systems, in and out: Langfuse scores, LangSmith feedback, Phoenix annotations.

They need no extra: only what their servers speak is used. OpenTelemetry's events are in
`heedful.integrations.opentelemetry`.
"""

from heedful.integrations.scores.awaited import aexport_scores, aimport_scores
from heedful.integrations.scores.langfuse import Langfuse
from heedful.integrations.scores.langsmith import LangSmith
from heedful.integrations.scores.phoenix import Phoenix
from heedful.integrations.scores.sync import ScoresExported, ScoresImported, export_scores, import_scores

__all__ = [
    "LangSmith",
    "Langfuse",
    "Phoenix",
    "ScoresExported",
    "ScoresImported",
    "aexport_scores",
    "aimport_scores",
    "export_scores",
    "import_scores",
]
