"""What an import of another system's file is made of, whatever system it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from heedful.model import Document, Metadata, SignalType


@dataclass(frozen=True, slots=True)
class Texts:
    """Facts of one source; imported again, they replace what it said."""

    document: Document
    dataset: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody said of the facts of a source."""

    source: str
    signal_type: SignalType
    key: str
    """The same each time the file is read."""
    query: str | None = None
    """The question it was said about; without one, it is about the fact itself."""
    confidence: float = 1.0
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A question and its answer, in a session."""

    external_id: str
    session_id: str
    question: str
    answer: str
    context: str | None = None
    about: Metadata = field(default_factory=dict)
    """Metadata of the session."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What somebody said of an answer."""

    external_id: str
    rating: Any
    comment: str | None = None
    author: str | None = None
    scale: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """What has no place here, by what it is."""

    what: str


Record = Texts | Opinion | Answer | Rating | Skipped
