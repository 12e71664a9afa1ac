"""Which rated questions lend evidence to one that is near them, and what clocks that are wrong do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

import heedful
from heedful import Heedful, Recall, Signal
from heedful.ledger.adaptive_policy import RELATED
from heedful.model import SIGNAL_TYPES
from heedful.providers.embedding import Embedder
from heedful.testing import ManualClock

RATED = "How can I log in again?"
ASKED = "I can't log in to my account any more, what now?"
FACTS = [
    "Password reset e-mails expire after fifteen minutes.",
    "Your account is locked after five wrong passwords.",
    "To get back into your account, call the help desk for a one-time code.",
    "The cafeteria opens at eight.",
]
CODE, CAFETERIA = 2, 3
WHEN = ["now", "today", "tomorrow", "tonight", "first", "next", "here", "then", "soon", "again", "instead", "later"]
NEARER = [f"I can't log in to my account any more, what should I do {when}?" for when in WHEN]
NEARER += [f"{question[:-1]} on my phone?" for question in NEARER]

Opening = Callable[..., Heedful]


@pytest.fixture
def opening(any_store: str, bundled: Embedder, clock: ManualClock) -> Iterator[Opening]:
    """Opens the test's store, again and again."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(heedful.open(any_store, embedding=bundled, clock=clock))


@pytest.fixture
def memory(opening: Opening) -> Heedful:
    return opening()


@pytest.fixture
def facts(memory: Heedful) -> list[str]:
    return memory.remember(FACTS).fact_ids


def rate(memory: Heedful, fact: str, *questions: str, author: str = "ada", kind: str = "helpful") -> list[str]:
    given_signals = [
        Signal(fact_id=fact, signal_type=kind, query=question, author=author)  # type: ignore[arg-type]
        for question in questions
    ]
    return memory.signal(given_signals).event_ids


def source(recall: Recall, fact: str) -> str:
    return next(hit.usefulness_source for hit in recall if hit.fact_id == fact)


def ranks(recall: Recall) -> list[tuple[str, float, float, str]]:
    return [(hit.fact_id, hit.score, hit.usefulness, hit.usefulness_source) for hit in recall]


class TestOnlyWhatCountsTakesAPlace:
    """Of the nearest rated questions, so many are asked for evidence; others must not take their places."""

    @pytest.mark.slow
    def test_there_are_more_nearer_questions_than_places(self, memory: Heedful, facts: list[str]) -> None:
        assert len(NEARER) > RELATED
        rate(memory, facts[CODE], RATED)
        assert source(memory.recall(ASKED), facts[CODE]) == "related"
        rate(memory, facts[CAFETERIA], *NEARER)
        assert source(memory.recall(ASKED), facts[CODE]) == "neutral"

    @pytest.mark.nightly
    def test_questions_whose_signals_were_retracted_take_none(
        self, memory: Heedful, facts: list[str], opening: Opening
    ) -> None:
        rate(memory, facts[CODE], RATED)
        other = opening()
        before = memory.recall(ASKED)
        assert (before[0].fact_id, before[0].usefulness_source) == (facts[CODE], "related")
        assert ranks(other.recall(ASKED)) == ranks(before)
        for event in rate(memory, facts[CAFETERIA], *NEARER):
            memory.retract(event)
        for reader in (memory, other, opening()):
            assert ranks(reader.recall(ASKED)) == ranks(before)

    @pytest.mark.slow
    def test_they_take_one_again_with_the_next_signal(
        self, memory: Heedful, facts: list[str], opening: Opening
    ) -> None:
        (event,) = rate(memory, facts[CODE], RATED)
        before = memory.recall(ASKED)
        memory.retract(event)
        assert {hit.usefulness_source for hit in memory.recall(ASKED)} == {"neutral"}
        rate(memory, facts[CODE], RATED)
        for reader in (memory, opening()):
            assert ranks(reader.recall(ASKED)) == ranks(before)

    def test_questions_of_visitors_take_none(self, memory: Heedful, facts: list[str], opening: Opening) -> None:
        rate(memory, facts[CODE], RATED)
        before = memory.recall(ASKED)
        rate(memory, facts[CAFETERIA], *NEARER, author="visitor-x")
        for reader in (memory, opening()):
            assert ranks(reader.recall(ASKED)) == ranks(before)

    @pytest.mark.nightly
    def test_questions_about_forgotten_facts_take_none(
        self, memory: Heedful, facts: list[str], opening: Opening
    ) -> None:
        rate(memory, facts[CODE], RATED)
        before = memory.recall(ASKED)
        menu = memory.remember("The menu is on the door.").fact_ids[0]
        rate(memory, menu, *NEARER)
        assert source(memory.recall(ASKED), facts[CODE]) == "neutral"
        memory.forget(menu)
        for reader in (memory, opening()):
            assert ranks(reader.recall(ASKED)) == ranks(before)

    @pytest.mark.slow
    def test_questions_with_signals_of_no_weight_take_none(self, memory: Heedful, facts: list[str]) -> None:
        rate(memory, facts[CODE], RATED)
        before = memory.recall(ASKED)
        said = [
            Signal(fact_id=facts[CAFETERIA], signal_type="used", query=each, confidence=0, author="ada")
            for each in NEARER
        ]
        memory.signal(said)
        assert ranks(memory.recall(ASKED)) == ranks(before)


GYM = "When does the gym open?"
NEAR_GYM = "When can I go to the gym?"
FIVE = ("bob", "cy", "dan", "eve", "fay")


class TestClocks:
    """A clock that was ahead, or one that is behind, neither fails nor gives anybody more weight."""

    @pytest.fixture
    def gym(self, memory: Heedful) -> tuple[str, str]:
        at_six, in_summer = memory.remember(
            ["The gym opens at six.", "The gym opens its doors at six in summer."]
        ).fact_ids
        return at_six, in_summer

    def five_against_one(self, memory: Heedful, clock: ManualClock, gym: tuple[str, str], one_at: datetime) -> None:
        """Five are for the first fact, now, and one is for the second, by a clock of their own."""
        now = clock.now
        clock.now = one_at
        rate(memory, gym[1], GYM, author="ann")
        clock.now = now
        for author in FIVE:
            rate(memory, gym[0], GYM, author=author)

    @pytest.mark.parametrize("question", [GYM, NEAR_GYM])
    @pytest.mark.parametrize("year", [2027, 9000])
    @pytest.mark.nightly
    def test_a_vote_from_the_future_weighs_as_one_of_today(
        self, memory: Heedful, clock: ManualClock, gym: tuple[str, str], opening: Opening, year: int, question: str
    ) -> None:
        self.five_against_one(memory, clock, gym, clock.now)
        expected = ranks(memory.recall(question))
        other = memory.remember(
            ["The gym opens at six.", "The gym opens its doors at six in summer."], dataset="ahead"
        ).fact_ids
        self.five_against_one(memory, clock, (other[0], other[1]), datetime(year, 1, 1, tzinfo=UTC))
        same = dict(zip(other, gym, strict=True))
        for reader in (memory, opening()):
            found = ranks(reader.recall(question, dataset="ahead"))
            assert [(same[fact], *rest) for fact, *rest in found] == expected

    @pytest.mark.parametrize("behind", [timedelta(days=365), timedelta(days=16 * 365), timedelta(days=56 * 365)])
    @pytest.mark.nightly
    def test_a_reader_whose_clock_is_behind_sees_what_the_others_saw(
        self, memory: Heedful, clock: ManualClock, gym: tuple[str, str], opening: Opening, behind: timedelta
    ) -> None:
        self.five_against_one(memory, clock, gym, clock.now)
        expected = [ranks(memory.recall(question)) for question in (GYM, NEAR_GYM)]
        clock.now -= behind
        for reader in (memory, opening()):
            assert [ranks(reader.recall(question)) for question in (GYM, NEAR_GYM)] == expected


moments = st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))


@some(1 / 4)
@given(
    said=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(SIGNAL_TYPES),
            st.sampled_from([GYM, NEAR_GYM]),
            st.sampled_from([None, "ann", "bob"]),
            moments,
        ),
        max_size=6,
    ),
    now=moments,
)
@pytest.mark.nightly
def test_any_clock_at_any_time_gives_finite_numbers(
    new_store: Callable[[ManualClock], Heedful], said: list[tuple[int, str, str, str | None, datetime]], now: datetime
) -> None:
    clock = ManualClock(now)
    with new_store(clock) as memory:
        ids = memory.remember(["The gym opens at six.", "The gym opens its doors at six in summer."]).fact_ids
        for fact, kind, question, author, at in said:
            clock.now = at
            memory.signal([Signal(fact_id=ids[fact], signal_type=kind, query=question, author=author)])  # type: ignore[arg-type]
        clock.now = now
        for question in (GYM, NEAR_GYM):
            for hit in memory.recall(question):
                assert isfinite(hit.score)
                assert 0 <= hit.usefulness <= 1


class TestTheLeastUsefulness:
    def test_finds_what_related_questions_make_useful(self, memory: Heedful, facts: list[str]) -> None:
        rate(memory, facts[CODE], RATED)
        useful = {hit.fact_id: hit.usefulness for hit in memory.recall(ASKED)}
        assert useful[facts[CODE]] > 0.6
        assert [hit.fact_id for hit in memory.recall(ASKED, min_usefulness=0.6)] == [facts[CODE]]
        assert memory.recall(ASKED, min_usefulness=useful[facts[CODE]] + 0.001).hits == []

    def test_hides_only_what_people_spoke_against_for_the_very_question(
        self, memory: Heedful, facts: list[str]
    ) -> None:
        rate(memory, facts[0], ASKED, kind="not_helpful")
        shown = {hit.fact_id for hit in memory.recall(ASKED, min_usefulness=0.4)}
        assert shown == {hit.fact_id for hit in memory.recall(ASKED)} - {facts[0]}
