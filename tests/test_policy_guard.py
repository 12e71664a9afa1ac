"""Changes of policy are events that can be undone, and what people say after them is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

import heedful
from heedful import Heedful
from heedful.interfaces.cli.insight_commands import notes as show_notes
from heedful.interfaces.dashboard import views
from heedful.jobs import kinds
from heedful.model import Note
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.slow


def days(store: Heedful, clock: ManualClock, count: int, ups: int, downs: int, dataset: str = "help") -> None:
    """So many days on which as many answers from a dataset are rated."""
    for _ in range(count):
        shown = store.recall("refunds", dataset=dataset).recall_id
        for number in range(ups + downs):
            entry = store.sessions.add_entry("s", "why?", "because", recall_id=shown, used=[])
            store.sessions.add_feedback("s", entry.qa_id, feedback_score=5 if number < ups else 1)
        clock.advance(days=1)


def of_policy(store: Heedful) -> list[Note]:
    return [note for note in store.insight.notes() if note.about == "policy"]


def chosen(store: Heedful) -> str | None:
    return views.policies(store).datasets["help"]


@pytest.fixture
def helped(either: Heedful, clock: ManualClock) -> Heedful:
    """A store with a week of ratings."""
    either.remember("Refunds take 14 days.", dataset="help")
    days(either, clock, 7, ups=8, downs=2)
    return either


class TestChoices:
    def test_a_change_is_an_event_that_can_be_undone(self, either: Heedful) -> None:
        either.remember("Refunds take 14 days.", dataset="help")
        first = either.set_policy("documented", dataset="help")
        second = either.set_policy("adaptive", dataset="help")
        assert (first.previous, second.previous, second.policy) == (None, "documented", "adaptive")
        assert first.event_id is not None
        assert second.event_id is not None
        either.retract(second.event_id)
        assert either.recall("refunds", dataset="help").policy == "documented"
        either.retract(first.event_id)
        assert chosen(either) is None
        either.retract(first.event_id)
        assert chosen(either) is None

    def test_an_earlier_change_is_undone_without_the_later_one(self, either: Heedful) -> None:
        either.remember("Refunds take 14 days.")
        first = either.set_policy("documented")
        either.set_policy("adaptive")
        assert first.event_id is not None
        either.retract(first.event_id)
        assert either.recall("refunds").policy == "adaptive"

    def test_choosing_what_is_chosen_changes_nothing(self, either: Heedful) -> None:
        either.set_policy("documented")
        again = either.set_policy("documented")
        assert (again.event_id, again.policy, again.previous) == (None, "documented", "documented")


class TestNotes:
    @pytest.mark.nightly
    def test_ratings_that_got_worse_are_told(self, helped: Heedful, clock: ManualClock) -> None:
        change = helped.set_policy("documented", dataset="help")
        days(helped, clock, 5, ups=3, downs=7)
        (note,) = of_policy(helped)
        assert (note.worse, note.value, note.event_id) == (True, "help", change.event_id)
        assert note.since == (clock.now - timedelta(days=5)).date()
        assert "the policy of help changed from the default to documented" in note.text
        assert "down-votes of answers rose from 20% to 70%" in note.text
        assert "35 of 50 in 5 days" in note.arithmetic[0]
        assert "by luck alone" in note.arithmetic[1]
        assert note in helped.insight.notes(dataset="help")
        assert note.text in helped.insight.digest().text

    @pytest.mark.nightly
    def test_the_moment_of_the_change_counts_not_its_day(self, helped: Heedful, clock: ManualClock) -> None:
        clock.advance(hours=-20)
        helped.set_policy("documented", dataset="help")
        clock.advance(hours=1)
        days(helped, clock, 2, ups=0, downs=12)
        (note,) = of_policy(helped)
        assert "rose from 20% to 100%" in note.text

    @pytest.mark.parametrize(("ups", "downs"), [(8, 2), (7, 3), (10, 0)])
    @pytest.mark.nightly
    def test_what_chance_allows_is_not(self, helped: Heedful, clock: ManualClock, ups: int, downs: int) -> None:
        helped.set_policy("documented", dataset="help")
        days(helped, clock, 5, ups=ups, downs=downs)
        assert of_policy(helped) == []

    @pytest.mark.nightly
    def test_other_datasets_do_not_count(self, helped: Heedful, clock: ManualClock) -> None:
        helped.remember("Open at nine.", dataset="other")
        helped.set_policy("documented", dataset="other")
        days(helped, clock, 5, ups=0, downs=10)
        assert of_policy(helped) == []

    @pytest.mark.nightly
    def test_a_change_for_the_project_concerns_what_has_no_policy_of_its_own(
        self, helped: Heedful, clock: ManualClock
    ) -> None:
        helped.set_policy("documented")
        days(helped, clock, 4, ups=0, downs=10)
        (note,) = of_policy(helped)
        assert note.value is None
        assert "the policy of the project" in note.text
        helped.set_policy("adaptive", dataset="help")
        assert [note.value for note in of_policy(helped)] == []

    def test_ratings_of_facts_count_too(self, either: Heedful, clock: ManualClock) -> None:
        either.remember(["Refunds take 14 days.", "Refunds need a receipt."], dataset="help")

        def rated(count: int, helpful: int) -> None:
            for number in range(count):
                found = either.recall("refunds", dataset="help")
                good, bad = ([found[0]], []) if number < helpful else ([], [found[0]])
                author = f"user {clock.now} {number}"
                either.signal_recall(found.recall_id, helpful=good, not_helpful=bad, author=author)
            clock.advance(days=1)

        for _ in range(3):
            rated(10, 9)
        either.set_policy("documented", dataset="help")
        for _ in range(3):
            rated(10, 2)
        (note,) = of_policy(either)
        assert "down-votes of facts rose" in note.text

    @pytest.mark.nightly
    def test_an_undone_change_is_told_no_more(self, helped: Heedful, clock: ManualClock) -> None:
        change = helped.set_policy("documented", dataset="help")
        days(helped, clock, 5, ups=3, downs=7)
        assert change.event_id is not None
        helped.retract(change.event_id)
        assert of_policy(helped) == []


@contextmanager
def working(url: str, clock: ManualClock) -> Iterator[Store]:
    opened = Store(url, embedding=WordEmbedder(), clock=clock)
    try:
        yield opened
    finally:
        opened.close()


def maintained(url: str, clock: ManualClock) -> None:
    with working(url, clock) as opened:
        opened.queue.add(None, "maintain", {})
        opened.queue.work(opened.run_job, None, lambda: False, once=True)


class TestSwitchingBack:
    @pytest.fixture
    def worse(self, any_store: str, clock: ManualClock) -> Iterator[Heedful]:
        """A store whose ratings got worse after a change of policy."""
        with heedful.open(any_store, embedding=WordEmbedder(), clock=clock, worker=False) as store:
            store.remember("Refunds take 14 days.", dataset="help")
            store.set_policy("adaptive", dataset="help")
            days(store, clock, 7, ups=8, downs=2)
            store.set_policy("documented", dataset="help")
            days(store, clock, 5, ups=3, downs=7)
            yield store

    @pytest.mark.nightly
    def test_nobody_switches_back_unless_told_to(self, worse: Heedful, any_store: str, clock: ManualClock) -> None:
        maintained(any_store, clock)
        assert chosen(worse) == "documented"

    @pytest.mark.nightly
    def test_maintenance_switches_back_once_and_it_can_be_undone(
        self, worse: Heedful, any_store: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HEEDFUL_REVERT_WORSE_POLICY", "true")
        maintained(any_store, clock)
        assert chosen(worse) == "adaptive"
        (note,) = of_policy(worse)
        assert note.text.endswith("so it was changed back")
        assert note.event_id is not None
        in_use = worse.policy(dataset="help")
        assert (in_use.policy, in_use.chosen_by, in_use.event_id) == ("adaptive", "guard", note.event_id)
        worse.retract(note.event_id)
        assert chosen(worse) == "documented"
        maintained(any_store, clock)
        assert chosen(worse) == "documented"
        assert worse.doctor(repair=False)

    @pytest.mark.nightly
    def test_what_did_not_get_worse_stays(
        self, worse: Heedful, any_store: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HEEDFUL_REVERT_WORSE_POLICY", "true")
        worse.set_policy("adaptive", dataset="help")
        days(worse, clock, 5, ups=3, downs=7)
        with working(any_store, clock) as opened:
            assert kinds.guard_policies(opened) == []
        assert chosen(worse) == "adaptive"


def test_the_command_line_tells_how_to_undo_it(
    open_store: Callable[..., Heedful], clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store()
    store.remember("Refunds take 14 days.", dataset="help")
    days(store, clock, 7, ups=8, downs=2)
    change = store.set_policy("documented", dataset="help")
    days(store, clock, 5, ups=3, downs=7)
    show_notes(of_policy(store))
    assert f"heedful retract {change.event_id}" in capsys.readouterr().out
