"""What a writer does, step by step: told by its name and a number alone, so that others know what must be there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

Kind = Literal["remember", "signal", "call", "feedback", "retract"]
KINDS: tuple[Kind, ...] = ("remember", "signal", "call", "feedback", "retract")

CONFIDENCE = 0.001
"""So little that thousands of signals don't bring a score to its bounds, where one more or less would not show."""


@dataclass(frozen=True, slots=True, order=True)
class Deed:
    """One step of one writer."""

    writer: str
    number: int

    @property
    def kind(self) -> Kind:
        return KINDS[self.number % len(KINDS)]

    @property
    def text(self) -> str:
        """The fact that is remembered; its last word is in no other."""
        return f"{self.writer} wrote the line {self.writer}x{self.number}"

    @property
    def key(self) -> str:
        return f"{self.writer}/{self.number}"

    @property
    def retracted(self) -> Deed:
        """The signal that is taken back."""
        return Deed(self.writer, self.number - KINDS.index("retract") + KINDS.index("signal"))

    @property
    def in_ledger(self) -> str | None:
        """The idempotency key of its event, where that is known beforehand."""
        names = {"signal": f"signal/{self.key}", "feedback": f"feedback/{self.key}"}
        return names.get(self.kind)

    def do(self, store: Any, fact: str) -> str:
        """Does it, or makes sure that it is done; the id of what it made."""
        return cast(str, getattr(self, f"_{self.kind}")(store, fact))

    def _remember(self, store: Any, fact: str) -> str:
        return str(store.remember(self.text).fact_ids[0])

    def _signal(self, store: Any, fact: str) -> str:
        said = {"fact_id": fact, "signal_type": "used", "query": self._query, "idempotency_key": self.key}
        return str(store.signal([{**said, "confidence": CONFIDENCE}]).event_ids[0])

    def _call(self, store: Any, fact: str) -> str:
        said = {"fact_id": fact, "signal_type": "helpful", "query": self._query, "confidence": CONFIDENCE}
        return str(store.signal([said], idempotency_key=f"call/{self.key}").event_ids[0])

    def _feedback(self, store: Any, fact: str) -> str:
        kept = store.sessions.add_session_feedback(
            self.writer, {"rating": "up", "comment": self.key}, idempotency_key=self.key
        )
        return str(kept.feedback_id)

    def _retract(self, store: Any, fact: str) -> str:
        # What is said again with its key has the id that it had: nobody need keep it.
        return str(store.retract(self.retracted._signal(store, fact)).event_id)

    @property
    def _query(self) -> str:
        return f"question {self.number // len(KINDS) % 5}"
