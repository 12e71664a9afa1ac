"""Satisfaction by a metadata key: is one variant better than another?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from heedful import Heedful, Invalid, Satisfaction
from heedful.statistics.rates import probability_best, probability_better, wilson
from heedful.testing import ManualClock

_NUMBERS = count()


def rated(store: Heedful, metadata: dict[str, Any], *ratings: str | int | None) -> str:
    """A new session with these ratings: of the session, or, for numbers, of an answer in it."""
    session = f"s{next(_NUMBERS)}"
    store.sessions.create(session, metadata=metadata)
    for rating in ratings:
        if isinstance(rating, int):
            entry = store.sessions.add_entry(session, "q", "a")
            store.sessions.add_feedback(session, entry.qa_id, feedback_score=rating)
        else:
            store.sessions.add_session_feedback(session, {"rating": rating})
    return session


def counts(found: Satisfaction) -> dict[Any, tuple[int | None, int, int, int]]:
    return {each.value: (each.sessions, each.up, each.down, each.neutral) for each in found.variants}


def test_variants_are_counted_with_intervals_and_compared(either: Heedful) -> None:
    for rating in ["up"] * 8 + ["down"] * 2:
        rated(either, {"variant": "B"}, rating)
    rated(either, {"variant": "A"}, *["up"] * 5, *["down"] * 5, None)
    rated(either, {"variant": "C"})
    rated(either, {"experiment": "none"}, "down")
    report = either.insight.satisfaction("variant")
    assert report.by == "variant"
    assert counts(report) == {"B": (10, 8, 2, 0), "A": (1, 5, 5, 1), "C": (1, 0, 0, 0)}
    b, a, c = report.variants
    assert (b.value, a.value, c.value) == ("B", "A", "C")
    assert (b.satisfaction, b.low, b.high) == (0.8, *wilson(8, 10))
    assert (round(b.low or 0, 4), round(b.high or 0, 4)) == (0.4902, 0.9433)
    assert (a.satisfaction, a.low, a.high) == (0.5, *wilson(5, 10))
    assert (c.satisfaction, c.low, c.high, c.mean_score, c.probability_best) == (None,) * 5
    assert [b.probability_best, a.probability_best] == probability_best([(8, 2), (5, 5)])
    (only,) = report.comparisons
    assert (only.better, only.than, only.probability) == ("B", "A", probability_better((8, 2), (5, 5)))
    assert round(only.probability, 4) == 0.9087


def test_the_likelier_winner_of_each_pair_is_named_first(either: Heedful) -> None:
    rated(either, {"variant": "bad"}, "down", "down", "down")
    rated(either, {"variant": "bad"})
    rated(either, {"variant": "good"}, "up", "up", "up")
    rated(either, {"variant": "middling"}, "up", "down")
    report = either.insight.satisfaction("variant")
    pairs = {(each.better, each.than) for each in report.comparisons}
    assert pairs == {("good", "bad"), ("good", "middling"), ("middling", "bad")}
    assert all(0.5 <= each.probability < 1 for each in report.comparisons)
    assert sum(each.probability_best or 0 for each in report.variants) == pytest.approx(1)


def test_scores_of_answers_count_as_up_down_and_neutral(either: Heedful) -> None:
    rated(either, {"variant": "A"}, 5, 4, 3, 2, 1, 1, "up")
    (only,) = either.insight.satisfaction("variant").variants
    assert (only.up, only.down, only.neutral) == (3, 3, 1)
    assert only.mean_score == pytest.approx(16 / 6)


def test_only_what_stands_counts(either: Heedful) -> None:
    session = rated(either, {"variant": "A"}, 5, "up")
    gone = rated(either, {"variant": "A"}, "down")
    (entry,) = either.sessions.entries(session).items
    either.sessions.delete_feedback(session, entry.qa_id)
    either.sessions.delete(gone)
    assert counts(either.insight.satisfaction("variant")) == {"A": (1, 1, 0, 0)}
    either.sessions.update_metadata(session, {"variant": "B"})
    assert counts(either.insight.satisfaction("variant")) == {"B": (1, 1, 0, 0)}
    either.sessions.delete_metadata(session, "variant")
    assert either.insight.satisfaction("variant") == Satisfaction(by="variant", variants=[], comparisons=[])


@pytest.mark.parametrize("by", ["user.plan", "metadata.user.plan"])
def test_a_dotted_key_reaches_inside(either: Heedful, by: str) -> None:
    rated(either, {"user": {"plan": "pro"}}, "up")
    rated(either, {"user": {"plan": "free"}}, "down")
    rated(either, {"user": "pro"}, "down")
    report = either.insight.satisfaction(by)
    assert report.by == "user.plan"
    assert counts(report) == {"pro": (1, 1, 0, 0), "free": (1, 0, 1, 0)}


def test_a_session_with_a_list_counts_for_each_of_its_values(either: Heedful) -> None:
    rated(either, {"tags": ["x", "y", "x"]}, "up", 1)
    rated(either, {"tags": "x"}, "down")
    assert counts(either.insight.satisfaction("tags")) == {"x": (2, 1, 2, 0), "y": (1, 1, 1, 0)}


def test_values_of_different_kinds_stay_apart(either: Heedful) -> None:
    for value in (1, "1", True, "true", 1.5, "ü 👍", '"quoted', ""):
        rated(either, {"variant": value}, "up")
    found = either.insight.satisfaction("variant").variants
    assert sorted(repr(each.value) for each in found) == sorted(
        map(repr, (1, "1", True, "true", 1.5, "ü 👍", '"quoted', ""))
    )
    assert {each.up for each in found} == {1}


def test_feedback_before_a_moment_can_be_left_out(either: Heedful, clock: ManualClock) -> None:
    session = rated(either, {"variant": "A"}, "down", "down")
    clock.advance(days=1)
    moment = clock.now
    either.sessions.add_session_feedback(session, {"rating": "up"})
    for since in (moment, moment.replace(tzinfo=None), moment - timedelta(microseconds=1)):
        assert counts(either.insight.satisfaction("variant", since=since)) == {"A": (1, 1, 0, 0)}
    later = either.insight.satisfaction("variant", since=moment + timedelta(microseconds=1))
    assert counts(later) == {"A": (1, 0, 0, 0)}
    assert counts(either.insight.satisfaction("variant", since=datetime.min)) == {"A": (1, 1, 2, 0)}


@pytest.mark.slow
def test_a_key_with_too_many_values_is_no_variant(either: Heedful) -> None:
    rated(either, {"user": [f"u{number}" for number in range(50)]}, "up")
    assert len(either.insight.satisfaction("user").variants) == 50
    rated(either, {"user": "one more"}, "up")
    with pytest.raises(Invalid, match="51 values; up to 50") as error:
        either.insight.satisfaction("user")
    assert error.value.field == "by"


@pytest.mark.parametrize("by", ["", " ", ".", "a..b", "$where", "a.$b", "metadata.", None, 5])
def test_what_is_no_key_is_refused(store: Heedful, by: Any) -> None:
    with pytest.raises(Invalid) as error:
        store.insight.satisfaction(by)
    assert error.value.field == "by"


@pytest.mark.parametrize("since", ["2026-01-01", 5, True])
def test_what_is_no_moment_is_refused(store: Heedful, since: Any) -> None:
    with pytest.raises(Invalid) as error:
        store.insight.satisfaction("variant", since=since)
    assert error.value.field == "since"


def test_projects_are_counted_apart(open_either: Callable[..., Heedful]) -> None:
    one, other = open_either(project="one"), open_either(project="other")
    rated(one, {"variant": "A"}, "up")
    rated(other, {"variant": "A"}, "down", "down")
    assert counts(one.insight.satisfaction("variant")) == {"A": (1, 1, 0, 0)}
    assert counts(other.insight.satisfaction("variant")) == {"A": (1, 0, 2, 0)}


@pytest.mark.slow
def test_both_databases_say_the_same(open_store: Callable[..., Heedful], mongodb_url: str) -> None:
    stores = open_store(), open_store(sessions=mongodb_url)
    for store in stores:
        for number in range(12):
            rating = ("up", "down", None)[number % 3]
            rated(store, {"variant": "ABC"[number % 3 - number % 2], "n": {"m": number % 2}}, rating, number % 5 + 1)
    for key in ("variant", "n.m"):
        assert stores[0].insight.satisfaction(key) == stores[1].insight.satisfaction(key)


def test_a_key_that_no_session_has_is_refused_with_those_there_are(either: Heedful) -> None:
    rated(either, {"variant": "A", "user": {"plan": "pro"}}, "up")
    with pytest.raises(Invalid, match="no session has the metadata key 'varient'") as refused:
        either.insight.satisfaction("varient")
    assert refused.value.field == "by"
    assert refused.value.remedy is not None
    assert "Sessions have: user.plan, variant." in refused.value.remedy


@pytest.mark.parametrize("by", ["", "  ", "metadata.", None, 5])
def test_what_names_nothing_is_told_with_what_can_be_named(store: Heedful, by: Any) -> None:
    with pytest.raises(Invalid) as caught:
        store.insight.satisfaction(by)
    assert caught.value.field == "by"
    assert "metadata.variant" in str(caught.value.remedy)
