"""Whatever the order of signals, retries, retractions and processes: a score is the fold of what survives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from private_files import write_private

import heedful
from heedful import Heedful, Signal, SignalResult
from heedful.model import SIGNAL_TYPES, SignalType
from heedful.testing import ManualClock, WordEmbedder
from heedful.text.same_question import normal

START = datetime(2026, 1, 1, tzinfo=UTC)
FACTS = ["the first fact", "the second fact", "the third fact"]
# Each line is one context: the same words, or words that no other line has.
QUERIES = ["who leads sales", "Who leads sales?", "where stands our Berlin office", "pizza toppings"]


@dataclass(frozen=True)
class Given:
    """A signal as the ledger has it."""

    event_id: str
    fact: str
    kind: SignalType
    confidence: float
    query: str
    at: datetime


signals = st.tuples(
    st.integers(0, len(FACTS) - 1),
    st.sampled_from(SIGNAL_TYPES),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from(QUERIES),
    st.none() | st.integers(0, 60),
)
Drawn = tuple[int, SignalType, float, str, int | None]
Score = Callable[[Iterable[tuple[SignalType, float, datetime]], datetime], float]


class Ledger(RuleBasedStateMachine):
    """Two processes' worth of handles on one store, and a list of what they were told."""

    score: Score
    empty: bytes

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        write_private(Path(self.folder.name) / "store.db", type(self).empty)
        self.clock = ManualClock(START + timedelta(days=60))
        self.stores = [self.open(), self.open()]
        self.given: list[Given] = []
        self.retracted: set[str] = set()
        self.calls: list[tuple[list[dict[str, Any]], str, SignalResult]] = []
        self.keyed: list[tuple[dict[str, Any], str]] = []

    def open(self) -> Heedful:
        return heedful.open(Path(self.folder.name) / "store.db", clock=self.clock, embedding=WordEmbedder())

    @initialize()
    def remember(self) -> None:
        self.facts = self.stores[0].remember(FACTS).fact_ids

    def item(self, drawn: Drawn) -> dict[str, Any]:
        fact, kind, confidence, query, day = drawn
        at = None if day is None else START + timedelta(days=day)
        return {
            "fact_id": self.facts[fact],
            "signal_type": kind,
            "confidence": confidence,
            "query": query,
            "at": at,
        }

    def note(self, items: list[dict[str, Any]], result: SignalResult) -> None:
        for item, event_id in zip(items, result.event_ids, strict=True):
            self.given.append(
                Given(
                    event_id,
                    item["fact_id"],
                    item["signal_type"],
                    item["confidence"],
                    item["query"],
                    item["at"] or self.clock(),
                )
            )

    @rule(which=st.integers(0, 1), drawn=st.lists(signals, min_size=1, max_size=4))
    def signal(self, which: int, drawn: list[Drawn]) -> None:
        items = [self.item(each) for each in drawn]
        self.note(items, self.stores[which].signal([Signal(**item) for item in items]))

    @rule(which=st.integers(0, 1), drawn=st.lists(signals, min_size=1, max_size=3))
    def signal_with_a_key(self, which: int, drawn: list[Drawn]) -> None:
        items = [self.item(each) for each in drawn]
        key = f"call {len(self.calls)}"
        result = self.stores[which].signal(items, idempotency_key=key)
        self.note(items, result)
        self.calls.append((items, key, result))

    @rule(which=st.integers(0, 1), drawn=signals)
    def signal_with_a_key_of_its_own(self, which: int, drawn: Drawn) -> None:
        item = self.item(drawn) | {"idempotency_key": f"item {len(self.keyed)}"}
        result = self.stores[which].signal([item])
        self.note([item], result)
        self.keyed.append((item, result.event_ids[0]))

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0, 1), data=st.data())
    def send_a_call_again(self, which: int, data: st.DataObject) -> None:
        items, key, first = data.draw(st.sampled_from(self.calls))
        assert self.stores[which].signal(items, idempotency_key=key) == first

    @precondition(lambda self: self.keyed)
    @rule(which=st.integers(0, 1), data=st.data())
    def send_a_signal_again(self, which: int, data: st.DataObject) -> None:
        item, event_id = data.draw(st.sampled_from(self.keyed))
        result = self.stores[which].signal([item])
        assert (result.processed, result.event_ids) == (0, [event_id])

    @precondition(lambda self: self.given)
    @rule(which=st.integers(0, 1), data=st.data())
    def retract(self, which: int, data: st.DataObject) -> None:
        given = data.draw(st.sampled_from(self.given))
        self.stores[which].retract(given.event_id)
        self.retracted.add(given.event_id)

    @rule(days=st.sampled_from([0.5, 7, 30]))
    def wait(self, days: float) -> None:
        self.clock.advance(days=days)

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.stores[which].close()
        self.stores[which] = self.open()

    def surviving(self, fact: str) -> list[Given]:
        """In folding order: by time, then by place in the ledger."""
        remaining = [each for each in self.given if each.fact == fact and each.event_id not in self.retracted]
        return sorted(remaining, key=lambda each: each.at)

    def folded(self, events: list[Given]) -> float:
        return type(self).score([(each.kind, each.confidence, each.at) for each in events], self.clock())

    @invariant()
    def scores_are_the_fold_of_what_survives(self) -> None:
        """Asked of one store, which is not always the one that wrote."""
        store = self.stores[len(self.given) % 2]
        for fact in self.facts:
            stats, events = store.fact_stats(fact), self.surviving(fact)
            assert stats.overall_usefulness == pytest.approx(self.folded(events), abs=1e-9)
            assert stats.signal_count == len(events)
            assert stats.last_signal_at == (events[-1].at if events else None)
            for kind in SIGNAL_TYPES:
                assert stats.signal_breakdown[kind] == sum(each.kind == kind for each in events)
            contexts = {normal(context.query): context for context in stats.contexts}
            assert len(contexts) == len(stats.contexts)
            assert set(contexts) == {normal(each.query) for each in events}
            for name, context in contexts.items():
                inside = [each for each in events if normal(each.query) == name]
                assert context.score == pytest.approx(self.folded(inside), abs=1e-9)
                assert context.signal_count == len(inside)

    @rule(which=st.integers(0, 1), query=st.sampled_from(QUERIES))
    def recall(self, which: int, query: str) -> None:
        """The context's score comes first, then the fact's own, then 0.5."""
        for hit in self.stores[which].recall(query, boost_by_usefulness=True, mode="semantic"):
            events = self.surviving(hit.fact_id)
            inside = [each for each in events if normal(each.query) == normal(query)]
            assert hit.usefulness == pytest.approx(self.folded(inside or events), abs=1e-9)
            assert hit.usefulness_source == ("context" if inside else "global" if events else "neutral")

    def teardown(self) -> None:
        try:
            assert all(check.ok and not check.repaired for check in self.stores[0].doctor())
        finally:
            for store in self.stores:
                store.close()
            self.folder.cleanup()


@pytest.mark.slow
def test_any_interleaving_gives_the_score_of_the_surviving_events(documented_score: Score, empty_store: bytes) -> None:
    class Machine(Ledger):
        score = staticmethod(documented_score)
        empty = empty_store

    run_state_machine_as_test(Machine, settings=settings(max_examples=10, stateful_step_count=16))
