"""Ratings of all forms, on one scale."""

from __future__ import annotations

from typing import Any

import pytest

from heedful import Invalid, normalise_rating


@pytest.mark.parametrize(
    ("given", "score", "rating"),
    [
        (True, 5, "up"),
        (False, 1, "down"),
        ("up", 5, "up"),
        ("down", 1, "down"),
        ("neutral", 3, None),
        ("POSITIVE", 4, "up"),
        ("NEGATIVE", 2, "down"),
        ("VERY_NEGATIVE", 1, "down"),
        ("Very Positive", 5, "up"),
        ("thumbs-up", 5, "up"),
        ("\N{THUMBS DOWN SIGN}", 1, "down"),
        (-1, 1, "down"),
        (-0.5, 2, "down"),
        (0.1, 1, "down"),
        (0.5, 3, None),
        (0.8, 4, "up"),
        (2, 2, "down"),
        (4.5, 5, "up"),
        (5, 5, "up"),
        (None, None, None),
    ],
)
def test_a_rating_of_any_form(given: Any, score: int | None, rating: str | None) -> None:
    found = normalise_rating(given)
    assert (found.score, found.rating, found.original) == (score, rating, given)
    assert (found.value is None) == (score is None)


@pytest.mark.parametrize(
    ("given", "scale", "score"),
    [(1, (0, 1), 5), (1, (1, 5), 1), (1, (-1, 1), 5), (0, (-1, 1), 3), (0, (0, 1), 1), (7, (0, 10), 4), (1, (5, 1), 5)],
)
def test_a_scale_says_what_a_number_means(given: float, scale: tuple[float, float], score: int) -> None:
    assert normalise_rating(given, scale=scale).score == score


@pytest.mark.parametrize("given", [0, 1, 1.0, 6, -2])
def test_a_number_that_could_mean_several_things_is_refused(given: float) -> None:
    with pytest.raises(Invalid, match="scales") as refused:
        normalise_rating(given)
    assert refused.value.field == "scale"


@pytest.mark.parametrize("given", ["", "superb", "1", [5], {}, b"up", float("nan"), float("inf")])
def test_what_is_no_rating_is_refused(given: Any) -> None:
    with pytest.raises(Invalid, match="invalid rating"):
        normalise_rating(given)


@pytest.mark.parametrize("scale", [(1,), (1, 1), "15", 5, (0, float("inf")), (False, True)])
def test_a_scale_has_two_ends(scale: Any) -> None:
    with pytest.raises(Invalid, match="scale"):
        normalise_rating(3, scale=scale)
    with pytest.raises(Invalid, match="between"):
        normalise_rating(6, scale=(1, 5))


def test_labels_say_what_categories_mean() -> None:
    labels = {"great": True, "meh": "neutral", "awful": 0.1, "skipped": None}
    scores = [normalise_rating(each, labels=labels).score for each in (*labels, "down")]
    assert scores == [5, 3, 1, None, 1]
    assert normalise_rating("great", labels=labels).original == "great"
