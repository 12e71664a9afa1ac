"""The append-only record of all feedback, and the queries that it is for. There is no update and no delete of events
here, with one exception: erasing a person (`ledger.erasure`), which appends an event of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, exists, func, insert, select, text, update

from heedful import request_context
from heedful.clock import new_id
from heedful.ledger.adaptive_policy import Strengths, prefix
from heedful.ledger.usefulness import Opinion
from heedful.ledger.votes import counted_votes, kind_of
from heedful.model import AuthorKind, Metadata
from heedful.storage.database import Database
from heedful.storage.isolation import own_project
from heedful.storage.rows import AnyRow, Direct, OneOf, Prepared, batches, insert_many, select_in
from heedful.storage.schema import datasets, event_keys, events, facts, notes, queries

SIGNAL = "signal"
RETRACTION = "retraction"
SUPERSESSION = "supersession"
FEEDBACK = "feedback"
LINK_SIGNAL = "link_signal"
REVIEW = "review"
POLICY = "policy"  # The choice of a policy for a dataset or a project.
CONFLICT = "conflict"
"""A fact that was stored gives another value than an older one, which its body names; `value` is the kind."""

STRENGTHS = "strengths"
"""How far evidence is followed in a dataset from here on: fitted on the signals up to one that its body names."""

ERASURE = "erasure"  # The erasure of a person: the pseudonym, and the counts of what was erased.
EXTERNAL_PREFIX = "external/"  # Prefix of the idempotency keys of signals with an external id.
IMPROVE = "improve"  # The source of signals that are derived from ratings.
PROVENANCE = "supersedes"  # The key under which a correction's metadata name the fact it corrects.
TAUGHT = "taught"  # The key in the event of a teaching for the fact that it created.
LATER = events.alias("later")  # Events that are about other events.

# Statements that every recall needs are built once: building them takes longer than running them.
EFFECTIVE_TIME = case((events.c.at > events.c.recorded_at, events.c.recorded_at), else_=events.c.at)
"""The time of an event for folds, at most the time it was recorded: a signal dated in the future would never decay, and
would make every later signal late."""

# As text, so that databases see that the indexes of rare events have them.
_LATER_RETRACTION = text("later.kind = 'retraction'")
_RARE = "events.kind = 'retraction' OR events.kind = 'strengths' OR events.kind = 'erasure'"
_IS_RETRACTED = exists().where(LATER.c.target_id == events.c.id, _LATER_RETRACTION)

SIGNALS = (events.c.kind == SIGNAL, events.c.author_kind != "visitor")  # The conditions of signals that may count.

_AFTER = (events.c.dataset_id == bindparam("dataset"), events.c.seq > bindparam("after"))
# Only the columns that folds need, because recalls read many of these rows; `opinion` unpacks the first ten.
_EXISTING_SIGNALS = (
    select(
        *(facts.c.seq.label("fact"), events.c.query_id, events.c.value, events.c.confidence),
        *(EFFECTIVE_TIME.label("effective"), events.c.rank, events.c.author, events.c.id, events.c.author_kind),
        *(events.c.seq, events.c.recorded_at, events.c.receipt_id),
    )
    .join(facts, facts.c.id == events.c.target_id)
    .where(*SIGNALS)
)
_ACTIVE_SIGNALS = _EXISTING_SIGNALS.where(~_IS_RETRACTED).order_by(EFFECTIVE_TIME, events.c.seq)
_VOTES = _ACTIVE_SIGNALS.with_only_columns(*list(_ACTIVE_SIGNALS.selected_columns)[:7])
_OPINIONS_AFTER = _EXISTING_SIGNALS.where(*_AFTER, events.c.query_id.is_not(None)).order_by(events.c.seq)
_RETRACTED = LATER.join(events, events.c.id == LATER.c.target_id)
_RETRACTIONS_AFTER = (
    LATER.c.dataset_id == bindparam("dataset"),
    LATER.c.seq > bindparam("after"),
    _LATER_RETRACTION,
)
_RETRACTED_AFTER = (
    select(events.c.query_id, facts.c.seq)
    .select_from(_RETRACTED.join(facts, facts.c.id == events.c.target_id))
    .where(*_RETRACTIONS_AFTER, *SIGNALS, events.c.query_id.is_not(None))
)
_RARE_AFTER = select(events.c.kind).where(*_AFTER, text(f"({_RARE})")).distinct()
_SIGNALS_AFTER = select(func.count()).select_from(events).where(*_AFTER, *SIGNALS)
_FITTED = (
    select(events.c.seq, events.c.body)
    .where(events.c.dataset_id == bindparam("dataset"), text("events.kind = 'strengths'"))
    .order_by(events.c.seq.desc())
    .limit(1)
)
_RETRACTED_BEHIND = (
    select(events.c.seq)
    .select_from(_RETRACTED)
    .where(*_RETRACTIONS_AFTER, *SIGNALS, events.c.seq <= bindparam("last"))
    .limit(1)
)
_OF_QUERIES_AFTER = select(events.c.query_id).where(*_AFTER, events.c.query_id.is_not(None)).distinct()
_NAMED_AFTER = _OF_QUERIES_AFTER.where(*SIGNALS)
# Of all signals there ever were, not each is read: one for every query is enough.
_NAMED = select(queries.c.id).where(
    queries.c.dataset_id == bindparam("dataset"), exists().where(events.c.query_id == queries.c.id, *SIGNALS)
)
_LOST_AFTER = _OF_QUERIES_AFTER.where(text("events.kind = 'retraction'"))
# Of a question with many votes, one is enough.
_RATED = select(queries.c.id).where(
    _ACTIVE_SIGNALS.with_only_columns(events.c.seq).where(events.c.query_id == queries.c.id).order_by(None).exists()
)
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
    recorded_at: int | None = None
    """`at` by default."""
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

    def row(self) -> dict[str, Any]:
        """The event as the table has it."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "recorded_at": self.at if self.recorded_at is None else self.recorded_at,
            "idempotency_key": self.idempotency_key or self.id,
            "author_kind": self.author_kind or kind_of(self.author),
            "body": None if self.body is None else orjson.dumps(self.body).decode(),
        }

    def key_row(self) -> dict[str, Any]:
        """The idempotency key of the event as its table has it."""
        own = self.row()
        return {"event_id": self.id} | {name: own[name] for name in ("project_id", "idempotency_key", "recorded_at")}


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
        dataset_id=dataset_id,
        author=author,
        query_id=query_id,
        idempotency_key=f"retract/{event_id}",
    )


def append(connection: Connection, new: Sequence[Event]) -> None:
    """Appends events; without a key, an event's id is its idempotency key."""
    insert_many(connection, event_keys, insert(event_keys), [event.key_row() for event in new if event.keyed])
    insert_many(connection, events, insert(events), [event.row() for event in new])


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
        direct.run(_APPEND_KEY, **event.key_row())
    direct.run(_APPEND, **event.row())


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
    """The texts that were written with an event."""
    return list(connection.execute(select(notes.c.text).where(notes.c.event_id == event_id)).scalars())


def with_keys(connection: Connection, project: int, keys: Sequence[str]) -> dict[str, AnyRow | Event]:
    """The events with these idempotency keys."""
    keyed = select(events).join(event_keys, _OF_KEY).where(event_keys.c.project_id == project)
    return {row.idempotency_key: row for row in select_in(connection, keyed, event_keys.c.idempotency_key, keys)}


def known_keys(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Those of these idempotency keys that were used in the transaction's project."""
    used = select(event_keys.c.idempotency_key).where(event_keys.c.project_id == own_project())
    return {row.idempotency_key for row in select_in(connection, used, event_keys.c.idempotency_key, keys)}


def with_source(connection: Connection, dataset: int, source: str) -> list[AnyRow]:
    """The active events of a dataset with this source."""
    statement = select(events).where(
        events.c.dataset_id == dataset, events.c.source == source, events.c.kind != RETRACTION, ~is_retracted()
    )
    return list(connection.execute(statement))


def about(connection: Connection, fact_ids: Sequence[str], source: str, limit: int) -> list[AnyRow]:
    """The newest signals about these facts with this source, active or not."""
    statement = select(events).where(
        events.c.target_id.in_(fact_ids), events.c.kind == SIGNAL, events.c.source == source
    )
    return list(connection.execute(statement.order_by(events.c.at.desc()).limit(limit)))


def with_prefix(connection: Connection, prefix: str, *, active: bool = True) -> list[AnyRow]:
    """The events of the transaction's project whose idempotency key begins with `prefix`, which ends in a slash; with
    `active`, only those that were not retracted."""
    after = prefix[:-1] + chr(ord("/") + 1)
    begins = (event_keys.c.idempotency_key >= prefix, event_keys.c.idempotency_key < after)
    statement = select(events).join(event_keys, _OF_KEY).where(event_keys.c.project_id == own_project(), *begins)
    return list(connection.execute(statement.where(~is_retracted()) if active else statement))


def of_receipt(connection: Connection, receipt_id: str) -> list[AnyRow]:
    """The signals under one receipt that still count."""
    statement = select(events).where(events.c.receipt_id == receipt_id, events.c.kind == SIGNAL, ~is_retracted())
    return list(connection.execute(statement))


def get(connection: Connection, event_id: str) -> AnyRow | None:
    """One event of the transaction's project, by its id or, if it is a signal, its external id."""
    row = connection.execute(select(events).where(events.c.id == event_id)).first()
    if row is not None:
        return row
    by_key = (event_keys.c.project_id == own_project(), event_keys.c.idempotency_key == external_key(event_id))
    return connection.execute(select(events).join(event_keys, _OF_KEY).where(*by_key)).first()


def event_key(kind: str, key: str | None) -> str | None:
    """The ledger's key for a caller's idempotency key, distinct from those of other callers."""
    if key is None:
        return None
    caller = request_context.subject()
    return f"{kind}@{caller}/{key}" if caller else f"{kind}/{key}"


def idempotency_key_of(event_key: str) -> str:
    """The key as the caller passed it."""
    return event_key.partition("/")[2]


def external_key(external_id: str) -> str:
    """The idempotency key of a signal with an external id, which is one for all callers."""
    return f"{EXTERNAL_PREFIX}{external_id}"


def retraction_of(connection: Connection, event_id: str) -> str | None:
    """The id of the event that retracted this one, if any did."""
    return connection.execute(
        select(events.c.id).where(events.c.kind == RETRACTION, events.c.target_id == event_id)
    ).scalar()


def last_event(connection: Connection, dataset: int) -> int:
    """The number of the newest event of a dataset; 0 if there is none."""
    newest = connection.execute(select(func.max(events.c.seq)).where(events.c.dataset_id == dataset))
    return int(newest.scalar() or 0)


def facts_after(connection: Connection, dataset: int, seq: int) -> list[int]:
    """The existing facts with signals after an event."""
    return list(connection.execute(_FACTS_AFTER, {"dataset": dataset, "after": seq}).scalars())


def rejudged_after(connection: Connection, dataset: int, seq: int) -> list[int]:
    """The existing facts whose signals were added or retracted after an event."""
    retracted = select(facts.c.seq).select_from(_RETRACTED.join(facts, facts.c.id == events.c.target_id))
    retracted = retracted.where(*_RETRACTIONS_AFTER, events.c.kind == SIGNAL)
    rows = connection.execute(retracted, {"dataset": dataset, "after": seq})
    return list({*facts_after(connection, dataset, seq), *rows.scalars()})


def queries_after(connection: Connection, dataset: int, seq: int) -> set[int]:
    """The queries that signals which may count named after an event; 0 is before all of them."""
    statement, values = (_NAMED_AFTER, {"dataset": dataset, "after": seq}) if seq else (_NAMED, {"dataset": dataset})
    return set(connection.execute(statement, values).scalars())


def unrated_after(connection: Connection, dataset: int, seq: int) -> set[int]:
    """The queries that lost a signal after an event, and have none left that counts."""
    lost = set(connection.execute(_LOST_AFTER, {"dataset": dataset, "after": seq}).scalars())
    return lost - {row.id for row in select_in(connection, _RATED, queries.c.id, sorted(lost))}


def rare_kinds_after(connection: Connection, dataset: int, seq: int) -> set[str]:
    """The rare kinds of events after an event."""
    return set(connection.execute(_RARE_AFTER, {"dataset": dataset, "after": seq}).scalars())


def opinions_after(connection: Connection, dataset: int, seq: int) -> Iterator[Opinion]:
    """The signals about existing facts after an event, in the order they were recorded; also retracted ones."""
    return map(opinion, connection.execute(_OPINIONS_AFTER, {"dataset": dataset, "after": seq}))


def retracted_after(connection: Connection, dataset: int, seq: int) -> dict[int, set[int]]:
    """The facts whose signals were retracted after an event, by query."""
    result: dict[int, set[int]] = {}
    for row in connection.execute(_RETRACTED_AFTER, {"dataset": dataset, "after": seq}):
        result.setdefault(row.query_id, set()).add(row.seq)
    return result


def count_signals(connection: Connection, dataset: int, seq: int) -> int:
    """The number of signals after an event that may count."""
    return int(connection.execute(_SIGNALS_AFTER, {"dataset": dataset, "after": seq}).scalar() or 0)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Strengths that were fitted."""

    strengths: Strengths
    opinions: int
    """The number of active signals they were fitted on: the oldest."""
    last: int
    """The number of the last of those."""


def fitted(connection: Connection, dataset: int) -> Fitted | None:
    """The strengths of a dataset; None where none were fitted, or a signal behind them was retracted since."""
    row = connection.execute(_FITTED, {"dataset": dataset}).first()
    if row is None:
        return None
    noted = Fitted(Strengths(row.body["boldness"], row.body["error"]), row.body["opinions"], row.body["last"])
    behind = {"dataset": dataset, "after": row.seq, "last": noted.last}
    return noted if connection.execute(_RETRACTED_BEHIND, behind).first() is None else None


def strengths_event(project: int, dataset: int, new: Fitted, at: int) -> Event:
    """The event that notes strengths."""
    own = new.strengths
    body: Metadata = {"boldness": own.boldness, "error": own.error, "opinions": new.opinions, "last": new.last}
    return Event(
        project_id=project,
        kind=STRENGTHS,
        target_type="dataset",
        target_id=str(dataset),
        source="maintenance",
        at=at,
        dataset_id=dataset,
        body=body,
    )


def first_opinions(connection: Connection, dataset: int, most: int) -> tuple[int, list[Opinion]]:
    """Of a dataset's active signals, how many of the oldest `prefix` chooses, and the last `most` of those, in the
    order they were recorded."""
    active = _ACTIVE_SIGNALS.where(events.c.dataset_id == dataset, events.c.query_id.is_not(None)).order_by(None)
    total = int(connection.execute(select(func.count()).select_from(active.subquery())).scalar() or 0)
    count = prefix(total)
    skipped = max(0, count - most)
    rows = connection.execute(active.order_by(events.c.seq).offset(skipped).limit(count - skipped)) if count else ()
    return count, list(map(opinion, rows))


def of_facts(connection: Connection, facts_of: Mapping[int, Collection[int]]) -> dict[int, list[Opinion]]:
    """The active signals about some facts of each query, by query, in order for each fact."""
    result: dict[int, list[Opinion]] = {query: [] for query in facts_of}
    named = sorted({fact for theirs in facts_of.values() for fact in theirs})
    statement = _VOTES.where(events.c.query_id.in_(list(facts_of)))
    for row in select_in(connection, statement, facts.c.seq, named):
        if row.fact in facts_of[row.query_id]:
            result[row.query_id].append(opinion(row))
    return result


def query_texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The words of queries, by number."""
    rows = connection.execute(select(queries.c.id, queries.c.text).where(queries.c.id.in_(ids)))
    return {row.id: row.text for row in rows}


# The time selects the partition.
_OF_KEY = (events.c.id == event_keys.c.event_id) & (events.c.recorded_at == event_keys.c.recorded_at)


def is_retracted() -> ColumnElement[bool]:
    """The condition that an event is retracted."""
    return _IS_RETRACTED


def surviving(
    connection: Connection, fact_seqs: Sequence[int], query_ids: Sequence[int] | None = None
) -> list[Opinion]:
    """The signals about these facts (for these queries) that still count, in folding order."""
    statement = _ACTIVE_SIGNALS if query_ids is None else _ACTIVE_SIGNALS.where(events.c.query_id.in_(query_ids))
    return counted_votes(map(opinion, select_in(connection, statement, facts.c.seq, fact_seqs)))


_OF_QUERIES = Prepared(_VOTES.where(OneOf(events.c.query_id)))


def of_queries(connection: Connection, query_ids: Sequence[int]) -> dict[int, list[Sequence[Any]]]:
    """The active signals for these queries, by query, in order: rows for `opinion`, without ids and numbers."""
    result: dict[int, list[Sequence[Any]]] = {query: [] for query in query_ids}
    for row in Direct.on(connection).run_for(_OF_QUERIES, query_ids):
        result[row[1]].append(row)
    return result


def recorded_opinions(connection: Connection, dataset: int) -> list[tuple[int, Opinion]]:
    """All active signals of a dataset, as (when it was recorded, opinion), in that order; also those that their author
    replaced, because until then they counted."""
    rows = connection.execute(_ACTIVE_SIGNALS.where(events.c.dataset_id == dataset))
    return [(row.recorded_at, opinion(row)) for row in sorted(rows, key=lambda row: (row.recorded_at, row.seq))]


def ratings(connection: Connection, dataset: int) -> list[AnyRow]:
    """The explicit opinions of a dataset that name a receipt and still count, in order."""
    explicit = (events.c.value.in_(("helpful", "not_helpful")), events.c.receipt_id.is_not(None))
    return list(connection.execute(_ACTIVE_SIGNALS.where(events.c.dataset_id == dataset, *explicit)))


Voter = tuple[int, int, str]  # (fact number, query number, author).

_OF_VOTERS = f"""
WITH voters AS MATERIALIZED (
  SELECT facts.seq AS fact, facts.id AS fact_id, {{query}} AS query_id, {{author}} AS author
  FROM {{wanted}} CROSS JOIN facts WHERE facts.seq = {{fact}} AND facts.project_id = :own_project
)
SELECT voters.fact, events.query_id, events.value, events.confidence,
  CASE WHEN events.at > events.recorded_at THEN events.recorded_at ELSE events.at END AS effective,
  events.rank, events.author, events.id, events.author_kind, events.seq
FROM voters CROSS JOIN events
WHERE events.target_id = voters.fact_id AND events.query_id = voters.query_id AND events.author = voters.author
  AND events.kind = '{SIGNAL}' AND events.author_kind != 'visitor' AND events.project_id = :own_project
  AND NOT EXISTS (
    SELECT 1 FROM events AS later
    WHERE later.target_id = events.id AND later.kind = '{RETRACTION}' AND later.project_id = :own_project
  )
"""
# Lists of facts, queries and authors would make SQLite look up every combination of them. In a CROSS JOIN, it keeps the
# order of the tables; PostgreSQL would join authors and queries first, and find every combination of their facts.
_OF_VOTERS_ON = {
    "sqlite": text(
        _OF_VOTERS.format(
            wanted="json_each(:voters) AS wanted",
            **{name: f"json_extract(wanted.value, '$[{at}]')" for at, name in enumerate(("fact", "query", "author"))},
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


def of_voters(connection: Connection, voters: Iterable[Voter]) -> list[Opinion]:
    """The active signals that each of these authors gave about their fact for their query, in folding order; also
    those that another one of theirs replaces."""
    statement = _OF_VOTERS_ON[connection.dialect.name]
    runs = (
        connection.execute(statement, {"voters": orjson.dumps(run).decode()}) for run in batches(sorted(set(voters)))
    )
    return sorted((opinion(row) for rows in runs for row in rows), key=lambda signal: (signal.at, signal.seq))


def opinion(row: Sequence[Any]) -> Opinion:
    """A signal as policies see it."""
    # Unpacked rather than by name: one late signal makes all of its fact be read.
    fact, query, value, confidence, at, *others = row[:10]
    return Opinion(fact, query, value, confidence, at, 0.0, *others)


def query_digest(text: str) -> bytes:
    """Identifies equal queries: a hash of the text, ignoring white space."""
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest()


def ensure_queries(database: Database, connection: Connection, dataset: int, texts: Sequence[str]) -> dict[str, int]:
    """The number of each query; new ones are stored, and embedded when needed."""
    digests = {text: query_digest(text) for text in texts}
    distinct = {key: text for text, key in digests.items()}
    numbers = _numbers(connection, dataset, list(distinct))
    new = [key for key in distinct if key not in numbers]
    rows = [{"dataset_id": dataset, "digest": key, "text": distinct[key]} for key in new]
    database.upsert(connection, queries, rows, keys=["dataset_id", "digest", "project_id"], changed=[])
    if new:
        numbers |= _numbers(connection, dataset, new)
    return {text: numbers[key] for text, key in digests.items()}


def query_numbers(connection: Connection, dataset: int, texts: Collection[str]) -> set[int]:
    """The numbers of those of these queries that are stored."""
    return set(_numbers(connection, dataset, sorted(map(query_digest, texts))).values())


_NUMBERS = Prepared(
    select(queries.c.digest, queries.c.id).where(queries.c.dataset_id == bindparam("of"), OneOf(queries.c.digest))
)


def _numbers(connection: Connection, dataset: int, digests: Sequence[bytes]) -> dict[bytes, int]:
    return dict(Direct.on(connection).run_for(_NUMBERS, digests, of=dataset))


_FIND = Prepared(
    select(datasets.c.id.label("dataset"), queries.c.id.label("query"))
    .select_from(
        datasets.outerjoin(
            queries, and_(queries.c.dataset_id == datasets.c.id, queries.c.digest == bindparam("digest"))
        )
    )
    .where(datasets.c.id == bindparam("of"))
    # Excludes a concurrent deletion of the dataset.
    .with_for_update(read=True, key_share=True, of=datasets)
)
_ADD_QUERY = Prepared(
    text(
        "INSERT INTO queries (project_id, dataset_id, digest, text, model_id, vector) "
        "VALUES (:own_project, :dataset_id, :digest, :text, :model_id, :vector) ON CONFLICT DO NOTHING RETURNING id"
    )
)


def ensure_query(direct: Direct, dataset: int, words: str, model: int | None, vector: bytes | None) -> int | None:
    """The number of a query, stored if it is new; None if the dataset was deleted."""
    key = query_digest(words)
    rows = direct.run(_FIND, of=dataset, digest=key)
    if not rows or rows[0][1] is not None:
        return int(rows[0][1]) if rows else None
    inserted = direct.run(_ADD_QUERY, dataset_id=dataset, digest=key, text=words, model_id=model, vector=vector)
    # Another process may have stored the same query meanwhile.
    return int(inserted[0][0] if inserted else direct.run(_FIND, of=dataset, digest=key)[0][1])


_SET_VECTOR = (
    update(queries).where(queries.c.id == bindparam("of")).values(model_id=bindparam("model"), vector=bindparam("made"))
)


class QueryRow(NamedTuple):
    """A query as it is stored; with the vector of a model once it was embedded."""

    id: int
    text: str
    model_id: int | None
    vector: bytes | None


def load_queries(connection: Connection, ids: Sequence[int]) -> list[QueryRow]:
    """Queries by their numbers."""
    stored = select(*(queries.c[name] for name in QueryRow._fields))
    return [QueryRow._make(row) for row in select_in(connection, stored, queries.c.id, ids)]


def set_vectors(connection: Connection, vectors: Sequence[tuple[int, int, bytes]]) -> None:
    """Stores vectors of queries that were embedded later, given as (model, query, vector)."""
    connection.execute(_SET_VECTOR, [{"model": model, "of": query, "made": vector} for model, query, vector in vectors])
