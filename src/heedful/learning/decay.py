"""Old opinions fade: a score moves back to neutral by 5% a week."""

from __future__ import annotations

from heedful.clock import DAY

NEUTRAL = 0.5
KEPT_PER_WEEK = 0.95
WEEK = 7 * DAY


def decayed(score: float, elapsed: int) -> float:
    """`score` after `elapsed` stored time without a signal; a clock that stepped back changes nothing.

    >>> decayed(0.6, 7 * DAY)
    0.595
    """
    if elapsed <= 0 or score == NEUTRAL:
        return score
    kept: float = KEPT_PER_WEEK ** (elapsed / WEEK)
    return NEUTRAL + (score - NEUTRAL) * kept
