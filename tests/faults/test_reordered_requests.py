"""Requests arrive once, twice or three times, in any order and at the same time: the result is that of order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from server import running
from worlds import World

from heedful.testing import ManualClock

SEED = 11
THREADS = 4
FACTS = [f"the {name} is number {place}" for place, name in enumerate(["oak", "elm", "ash", "fir", "yew"])]
TYPES = ("used", "ignored", "helpful", "not_helpful")
START = datetime(2025, 1, 1, tzinfo=UTC)


def signals(facts: Sequence[str]) -> list[dict[str, Any]]:
    chance = random.Random(SEED)
    return [
        {
            "fact_id": chance.choice(facts),
            "signal_type": chance.choice(TYPES),
            "confidence": round(chance.uniform(0.1, 1.0), 3),
            "query": f"which tree is number {chance.randrange(3)}",
            "at": START + timedelta(days=chance.uniform(0, 300)),
            "idempotency_key": f"signal {number}",
        }
        for number in range(60)
    ]


Send = Callable[[list[Callable[[], Any]]], list[Any]]


def in_order(calls: list[Callable[[], Any]]) -> list[Any]:
    return [call() for call in calls]


def scattered(calls: list[Callable[[], Any]]) -> list[Any]:
    """Makes each call one to three times, in any order; all that are the same must have the same result."""
    chance = random.Random(SEED)
    sent = [place for place in range(len(calls)) for _ in range(chance.randint(1, 3))]
    chance.shuffle(sent)
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda place: calls[place](), sent))
    first: dict[int, Any] = {}
    for place, result in zip(sent, results, strict=True):
        assert first.setdefault(place, result) == result
    return [first[place] for place in range(len(calls))]


def story(store: Any, send: Send) -> dict[str, Any]:
    """All that happens to a project, and what becomes of it. Each step needs the one before, so only calls of the same
    step are scattered."""
    facts = send([lambda text=text: store.remember(text).fact_ids[0] for text in FACTS])  # type: ignore[misc]
    store.sessions.create("talk")
    opinions: list[Callable[[], Any]] = [
        lambda one=one: store.signal([one]).event_ids[0]  # type: ignore[misc]
        for one in signals(facts)
    ]
    opinions += [
        lambda number=number: (
            store.sessions.add_session_feedback(  # type: ignore[misc]
                "talk", {"rating": "up", "comment": f"{number}"}, idempotency_key=f"talk {number}"
            ).feedback_id
        )
        for number in range(15)
    ]
    made = send(opinions)
    send([lambda event=event: store.retract(event).event_id for event in made[::6]])  # type: ignore[misc]
    return {
        "facts": [_stats(store, fact) for fact in facts],
        "comments": sorted(each.comment for each in store.sessions.feedbacks("talk").items),
        "totals": (store.usefulness_stats().total_facts, store.sessions.feedback_metrics().total),
        "well": [check.name for check in store.doctor(repair=False) if not check.ok],
    }


def _stats(store: Any, fact: str) -> tuple[Any, ...]:
    stats = store.fact_stats(fact)
    contexts = sorted((context.query, pytest.approx(context.score, abs=1e-9)) for context in stats.contexts)
    score = pytest.approx(stats.overall_usefulness, abs=1e-9)
    return stats.text, stats.signal_count, stats.signal_breakdown, stats.last_signal_at, score, contexts


@contextmanager
def reached(world: World, way: str) -> Iterator[Callable[[str], Any]]:
    """How to open a project of a store: in this process, or over HTTP."""
    if way == "embedded":
        clock = ManualClock()
        yield lambda project: world.open(project, clock=clock)
    else:
        with running(world.url) as server:
            yield server.connect


@pytest.mark.parametrize("way", ["embedded", "http"])
def test_what_is_sent_again_and_out_of_order_makes_the_same_scores(world: World, way: str) -> None:
    with reached(world, way) as opened:
        with opened("orderly") as store:
            orderly = story(store, in_order)
        with opened("scattered") as store:
            assert story(store, scattered) == orderly
    assert orderly["well"] == []
    assert orderly["totals"] == (len(FACTS), 12)
