"""The effect of a change on one rated question, and on all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heedful.ledger.replay_statistics import interval, resampled_means
from heedful.memory.answer import NO_ANSWER, said
from heedful.model import Estimate, Explanation, Hit, RatedKind, RegressGroup
from heedful.text import shortened
from heedful.text.words import words

DIGITS = 6
CLOSE = 1e-9  # A difference that arithmetic alone could make.
SHOWN = 200  # Characters of a text that a report shows.
STILL_SAYS = 0.6
"""The share of the words of a rated answer that another one must have, if the rated one has no numbers and names."""

SURE = 0.998
"""The certainty from which a change is called worse."""

LEAST_CHANGED, NOT_SURE = 7, 0.95
"""With fewer needs that changed, chance alone may have made all of them worse: 7 by less than 1%. Then a change is not
called worse, and this is the most that can be certain."""

PART = 0.5  # A text that has this share of a fact's is taken for a part of it.

Floats = NDArray[np.float64]


def plain(text: str) -> str:
    """A text as it is compared with others: white space and case say nothing."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class Ranks:
    """The places of the facts that helped with a question, by id; None where they are not among the hits."""

    places: dict[str, int | None]
    score: float
    """The mean reciprocal rank of these facts, where those of them that come before take no place."""


def ranks(hits: Sequence[Hit], helpful: Mapping[str, str]) -> Ranks:
    """The places of helpful facts, given with their texts. A fact is found where its id is, or all of its text.

    >>> hit = Hit(fact_id="a", text="Rome", score=1, relevance=1, usefulness=0.5, usefulness_source="neutral",
    ...           metadata={}, rank=1)
    >>> ranks([hit], {"a": "Rome", "b": "Oslo"})
    Ranks(places={'a': 1, 'b': None}, score=0.5)
    """
    shown = [plain(hit.text) for hit in hits]
    places: dict[str, int | None] = {}
    for fact_id, text in helpful.items():
        sought = plain(text)
        places[fact_id] = next(
            (place for place, hit in enumerate(hits, 1) if hit.fact_id == fact_id or sought in shown[place - 1]), None
        )
    taken = sorted({place for place in places.values() if place is not None})
    reciprocal = {place: 1 / (place - before) for before, place in enumerate(taken)}
    total = sum(reciprocal[place] for place in places.values() if place is not None)
    return Ranks(places, total / len(places))


@dataclass(frozen=True, slots=True)
class Compared:
    """One rated question before and after a change."""

    kind: RatedKind
    question: str
    dataset: str | None
    before: float
    after: float
    target_id: str | None = None
    places: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Of the facts that helped."""
    says: tuple[str | None, str | None] = (None, None)
    reason: str = ""

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def is_worse(self) -> bool:
        return self.change < -CLOSE

    @property
    def is_better(self) -> bool:
        return self.change > CLOSE


def missing_words(rated: str, question: str, answer: str) -> list[str] | None:
    """The numbers and names of a rated answer that another answer lacks; the other words, where it has none of these.
    None if it says the same.

    >>> missing_words("It is 45 days [1].", "How many days?", "You have 30 days.")
    ['45']
    >>> missing_words("It is 45 days [1].", "How many days?", "Within 45 days") is None
    True
    """
    asked = {word.term for word in words(question)}
    wanted = [word for word in words(said(rated)) if word.kind != "common" and word.term not in asked]
    values = [word.term for word in wanted if word.kind in ("number", "name")]
    has = {word.term for word in words("" if said(answer) == NO_ANSWER else said(answer))}
    lacking = [term for term in dict.fromkeys(values or [word.term for word in wanted]) if term not in has]
    if values or not wanted:
        return lacking or None
    total = len({word.term for word in wanted})
    return lacking if 1 - len(lacking) / total < STILL_SAYS else None


def why(
    helpful: str, before: Hit | None, after: Hit | None, before_hits: Sequence[Hit], after_hits: Sequence[Hit]
) -> str:
    """Why a fact that helped is lower than it was; `before` and `after` are its hits, with explanations."""
    if after is None:
        sought = plain(helpful)
        part = next((hit for hit in after_hits if plain(hit.text) in sought), None)
        if part is not None and len(plain(part.text)) >= PART * len(sought):
            return f"only a part of the fact is there: {shortened(part.text, SHOWN)!r}"
        where = f"among the first {len(after_hits)} facts" if len(after_hits) > 1 else "found"
        return f"it is not {where}{_instead(before_hits, after_hits)}"
    if before is None:
        return ""
    parts = [f"{name} {old:.3f} → {new:.3f}" for name, old, new in _scores(before, after) if round(new - old, 3)]
    instead = _instead(before_hits[: before.rank], after_hits[: after.rank])
    return f"{', '.join(parts) or 'its own score is the same'}{instead}"


def _scores(before: Hit, after: Hit) -> Iterable[tuple[str, float, float]]:
    old, new = before.explanation, after.explanation
    if isinstance(old, Explanation) and isinstance(new, Explanation):
        for name, was, now in (("meaning", old.vector, new.vector), ("words", old.words, new.words)):
            if was is not None and now is not None:
                yield name, was, now
    yield "relevance", before.relevance, after.relevance
    yield "usefulness", before.usefulness, after.usefulness
    yield "score", before.score, after.score


def _instead(before: Sequence[Hit], after: Sequence[Hit]) -> str:
    """The first fact that comes before it now and did not."""
    known = {plain(hit.text) for hit in before}
    new = next((hit for hit in after if plain(hit.text) not in known), None)
    return "" if new is None else f"; before it comes {shortened(new.text, 100)!r}"


@dataclass(frozen=True, slots=True)
class Totals:
    """All rated questions before and after a change."""

    before: float
    after: float
    change: Estimate
    kept: Estimate
    needs: int
    certainty: float
    """The share of resamples in which the change is for the worse."""

    @property
    def is_worse(self) -> bool:
        return self.certainty >= SURE


def totals(compared: Sequence[Compared], needs: Sequence[str], seed: int) -> Totals:
    """Means over questions; the intervals resample whole needs, so that many phrasings of one are no proof of
    another."""
    if not compared:
        nothing = Estimate(value=0.0, low=0.0, high=0.0)
        return Totals(0.0, 0.0, nothing, Estimate(value=1.0, low=1.0, high=1.0), 0, 0.0)
    values = np.array([[one.change, not one.is_worse, one.before, one.after] for one in compared], np.float64)
    _, members, sizes = np.unique(np.array(needs), return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, members, values)
    weights = sizes.astype(np.float64)
    by_need = sums / weights[:, None]
    samples = resampled_means(by_need, weights, seed)
    means = values.mean(axis=0).tolist()
    worse = float((samples[:, 0] < -CLOSE).mean())
    changed = int(np.count_nonzero(np.abs(by_need[:, 0]) > CLOSE))
    change, kept = (_estimate(means[column], samples[:, column]) for column in (0, 1))
    sure = round(worse, DIGITS) if changed >= LEAST_CHANGED else min(round(worse, DIGITS), NOT_SURE)
    return Totals(round(means[2], DIGITS), round(means[3], DIGITS), change, kept, len(sizes), sure)


def _estimate(value: float, samples: Floats) -> Estimate:
    low, high = interval(samples)
    return Estimate(value=round(value, DIGITS), low=round(low, DIGITS), high=round(high, DIGITS))


def grouped(compared: Sequence[Compared], names: Sequence[str | None]) -> list[RegressGroup]:
    """The questions by a name that each has or lacks, the group with most regressions first."""
    members: dict[str, list[Compared]] = {}
    for one, name in zip(compared, names, strict=True):
        if name is not None:
            members.setdefault(name, []).append(one)
    found = [
        RegressGroup(
            name=name,
            compared=len(own),
            better=sum(one.is_better for one in own),
            worse=sum(one.is_worse for one in own),
            same=sum(not one.is_better and not one.is_worse for one in own),
            change=round(sum(one.change for one in own) / len(own), DIGITS),
        )
        for name, own in members.items()
    ]
    return sorted(found, key=lambda group: (-group.worse, group.change, group.name))
