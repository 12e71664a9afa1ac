"""How alike two queries are in what they ask for, from their cosine and their words.

`similarity` puts a model's cosine on a common scale, where `SAME_NEED` means "one question", and keeps a pair below
that mark when `difference` finds that its words ask for different things.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.learning.differences import difference, normal

SAME_NEED = 0.85
"""The similarity from which two queries are taken to ask for the same thing."""

DIFFERENT_NEED = 0.80
"""The most that two queries with a `difference` can score."""


class Calibration(NamedTuple):
    """Where a model's cosines lie: `floor` and less maps to 0, `same` to `SAME_NEED`, 1 to 1."""

    floor: float
    same: float


MINILM = Calibration(floor=0.40, same=0.80)  # all-MiniLM-L6-v2
WORDLLAMA = Calibration(floor=0.40, same=0.81)  # WordLlama, 256 dimensions

PLAIN = Calibration(floor=0.0, same=SAME_NEED)  # A model that was not measured: its cosine as it is.


def similarity(query_a: str, query_b: str, cosine: float, *, calibration: Calibration = MINILM) -> float:
    """How surely two queries ask for the same thing, from 0 to 1.

    `cosine` is that of their embeddings, by the model that `calibration` is for. Queries equal but
    for case, spacing and closing punctuation score 1. From `SAME_NEED` on, take them for one question.
    """
    if normal(query_a) == normal(query_b):
        return 1.0
    floor, same = calibration
    if not cosine > floor:  # Also when there is no cosine (NaN), as for an empty text.
        return 0.0
    if cosine < same:
        value = SAME_NEED * (cosine - floor) / (same - floor)
    else:
        value = min(1.0, SAME_NEED + (1 - SAME_NEED) * (cosine - same) / (1 - same))
    return DIFFERENT_NEED if value > DIFFERENT_NEED and difference(query_a, query_b) else value
