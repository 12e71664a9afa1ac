"""What is right at the help desk, and when it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from heedful.model import Hit
from heedful.simulate.shop import OUTDATED_REFUND, OUTDATED_SHIPPING, Want

Quality = Literal["good", "mixed", "bad"]


class Truth:
    """Which facts are right by now. Two become outdated, until somebody corrects them."""

    def __init__(
        self,
        facts: dict[str, str],
        now: Callable[[], datetime],
        *,
        refunds_change: datetime,
        shipping_changes: datetime,
    ) -> None:
        """`facts` has the fact behind each key."""
        self.facts = facts
        self._now = now
        self._changes = {OUTDATED_REFUND: refunds_change, OUTDATED_SHIPPING: shipping_changes}
        self._successors: dict[str, str] = {}

    def corrected(self, key: str, fact_id: str) -> None:
        """From now on, another fact says it."""
        self._successors[key] = fact_id

    def is_corrected(self, key: str) -> bool:
        """Whether another fact says it already."""
        return key in self._successors

    def current(self, key: str) -> str:
        """The fact that says it now."""
        return self._successors.get(key, self.facts[key])

    def is_outdated(self, key: str) -> bool:
        """Whether a fact was right, and is no longer."""
        return key in self._changes and self._now() >= self._changes[key]

    def outdated_for(self, key: str) -> timedelta | None:
        """How long a fact has been outdated without a correction."""
        is_wrong = self.is_outdated(key) and not self.is_corrected(key)
        return self._now() - self._changes[key] if is_wrong else None

    def answers(self, want: Want) -> set[str]:
        """The facts that are right."""
        right = {self.facts[key] for key in want.answers if not self.is_outdated(key)}
        return right | {self._successors[key] for key in want.answers if key in self._successors}

    def right(self, want: Want, hits: Sequence[Hit]) -> set[str]:
        """The hits that are right: also what was learnt from right facts."""
        answers = self.answers(want)
        return {hit.fact_id for hit in hits if answers & {hit.fact_id, *hit.metadata.get("made_from", ())}}

    def quality(self, right: set[str], used: Sequence[str]) -> Quality:
        """How good an answer is that was made from these facts, the first one first."""
        if used and used[0] in right:
            return "good"
        return "mixed" if right.intersection(used) else "bad"
