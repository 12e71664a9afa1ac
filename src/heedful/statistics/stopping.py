"""When to stop a test of variants, and which one to take.

A test stops when one variant is very probably the best and taking it loses next to nothing on average, or when it
loses next to nothing whichever is taken. Both are asked of the posterior distributions, Beta(up + 1, down + 1).

Looking every day is all right, up to a limit. What is limited, however often one looks, is what a decision costs: over
many tests, whatever their true rates are, about `MAX_LOSS` of satisfaction on average, less where they differ much.
What is not limited is how often one of two equal variants is named the better one: with daily looks for two months,
nearly every second time. That costs nothing, since they are equally good, but "better" is then no proof that they
differ. Decide by it which one to take, not what to believe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from heedful.errors import Invalid
from heedful.statistics.rates import Rates

MIN_PROBABILITY = 0.95
"""The probability of being the best from which a variant is taken."""

MAX_LOSS = 0.005
"""What may be lost on average by taking the best one, as a share of satisfaction."""

EQUIVALENCE_LOSS = 0.001
"""Variants are alike when taking any of them loses at most this on average."""

MIN_RATINGS = 20
"""Ratings that every variant needs."""

MAX_RATINGS = 1_000_000
"""More ratings than this are not waited for."""

Counts = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stopping:
    """Whether a test can stop.

    `best` is the index of the variant with the greatest chance, `probability`, of being the best. Taking it loses
    `expected_loss` of satisfaction on average: nothing if it is the best, else what the best one has more.
    `needed` is about how many more ratings, in equal shares, decide the test if the rates stay; None when it is decided
    or `MAX_RATINGS` would not do. `reason` says all of it in words.
    """

    decided: bool
    best: int
    probability: float
    expected_loss: float
    needed: int | None
    reason: str


def stopping(counts: Sequence[tuple[int, int]], names: Sequence[str] = ()) -> Stopping:
    """Whether to stop a test of variants that have (up, down) each; `names` are for the reason.

    >>> found = stopping([(180, 20), (166, 34)])
    >>> found.decided, found.best, found.needed
    (True, 0, None)
    >>> print(found.reason)
    A is better than B with a probability of 0.97; taking A loses 0.026 points of satisfaction on average
    >>> print(stopping([(30, 10), (27, 13)], ["short", "long"]).reason)  # doctest: +NORMALIZE_WHITESPACE
    short is better than long with a probability of 0.76; taking short loses 1.4 points of satisfaction on average.
    About 358 more ratings decide it at these rates
    """
    if len(counts) < 2:
        raise Invalid(f"counts must be of 2 variants or more, got {len(counts)}", field="counts", value=counts)
    if names and len(names) != len(counts):
        raise Invalid(f"names must be {len(counts)}, one a variant, got {len(names)}", field="names", value=names)
    state = _State(counts)
    needed = None if state.decided else _needed(counts)
    return Stopping(
        decided=state.decided,
        best=state.best,
        probability=state.probability,
        expected_loss=state.loss,
        needed=needed,
        reason=_reason(state, names or [_letter(index) for index in range(len(counts))], needed),
    )


class _State:
    """What the rule looks at."""

    def __init__(self, counts: Sequence[Counts]) -> None:
        rates = Rates(counts)
        chances, losses = rates.chances(), rates.losses()
        self.best = int(chances.argmax())
        self.probability = float(chances[self.best])
        self.loss = float(losses[self.best])
        self.least = min(up + down for up, down in counts)
        self.alike = self.least >= MIN_RATINGS and float(losses.max()) <= EQUIVALENCE_LOSS
        self.sure = self.least >= MIN_RATINGS and self.probability >= MIN_PROBABILITY and self.loss <= MAX_LOSS
        self.decided = self.alike or self.sure


def _needed(counts: Sequence[tuple[int, int]]) -> int | None:
    """How many more ratings decide it if they come in equal shares, and at the rates so far."""

    def decided(more: int) -> bool:
        each = more / len(counts)
        rates = [(up + 1) / (up + down + 2) for up, down in counts]
        later = zip(counts, rates, strict=True)
        return _State([(up + each * rate, down + each * (1 - rate)) for (up, down), rate in later]).decided

    undecided, enough = 0, 1
    while not decided(enough):
        if enough == MAX_RATINGS:
            return None
        undecided, enough = enough, min(2 * enough, MAX_RATINGS)
    while enough - undecided > max(1, enough // 100):
        between = (undecided + enough) // 2
        undecided, enough = (undecided, between) if decided(between) else (between, enough)
    return enough


def _reason(state: _State, names: Sequence[str], needed: int | None) -> str:
    best = names[state.best]
    cost = f"taking {best} loses {_points(state.loss)} points of satisfaction on average"
    if state.alike and not state.sure:
        return f"They are alike, take any; {cost}"
    others = f"better than {names[1 - state.best]}" if len(names) == 2 else f"the best of {len(names)}"
    found = f"{best} is {others} with a probability of {_chance(state.probability)}; {cost}"
    if state.sure:
        return found
    if needed is None:
        return f"{found}. They are so alike that {MAX_RATINGS:,} more ratings would not decide it at these rates"
    lacking = (
        f"Every variant needs {MIN_RATINGS} ratings, and one has {state.least:.0f}. "
        if state.least < MIN_RATINGS
        else ""
    )
    return f"{found}. {lacking}About {needed:,} more ratings decide it at these rates"


def _chance(probability: float) -> str:
    """A probability, never rounded up: 0.9499 has not reached 0.95."""
    hundredths = math.floor(probability * 100)
    return "more than 0.99" if hundredths >= 99 else f"{hundredths / 100:.2f}"


def _points(loss: float) -> str:
    points = 100 * loss
    return f"{points:.2g}" if points >= 0.01 else "less than 0.01"


def _letter(index: int) -> str:
    return ascii_uppercase[index] if index < len(ascii_uppercase) else f"variant {index + 1}"
