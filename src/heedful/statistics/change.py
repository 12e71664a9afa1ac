"""Did a rate change, and since when?

Counts of days are taken for Poisson counts with one rate before a day and another from it on. The day is the one where
this explains the counts best; its p-value is that of the day alone, multiplied by all that was looked at.

Events that come in bursts (one person gave ten votes in a row) differ more from day to day than Poisson counts do, and
weigh less by as much. Plain counts that are lower at weekends are distinguished from a change no better than that;
a share of all ratings is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from heedful.errors import Invalid

SIGNIFICANCE = 0.05  # A change is reported if chance alone makes one with at most this probability, over all series.
MIN_FACTOR = 1.5  # A rate that changed by less is not worth telling.
MIN_EVENTS = 8  # Events that the busier side has at least.
MIN_DAYS_BEFORE = 2  # Days that there are at least before a change.


@dataclass(frozen=True, slots=True)
class Change:
    """A rate that changed: what was counted before the day `since`, and from it on.

    `ratio` is infinite when there was nothing before. `p_value` is the probability of as much by luck, in any of the
    `tests` series on any of the `splits` days that were looked at.
    """

    since: int
    before_events: int
    before_exposure: float
    before_days: int
    after_events: int
    after_exposure: float
    after_days: int
    ratio: float
    p_value: float
    splits: int
    tests: int


def change(days: Sequence[int], events: Sequence[int], exposure: Sequence[float], *, tests: int = 1) -> Change | None:
    """The change of a rate within the last half of the days, or None if there is none that luck does not explain.

    `days` are in order; `exposure` is what the events of a day are a share of (the ratings among which down-votes were
    counted), or 1 a day to look at plain counts. `tests` is how many series are looked at together. An earlier change
    is old: it is not reported, and only the days since then are examined.

    >>> found = change(range(10), [2, 1, 3, 2, 1, 2, 2, 9, 7, 8], [1] * 10)
    >>> found.since, round(found.ratio, 1), found.p_value < 0.001
    (7, 4.3, True)
    >>> change(range(10), [2, 1, 3, 2, 1, 2, 2, 3, 1, 2], [1] * 10)
    """
    _check(days, events, exposure, tests)
    start = 0
    while (found := _best(days[start:], events[start:], exposure[start:], tests)) and found.p_value <= SIGNIFICANCE:
        at = start + found.before_days
        # Of an odd number of days, the one in the middle is in both halves.
        if 2 * at + 1 >= len(days):
            big = not 1 / MIN_FACTOR < found.ratio < MIN_FACTOR
            busier = found.after_events if found.ratio > 1 else found.before_events
            return found if big and busier >= MIN_EVENTS else None
        # What was before an old change would move the day of a new one.
        start = at
    return None


def _best(days: Sequence[int], events: Sequence[int], exposure: Sequence[float], tests: int) -> Change | None:
    """The day on which a change explains the counts best, significant or not."""
    counted, exposed = [0, *accumulate(events)], [0.0, *accumulate(exposure)]
    total, whole = counted[-1], exposed[-1]
    tried = [index for index in range(MIN_DAYS_BEFORE, len(days)) if total and 0 < exposed[index] / whole < 1]
    if not tried:
        return None
    # Rounded, so that days that explain as much are distinguished by their order: the last one is where it began.
    at = max(tried, key=lambda index: (round(_gain(counted[index], total, exposed[index] / whole), 9), index))
    return _split(days[at], events, exposure, at, splits=len(tried), tests=tests, sides=2)


def _split(
    since: int, events: Sequence[int], exposure: Sequence[float], at: int, *, splits: int, tests: int, sides: int
) -> Change:
    """The rates before a place and from it on; `sides` is 2 where a rise and a fall are looked for."""
    before, after = sum(events[:at]), sum(events[at:])
    exposed, whole = sum(exposure[:at]), sum(exposure)
    share = exposed / whole
    ratio = after * share / (before * (1 - share)) if before else math.inf
    # Of events that come in bursts, only the bursts are informative.
    size = _spread(events, exposure, at)
    busier, exposed_share = (after, 1 - share) if ratio > 1 else (before, share)
    tail = _at_least(busier / size, (before + after) / size, exposed_share)
    return Change(
        since=since,
        before_events=before,
        before_exposure=exposed,
        before_days=at,
        after_events=after,
        after_exposure=whole - exposed,
        after_days=len(events) - at,
        ratio=ratio,
        p_value=min(1.0, sides * tail * splits * tests),
        splits=splits,
        tests=tests,
    )


def rise(
    since: int, before: Sequence[tuple[int, int]], after: Sequence[tuple[int, int]], *, tests: int = 1
) -> Change | None:
    """The rise of a rate from a known moment on, or None if luck explains it. `since` is the day of the moment.

    Each pair has the events of a day, or of its part before or after the moment, and what they are a share of. Each day
    after the moment is one more occasion to take luck for a rise.

    >>> found = rise(20, [(1, 10)] * 7, [(5, 10)] * 4)
    >>> found.since, found.ratio, found.p_value < 0.01
    (20, 5.0, True)
    >>> rise(20, [(1, 10)] * 7, [(2, 10)] * 4)
    """
    sides = [[pair for pair in side if pair[1]] for side in (before, after)]
    events = [count for side in sides for count, _ in side]
    exposure = [float(exposed) for side in sides for _, exposed in side]
    if not all(sides) or not any(count for count, _ in sides[1]):
        return None
    found = _split(since, events, exposure, len(sides[0]), splits=len(sides[1]), tests=tests, sides=1)
    is_rise = found.ratio > 1 and found.after_events >= MIN_EVENTS
    return found if is_rise and found.p_value <= SIGNIFICANCE else None


def is_significant(change: Change, days: Sequence[int], events: Sequence[int], exposure: Sequence[float]) -> bool:
    """Whether a rate changed clearly more than that of the rest, whose events and exposure by day these are.

    >>> found = change(range(10), [2, 1, 3, 2, 1, 2, 2, 9, 7, 8], [10] * 10)
    >>> is_significant(found, range(10), [3] * 10, [20] * 10)
    True
    >>> is_significant(found, range(10), [3] * 7 + [11] * 3, [20] * 10)
    False
    """
    begun = [day >= change.since for day in days]

    def rate(after: bool) -> float:
        chosen = [index for index, is_after in enumerate(begun) if is_after is after]
        # Half an event more, so that none at all is not infinitely less than one.
        return (sum(events[index] for index in chosen) + 0.5) / (sum(exposure[index] for index in chosen) + 1)

    ratio = rate(True) / rate(False)
    return change.ratio >= MIN_FACTOR * ratio if change.ratio > 1 else change.ratio * MIN_FACTOR <= ratio


def describe(change: Change, what: str, day_name: str) -> str:
    """A change in one sentence; `what` is what was counted, in the plural, and of a rate its name.

    >>> found = change(range(10), [2, 1, 3, 2, 1, 2, 2, 6, 7, 5], [1] * 10)
    >>> describe(found, "down-votes on refunds", "Tuesday 10 November")
    'down-votes on refunds tripled since Tuesday 10 November'
    """
    if change.before_events == 0:
        return f"new: {change.after_events:,} {what} since {day_name}"
    if change.after_events == 0:
        return f"no {what} since {day_name}, {change.before_events:,} before"
    times = max(change.ratio, 1 / change.ratio)
    rose = change.ratio > 1
    for low, high, more, less in _NAMED:
        if low <= times < high:
            return f"{what} {more if rose else less} since {day_name}"
    if rose:
        return f"{what} grew ×{_figure(times)} since {day_name}"
    return f"{what} fell to {_figure(100 * change.ratio)}% of the earlier level since {day_name}"


def arithmetic(change: Change) -> list[str]:
    """The figures that a change is detected from.

    >>> found = change(range(10), [2, 1, 3, 2, 1, 2, 2, 9, 7, 8], [1] * 10, tests=6)
    >>> for line in arithmetic(found):
    ...     print(line)
    24 in 3 days, 8 a day, against 13 in 7 days, 1.9 a day: ratio 4.3
    by luck alone: about 1 in 837, with 8 days × 6 series looked at
    """
    after = _side(change.after_events, change.after_exposure, change.after_days)
    before = _side(change.before_events, change.before_exposure, change.before_days)
    ratio = "" if change.before_events == 0 else f": ratio {_figure(change.ratio)}"
    days = f"{change.splits} day{'' if change.splits == 1 else 's'}"
    return [
        f"{after}, against {before}{ratio}",
        f"by luck alone: {_odds(change.p_value)}, with {days} × {change.tests} series looked at",
    ]


_NAMED = (
    (1.8, 2.25, "doubled", "halved"),
    (2.75, 3.4, "tripled", "fell to a third"),
    (3.7, 4.5, "quadrupled", "fell to a quarter"),
)


def _gain(before: int, total: int, share: float) -> float:
    """By how much two rates explain the counts better than one, as a logarithm; `share` is the exposure before."""
    after = total - before
    one = before * math.log(before / (total * share)) if before else 0.0
    other = after * math.log(after / (total * (1 - share))) if after else 0.0
    return one + other


def _spread(events: Sequence[int], exposure: Sequence[float], at: int) -> float:
    """How many times as much as a Poisson count each day's differs from the rate of its side; 1 if by no more."""
    squares = 0.0
    for side in (slice(at), slice(at, None)):
        rate = sum(events[side]) / sum(exposure[side])
        expected = [(count, rate * exposed) for count, exposed in zip(events[side], exposure[side], strict=True)]
        squares += sum((count - mean) ** 2 / mean for count, mean in expected if mean)
    return max(1.0, squares / max(1, sum(map(bool, exposure)) - 2))


def _at_least(count: float, total: float, share: float) -> float:
    """The chance that `count` or more of `total` events fall on a `share` of the exposure that is less than theirs."""
    first = math.exp(
        math.lgamma(total + 1)
        - math.lgamma(count + 1)
        - math.lgamma(total - count + 1)
        + count * math.log(share)
        + (total - count) * math.log1p(-share)
    )
    odds = share / (1 - share)
    tail = term = 1.0
    # Each term is the last one times less than 1, and ever less.
    while count < total and term > 1e-12 * tail:
        term *= (total - count) / (count + 1) * odds
        count += 1
        tail += term
    return min(1.0, first * tail)


def _side(events: int, exposure: float, days: int) -> str:
    span = f"{days:,} day{'' if days == 1 else 's'}"
    if exposure == days:
        return f"{events:,} in {span}, {_figure(events / days)} a day"
    return f"{events:,} of {exposure:,.10g} in {span} ({_figure(100 * events / exposure)}%)"


def _figure(value: float) -> str:
    """A number with two digits that count, or as a whole.

    >>> _figure(1.234), _figure(0.0456), _figure(1234.5)
    ('1.2', '0.046', '1,234')
    """
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _odds(p_value: float) -> str:
    """A probability as one in so many.

    >>> _odds(0.02), _odds(0.0007), _odds(1e-300)
    ('about 1 in 50', 'less than 1 in 1,000', 'less than 1 in 1,000,000')
    """
    for many in (1_000_000, 100_000, 10_000, 1_000):
        if p_value < 1 / many:
            return f"less than 1 in {many:,}"
    return f"about 1 in {1 / p_value:,.0f}"


def _check(days: Sequence[int], events: Sequence[int], exposure: Sequence[float], tests: int) -> None:
    if not len(days) == len(events) == len(exposure):
        message = f"days, events and exposure must be as many, got {len(days)}, {len(events)} and {len(exposure)}"
        raise Invalid(message, field="days", value=len(days))
    if any(later <= earlier for earlier, later in pairwise(days)):
        raise Invalid("days must be in order, each once", field="days", value=list(days))
    for count, exposed in zip(events, exposure, strict=True):
        if count < 0:
            raise Invalid(f"events must not be negative, got {count}", field="events", value=count)
        if not 0 <= exposed < math.inf:
            raise Invalid(f"exposure must be 0 or more, got {exposed}", field="exposure", value=exposed)
        if count and not exposed:
            message = f"exposure must not be 0 on a day with {count} events"
            remedy = "Count what the events are a share of, or pass 1 a day"
            raise Invalid(message, field="exposure", value=exposed, remedy=remedy)
    if tests < 1:
        raise Invalid(f"tests must be 1 or more, got {tests}", field="tests", value=tests)
