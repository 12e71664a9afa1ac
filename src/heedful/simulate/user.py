"""One person with habits, and what they want to know."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from heedful.engine import Heedful
from heedful.model import Recall, SignalResult

__all__ = ["Judgement", "Need", "SimulatedUser"]


@dataclass(frozen=True, slots=True)
class Need:
    """Something people want to know: the ways they ask for it, and the facts that answer it.

    With `later`, the world changes: from the question numbered `changes_at` on, other facts are the answer.
    """

    queries: Sequence[str]
    answers: Collection[str]
    later: Collection[str] = ()
    changes_at: int | None = None

    def answers_at(self, asked: int) -> Collection[str]:
        """The facts that answer the question numbered `asked`, from 0."""
        return self.later if self.changes_at is not None and asked >= self.changes_at else self.answers


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a user says of the facts one recall showed; the others go unmentioned."""

    used: list[str] = field(default_factory=list)
    helpful: list[str] = field(default_factory=list)
    not_helpful: list[str] = field(default_factory=list)


class SimulatedUser:
    """One person with habits.

    `examination` is how quickly attention fades: the chance to look at rank r is r to the power of minus this, so 0
    looks at everything, and 1 looks at rank 2 half of the time. `noise` is the chance to say the contrary of
    what is true. An `adversarial` user always does. `explicit` users mark facts as helpful or not helpful; the others
    just use them.
    """

    def __init__(
        self,
        seed: int,
        *,
        author: str | None = None,
        noise: float = 0.0,
        examination: float = 1.0,
        explicit: bool = True,
        adversarial: bool = False,
    ) -> None:
        self.author = author or f"simulated-{seed}"
        self._random = Random(seed)
        self._noise = noise
        self._examination = examination
        self._explicit = explicit
        self._adversarial = adversarial

    def judge(self, shown: Sequence[str], answers: Collection[str]) -> Judgement:
        """What this user says of facts shown in this order, of which `answers` are right."""
        judgement = Judgement()
        for rank, fact_id in enumerate(shown, start=1):
            # Both are drawn for every fact, so that one habit can be changed without disturbing the other.
            looks = self._random.random() < rank**-self._examination
            errs = self._random.random() < self._noise
            if not looks:
                continue
            good = (fact_id in answers) != (errs != self._adversarial)
            if good and self._explicit:
                judgement.helpful.append(fact_id)
            elif good:
                judgement.used.append(fact_id)
            elif self._explicit:
                judgement.not_helpful.append(fact_id)
        return judgement

    def respond(self, memory: Heedful, recall: Recall, answers: Collection[str]) -> SignalResult:
        """Judges one recall and sends the signals."""
        said = self.judge([hit.fact_id for hit in recall.hits], answers)
        return memory.signal_recall(
            recall.recall_id,
            used=said.used,
            helpful=said.helpful,
            not_helpful=said.not_helpful,
            author=self.author,
        )

    def query(self, need: Need) -> str:
        """One of the ways to ask."""
        return self._random.choice(need.queries)
