"""Insight: trends, coverage, usefulness, what the cache decided, themes of comments, and what changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from heedful import Heedful, Invalid, NotFound, Signal
from heedful.engine import project_of
from heedful.model import OpinionTarget, SignalType
from heedful.providers.embedding import Embedder
from heedful.statistics.rates import wilson
from heedful.testing import ManualClock


def answered(store: Heedful, session: str, *scores: int | None, dataset: str | None = None) -> list[str]:
    """Answers in a session, rated with these scores."""
    if not store.sessions.exists(session):
        store.sessions.create(session)
    made = []
    for score in scores:
        entry = store.sessions.add_entry(session, "why?", "because")
        made.append(entry.qa_id)
        if score is not None:
            store.sessions.add_feedback(session, entry.qa_id, feedback_score=score)
    return made


def today(clock: ManualClock) -> date:
    return clock.now.astimezone(UTC).date()


class TestTrend:
    def test_each_day_has_its_counts_its_share_and_its_interval(self, either: Heedful, clock: ManualClock) -> None:
        first = today(clock)
        answered(either, "s", 5, 4, 1, 3)
        clock.advance(days=2)
        answered(either, "s", 1)
        found = either.insight.trend()
        (line,) = found.lines
        assert line.value is None
        assert [point.start for point in line.points] == [first + timedelta(days=number) for number in range(3)]
        one, none, last = line.points
        assert (one.up, one.down, one.neutral, one.mean_score) == (2, 1, 1, 13 / 4)
        assert (one.satisfaction, one.low, one.high) == (2 / 3, *wilson(2, 3))
        assert (none.up, none.down, none.satisfaction, none.low, none.mean_score) == (0, 0, None, None, None)
        assert (last.up, last.down, last.satisfaction) == (0, 1, 0.0)
        assert (found.total.up, found.total.down, found.total.neutral) == (2, 2, 1)

    def test_weeks_begin_on_mondays(self, either: Heedful, clock: ManualClock) -> None:
        for _ in range(15):
            answered(either, "s", 5)
            clock.advance(days=1)
        points = either.insight.trend(over="week").lines[0].points
        assert {point.start.weekday() for point in points} == {0}
        assert sum(point.up for point in points) == 15
        assert max(point.up for point in points) == 7

    def test_a_line_for_each_value(self, either: Heedful) -> None:
        for variant, scores in (("A", [1, 1, 5]), ("B", [5, 5])):
            either.sessions.create(variant, metadata={"variant": variant})
            answered(either, variant, *scores)
        found = either.insight.trend(by="variant")
        assert [(line.value, line.points[0].up, line.points[0].down) for line in found.lines] == [
            ("A", 1, 2),
            ("B", 2, 0),
        ]
        assert found.by == "variant"

    def test_what_is_left_out_is_not_counted(self, either: Heedful, clock: ManualClock) -> None:
        answered(either, "s", 1)
        clock.advance(days=3)
        since = clock.now
        answered(either, "s", 5)
        clock.advance(days=3)
        until = clock.now
        answered(either, "s", 1)
        clock.advance(days=3)
        found = either.insight.trend(since=since, until=until)
        assert (found.total.up, found.total.down) == (1, 0)
        assert [point.start for point in found.lines[0].points] == [
            since.date() + timedelta(days=number) for number in range(3)
        ]

    def test_a_project_without_feedback_has_no_points(self, store: Heedful) -> None:
        found = store.insight.trend()
        assert [line.points for line in found.lines] == [[]]
        assert found.total.satisfaction is None

    def test_wrong_ranges_are_refused(self, store: Heedful) -> None:
        with pytest.raises(Invalid, match=r"since \(2026-02-01 00:00\) must be before until \(2026-01-01 00:00\)"):
            store.insight.trend(since=datetime(2026, 2, 1), until=datetime(2026, 1, 1))
        with pytest.raises(Invalid, match="since must be a datetime"):
            store.insight.trend(since="yesterday")  # type: ignore[arg-type]
        with pytest.raises(Invalid, match="invalid over 'month'"):
            store.insight.trend(over="month")  # type: ignore[arg-type]
        with pytest.raises(NotFound, match="no dataset 'nothing'"):
            store.insight.trend(dataset="nothing")


class TestFacets:
    @pytest.mark.slow
    def test_opinions_by_what_they_have(self, store: Heedful) -> None:
        answered(store, "s", 5, 1)
        fact = store.remember("a fact").fact_ids[0]
        for number, author in enumerate(["ann", None, "judge", "visitor-12"]):
            kind: SignalType = "helpful" if number % 2 else "not_helpful"
            store.signal(Signal(fact_id=fact, signal_type=kind, query="why?", author=author))

        def by(facet: str, target: OpinionTarget | None = None) -> dict[object, tuple[int, int]]:
            found = store.insight.satisfaction(facet, target_type=target).variants
            return {each.value: (each.up, each.down) for each in found}

        assert by("target_type") == {"entry": (1, 1), "fact": (2, 2)}
        assert by("source") == {"add_feedback": (1, 1)}
        assert by("source", "fact") == {"signal": (2, 2)}
        assert by("author_kind", "fact") == {"named": (0, 2), "program": (1, 0), "visitor": (1, 0)}
        assert by("dataset", "fact") == {"main_dataset": (2, 2)}
        assert store.insight.trend().total.up == 1
        assert store.insight.trend(target_type="fact").total.up == 2
        assert all(each.sessions is None for each in store.insight.satisfaction("source").variants)

    def test_what_improve_makes_of_ratings_is_not_counted_twice(self, store: Heedful) -> None:
        store.remember("Refunds take two weeks.")
        result = store.recall("How long do refunds take?", session_id="s")
        assert result.qa_id is not None
        store.sessions.add_feedback("s", result.qa_id, feedback_score=1)
        assert store.improve().signals_added
        assert sum(each.down for each in store.insight.satisfaction("target_type").variants) == 1

    def test_answers_are_told_apart_by_their_dataset(self, either: Heedful) -> None:
        either.remember("Refunds take two weeks.", dataset="help")
        either.remember("Staff get a discount.", dataset="staff")
        for dataset, score in (("help", 5), ("help", 1), ("staff", 4)):
            asked = either.recall("refunds or discount", dataset=dataset, session_id="s")
            assert asked.qa_id is not None
            either.sessions.add_feedback("s", asked.qa_id, feedback_score=score)
        result = {each.value: (each.up, each.down) for each in either.insight.satisfaction("dataset").variants}
        assert result == {"help": (1, 1), "staff": (1, 0)}
        only = either.insight.trend(dataset="staff").total
        assert (only.up, only.down) == (1, 0)

    @pytest.mark.slow
    def test_what_nobody_chose_does_not_compete(self, store: Heedful) -> None:
        store.remember("Refunds take two weeks.", dataset="help")
        for number in range(30):
            result = store.recall("How long do refunds take?", dataset="help", session_id="s")
            assert result.qa_id is not None
            store.sessions.add_feedback("s", result.qa_id, feedback_score=5 if number % 2 else 1)
            store.sessions.add_session_feedback("s", {"rating": "up"})
        for facet in ("dataset", "target_type", "author_kind", "source"):
            report = store.insight.satisfaction(facet)
            assert report.variants
            assert (report.comparisons, report.stopping) == ([], None)
        none = next(each for each in store.insight.satisfaction("dataset").variants if each.value is None)
        assert (none.up, none.probability_best) == (30, None)

    def test_it_is_said_when_to_stop(self, store: Heedful) -> None:
        for variant, ups in (("A", 180), ("B", 60)):
            store.sessions.create(variant, metadata={"variant": variant})
            for number in range(200):
                store.sessions.add_session_feedback(variant, {"rating": "up" if number < ups else "down"})
        found = store.insight.satisfaction("variant").stopping
        assert found is not None
        assert (found.decided, found.best, found.needed) == (True, "A", None)


class TestCoverage:
    def test_answers_that_were_rated(self, either: Heedful) -> None:
        first, *_ = answered(either, "s", 5, 1, None, None)
        either.sessions.add_feedback("s", first, feedback_score=4, author="somebody else")
        found = either.insight.coverage().answers
        assert (found.shown, found.rated, found.share) == (4, 2, 0.5)
        assert (found.low, found.high) == wilson(2, 4)
        either.sessions.delete_feedback("s", first)
        either.sessions.delete_feedback("s", first, author="somebody else")
        assert either.insight.coverage().answers.rated == 1

    def test_an_answer_counts_on_its_own_day(self, either: Heedful, clock: ManualClock) -> None:
        (entry,) = answered(either, "s", None)
        clock.advance(days=3)
        either.sessions.add_feedback("s", entry, feedback_score=5)
        assert either.insight.coverage(since=clock.now).answers.shown == 0
        assert either.insight.coverage(since=clock.now).answers.rated == 0
        assert either.insight.coverage().answers.rated == 1

    @pytest.mark.slow
    def test_recalls_that_were_judged(self, store: Heedful) -> None:
        store.remember(["one", "two"])
        judged, other = store.recall("one"), store.recall("two")
        store.signal_recall(judged.recall_id, helpful=[judged.hits[0]])
        assert other.recall_id
        found = store.insight.coverage().recalls
        assert (found.shown, found.rated) == (2, 1)
        assert store.insight.coverage(dataset="main_dataset").recalls.shown == 2

    def test_an_empty_project(self, store: Heedful) -> None:
        found = store.insight.coverage()
        assert (found.answers.shown, found.answers.share, found.recalls.share) == (0, None, None)


class TestCache:
    @pytest.fixture
    def asking(self, store: Heedful, tmp_path: Path) -> Heedful:
        file = tmp_path / "shop.sqlite"
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE orders (id INTEGER, city TEXT)")
            connection.execute("INSERT INTO orders VALUES (1, 'Oslo'), (2, 'Rome')")
        store.connectors.create("shop", f"sqlite:///{file}")
        return store

    def test_decisions_are_counted_by_reason(self, asking: Heedful) -> None:
        assert asking.insight.cache().total == 0
        asking.chat.execution_cache_lookup("How many orders are there?")
        run = asking.executions.execute_query("SELECT count(*) FROM orders", question="How many orders are there?")
        asking.feedback.create_positive(execution_id=run.execution_id)
        for _ in range(2):
            assert asking.chat.execution_cache_lookup("How many orders are there?").cache_hit
        asking.feedback.create_negative(execution_id=run.execution_id, feedback="wrong", author="ann")
        assert not asking.chat.execution_cache_lookup("How many orders are there?").cache_hit
        found = asking.insight.cache()
        assert (found.total, found.reused) == (4, 2)
        assert {(each.decision, each.count) for each in found.counts} == {("serve", 2), ("refuse", 1), ("nothing", 1)}
        assert sum(each.share for each in found.counts) == 1.0
        newest = found.newest[0]
        assert (newest.decision, newest.gate, newest.execution_id) == ("refuse", "feedback", None)
        assert "wrong" in newest.reason
        assert found.newest[1].execution_id is not None


COMMENTS = {
    "refund": [
        "My refund never arrived",
        "still waiting for the refund of my order",
        "The refund takes far too long",
        "where is my refund?",
        "refund was refused without a reason",
    ],
    "price": [
        "The price shown is wrong",
        "wrong price at the checkout",
        "it told me an old price",
        "the price on the page is different",
    ],
}


class TestComments:
    @pytest.fixture
    def complaining(self, open_store: Callable[..., Heedful], bundled: Embedder, clock: ManualClock) -> Heedful:
        """Two weeks of opinions; in the last four days many are about refunds."""
        store = open_store(embedding=bundled)
        store.sessions.create("s")

        def say(comment: str | None, rating: str) -> None:
            store.sessions.add_session_feedback("s", {"rating": rating, "comment": comment})

        for day in range(14):
            for number in range(12):
                say(None, "up")
                if number < 2:
                    say(COMMENTS["price"][(day + number) % 4], "down")
            for number in range(8 if day >= 10 else day % 2):
                say(COMMENTS["refund"][(day + number) % 5], "down")
            clock.advance(days=1)
        return store

    def test_comments_that_mean_the_same_are_a_theme(self, complaining: Heedful) -> None:
        found = complaining.insight.themes()
        assert found.comments == 28 + 37
        assert {word for each in found.themes for word in each.name.split()} >= {"refund", "price"}
        first = found.themes[0]
        assert "refund" in first.name
        assert first.comments >= 30
        assert set(first.examples) <= set(COMMENTS["refund"])
        assert first.comments == len(first.feedback_ids)
        assert sum(each.comments for each in found.themes) + found.other == found.comments

    @pytest.mark.slow
    def test_what_changed_is_told_with_its_arithmetic(self, complaining: Heedful, clock: ManualClock) -> None:
        notes = complaining.insight.notes()
        about = {(note.about, note.value): note for note in notes}
        (theme,) = [note for (kind, value), note in about.items() if kind == "theme" and "refund" in str(value)]
        assert theme.worse
        assert theme.since == today(clock) - timedelta(days=4)
        assert theme.text.startswith("Down-votes on ")
        assert "against" in theme.arithmetic[0]
        assert "by luck alone" in theme.arithmetic[1]
        assert not [note for note in notes if note.about == "theme" and "price" in str(note.value)]

    @pytest.mark.slow
    def test_nothing_is_told_of_a_quiet_time(self, store: Heedful, clock: ManualClock) -> None:
        assert store.insight.notes() == []
        store.sessions.create("s")
        for day in range(28):
            for number in range(10):
                store.sessions.add_session_feedback("s", {"rating": "down" if (day + number) % 5 == 0 else "up"})
            clock.advance(days=1)
        assert store.insight.notes() == []

    @pytest.mark.nightly
    def test_changes_are_looked_for_under_every_key_that_has_a_few_values(
        self, either: Heedful, clock: ManualClock
    ) -> None:
        either.remember("A kettle can be sent back within thirty days.")
        for number in range(30):
            metadata = {
                "app": "web" if number % 3 else "phone",
                "plan": f"plan {number % 10}",
                "user": f"user {number}",
                "variant": "B" if number % 2 else "A",
            }
            either.sessions.create(f"s{number}", metadata=metadata)
        for day in range(14):
            for number in range(30):
                worse = day >= 10 and number % 2
                down = worse or (day + number) % 10 == 0
                either.sessions.add_session_feedback(f"s{number}", {"rating": "down" if down else "up"})
            clock.advance(days=1)
        result = {(note.about, note.value): note for note in either.insight.notes()}
        assert ("metadata.variant", "B") in result
        assert ("metadata.variant", "A") not in result
        # The apps and most plans got worse as well, only because they have sessions of both variants.
        assert not [value for about, value in result if about == "metadata.app"]
        assert not [about for about, _ in result if about == "metadata.user"]
        # All opinions, two apps, ten plans, two variants; what they are about is the same for all.
        assert "× 15 series" in result["metadata.variant", "B"].arithmetic[1]
        named = either.insight.notes(by="user")
        assert "× 45 series" in named[0].arithmetic[1]
        with pytest.raises(Invalid, match="no session has the metadata key"):
            either.insight.notes(by="nobody")

    def test_of_many_keys_those_with_the_fewest_values_are_looked_at(self, store: Heedful) -> None:
        for number in range(12):
            metadata = {f"k{size}": number % size for size in range(1, 9)} | {"deep": {"switch": number % 2}}
            store.sessions.create(f"s{number}", metadata=metadata)
        assert project_of(store).insight.telling_keys() == ["deep.switch", "k2", "k3", "k4", "k5"]

    def test_comments_in_either_database(self, either: Heedful) -> None:
        either.sessions.create("s")
        for comment in ("", "  ", "no good", "x" * 10_000, "<script>alert(1)</script>", "بطيء جدا", "👎👎"):
            either.sessions.add_session_feedback("s", {"rating": "down", "comment": comment})
        either.sessions.add_session_feedback("s", {"rating": "up", "comment": "fine"})
        assert either.insight.themes().comments == 5
