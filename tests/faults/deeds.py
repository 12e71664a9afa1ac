"""What a writer does, step by step: told by its name and a number alone, so that others know what must be there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

Kind = Literal["remember", "signal", "call", "feedback", "retract"]
KINDS: tuple[Kind, ...] = ("remember", "signal", "call", "feedback", "retract")

CONFIDENCE = 0.001
"""So little that thousands of signals don't bring a score to its bounds, where one more or less would not show."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that all writers of a project judge, as ids. Signals about the second are retracted, and its score is
    recomputed each time: a mistake in it would not last."""

    judged: str
    disputed: str


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
    def in_ledger(self) -> list[str]:
        """The idempotency keys of its events, where they are known beforehand."""
        names = {"signal": ["signal/{}"], "feedback": ["feedback/{}"], "retract": ["signal/{}/gone", "signal/{}/kept"]}
        return [name.format(self.key) for name in names.get(self.kind, [])]

    def do(self, store: Any, facts: Facts) -> str:
        """Does it, or makes sure that it is done; the id of what it made."""
        return cast(str, getattr(self, f"_{self.kind}")(store, facts))

    def _remember(self, store: Any, facts: Facts) -> str:
        return str(store.remember(self.text).fact_ids[0])

    def _signal(self, store: Any, facts: Facts) -> str:
        return str(store.signal([self._signal_body(facts.judged, "used", self.key)]).event_ids[0])

    def _call(self, store: Any, facts: Facts) -> str:
        said = self._signal_body(facts.judged, "helpful", None)
        return str(store.signal([said], idempotency_key=f"call/{self.key}").event_ids[0])

    def _feedback(self, store: Any, facts: Facts) -> str:
        feedback = store.sessions.add_session_feedback(
            self.writer, {"rating": "up", "comment": self.key}, idempotency_key=self.key
        )
        return str(feedback.feedback_id)

    def _retract(self, store: Any, facts: Facts) -> str:
        # What is said again with its key has the id that it had: nobody need keep it.
        opinions = [self._signal_body(facts.disputed, "used", f"{self.key}/{fate}") for fate in ("gone", "kept")]
        return str(store.retract(store.signal(opinions).event_ids[0]).event_id)

    def _signal_body(self, fact: str, kind: str, key: str | None) -> dict[str, Any]:
        feedback = {"fact_id": fact, "signal_type": kind, "query": self._query, "confidence": CONFIDENCE}
        return feedback if key is None else {**feedback, "idempotency_key": key}

    @property
    def _query(self) -> str:
        return f"question {self.number // len(KINDS) % 5}"
