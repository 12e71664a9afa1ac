"""Where numbers and dates stand on an axis, and which of them are written there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

DAY = 86_400.0
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

X = float | date | datetime
"""A place on the horizontal axis."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A line from one range of numbers to another."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def number(x: X) -> float:
    """A place as a number; dates as seconds."""
    if isinstance(x, datetime):
        return (x if x.tzinfo is not None else x.replace(tzinfo=UTC)).timestamp()
    if isinstance(x, date):
        return datetime(x.year, x.month, x.day, tzinfo=UTC).timestamp()
    return float(x)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks(0, 47)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    rough = span / max(1, about)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    digits = max(0, -math.floor(math.log10(step)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, digits) for place in range(first, last + 1)]


def date_ticks(low: float, high: float, about: int = 6, *, finest: float = 3600.0) -> list[float]:
    """Days (or hours, where they are few) between two moments, evenly apart; all in seconds."""
    span = high - low
    if span <= 0:
        return [low]
    steps = (3600.0, 3 * 3600.0, 6 * 3600.0, 12 * 3600.0, DAY, 2 * DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY)
    years = 365 * DAY * math.ceil(span / (365 * DAY * about))
    step = next((each for each in steps if each >= finest and span / each <= about), years)
    first = math.ceil(low / step - 1e-9) * step
    return [first + place * step for place in range(int((high - first) / step + 1e-9) + 1)]


def written(value: float, percent: bool = False) -> str:
    """A number as short as it can be.

    >>> written(0.25, percent=True), written(1200), written(0.5), written(3.0)
    ('25%', '1,200', '0.5', '3')
    """
    if percent:
        return f"{value * 100:.4g}%"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def day(seconds: float) -> str:
    """A day in words.

    >>> day(number(date(2026, 11, 3)))
    '3 Nov'
    """
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment.day} {MONTHS[moment.month - 1]}"


def moment(seconds: float, span: float) -> str:
    """A moment on an axis of this length: its day, with the hour or the year where they tell something."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    if span <= 2 * DAY and seconds % DAY:
        return f"{day(seconds)} {at:%H:%M}"
    return f"{day(seconds)} {at.year}" if span > 400 * DAY else day(seconds)


def extent(values: Sequence[float], least: float | None = None, most: float | None = None) -> tuple[float, float]:
    """From the smallest to the greatest, or as told; never nothing."""
    low = min(values, default=0.0) if least is None else least
    high = max(values, default=1.0) if most is None else most
    if low == high:
        low, high = (low - 0.5, high + 0.5) if least is None else (low, low + 1)
    return low, high
