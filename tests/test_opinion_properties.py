"""What a history of opinions must and must not do to a ranking, whatever it is: on every store, by both policies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, product
from math import isfinite
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import some

import heedful
from heedful import Heedful, Hit
from heedful.model import SIGNAL_TYPES, SignalType
from heedful.providers.embedding import Embedder, Vectors
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.slow

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FACTS = [
    "The gym opens at six.",
    "The gym opens its doors at seven in summer.",
    "The gym is closed on Sundays.",
    "A day at the gym costs nine euros.",
    "The pool opens at nine.",
    "Members bring a towel to the gym.",
]
# The same words, paraphrases from near to far, and a neighbouring need.
QUESTIONS = [
    "When does the gym open?",
    "when does the GYM open",
    "At what time does the gym open?",
    "What are the opening hours of the gym?",
    "When can I go to the gym?",
    "Is the gym open on Sunday?",
    "When does the pool open?",
]
NAMED = [None, "ann", "bob", "cy"]


@dataclass(frozen=True)
class Said:
    """One opinion, about a fact by its place in the list."""

    fact: int
    kind: SignalType
    question: str
    author: str | None
    confidence: float = 1.0
    at: datetime = NOW


def opinions(
    questions: Sequence[str] = QUESTIONS,
    authors: Sequence[str | None] = NAMED,
    kinds: Sequence[SignalType] = SIGNAL_TYPES,
    facts: Sequence[int] = range(len(FACTS)),
) -> st.SearchStrategy[Said]:
    return st.builds(
        Said,
        st.sampled_from(facts),
        st.sampled_from(kinds),
        st.sampled_from(questions),
        st.sampled_from(authors),
        st.sampled_from([0.1, 0.3, 0.77, 1.0]),
        st.sampled_from([0, 0.04, 1, 8, 100, 700]).map(lambda days: NOW - timedelta(days=days)),
    )


histories = st.lists(opinions(), max_size=8)


class Remembered:
    """A model that embeds each text once, because properties ask for a few texts again and again."""

    def __init__(self, model: Embedder) -> None:
        self.name, self.dimensions, self.calibration = model.name, model.dimensions, model.calibration
        self._model = model
        self._vectors: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._model.embed([text])[0]
        return np.array([self._vectors[text] for text in texts], np.float32).reshape(len(texts), self.dimensions)


@pytest.fixture(scope="module")
def model(bundled: Embedder) -> Embedder:
    return Remembered(bundled)


Opening = Callable[[], Heedful]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def opening(any_store: str, model: Embedder, clock: ManualClock) -> Opening:
    """Opens the test's store, again and again."""
    return lambda: heedful.open(any_store, embedding=model, clock=clock, worker=False)


@pytest.fixture
def memory(opening: Opening) -> Iterator[Heedful]:
    with opening() as opened:
        yield opened


@pytest.fixture
def other(opening: Opening) -> Iterator[Heedful]:
    """A reader of the same store, who is there all the time."""
    with opening() as opened:
        yield opened


_numbers = count()


class Place:
    """A new dataset with the facts; each example of a property has its own, in one store."""

    def __init__(self, memory: Heedful, facts: Sequence[str] = FACTS) -> None:
        self.memory = memory
        self.name = f"example {next(_numbers)}"
        self.facts = memory.remember(facts, dataset=self.name).fact_ids

    def say(self, *given_opinions: Said) -> list[str]:
        """Gives the opinions in one call, in this order."""
        signals = [
            {
                "fact_id": self.facts[each.fact],
                "signal_type": each.kind,
                "query": each.question,
                "author": each.author,
                "confidence": each.confidence,
                "at": each.at,
            }
            for each in given_opinions
        ]
        return self.memory.signal(signals).event_ids if signals else []

    def hits(self, question: str, reader: Heedful | None = None, **options: Any) -> list[Hit]:
        return (reader or self.memory).recall(question, dataset=self.name, top_k=len(self.facts), **options).hits

    def hit(self, said: Said) -> Hit:
        """How the fact that an opinion is about is found for its question."""
        return next(hit for hit in self.hits(said.question) if hit.fact_id == self.facts[said.fact])


DEFAULT: dict[str, Any] = {}
DOCUMENTED: dict[str, Any] = {"boost_by_usefulness": True}
POLICIES = (DEFAULT, DOCUMENTED)


def rankings(place: Place, reader: Heedful | None = None, ways: Sequence[dict[str, Any]] = POLICIES) -> list[Any]:
    """What is shown for every question: texts, ranks and all numbers."""
    return [
        [(hit.text, hit.score, hit.relevance, hit.usefulness, hit.usefulness_source) for hit in hits]
        for question, options in product(QUESTIONS, ways)
        for hits in [place.hits(question, reader, **options)]
    ]


def everything(place: Place, reader: Heedful | None = None) -> list[Any]:
    """The rankings with their explanations, and what is said of each fact and of all."""
    reader = reader or place.memory
    explained = [
        [hit.model_dump() for hit in place.hits(question, reader, explain=True, **options)]
        for question, options in product(QUESTIONS, POLICIES)
    ]
    stats = [reader.fact_stats(fact).model_dump() for fact in place.facts]
    return [explained, stats, reader.usefulness_stats(dataset=place.name).model_dump()]


@some(1 / 8)
@given(first=histories, second=histories, data=st.data())
@pytest.mark.nightly
def test_retracting_all_of_a_history_leaves_no_trace(
    memory: Heedful, other: Heedful, opening: Opening, first: list[Said], second: list[Said], data: st.DataObject
) -> None:
    place = Place(memory)
    before = everything(place)
    events = place.say(*first)
    # Both have seen the first half when the rest comes.
    assert rankings(place, other) == rankings(place)
    events += place.say(*second)
    for event in data.draw(st.permutations(events)):
        memory.retract(event)
    with opening() as reopened:
        for reader in (memory, other, reopened):
            assert everything(place, reader) == before


@some(1 / 8)
@given(lasting=histories, passing=histories)
@pytest.mark.nightly
def test_what_was_retracted_leaves_the_ranking_of_the_rest(
    memory: Heedful, other: Heedful, lasting: list[Said], passing: list[Said]
) -> None:
    place, spared = Place(memory), Place(memory)
    spared.say(*lasting)
    retracted = place.say(*passing)
    place.say(*lasting)
    rankings(place)
    for event in retracted:
        memory.retract(event)
    expected = rankings(spared)
    for reader in (memory, other):
        assert rankings(place, reader) == expected


@some(1 / 8)
@given(history=histories, data=st.data())
@pytest.mark.nightly
def test_opinions_rank_alike_in_any_order_of_arrival(
    memory: Heedful, other: Heedful, history: list[Said], data: st.DataObject
) -> None:
    # Opinions of one moment count in the order in which they came, so each has its own.
    timed = [replace(each, at=each.at - timedelta(seconds=number)) for number, each in enumerate(history)]
    place, shuffled = Place(memory), Place(memory)
    place.say(*timed)
    for each in data.draw(st.permutations(timed)):
        shuffled.say(each)
        if data.draw(st.booleans()):
            shuffled.hits(each.question)
    expected = rankings(place)
    for reader in (memory, other):
        assert rankings(shuffled, reader) == expected


CASES = ["".join(word) for word in product(*zip("gym", "GYM", strict=True))]
SPELLINGS = [f"{when} does the {gym} open" for when in ("when", "When", "WHEN", "wHEN") for gym in CASES]


def test_questions_with_one_vector_rank_alike_in_any_order_of_arrival(any_store: str, clock: ManualClock) -> None:
    """They are more than are asked for evidence, and equally near."""
    asked = "when is the gym open to guests"
    with heedful.open(any_store, embedding=WordEmbedder(), clock=clock, worker=False) as memory:
        found = []
        for spellings in (SPELLINGS, SPELLINGS[::-1]):
            place = Place(memory)
            for question in spellings:
                number = SPELLINGS.index(question)
                place.say(Said(number // 16, "helpful", question, "ann", at=NOW - timedelta(days=number)))
            found.append([(hit.text, hit.score, hit.usefulness) for hit in place.hits(asked)])
        assert found[0] == found[1]


@some(1 / 8)
@given(
    history=histories,
    visits=st.lists(opinions(authors=["visitor-1", "visitor-2", "visitor-anyone"]), min_size=1, max_size=10),
)
@pytest.mark.nightly
def test_visitors_move_nothing(memory: Heedful, other: Heedful, history: list[Said], visits: list[Said]) -> None:
    place = Place(memory)
    place.say(*history)
    before = rankings(place, ways=[DEFAULT])
    place.say(*visits)
    for reader in (memory, other):
        assert rankings(place, reader, ways=[DEFAULT]) == before


moments = st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))


@some(1 / 8)
@given(
    history=st.lists(st.tuples(opinions(), moments, moments | st.none()), min_size=1, max_size=6),
    asked=st.lists(moments, min_size=1, max_size=3),
)
@pytest.mark.nightly
def test_any_clock_gives_finite_numbers(
    memory: Heedful,
    other: Heedful,
    clock: ManualClock,
    history: list[tuple[Said, datetime, datetime | None]],
    asked: list[datetime],
) -> None:
    clock.now = NOW
    place = Place(memory)
    for said, now, at in history:
        clock.now = now
        place.say(replace(said, at=min(at or now, now)))
    for now in asked:
        clock.now = now
        for reader in (memory, other):
            for ranking in rankings(place, reader):
                assert all(isfinite(score) and 0 <= usefulness <= 1 for _, score, _, usefulness, _ in ranking)
            assert all(0 <= reader.fact_stats(fact).overall_usefulness <= 1 for fact in place.facts)
            assert 0 <= reader.usefulness_stats(dataset=place.name).average_overall_usefulness <= 1


READER = """
import sys
import heedful
from heedful.testing import ManualClock, WordEmbedder

url, dataset, now, *questions = sys.argv[1:]
clock = ManualClock(ManualClock().now.fromisoformat(now))
with heedful.open(url, clock=clock, embedding=WordEmbedder(), worker=False) as memory:
    for question in questions:
        for options in ({}, {"boost_by_usefulness": True}):
            for hit in memory.recall(question, dataset=dataset, explain=True, **options):
                print(hit.model_dump_json())
"""


@pytest.mark.usefixtures("warm_processes")
@pytest.mark.parametrize("retracted", [False, True])
@pytest.mark.nightly
def test_another_process_sees_the_same(any_store: str, clock: ManualClock, retracted: bool) -> None:
    def shown(place: Place) -> list[str]:
        return [
            hit.model_dump_json()
            for question, options in product(QUESTIONS, POLICIES)
            for hit in place.hits(question, explain=True, **options)
        ]

    history = [
        Said(number % len(FACTS), SIGNAL_TYPES[number % 4], question, NAMED[number % 3], 0.77)
        for number, question in enumerate(QUESTIONS * 3)
    ]
    with heedful.open(any_store, embedding=WordEmbedder(), clock=clock, worker=False) as memory:
        place = Place(memory)
        before = shown(place)
        events = place.say(*history)
        assert shown(place) != before
        for event in events if retracted else events[::2]:
            memory.retract(event)
        here = shown(place)
        assert (here == before) == retracted
        arguments = [any_store, place.name, clock.now.isoformat(), *QUESTIONS]
        there = subprocess.run([sys.executable, "-c", READER, *arguments], capture_output=True, text=True, check=True)
    assert there.stdout.splitlines() == here


POSITIVE = ("helpful", "used")
CLOSE = 1e-12
"""Scores are sums of floating-point numbers."""

LOCKED_OUT = [
    "Password reset e-mails expire after fifteen minutes.",
    "Your account is locked after five wrong passwords.",
    "To get back into your account, call the help desk for a one-time code.",
    "The cafeteria opens at eight.",
]
# Few words of the fact that helps are in them: only opinions lift it.
ABOUT_LOGIN = [
    "How can I log in again?",
    "I can't log in to my account any more, what now?",
    "I can't log in to my account any more, what should I do?",
    "My login does not work.",
]
about_login = opinions(ABOUT_LOGIN, [*NAMED, "dan", "eve"], facts=[0, 1, 2, 2, 2, 3])


@some(1 / 2)
@given(history=st.lists(about_login, max_size=8), further=st.lists(about_login, min_size=1, max_size=6))
def test_praise_never_lowers_a_fact_for_its_question_and_blame_never_lifts_it(
    memory: Heedful, history: list[Said], further: list[Said]
) -> None:
    place = Place(memory, LOCKED_OUT)
    place.say(*history)
    for said in further:
        before = place.hit(said)
        place.say(said)
        after = place.hit(said)
        if said.kind in POSITIVE:
            assert after.score >= before.score - CLOSE
            assert after.rank <= before.rank
        else:
            assert after.score <= before.score + CLOSE
            assert after.rank >= before.rank


SOUP = ["Leek soup keeps for two days.", "Serve the leek soup with bread."]
ABOUT_SOUP = ["How long does leek soup keep?", "What goes with leek soup?", "How long can I keep leek soup?"]


@some(1 / 6)
@given(
    history=st.lists(opinions(), min_size=1, max_size=8),
    elsewhere=st.lists(opinions(ABOUT_SOUP, facts=range(len(FACTS), len(FACTS) + len(SOUP))), min_size=1, max_size=20),
)
def test_opinions_about_something_else_move_no_rated_question(
    memory: Heedful, other: Heedful, history: list[Said], elsewhere: list[Said]
) -> None:
    place = Place(memory, [*FACTS, *SOUP])
    place.say(*history)
    before = rankings(place, ways=[DEFAULT])
    place.say(*elsewhere)
    for reader in (memory, other):
        assert rankings(place, reader, ways=[DEFAULT]) == before
