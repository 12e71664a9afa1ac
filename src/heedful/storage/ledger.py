"""The append-only record of all feedback. There is no update and no delete here, with one exception: erasing a person
(`storage.erasure`), which appends an event of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, Select, bindparam, case, exists, func, insert, select, text

from heedful.ids import new_id
from heedful.model import AuthorKind, Metadata, SignalType
from heedful.ranking.affinity import Strengths
from heedful.ranking.signals import Observation, Opinion, counted_votes, kind_of
from heedful.storage.rows import AnyRow, Direct, Prepared, batches, insert_many, of_project
from heedful.storage.schema import event_keys, events, facts, notes, projects, queries

SIGNAL = "signal"
RETRACTION = "retraction"
SUPERSESSION = "supersession"
FEEDBACK = "feedback"
LINK_SIGNAL = "link_signal"
REVIEW = "review"
POLICY = "policy"
"""The choice of a policy for a dataset or a project."""
CONFLICT = "conflict"
"""A fact that was stored gives another value than an older one, which its body names; `value` is the kind."""

STRENGTHS = "strengths"
"""How far evidence is followed in a dataset from here on: fitted on the signals up to one that its body names."""

ERASURE = "erasure"
"""The erasure of a person: the pseudonym, and the counts of what was erased."""

EXTERNAL_PREFIX = "external/"
"""Prefix of the idempotency keys of signals with an external id."""

IMPROVE = "improve"
"""The source of signals that are derived from ratings."""


LATER = events.alias("later")
"""Events that are about other events."""

# Statements that every recall needs are built once: building them takes longer than running them.
_EFFECTIVE_TIME = case((events.c.at > events.c.recorded_at, events.c.recorded_at), else_=events.c.at)
_IS_RETRACTED = exists().where(LATER.c.target_id == events.c.id, LATER.c.kind == RETRACTION)

_SIGNAL = (
    events.c.id,
    events.c.seq,
    events.c.target_id,
    events.c.query_id,
    events.c.value,
    events.c.confidence,
    events.c.author,
    events.c.author_kind,
    events.c.recorded_at,
    events.c.receipt_id,
    events.c.rank,
)
"""Only the columns that folds need: recalls read many of these rows."""

SIGNALS = (events.c.kind == SIGNAL, events.c.author_kind != "visitor")
"""The conditions of signals that may count."""

_AFTER = (events.c.dataset_id == bindparam("dataset"), events.c.seq > bindparam("after"))
_EXISTING_SIGNALS = (
    select(*_SIGNAL, facts.c.seq.label("fact"), _EFFECTIVE_TIME.label("effective"))
    .join(facts, facts.c.id == events.c.target_id)
    .where(*SIGNALS)
)
_ACTIVE_SIGNALS = _EXISTING_SIGNALS.where(~_IS_RETRACTED).order_by(_EFFECTIVE_TIME, events.c.seq)
_SURVIVING = _ACTIVE_SIGNALS.with_only_columns(
    events.c.id,
    facts.c.seq,
    events.c.query_id,
    events.c.value,
    events.c.confidence,
    _EFFECTIVE_TIME,
    events.c.author,
    events.c.author_kind,
    events.c.seq,
)
_OPINIONS_AFTER = _EXISTING_SIGNALS.where(*_AFTER, events.c.query_id.is_not(None)).order_by(events.c.seq)
_RETRACTED_AFTER = (
    select(events.c.query_id, facts.c.seq)
    .select_from(LATER)
    .join(events, events.c.id == LATER.c.target_id)
    .join(facts, facts.c.id == events.c.target_id)
    .where(LATER.c.dataset_id == bindparam("dataset"), LATER.c.seq > bindparam("after"), LATER.c.kind == RETRACTION)
    .where(*SIGNALS, events.c.query_id.is_not(None))
)
_KINDS_AFTER = select(events.c.kind).where(*_AFTER).distinct()
_SIGNALS_AFTER = select(func.count()).select_from(events).where(*_AFTER, *SIGNALS)
_FITTED = (
    select(events.c.seq, events.c.body)
    .where(events.c.dataset_id == bindparam("dataset"), events.c.kind == STRENGTHS)
    .order_by(events.c.seq.desc())
    .limit(1)
)
_RETRACTED_BEHIND = (
    select(events.c.seq)
    .select_from(LATER)
    .join(events, events.c.id == LATER.c.target_id)
    .where(LATER.c.dataset_id == bindparam("dataset"), LATER.c.seq > bindparam("after"), LATER.c.kind == RETRACTION)
    .where(*SIGNALS, events.c.seq <= bindparam("last"))
    .limit(1)
)
_OF_QUERIES_AFTER = select(events.c.query_id).where(*_AFTER, events.c.query_id.is_not(None)).distinct()
_NAMED_AFTER = _OF_QUERIES_AFTER.where(*SIGNALS)
_LOST_AFTER = _OF_QUERIES_AFTER.where(events.c.kind == RETRACTION)
_RATED = _ACTIVE_SIGNALS.with_only_columns(events.c.query_id).order_by(None).distinct()
_FACTS_AFTER = (
    select(facts.c.seq)
    .select_from(events)
    .join(facts, facts.c.id == events.c.target_id)
    .where(*_AFTER, events.c.kind == SIGNAL)
    .distinct()
)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the ledger."""

    project_id: int
    kind: str
    target_type: str
    target_id: str
    source: str
    at: int
    recorded_at: int
    dataset_id: int | None = None
    author: str | None = None
    author_kind: AuthorKind | None = None
    """Derived from the author's name by default."""
    query_id: int | None = None
    value: str | None = None
    confidence: float | None = None
    receipt_id: str | None = None
    rank: int | None = None
    body: Metadata | None = None
    idempotency_key: str = ""
    id: str = field(default_factory=new_id)

    @property
    def keyed(self) -> bool:
        """Whether it has an idempotency key other than its id."""
        return self.idempotency_key not in ("", self.id)


def retraction(
    project: int,
    event_id: str,
    author: str | None,
    at: int,
    *,
    dataset_id: int | None = None,
    query_id: int | None = None,
) -> Event:
    """The event that retracts another one; its key prevents a second retraction."""
    return Event(
        project_id=project,
        kind=RETRACTION,
        target_type="event",
        target_id=event_id,
        source="retract",
        at=at,
        recorded_at=at,
        dataset_id=dataset_id,
        author=author,
        query_id=query_id,
        idempotency_key=f"retract/{event_id}",
    )


def append(connection: Connection, new: Sequence[Event]) -> None:
    """Appends events; without a key, an event's id is its idempotency key."""
    keyed = [key_row(event) for event in new if event.keyed]
    insert_many(connection, event_keys, insert(event_keys), keyed)
    insert_many(connection, events, insert(events), [row(event) for event in new])


_APPEND = Prepared(insert(events), [column.name for column in events.c if column.name != "seq"])
_APPEND_KEY = Prepared(insert(event_keys), [column.name for column in event_keys.c])
_WITH_KEY = Prepared(
    select(event_keys.c.event_id).where(
        event_keys.c.project_id == bindparam("project"), event_keys.c.idempotency_key == bindparam("key")
    )
)


def append_one(direct: Direct, event: Event) -> None:
    """The same for one event."""
    if event.keyed:
        direct.run(_APPEND_KEY, **key_row(event))
    direct.run(_APPEND, **row(event))


def with_key(direct: Direct, project: int, key: str) -> str | None:
    """The id of the event with an idempotency key."""
    rows = direct.run(_WITH_KEY, project=project, key=key)
    return str(rows[0][0]) if rows else None


def annotate(connection: Connection, written: Sequence[tuple[str, int, str]]) -> None:
    """Stores texts that people wrote with events, as (event, fact number, text)."""
    if written:
        connection.execute(
            insert(notes), [{"event_id": event, "fact_seq": fact, "text": text} for event, fact, text in written]
        )


def notes_of(connection: Connection, event_id: str) -> list[str]:
    """What was written with an event."""
    return list(connection.execute(select(notes.c.text).where(notes.c.event_id == event_id)).scalars())


def with_keys(connection: Connection, project: int, keys: Sequence[str]) -> dict[str, AnyRow | Event]:
    """The events with these idempotency keys."""
    events_by_key: dict[str, AnyRow | Event] = {}
    for run in batches(keys):
        rows = connection.execute(
            select(events)
            .join(event_keys, _of_key())
            .where(event_keys.c.project_id == project, event_keys.c.idempotency_key.in_(run))
        )
        events_by_key.update({row.idempotency_key: row for row in rows})
    return events_by_key


def known_keys(connection: Connection, project: str, keys: Sequence[str]) -> set[str]:
    """Which of these idempotency keys were used in a project."""
    statement = (
        select(event_keys.c.idempotency_key)
        .join(projects, projects.c.id == event_keys.c.project_id)
        .where(projects.c.name == project)
    )
    return {
        key
        for run in batches(keys)
        for key in connection.execute(statement.where(event_keys.c.idempotency_key.in_(run))).scalars()
    }


def with_source(connection: Connection, dataset: int, source: str) -> list[AnyRow]:
    """The active events of a dataset with this source."""
    statement = select(events).where(
        events.c.dataset_id == dataset,
        events.c.source == source,
        events.c.kind != RETRACTION,
        ~is_retracted(),
    )
    return list(connection.execute(statement))


def about(connection: Connection, fact_ids: Sequence[str], source: str, limit: int) -> list[AnyRow]:
    """The newest signals about these facts with this source, active or not."""
    statement = select(events).where(
        events.c.target_id.in_(fact_ids), events.c.kind == SIGNAL, events.c.source == source
    )
    return list(connection.execute(statement.order_by(events.c.at.desc()).limit(limit)))


def with_prefix(connection: Connection, project: str, prefix: str, *, active: bool = True) -> list[AnyRow]:
    """The events of a project whose idempotency key begins with `prefix`, which ends in a slash; with `active`, only
    those that were not retracted."""
    after = prefix[:-1] + chr(ord("/") + 1)
    statement = (
        select(events)
        .join(event_keys, _of_key())
        .join(projects, projects.c.id == event_keys.c.project_id)
        .where(
            projects.c.name == project,
            event_keys.c.idempotency_key >= prefix,
            event_keys.c.idempotency_key < after,
        )
    )
    return list(connection.execute(statement.where(~is_retracted()) if active else statement))


def of_receipt(connection: Connection, receipt_id: str) -> list[AnyRow]:
    """The signals under one receipt that still count."""
    statement = select(events).where(events.c.receipt_id == receipt_id, events.c.kind == SIGNAL, ~is_retracted())
    return list(connection.execute(statement))


def get(connection: Connection, project: str, event_id: str) -> AnyRow | None:
    """One event of a project, by its id or, if it is a signal, its external id."""
    own = select(events).join(projects, projects.c.id == events.c.project_id).where(projects.c.name == project)
    row = connection.execute(own.where(events.c.id == event_id)).first()
    if row is not None:
        return row
    by_key = own.join(event_keys, _of_key()).where(
        event_keys.c.project_id == projects.c.id, event_keys.c.idempotency_key == external_key(event_id)
    )
    return connection.execute(by_key).first()


def external_key(external_id: str) -> str:
    """The idempotency key of a signal with an external id, which is one for all callers."""
    return f"{EXTERNAL_PREFIX}{external_id}"


def retraction_of(connection: Connection, project: int, event_id: str) -> str | None:
    """The id of the event that retracted this one, if any did."""
    return connection.execute(
        select(events.c.id).where(
            of_project(connection, events.c.project_id, project),
            events.c.kind == RETRACTION,
            events.c.target_id == event_id,
        )
    ).scalar()


def superseded(connection: Connection, fact_ids: Collection[str]) -> set[str]:
    """Those of these facts from which active supersessions lead to one that exists, perhaps over some that were
    forgotten."""
    predecessors: dict[str, set[str]] = defaultdict(set)
    ends: set[str] = set()
    seen, latest = set(fact_ids), set(fact_ids)
    while latest:
        rows = supersessions(connection, sorted(latest))
        for row in rows:
            predecessors[row.value].add(row.target_id)
        successors = {row.value for row in rows}
        for run in batches(sorted(successors)):
            ends.update(connection.execute(select(facts.c.id).where(facts.c.id.in_(run))).scalars())
        latest = successors - ends - seen
        seen |= latest
    found: set[str] = set()
    latest = ends
    while latest:
        latest = {each for successor in latest for each in predecessors[successor]} - found
        found |= latest
    return found & set(fact_ids)


def superseded_by(connection: Connection, fact_ids: Sequence[str]) -> set[str]:
    """The facts with an active supersession by one of these."""
    statement = select(events.c.target_id).where(events.c.kind == SUPERSESSION, ~is_retracted())
    return {
        fact_id
        for run in batches(fact_ids)
        for fact_id in connection.execute(statement.where(events.c.value.in_(run))).scalars()
    }


def recallable(connection: Connection, fact_ids: Collection[str]) -> set[str]:
    """Which of these facts recall may find: nothing supersedes them, and a correction that made one is still active."""
    found = set(fact_ids) - superseded(connection, fact_ids)
    of_successors = select(events.c.value).where(events.c.kind == SUPERSESSION)
    withdrawn: set[str] = set()
    for run in batches(sorted(found)):
        named = of_successors.where(events.c.value.in_(run))
        active = set(connection.execute(named.where(~is_retracted()).distinct()).scalars())
        retracted = named.add_columns(events.c.body).where(events.c.value.not_in(active))
        withdrawn.update(row.value for row in connection.execute(retracted) if row.body["created"])
    return found - withdrawn


def supersessions(connection: Connection, fact_ids: Sequence[str]) -> list[AnyRow]:
    """The active supersessions of these facts, oldest first."""
    statement = select(events).where(events.c.kind == SUPERSESSION, ~is_retracted())
    rows = (
        row for run in batches(fact_ids) for row in connection.execute(statement.where(events.c.target_id.in_(run)))
    )
    return sorted(rows, key=lambda row: row.seq)


def last_event(connection: Connection, dataset: int) -> int:
    """The number of the newest event of a dataset; 0 if there is none."""
    newest = connection.execute(select(func.max(events.c.seq)).where(events.c.dataset_id == dataset))
    return int(newest.scalar() or 0)


def facts_after(connection: Connection, dataset: int, seq: int) -> list[int]:
    """The existing facts with signals after an event."""
    return list(connection.execute(_FACTS_AFTER, {"dataset": dataset, "after": seq}).scalars())


def rejudged_after(connection: Connection, dataset: int, seq: int) -> list[int]:
    """The existing facts whose signals were added or retracted after an event."""
    retracted = (
        select(facts.c.seq)
        .select_from(LATER)
        .join(events, events.c.id == LATER.c.target_id)
        .join(facts, facts.c.id == events.c.target_id)
        .where(LATER.c.dataset_id == dataset, LATER.c.seq > seq, LATER.c.kind == RETRACTION, events.c.kind == SIGNAL)
    )
    return list({*facts_after(connection, dataset, seq), *connection.execute(retracted).scalars()})


def queries_after(connection: Connection, dataset: int, seq: int) -> set[int]:
    """The queries that signals which may count named after an event."""
    return set(connection.execute(_NAMED_AFTER, {"dataset": dataset, "after": seq}).scalars())


def unrated_after(connection: Connection, dataset: int, seq: int) -> set[int]:
    """The queries that lost a signal after an event, and have none left that counts."""
    unrated = set(connection.execute(_LOST_AFTER, {"dataset": dataset, "after": seq}).scalars())
    for run in batches(sorted(unrated)):
        unrated.difference_update(connection.execute(_RATED.where(events.c.query_id.in_(run))).scalars())
    return unrated


def kinds_after(connection: Connection, dataset: int, seq: int) -> set[str]:
    """The kinds of events after an event."""
    return set(connection.execute(_KINDS_AFTER, {"dataset": dataset, "after": seq}).scalars())


def opinions_after(connection: Connection, dataset: int, seq: int) -> Iterator[Opinion]:
    """The signals about existing facts after an event, in the order they were recorded; also retracted ones."""
    rows = connection.execute(_OPINIONS_AFTER, {"dataset": dataset, "after": seq})
    return (opinion(row) for row in rows)


def retracted_after(connection: Connection, dataset: int, seq: int) -> dict[int, set[int]]:
    """The facts whose signals were retracted after an event, by query."""
    result: dict[int, set[int]] = {}
    for row in connection.execute(_RETRACTED_AFTER, {"dataset": dataset, "after": seq}):
        result.setdefault(row.query_id, set()).add(row.seq)
    return result


def count_signals(connection: Connection, dataset: int, seq: int) -> int:
    """How many signals that may count came after an event."""
    return int(connection.execute(_SIGNALS_AFTER, {"dataset": dataset, "after": seq}).scalar() or 0)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Strengths that were fitted."""

    strengths: Strengths
    opinions: int
    """How many active signals they were fitted on: the oldest."""
    last: int
    """The number of the last of those."""


def fitted(connection: Connection, dataset: int) -> Fitted | None:
    """The strengths of a dataset; None where none were fitted, or a signal behind them was retracted since."""
    row = connection.execute(_FITTED, {"dataset": dataset}).first()
    if row is None:
        return None
    body = row.body
    found = Fitted(Strengths(body["boldness"], body["error"]), body["opinions"], body["last"])
    behind = {"dataset": dataset, "after": row.seq, "last": found.last}
    return found if connection.execute(_RETRACTED_BEHIND, behind).first() is None else None


def strengths_event(project: int, dataset: int, found: Fitted, at: int) -> Event:
    """The event that notes strengths."""
    own = found.strengths
    body: Metadata = {"boldness": own.boldness, "error": own.error, "opinions": found.opinions, "last": found.last}
    return Event(
        project_id=project,
        kind=STRENGTHS,
        target_type="dataset",
        target_id=str(dataset),
        source="maintenance",
        at=at,
        recorded_at=at,
        dataset_id=dataset,
        body=body,
    )


def first_opinions(
    connection: Connection, dataset: int, prefix: Callable[[int], int], most: int
) -> tuple[int, list[AnyRow]]:
    """Of a dataset's active signals, how many of the oldest `prefix` chooses, and the last `most` of those, in the
    order they were recorded."""
    active = _ACTIVE_SIGNALS.where(events.c.dataset_id == dataset, events.c.query_id.is_not(None)).order_by(None)
    total = int(connection.execute(select(func.count()).select_from(active.subquery())).scalar() or 0)
    count = prefix(total)
    skipped = max(0, count - most)
    rows = connection.execute(active.order_by(events.c.seq).offset(skipped).limit(count - skipped)) if count else ()
    return count, list(rows)


def of_facts(connection: Connection, facts_of: Mapping[int, Collection[int]]) -> dict[int, list[Opinion]]:
    """The active signals about some facts of each query, by query, in order for each fact."""
    result: dict[int, list[Opinion]] = {query: [] for query in facts_of}
    for run in batches(sorted({fact for theirs in facts_of.values() for fact in theirs})):
        found = _active_signals(events.c.query_id.in_(list(facts_of)), facts.c.seq.in_(run))
        for row in connection.execute(found):
            if row.fact in facts_of[row.query_id]:
                result[row.query_id].append(opinion(row))
    return result


def query_texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The words of queries, by number."""
    rows = connection.execute(select(queries.c.id, queries.c.text).where(queries.c.id.in_(ids)))
    return {row.id: row.text for row in rows}


def row(event: Event) -> dict[str, Any]:
    """An event as the table has it."""
    return {
        "id": event.id,
        "project_id": event.project_id,
        "dataset_id": event.dataset_id,
        "idempotency_key": event.idempotency_key or event.id,
        "kind": event.kind,
        "target_type": event.target_type,
        "target_id": event.target_id,
        "author": event.author,
        "author_kind": event.author_kind or kind_of(event.author),
        "source": event.source,
        "at": event.at,
        "recorded_at": event.recorded_at,
        "query_id": event.query_id,
        "value": event.value,
        "confidence": event.confidence,
        "receipt_id": event.receipt_id,
        "rank": event.rank,
        "body": None if event.body is None else orjson.dumps(event.body).decode(),
    }


def key_row(event: Event) -> dict[str, Any]:
    """The idempotency key of an event as its table has it."""
    return {
        "project_id": event.project_id,
        "idempotency_key": event.idempotency_key,
        "event_id": event.id,
        "recorded_at": event.recorded_at,
    }


def _of_key() -> ColumnElement[bool]:
    # The time selects the partition.
    return (events.c.id == event_keys.c.event_id) & (events.c.recorded_at == event_keys.c.recorded_at)


def effective_time() -> ColumnElement[int]:
    """The time of an event for folds, at most the time it was recorded: a signal dated in the future would never
    decay, and would make every later signal late."""
    return _EFFECTIVE_TIME


def is_retracted() -> ColumnElement[bool]:
    """The condition that an event is retracted."""
    return _IS_RETRACTED


class Surviving(NamedTuple):
    """A signal that was not retracted, as folds and explanations need it."""

    id: str
    fact_seq: int
    query_id: int
    observation: Observation
    author: str | None
    author_kind: AuthorKind
    seq: int = 0


def surviving(
    connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int] | None = None
) -> list[Surviving]:
    """The signals about these facts (for these queries) that still count, in folding order."""
    result: list[Surviving] = []
    for run in batches(fact_seqs, 2000):
        statement = _SURVIVING.where(facts.c.seq.in_(run))
        if query_ids is not None:
            statement = statement.where(events.c.query_id.in_(query_ids))
        result += map(_surviving, connection.execute(statement))
    return votes(result)


def votes(signals: Iterable[Surviving]) -> list[Surviving]:
    """The signals that count, of those given, which are in folding order."""
    return counted_votes(
        signals, voter_of, lambda signal: (signal.observation.signal_type, signal.observation.confidence)
    )


def of_queries(connection: Connection, query_ids: Sequence[int]) -> dict[int, list[Opinion]]:
    """The active signals for these queries, by query, in order."""
    result: dict[int, list[Opinion]] = {query: [] for query in query_ids}
    for run in batches(query_ids):
        for row in connection.execute(_active_signals(events.c.query_id.in_(run))):
            result[row.query_id].append(opinion(row))
    return result


def recorded_opinions(connection: Connection, dataset: int) -> list[tuple[int, Opinion]]:
    """All active signals of a dataset, as (when it was recorded, opinion), in that order; also those that their author
    replaced, because until then they counted."""
    rows = connection.execute(_active_signals(events.c.dataset_id == dataset))
    return [(row.recorded_at, opinion(row)) for row in sorted(rows, key=lambda row: (row.recorded_at, row.seq))]


def ratings(connection: Connection, dataset: int) -> list[AnyRow]:
    """The explicit opinions of a dataset that name a receipt and still count, in order."""
    statement = _active_signals(
        events.c.dataset_id == dataset,
        events.c.value.in_(("helpful", "not_helpful")),
        events.c.receipt_id.is_not(None),
    )
    return list(connection.execute(statement))


Voter = tuple[int, int, str]
"""(fact number, query number, author)."""

_OF_VOTERS = f"""
WITH voters AS MATERIALIZED (
  SELECT facts.seq AS fact, facts.id AS fact_id, {{query}} AS query_id, {{author}} AS author
  FROM {{wanted}} CROSS JOIN facts WHERE facts.seq = {{fact}}
)
SELECT events.id, voters.fact, events.query_id, events.value, events.confidence,
  CASE WHEN events.at > events.recorded_at THEN events.recorded_at ELSE events.at END AS effective,
  events.author, events.author_kind, events.seq
FROM voters CROSS JOIN events
WHERE events.target_id = voters.fact_id AND events.query_id = voters.query_id AND events.author = voters.author
  AND events.kind = '{SIGNAL}' AND events.author_kind != 'visitor'
  AND NOT EXISTS (SELECT 1 FROM events AS later WHERE later.target_id = events.id AND later.kind = '{RETRACTION}')
"""
# Lists of facts, queries and authors would make SQLite look up every combination of them. In a CROSS JOIN, it keeps the
# order of the tables; PostgreSQL would join authors and queries first, and find every combination of their facts.
_OF_VOTERS_ON = {
    "sqlite": text(
        _OF_VOTERS.format(
            wanted="json_each(:voters) AS wanted",
            fact="json_extract(wanted.value, '$[0]')",
            query="json_extract(wanted.value, '$[1]')",
            author="json_extract(wanted.value, '$[2]')",
        )
    ),
    "postgresql": text(
        _OF_VOTERS.format(
            wanted="json_array_elements(CAST(:voters AS json)) AS wanted(value)",
            fact="CAST(wanted.value ->> 0 AS bigint)",
            query="CAST(wanted.value ->> 1 AS bigint)",
            author="(wanted.value ->> 2)",
        )
    ),
}


def of_voters(connection: Connection, voters: Iterable[Voter]) -> list[Surviving]:
    """The active signals that each of these authors gave about their fact for their query, in folding order; also
    those that another one of theirs replaces."""
    statement = _OF_VOTERS_ON[connection.dialect.name]
    result = [
        _surviving(row)
        for run in batches(sorted(set(voters)))
        for row in connection.execute(statement, {"voters": orjson.dumps(run).decode()})
    ]
    return sorted(result, key=lambda signal: (signal.observation.at, signal.seq))


def counted_rows(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """Rows of signals, in order, without those that a later one of the same author replaces."""
    return counted_votes(rows, _voter_of, _signal_value)


def voter_of(signal: Surviving) -> Voter | None:
    """Whose opinion a signal is, on which fact, for which query; None if nobody is named."""
    return None if signal.author is None else (signal.fact_seq, signal.query_id, signal.author)


def _voter_of(row: AnyRow) -> tuple[str, int, str] | None:
    return None if row.author is None else (row.target_id, row.query_id, row.author)


def _signal_value(row: AnyRow) -> tuple[SignalType, float]:
    return row.value, row.confidence


def _active_signals(*conditions: ColumnElement[bool]) -> Select[*tuple[object, ...]]:
    """Active signals of existing facts, in order."""
    return _ACTIVE_SIGNALS.where(*conditions)


def _surviving(row: AnyRow) -> Surviving:
    # Unpacked rather than by name: one late signal makes all of its fact be read.
    event_id, fact, query, value, confidence, at, *author_and_seq = row
    return Surviving(event_id, fact, query, Observation(value, confidence, at), *author_and_seq)


def opinion(row: AnyRow) -> Opinion:
    """A signal as policies see it."""
    return Opinion(row.fact, row.query_id, row.value, row.confidence, row.effective, rank=row.rank, author=row.author)
