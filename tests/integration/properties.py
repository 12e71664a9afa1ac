"""How many examples a property is tried on."""

from __future__ import annotations

from hypothesis import settings


def some(part: float) -> settings:
    """A part of the examples that the profile says: for properties each example of which opens a store."""
    return settings(max_examples=max(1, round(settings().max_examples * part)))
