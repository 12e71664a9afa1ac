"""The judge: after a fault, is everything there that was acknowledged, once, and nothing else?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

import psycopg
import pytest
from crews import Crew
from deeds import Deed
from sqlalchemy import RowMapping, select
from worlds import World, texts_of

from heedful import Heedful
from heedful.clock import from_stored
from heedful.model import Page, SignalType
from heedful.storage.database import Database
from heedful.storage.opening import open_store
from heedful.storage.schema import events, facts, metadata, projects
from heedful.testing import ManualClock
from heedful.transfer import verify

Item = TypeVar("Item")
Event = tuple[SignalType, float, datetime]
Score = Callable[[Iterable[Event], datetime], float]
Judge = Callable[[World, Crew], None]

FOUND = 10
"""How many of a project's facts are searched for, the newest."""


@pytest.fixture
def judge(documented_score: Score) -> Judge:
    """Looks at a store to which nobody writes any more, past the engine and with it."""

    def judging(world: World, crew: Crew) -> None:
        with closing(open_store(world.url)) as database:
            stored = _read_stored(database)
        assert stored.keys() == crew.facts.keys()
        for project, judged in crew.facts.items():
            done, attempted = crew.done(project), crew.attempted(project)
            assert done, f"nothing was acknowledged in {project}"
            _check_ledger(stored[project], done, attempted)
            _check_facts(stored[project], done, attempted, project)
            # At one moment, so that a score can be compared.
            clock = ManualClock(max(from_stored(event["at"]) for event in stored[project].events))
            with world.open(project, clock=clock) as store:
                _check_engine(store, stored[project], done)
                for fact in (judged.judged, judged.disputed):
                    _check_score(store, fact, stored[project], documented_score, clock.now)
                strange = [row for other in stored.keys() - {project} for row in stored[other].facts]
                _check_search(store, done, strange)
                assert [check for check in store.doctor(repair=False) if not check.ok] == []
        assert verify(world.url).differences == []
        if world.kind == "postgresql":
            _check_walls(world.url, stored)

    return judging


@dataclass(slots=True)
class Stored:
    """What the tables have of one project."""

    events: list[RowMapping]
    facts: list[RowMapping]

    @property
    def retracted(self) -> set[str]:
        return {event["target_id"] for event in self.events if event["kind"] == "retraction"}


def _read_stored(database: Database) -> dict[str, Stored]:
    owned = select(projects.c.name.label("project"), facts).join_from(
        facts, projects, projects.c.id == facts.c.project_id
    )
    with database.read() as connection:
        result = {name: Stored([], []) for name in connection.execute(select(projects.c.name)).scalars()}
        ledger = select(projects.c.name.label("project"), events).join(projects).order_by(events.c.at, events.c.seq)
        for row in connection.execute(ledger).mappings():
            result[row["project"]].events.append(row)
        for row in connection.execute(owned).mappings():
            result[row["project"]].facts.append(row)
    return result


def _key(event: RowMapping) -> str:
    """The key of an event less its caller, whom the ledger names where the event came over HTTP."""
    return re.sub(r"^(\w+)@[^/]*/", r"\1/", event["idempotency_key"])


def _check_ledger(stored: Stored, done: dict[Deed, str], attempted: set[Deed]) -> None:
    by_key = Counter(_key(event) for event in stored.events)
    ids = {event["id"]: event for event in stored.events}
    assert len(ids) == len(stored.events), "an event is there twice"
    assert {key: times for key, times in by_key.items() if times > 1} == {}, "a key is there twice"
    for deed, made in done.items():
        if deed.kind != "remember":
            assert made in ids, f"{deed} was acknowledged, and is not there"
        assert [by_key[key] for key in deed.in_ledger] == [1] * len(deed.in_ledger), f"{deed} is not there"
        if len(deed.in_ledger) == 1:
            assert _key(ids[made]) == deed.in_ledger[0]
    # What has no key of its own in the ledger is known by its id, but for the one that each writer was doing.
    calls = {made for deed, made in done.items() if deed.kind == "call"}
    pending = sum(deed.kind == "call" and deed not in done for deed in attempted)
    unkeyed = [event for event in stored.events if event["idempotency_key"] == event["id"]]
    assert len(calls) <= len(unkeyed) <= len(calls) + pending
    assert calls <= {event["id"] for event in unkeyed}
    possible = {key for deed in attempted for key in deed.in_ledger}
    keyed = {_key(event) for event in stored.events if event["value"] in ("used", "up")}
    assert keyed <= possible, "something is there that nobody wrote"
    retractions = {made for deed, made in done.items() if deed.kind == "retract"}
    assert retractions <= {event["id"] for event in stored.events if event["kind"] == "retraction"}


def _check_facts(stored: Stored, done: dict[Deed, str], attempted: set[Deed], project: str) -> None:
    texts = Counter(row["text"] for row in stored.facts)
    assert {text: times for text, times in texts.items() if times > 1} == {}, "a fact is there twice"
    ids = {row["id"]: row["text"] for row in stored.facts}
    for deed, made in done.items():
        if deed.kind == "remember":
            assert ids.get(made) == deed.text, f"{deed} was acknowledged, and is not there"
    possible = {deed.text for deed in attempted if deed.kind == "remember"} | set(texts_of(project))
    assert texts.keys() <= possible, "a fact is there that nobody wrote"


def _check_engine(store: Heedful, stored: Stored, done: dict[Deed, str]) -> None:
    """Reads return what the tables have."""
    listed = list(_all(lambda cursor: store.facts(cursor=cursor, limit=1000)))
    assert sorted(fact.fact_id for fact in listed) == sorted(row["id"] for row in stored.facts)
    assert store.usefulness_stats().total_facts == len(stored.facts)
    stated = [event["id"] for event in stored.events if event["kind"] == "feedback"]
    said: list[str] = []
    for session in _all(lambda cursor: store.sessions.list(cursor=cursor)):
        name = session.session_id
        opinions = list(_all(lambda cursor, name=name: store.sessions.feedbacks(name, cursor=cursor, limit=1000)))  # type: ignore[misc]
        said += [opinion.feedback_id for opinion in opinions]
        comments = Counter(opinion.comment for opinion in opinions)
        own = [deed for deed in done if deed.kind == "feedback" and deed.writer == name]
        assert [comments[deed.key] for deed in own] == [1] * len(own)
        assert len(comments) == len(opinions), "an opinion is there twice"
    assert sorted(said) == sorted(stated)
    assert store.sessions.feedback_metrics().total == len(stated)


def _check_score(store: Heedful, fact: str, stored: Stored, score: Score, now: datetime) -> None:
    """The score of a fact that all writers of a project judge is the fold of what stands in the ledger."""
    retracted = stored.retracted
    about = [event for event in stored.events if (event["kind"], event["target_id"]) == ("signal", fact)]
    active = [event for event in about if event["id"] not in retracted]
    signals = [(event["value"], event["confidence"], from_stored(event["at"])) for event in active]
    stats = store.fact_stats(fact)
    assert stats.signal_count == len(active)
    assert stats.overall_usefulness == pytest.approx(score(cast(list[Event], signals), now), abs=1e-9)


def _check_search(store: Heedful, done: dict[Deed, str], strange: list[RowMapping]) -> None:
    """What the store has is found, and what another project has is not."""
    remembered = [(deed, made) for deed, made in done.items() if deed.kind == "remember"]
    for deed, made in sorted(remembered, key=lambda each: each[0].number)[-FOUND:]:
        assert made in [hit.fact_id for hit in store.recall(deed.text.split()[-1], mode="lexical", top_k=3)]
        assert made in [hit.fact_id for hit in store.recall(deed.text, top_k=10)]
    for row in strange[-FOUND:]:
        assert row["id"] not in [hit.fact_id for hit in store.recall(row["text"])]


def _check_walls(url: str, stored: dict[str, Stored]) -> None:
    """What somebody sees who asks the database without the engine, as the role of the store."""
    with psycopg.connect(url, options="-c search_path=heedful,public") as connection:
        # So the settings of a transaction reach all nodes of a cluster; elsewhere nobody reads this one.
        connection.execute("SET citus.propagate_set_commands = 'local'")
        connection.commit()
        # What a store has fitted to its ledger is not exported.
        rows = {"events": "events WHERE kind <> 'strengths'"}

        def seen(setting: str, value: str) -> dict[str, int]:
            connection.execute(f"SET LOCAL heedful.{setting} = '{value}'".encode())
            result = {
                table: connection.execute(f"SELECT count(*) FROM {rows.get(table, table)}".encode()).fetchall()[0][0]
                for table in metadata.tables
                if table not in ("alembic_version", "models", "signing", "words", "jobs")
            }
            connection.rollback()
            return result

        assert set(seen("project_id", "").values()) == {0}
        connection.execute("SET LOCAL heedful.everything = 'on'")
        numbers: dict[str, Any] = dict(connection.execute("SELECT name, id FROM projects").fetchall())
        connection.rollback()
        apart = {project: seen("project_id", numbers[project]) for project in stored}
        together = seen("everything", "on")
    for project, counts in apart.items():
        assert (counts["events"], counts["facts"]) == (len(stored[project].events), len(stored[project].facts))
    assert {table: sum(counts[table] for counts in apart.values()) for table in together} == together


def _all(page: Callable[[str | None], Page[Any]]) -> Iterator[Any]:
    cursor = None
    while True:
        found = page(cursor)
        yield from found.items
        cursor = found.next_cursor
        if cursor is None:
            return
