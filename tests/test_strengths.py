"""How far evidence is followed in a store: fitted on its ledger, the same for everybody, undone with its opinions."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import heedful
from heedful import Heedful, Signal
from heedful.ledger.adaptive_policy import FIRST_FIT
from heedful.providers.embedding import Embedder
from heedful.testing import ManualClock
from heedful.transfer import export

pytestmark = pytest.mark.slow

TOPICS = {
    "gym": "opens at six", "pool": "opens at nine", "sauna": "closes at ten", "library": "lends books for a month",
    "canteen": "serves lunch from noon", "garage": "locks its gate at eight", "workshop": "needs a key from the porter",
    "nursery": "takes children from the age of one", "laundry": "costs two euros a load", "garden": "is open all year",
    "theatre": "sells tickets online", "museum": "is free on Sundays",
}  # fmt: skip
ASKED = ["What should I know about the {}?", "Tell me about the {}, please.", "How does it work with the {} here?"]

Opening = Callable[..., Heedful]


@pytest.fixture
def opening(any_store: str, bundled: Embedder, clock: ManualClock) -> Iterator[Opening]:
    """Opens the test's store, or a project of it, again and again."""
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(heedful.open(any_store, embedding=bundled, clock=clock, **options))


def fill(memory: Heedful) -> dict[str, str]:
    texts = [f"The {name} {words}." for name, words in TOPICS.items()]
    facts = dict(zip(TOPICS, memory.remember(texts).fact_ids, strict=True))
    names = list(TOPICS)
    for author in ("ann", "bob"):
        memory.signal(
            [
                Signal(fact_id=facts[about], signal_type=kind, query=question.format(name), author=author)  # type: ignore[arg-type]
                for place, name in enumerate(names)
                for question in ASKED
                for about, kind in ((name, "helpful"), (names[place - 1], "not_helpful"))
            ]
        )
    return facts


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def strengths(memory: Heedful, *, repair: bool = False) -> str:
    return next(each.detail for each in memory.doctor(repair=repair) if each.name == "strengths of main_dataset")


def shown(memory: Heedful, question: str = "Is the pool open?") -> list[tuple[str, float, float]]:
    return [(hit.text, hit.score, hit.usefulness) for hit in memory.recall(question)]


def test_few_opinions_fit_nothing(opening: Opening) -> None:
    memory = opening()
    (fact,) = memory.remember("The gym opens at six.").fact_ids
    memory.signal([Signal(fact_id=fact, signal_type="helpful", query="When does it open?", author="ann")])
    assert strengths(memory, repair=True) == "too few opinions to fit them"


@pytest.mark.nightly
def test_they_are_fitted_beside_a_recall_and_followed_by_every_process(opening: Opening) -> None:
    memory = opening()
    fill(memory)
    assert "not yet noted" in strengths(memory)
    memory.recall("Is the pool open?")
    memory.close()
    memory, other = opening(), opening()
    assert f"by {2 * FIRST_FIT} opinions" in strengths(memory)
    assert "not yet noted" not in strengths(memory)
    assert shown(memory) == shown(other)


def test_another_opinion_elsewhere_changes_nothing_until_there_are_twice_as_many(opening: Opening) -> None:
    memory = opening()
    facts = fill(memory)
    strengths(memory, repair=True)
    before, noted = shown(memory), strengths(memory)
    for author in ("cy", "dan", "eli"):
        memory.signal(
            [Signal(fact_id=facts["museum"], signal_type="not_helpful", query="Is the museum free?", author=author)]
        )
    assert shown(memory) == before
    assert strengths(memory, repair=True) == noted


@pytest.mark.nightly
def test_retracting_one_of_the_opinions_behind_them_is_as_if_it_had_never_been_given(opening: Opening) -> None:
    with_it, without_it = opening(project="one"), opening(project="two")
    texts = [f"The {name} {words}." for name, words in TOPICS.items()]
    pool = with_it.remember(texts).fact_ids[list(TOPICS).index("pool")]
    (event,) = with_it.signal(
        [Signal(fact_id=pool, signal_type="not_helpful", query="Is the pool open?", author="cy")]
    ).event_ids
    fill(with_it)
    fill(without_it)
    strengths(with_it, repair=True)
    with_it.retract(event)
    assert "not yet noted" in strengths(with_it, repair=False)
    assert strengths(with_it, repair=True) == strengths(without_it, repair=True)
    for question in ("Is the pool open?", "Tell me about the gym, please."):
        assert shown(with_it, question) == shown(without_it, question)


@pytest.mark.nightly
def test_the_next_recall_fits_again_after_a_retraction(opening: Opening) -> None:
    memory = opening()
    fill(memory)
    for retracted in (False, True):
        if retracted:
            memory.retract(memory.recall("Is the pool open?", explain=True)[0].explanation.events[0].event_id)  # type: ignore[union-attr]
        assert "not yet noted" in strengths(memory)
        wait_for(lambda: bool(memory.recall("Is the pool open?")) and "not yet noted" not in strengths(memory))


@pytest.mark.nightly
def test_taking_everything_back_leaves_what_a_new_store_has(opening: Opening) -> None:
    memory = opening()
    texts = [f"The {name} {words}." for name, words in TOPICS.items()]
    facts = memory.remember(texts).fact_ids
    before = shown(memory)
    events = memory.signal(
        [
            Signal(fact_id=fact, signal_type="helpful", query=question.format(name), author=author)
            for name, fact in zip(TOPICS, facts, strict=True)
            for question in ASKED
            for author in ("ann", "bob")
        ]
    ).event_ids
    assert f"by {FIRST_FIT} opinions" in strengths(memory, repair=True)
    for event in events:
        memory.retract(event)
    assert shown(memory) == before
    assert shown(opening()) == before
    assert strengths(memory, repair=True) == "too few opinions to fit them"


def test_they_are_not_moved_with_a_project(any_store: str, opening: Opening) -> None:
    memory = opening()
    fill(memory)
    strengths(memory, repair=True)
    memory.close()
    out = io.BytesIO()
    export(any_store, out.write, project="default")
    assert b"not_helpful" in out.getvalue()
    assert b"boldness" not in out.getvalue()
