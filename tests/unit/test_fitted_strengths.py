"""How far evidence is followed in one store."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.ledger.adaptive_policy import FIRST_FIT, Strengths, Vector, prefix
from heedful.ledger.strengths import Rated, fit
from heedful.ledger.usefulness import Opinion
from heedful.model import SignalType

NEEDS, PHRASINGS = 20, 6


def world(spread: float, *, seed: int = 1, error: float = 0.0) -> tuple[list[Rated], dict[int, Vector]]:
    """Needs whose questions lie `spread` apart, each with a right fact and one that is nearer for half of them."""
    draw = np.random.default_rng(seed)

    def unit(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Vector:
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    facts: dict[int, Vector] = {}
    rated: list[Rated] = []
    for need in range(NEEDS):
        centre = draw.normal(size=32)
        right, nearer = 2 * need, 2 * need + 1
        apart = (1.3, 0.9) if need % 2 else (0.4, 1.3)
        facts[right], facts[nearer] = (unit(centre + draw.normal(size=32) * each) for each in apart)
        for phrasing in range(PHRASINGS):
            opinions = []
            for author in ("ann", "bob", "cy"):
                for fact in (right, nearer):
                    is_right = (fact == right) != (draw.random() < error)
                    kind: SignalType = "helpful" if is_right else "not_helpful"
                    opinions.append(Opinion(fact, need * PHRASINGS + phrasing, kind, 1.0, len(rated), author=author))
            rated.append(Rated(unit(centre + draw.normal(size=32) * spread), opinions))
    return rated, facts


def test_few_opinions_are_not_fitted_and_more_whenever_they_double() -> None:
    assert [prefix(count) for count in (0, FIRST_FIT - 1, FIRST_FIT, 2 * FIRST_FIT - 1, 2 * FIRST_FIT)] == [
        0,
        0,
        FIRST_FIT,
        FIRST_FIT,
        2 * FIRST_FIT,
    ]


def test_nothing_fits_what_is_taken_at_first() -> None:
    assert fit([], {}) == Strengths()


def test_where_what_helped_one_phrasing_helps_the_others_it_is_bold() -> None:
    assert fit(*world(0.3)).boldness > 0


def test_the_share_of_wrong_opinions_is_that_of_those_who_disagree() -> None:
    assert fit(*world(0.3)).error < 0.03
    assert fit(*world(0.3, error=0.25)).error == pytest.approx(0.25, abs=0.06)


def test_wrong_opinions_make_it_more_careful() -> None:
    assert fit(*world(0.5, error=0.35)).boldness < fit(*world(0.5)).boldness


@pytest.mark.slow
def test_the_same_opinions_give_the_same_strengths() -> None:
    assert fit(*world(0.5)) == fit(*world(0.5))
    rated, facts = world(0.5)
    assert fit(rated, dict(reversed(facts.items()))) == fit(rated, facts)


def test_one_more_opinion_changes_next_to_nothing() -> None:
    rated, facts = world(0.5)
    more = [
        *rated[:-1],
        Rated(rated[-1].vector, [*rated[-1].opinions, Opinion(0, 999, "ignored", 0.1, 1, author="dan")]),
    ]
    assert fit(more, facts) == fit(rated, facts)
