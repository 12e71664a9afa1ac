"""A store with very many opinions, written by the storage layer alone: what the engine makes, without the checks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import orjson
from sqlalchemy import Table, insert

from heedful.clock import DAY, new_id
from heedful.ledger.events import FEEDBACK, SIGNAL
from heedful.ledger.votes import kind_of
from heedful.results import Column, Result, encode
from heedful.storage import Database, scopes
from heedful.storage.rows import insert_many
from heedful.storage.schema import (
    decisions,
    entries,
    events,
    executions,
    feedbacks,
    receipts,
    session_tags,
    sessions,
)

PROJECT = "default"
TOGETHER = 5_000
DAYS = 180
DATASETS = ("help", "handbook", "products")
MODELS = ("small-1", "large-2")
WORDS = ("refund", "late", "price", "wrong", "slow", "answer", "shipping", "account", "old", "language")

DECIDED = (("serve", "all"), ("rebind", "values"), ("refuse", "feedback"), ("nothing", "candidates"))

RESULT = orjson.dumps(encode(Result((Column("1", "integer"),), ((1,),)))).decode()

Row = dict[str, Any]


class Writer:
    """Writes rows of one kind together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, tuple[Table, list[Row]]] = {}

    def add(self, table: Table, row: Row) -> None:
        _, rows = self._waiting.setdefault(table.name, (table, []))
        rows.append(row)

    def write(self, least: int = TOGETHER) -> None:
        """Writes all that is waiting, if it is many."""
        if sum(len(rows) for _, rows in self._waiting.values()) < least:
            return
        with self._database.write(PROJECT, durable=False) as connection:
            for table, rows in self._waiting.values():
                insert_many(connection, table, insert(table), rows)
        self._waiting = {}


def fill(database: Database, opinions: int, until: int, say: Callable[[str], None]) -> None:
    """Sessions of two to three answers each, with `opinions` about them, about executions and about the sessions, and
    a fifth as many signals."""
    random = Random(1)
    with database.write(PROJECT) as connection:
        project = scopes.ensure_project(connection, PROJECT, until)
        numbers = [scopes.ensure_dataset(connection, PROJECT, name, until) for name in DATASETS]
    writer = Writer(database)
    given = session = 0
    while given < opinions:
        session += 1
        at = until - DAYS * DAY + given * DAYS * DAY // opinions
        variant = random.choice("AB")
        writer.add(
            sessions,
            {
                "seq": session,
                "project_id": project,
                "id": f"s{session}",
                "metadata": "{}",
                "created_at": at,
                "updated_at": at,
            },
        )
        for key, value in (("variant", variant), ("channel", random.choice(("web", "app", "mail")))):
            writer.add(
                session_tags,
                {"session_seq": session, "project_id": project, "key": key, "value": f'"{value}', "number": None},
            )
        for _ in range(random.randint(2, 3)):
            entry = new_id()
            writer.add(entries, _entry(entry, session, at, random))
            if random.random() < 0.9:
                given += 1
                _opinion(writer, project, session, "entry", entry, at, random, bias=0.03 * (variant == "B"))
            if random.random() < 0.1:
                given += 1
                _opinion(writer, project, session, "entry", entry, at, random)
            if random.random() < 0.5:
                _recall(writer, project, numbers[random.randrange(3)], at, random)
        if random.random() < 0.5:
            given += 1
            _opinion(writer, project, session, "session", f"s{session}", at, random)
        if random.random() < 0.2:
            run = new_id()
            writer.add(executions, _execution(run, project, at))
            writer.add(decisions, _decision(project, at, random))
            given += 1
            _opinion(writer, project, None, "execution", run, at, random)
        writer.write()
        if session % 50_000 == 0:
            say(f"{given:,} opinions")
    writer.write(0)
    with database.write(PROJECT) as connection:
        database.set_last_number(connection, sessions.c.seq, session)


def _entry(entry: str, session: int, at: int, random: Random) -> Row:
    return {
        "id": entry,
        "session_seq": session,
        "question": "How long does a refund take?",
        "answer": "Two weeks.",
        "context": None,
        "at": at,
        "dataset": random.choice(DATASETS),
        "recall_id": None,
        "used": None,
        "model": random.choice(MODELS),
        "usage": None,
    }


def _opinion(
    writer: Writer,
    project: int,
    session: int | None,
    target_type: str,
    target: str,
    at: int,
    random: Random,
    bias: float = 0.0,
) -> None:
    number = new_id()
    up = random.random() < 0.7 + bias
    score = random.choice((4, 5) if up else (1, 2)) if target_type == "entry" else None
    author = random.choice((None, f"user{random.randrange(5_000)}", "judge", "visitor-7"))
    comment = " ".join(random.sample(WORDS, 4)) if not up and random.random() < 0.3 else None
    source = "feedback" if target_type == "execution" else "add_feedback"
    writer.add(
        feedbacks,
        {
            "id": number,
            "project_id": project,
            "session_seq": session,
            "target_type": target_type,
            "target_id": target,
            "author": author,
            "author_kind": kind_of(author),
            "rating": "up" if up else "down",
            "score": score,
            "comment": comment,
            "extra": "{}",
            "at": at,
            "active": 1,
            "event_id": number,
            "message_id": None,
            "updated_at": at,
        },
    )
    value = str(score) if score is not None else "up" if up else "down"
    writer.add(events, _event(number, project, FEEDBACK, target_type, target, source, at, author, value))


def _recall(writer: Writer, project: int, dataset: int, at: int, random: Random) -> None:
    receipt, query = new_id(), new_id()
    writer.add(
        receipts,
        {
            "id": receipt,
            "dataset_id": dataset,
            "query_id": 1,
            "mode": "hybrid",
            "policy": "documented",
            "weight": 0.3,
            "at": at,
            "shown": "[]",
        },
    )
    if random.random() < 0.6:
        event = _event(new_id(), project, SIGNAL, "fact", query, "signal_recall", at, None, "helpful")
        writer.add(events, {**event, "dataset_id": dataset, "receipt_id": receipt, "confidence": 1.0})


def _event(
    number: str,
    project: int,
    kind: str,
    target_type: str,
    target: str,
    source: str,
    at: int,
    author: str | None,
    value: str,
) -> Row:
    return {
        "id": number,
        "project_id": project,
        "dataset_id": None,
        "idempotency_key": number,
        "kind": kind,
        "target_type": target_type,
        "target_id": target,
        "author": author,
        "author_kind": kind_of(author),
        "source": source,
        "at": at,
        "recorded_at": at,
        "query_id": None,
        "value": value,
        "confidence": None,
        "receipt_id": None,
        "rank": None,
        "body": None,
    }


def _execution(run: str, project: int, at: int) -> Row:
    return {
        "id": run,
        "project_id": project,
        "connector_id": "00000000-0000-0000-0000-000000000000",
        "question": None,
        "model_id": None,
        "vector": None,
        "sql_query": "SELECT 1",
        "parameters": "{}",
        "template": b"0" * 16,
        "result": RESULT,
        "row_count": 1,
        "truncated": 0,
        "seconds": 0.0,
        "origin": "query",
        "derived_from": None,
        "message_id": None,
        "fingerprint": None,
        "data_version": None,
        "at": at,
    }


def _decision(project: int, at: int, random: Random) -> Row:
    decision, gate = random.choice(
        (("serve", "all"), ("rebind", "values"), ("refuse", "feedback"), ("nothing", "candidates"))
    )
    return {
        "id": new_id(),
        "project_id": project,
        "connector_id": "00000000-0000-0000-0000-000000000000",
        "question": "How many orders were there?",
        "decision": decision,
        "gate": gate,
        "reason": "as said",
        "similarity": 0.9,
        "candidate_id": None,
        "execution_id": None,
        "at": at,
    }
