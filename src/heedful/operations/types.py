"""Where the wire is narrower than Python: JSON has no paths, hits or iterators, and limits are told in the schema."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from heedful.executions import checks as executions
from heedful.memory import checks
from heedful.model import Document, Metadata, Model, Signal, Target
from heedful.sessions import checks as sessions

TEXT = r"^[^\u0000]*$"
"""Any text that every store can hold."""

WORDS = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"
"""The same, and not blank."""


class Mapped(Model):
    """What is a mapping in Python, with the fields it may have."""

    def mapping(self) -> Metadata:
        """What was given."""
        return self.model_dump(exclude_unset=True)


class NewMessage(Mapped):
    """A message that is to be added."""

    role: str
    content: str
    at: datetime | None = None


class NewExample(Mapped):
    """A question, and the SQL that answers it."""

    question: str
    sql_query: str


NARROWED: dict[tuple[str, str], Any] = {
    ("remember", "texts"): str | Document | list[str | Document],
    ("signal", "signals"): list[Signal],
    ("signal_recall", "used"): list[str],
    ("signal_recall", "helpful"): list[str],
    ("signal_recall", "not_helpful"): list[str],
    ("sessions.add_messages", "messages"): list[NewMessage],
    ("sessions.add_session_feedback", "feedback"): dict[str, Any],
    ("sessions.add_entry", "used"): list[str] | dict[str, float] | None,
    ("sessions.delete_metadata", "keys"): list[str],
    ("golden_examples.import_examples", "examples"): list[NewExample],
    ("keys.create_token", "targets"): list[Target],
}
"""By operation and parameter."""

_LIMITS: dict[str, dict[str, Any]] = {
    "query": {"minLength": 1, "maxLength": checks.MAX_QUERY, "pattern": WORDS},
    "user_query": {"minLength": 1, "maxLength": checks.MAX_QUERY, "pattern": WORDS},
    "dataset": {"minLength": 1, "maxLength": checks.MAX_NAME, "pattern": WORDS},
    "top_k": {"minimum": 1, "maximum": checks.MAX_TOP_K},
    "usefulness_weight": {"minimum": 0, "maximum": 1},
    "feedback_influence": {"minimum": 0, "maximum": 1},
    "min_usefulness": {"minimum": 0, "maximum": 1},
    "exploration": {"minimum": 0, "maximum": 1},
    "confidence": {"minimum": 0, "maximum": 1},
    "limit": {"minimum": 1, "maximum": sessions.MAX_PAGE},
    "skip": {"minimum": 0, "maximum": executions.MAX_SKIP},
    "feedback_score": {"minimum": 1, "maximum": 5},
}
"""Limits that the engine keeps, told to those who read the schema; by the name of the parameter."""


def named(name: str, kind: Any) -> Any:
    """The type of a parameter, with the limits of its name."""
    return Annotated[kind, Field(json_schema_extra=_LIMITS[name])] if name in _LIMITS else kind
