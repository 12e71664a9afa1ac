"""Ratings as people and programs give them, on one scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import Invalid, quoted
from heedful.model import NormalisedRating, Rating

STARS = (1, 5)

_WORDS = {
    "up": 1.0,
    "down": 0.0,
    "neutral": 0.5,
    "thumbs up": 1.0,
    "thumbs down": 0.0,
    "\N{THUMBS UP SIGN}": 1.0,
    "\N{THUMBS DOWN SIGN}": 0.0,
    "like": 1.0,
    "dislike": 0.0,
    "very positive": 1.0,
    "positive": 0.75,
    "negative": 0.25,
    "very negative": 0.0,
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
    meant = value
    if labels is not None and isinstance(value, str) and value in labels:
        meant = labels[value]
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
        raise Invalid(
            f"invalid rating {quoted(original)}",
            field="rating",
            value=original,
            remedy='Use "up", "down", "neutral", True, False, or a number; labels says what other words mean',
        )
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
    raise Invalid(
        f"rating {quoted(number)} could be on several scales, or on none",
        field="scale",
        value=number,
        remedy="Pass scale: the worst and the best number, such as (0, 1), (1, 5) or (-1, 1)",
    )


def _checked(scale: Sequence[float]) -> tuple[float, float]:
    numbers = list(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    sound = len(numbers) == 2 and all(
        isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each) for each in numbers
    )
    if not sound or numbers[0] == numbers[1]:
        raise Invalid(
            f"scale must be two different numbers, got {quoted(scale)}",
            field="scale",
            value=scale,
            remedy="Pass the worst and the best number, such as (1, 5)",
        )
    return float(numbers[0]), float(numbers[1])
