"""Votes: whose opinions count, how many must agree, and ratings of any form on one scale."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heedful.errors import Invalid, quoted
from heedful.ledger.usefulness import Opinion
from heedful.model import VISITOR, AuthorKind, NormalisedRating, Rating, SignalType

ANYONE = f"{VISITOR}anyone"  # The one vote of all visitors without a subject.


def kind_of(author: str | None) -> AuthorKind:
    """The kind of author that a name stands for.

    >>> kind_of(None), kind_of("ann"), kind_of("visitor-anyone")
    ('program', 'named', 'visitor')
    """
    if author is None:
        return "program"
    return "visitor" if author.startswith(VISITOR) else "named"


def suffices(votes: Iterable[tuple[AuthorKind, str | None]], authors: int) -> bool:
    """Whether so many authors agree. The program, which has no name, is one of them; visitors are none.

    >>> suffices([("named", "ann"), ("named", "ann")], 2), suffices([("named", "ann"), ("program", None)], 2)
    (False, True)
    >>> suffices([("visitor", f"visitor-{n}") for n in range(10)], 1), suffices([("program", None)], 1)
    (False, True)
    """
    return len({author for kind, author in votes if kind != "visitor"}) >= authors


RATINGS: frozenset[SignalType] = frozenset({"helpful", "not_helpful"})


def counted_votes(opinions: Iterable[Opinion]) -> list[Opinion]:
    """The opinions that count, in their order, which is that of their time: of those that a named author gave about a
    fact for a query, one."""
    listed = list(opinions)
    by_voter: dict[tuple[int, int, str], list[Opinion]] = defaultdict(list)
    for opinion in listed:
        if opinion.author is not None:
            by_voter[opinion.fact, opinion.query, opinion.author].append(opinion)
    replaced: set[int] = set()
    for own in by_voter.values():
        if len(own) > 1:
            replaced.update(map(id, own))
            replaced.discard(id(effective_vote(own)))
    return [opinion for opinion in listed if id(opinion) not in replaced] if replaced else listed


def effective_vote(opinions: Sequence[Opinion]) -> Opinion:
    """The opinion that counts among those of one author about a fact for a query, oldest first: the last rating, or the
    last signal if there is no rating; of equal ones in a row, the first.

    >>> kinds = "used helpful used not_helpful not_helpful".split()
    >>> effective_vote([Opinion(1, 1, kind, 1.0, at) for at, kind in enumerate(kinds)]).at
    3
    >>> effective_vote([Opinion(1, 1, "ignored", 1.0, 0), Opinion(1, 1, "used", 1.0, 1)]).at
    1
    """
    candidates = [opinion for opinion in opinions if opinion.signal_type in RATINGS] or opinions
    effective = candidates[-1]
    for opinion in reversed(candidates):
        if (opinion.signal_type, opinion.confidence) != (effective.signal_type, effective.confidence):
            break
        effective = opinion
    return effective


STARS = (1, 5)

_WORDS = {
    **dict.fromkeys(("up", "thumbs up", "\N{THUMBS UP SIGN}", "like", "very positive"), 1.0),
    **dict.fromkeys(("down", "thumbs down", "\N{THUMBS DOWN SIGN}", "dislike", "very negative"), 0.0),
    "positive": 0.75,
    "neutral": 0.5,
    "negative": 0.25,
}


def normalise_rating(
    value: Any, *, scale: Sequence[float] | None = None, labels: Mapping[str, Any] | None = None
) -> NormalisedRating:
    """A rating of any common form: a boolean, a word such as "up" or "VERY_NEGATIVE", or a number.

    `scale` is the worst and the best number, such as (0, 1), (1, 5) or (-1, 1). Without one, a number is read on the
    only one of these that it fits, and is refused if it fits several: 1 is the best of two of them and the worst of the
    third. `labels` says what categories of your own mean, in any of these forms.

    >>> normalise_rating("VERY_NEGATIVE").score, normalise_rating(0.8).score, normalise_rating(-1).rating
    (1, 4, 'down')
    >>> normalise_rating(1, scale=(0, 1)).rating, normalise_rating("meh", labels={"meh": 2}).score
    ('up', 2)
    """
    meant = labels[value] if labels is not None and isinstance(value, str) and value in labels else value
    if meant is None:
        return NormalisedRating(original=value)
    number = _number(meant, value, scale)
    score = min(5, math.floor(1.5 + 4 * number))
    rating: Rating | None = "up" if score > 3 else "down" if score < 3 else None
    return NormalisedRating(value=number, score=score, rating=rating, original=value)


def _number(meant: Any, original: Any, scale: Sequence[float] | None) -> float:
    if isinstance(meant, bool):
        return float(meant)
    if isinstance(meant, str):
        word = " ".join(meant.replace("_", " ").replace("-", " ").split()).lower()
        if word in _WORDS:
            return _WORDS[word]
    if not isinstance(meant, int | float) or not math.isfinite(meant):
        remedy = (
            'Use "up", "down", "neutral", True, False, or a number; normalise_rating(…, labels=…) takes other words'
        )
        raise Invalid(f"invalid rating {quoted(original)}", field="rating", value=original, remedy=remedy)
    worst, best = _inferred(meant) if scale is None else _checked(scale)
    if not min(worst, best) <= meant <= max(worst, best):
        raise Invalid(
            f"rating {quoted(original)} is not between {worst:g} and {best:g}", field="rating", value=original
        )
    return (meant - worst) / (best - worst)


def _inferred(number: float) -> tuple[float, float]:
    if 0 < number < 1:
        return 0, 1
    if -1 <= number < 0:
        return -1, 1
    if 1 < number <= STARS[1]:
        return STARS
    message = f"rating {quoted(number)} could be on several scales, or on none"
    remedy = "Pass scale: the worst and the best number, such as 1 and 5"
    raise Invalid(message, field="scale", value=number, remedy=remedy)


def _checked(scale: Sequence[float]) -> tuple[float, float]:
    numbers = list(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    sound = len(numbers) == 2 and all(
        isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in numbers
    )
    if not sound or numbers[0] == numbers[1]:
        message = f"scale must be two different numbers, got {quoted(scale)}"
        raise Invalid(message, field="scale", value=scale, remedy="Pass the worst and the best number, such as (1, 5)")
    return float(numbers[0]), float(numbers[1])
