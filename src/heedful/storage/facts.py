"""Facts: inserting, finding, filtering and removing them, with the feed that indexes follow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, func, insert, select, update

from heedful.model import Metadata
from heedful.storage import graph
from heedful.storage.isolation import own_project
from heedful.storage.postgresql import word_index
from heedful.storage.rows import (
    CHANGED,
    AnyRow,
    Direct,
    OneOf,
    Prepared,
    batches,
    insert_many,
    select_in,
    unpacked,
    weighed,
)
from heedful.storage.schema import changes, datasets, fact_tags, facts, links, notes, scores, vectors
from heedful.text.entities import Entity, entities

REMOVED, ADDED, LINKED = 0, 1, graph.LINKED

EXACT = 2.0**53
"""Below this, integers and floats represent the same whole numbers."""

MADE_FROM = "made_from"
"""The key under which the metadata of a learnt fact name those that its answer was made from, or that it corrects."""

CORRECTS = "corrects"
"""The key under which the metadata of a learnt fact name the one that it corrects."""

SUPERSEDED, REPLACED, OUTDATED = 1, 2, 4
"""Why recall doesn't find a fact, as bits of `hidden`: a supersession is active, its document no longer says it, or
a fact that it was learnt from is hidden."""

MAX_TAG = 100
"""Characters of a text in metadata that filters compare; the rest is compared by its hash."""


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact about to be stored."""

    id: str
    text: str
    metadata: Metadata
    source: str | None
    ordinal: int
    start: int
    stop: int
    vector: bytes
    expires_at: int | None = None
    entities: Sequence[Entity] | None = None
    """The entities in its text, if they are extracted already."""

    @property
    def digest(self) -> bytes:
        return digest(self.text, self.source, self.metadata)


def digest(text: str, source: str | None, metadata: Metadata) -> bytes:
    """Identifies equal facts: a hash of text, source and metadata."""
    canonical = orjson.dumps([text, source, metadata], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=16).digest()


def unexpired(at: int) -> ColumnElement[bool]:
    """The condition that a fact has not expired."""
    return facts.c.expires_at.is_(None) | (facts.c.expires_at > at)


def active(at: int) -> ColumnElement[bool]:
    """The condition that a fact can be recalled: it is neither superseded nor expired."""
    return (facts.c.hidden == 0) & unexpired(at)


def expired(connection: Connection, dataset: int, at: int) -> list[int]:
    """The numbers of the facts of a dataset that have expired and are still stored."""
    statement = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.expires_at <= at)
    return list(connection.execute(statement).scalars())


def set_expiry(connection: Connection, ids: Sequence[str], expires_at: int | None) -> list[str]:
    """Sets or removes the expiry of facts; returns those that had another one."""
    other = update(facts).where(facts.c.expires_at.is_distinct_from(expires_at)).values(expires_at=expires_at)
    return [
        fact_id
        for run in batches(ids)
        for fact_id in connection.execute(other.where(facts.c.id.in_(run)).returning(facts.c.id)).scalars()
    ]


def earliest_expiry(connection: Connection, ids: Sequence[str]) -> int | None:
    """When the first of these facts expires; None if none of them does."""
    rows = select_in(connection, select(func.min(facts.c.expires_at).label("first")), facts.c.id, ids)
    return min((row.first for row in rows if row.first is not None), default=None)


def rows_to_add(metadata: Metadata, mentioned: Sequence[Entity]) -> int:
    """At most so many rows are written for a new fact: itself, its vector, its change, tags, links and entities."""
    return 3 + len(flattened(metadata)) + 2 * len(mentioned)


def add(connection: Connection, dataset: int, model: int, new: Sequence[NewFact], at: int) -> None:
    """Stores facts with vectors, tags, links to entities, and their lines in the feed."""
    for run in batches(new, 2000):
        rows = [
            {
                "id": fact.id,
                "dataset_id": dataset,
                "digest": fact.digest,
                "text": fact.text,
                "metadata": fact.metadata,
                "source": fact.source,
                "ordinal": fact.ordinal,
                "start": fact.start,
                "stop": fact.stop,
                "linked": graph.BY_WORDS,
                "created_at": at,
                "expires_at": fact.expires_at,
            }
            for fact in run
        ]
        connection.execute(insert(facts), rows)
        numbers = select_in(connection, select(facts.c.id, facts.c.seq), facts.c.id, [fact.id for fact in run])
        seqs = {row.id: row.seq for row in numbers}
        by_seq = {seqs[fact.id]: fact for fact in run}
        packed = [
            {"fact_seq": seq, "model_id": model, "dataset_id": dataset, "vector": fact.vector}
            for seq, fact in by_seq.items()
        ]
        connection.execute(insert(vectors), packed)
        _add_tags(connection, dataset, {seq: fact.metadata for seq, fact in by_seq.items()})
        mentioned = {
            seq: entities(fact.text) if fact.entities is None else fact.entities for seq, fact in by_seq.items()
        }
        graph.link(connection, dataset, mentioned)
        word_index.add(connection, dataset, {seq: fact.text for seq, fact in by_seq.items()})
        announce(connection, dataset, list(by_seq), ADDED)
        _judge_lessons(connection, dataset, [seq for seq, fact in by_seq.items() if MADE_FROM in fact.metadata])


def with_wrong_tags(connection: Connection, dataset: int) -> list[int]:
    """The facts whose tags are not those of their metadata."""
    stored: dict[int, set[tuple[str, str]]] = {}
    every_tag = select(fact_tags.c.fact_seq, fact_tags.c.key, fact_tags.c.value).where(
        fact_tags.c.dataset_id == dataset
    )
    for row in connection.execute(every_tag):
        stored.setdefault(row.fact_seq, set()).add((row.key, row.value))
    rows = connection.execute(select(facts.c.seq, facts.c.metadata).where(facts.c.dataset_id == dataset))
    expected = {row.seq: {(tag["key"], tag["value"]) for tag in flattened(row.metadata)} for row in rows}
    return [seq for seq, tags in expected.items() if stored.get(seq, set()) != tags]


def retag(connection: Connection, dataset: int, seqs: Sequence[int]) -> None:
    """Rebuilds the tags of facts from their metadata."""
    for run in batches(seqs):
        connection.execute(delete(fact_tags).where(fact_tags.c.fact_seq.in_(run)))
        rows = connection.execute(select(facts.c.seq, facts.c.metadata).where(facts.c.seq.in_(run))).all()
        _add_tags(connection, dataset, {row.seq: row.metadata for row in rows})


def _add_tags(connection: Connection, dataset: int, metadata: Mapping[int, Metadata]) -> None:
    """Stores the tags of facts, by number."""
    tags = [
        {"fact_seq": seq, "dataset_id": dataset, **tag} for seq, values in metadata.items() for tag in flattened(values)
    ]
    insert_many(connection, fact_tags, insert(fact_tags), tags)


def flattened(metadata: Metadata) -> list[dict[str, Any]]:
    """Metadata as (key, value, number) rows; inner keys are dotted, each item of a list is a row."""
    rows: dict[tuple[str, str], float | None] = {}

    def visit(key: str, value: Any) -> None:
        if isinstance(value, dict):
            for inner, child in value.items():
                visit(f"{key}.{inner}" if key else inner, child)
        elif isinstance(value, list):
            for item in value:
                visit(key, item)
        else:
            number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            rows[key, tag(value)] = number

    visit("", metadata)
    return [{"key": key, "value": value, "number": number} for (key, value), number in rows.items()]


def tag(value: Any) -> str:
    """A scalar in comparable form: 1 equals 1.0, but not the text "1"."""
    if isinstance(value, str):
        return '"' + (value if len(value) <= MAX_TAG else value[:MAX_TAG] + digest(value, None, {}).hex())
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        value = int(value)
    return orjson.dumps(value).decode()


def tagged(connection: Connection, dataset: int, key: str, values: Sequence[Any]) -> list[int]:
    """The facts of a dataset whose metadata have one of these values under a key."""
    statement = select(fact_tags.c.fact_seq).where(fact_tags.c.dataset_id == dataset, fact_tags.c.key == key)
    rows = select_in(connection, statement, fact_tags.c.value, [tag(value) for value in values])
    return [row.fact_seq for row in rows]


_CORRECTIONS = Prepared(
    select(fact_tags.c.value, facts.c.seq, facts.c.id)
    .join(facts, facts.c.seq == fact_tags.c.fact_seq)
    .where(
        fact_tags.c.dataset_id == bindparam("of"),
        fact_tags.c.key == CORRECTS,
        facts.c.hidden == 0,
        facts.c.expires_at.is_(None) | (facts.c.expires_at > bindparam("at")),
        OneOf(fact_tags.c.value),
    )
)


def corrections(
    direct: Direct, dataset: int, ids: Sequence[str], where: Sequence[Select[int]], at: int
) -> dict[str, tuple[int, str]]:
    """(number, id) of the newest active fact that passes the filters and corrects each of these, where there is one."""
    names = {tag(fact_id): fact_id for fact_id in ids}
    found = sorted(
        (seq, fact_id, value) for value, seq, fact_id in direct.run_for(_CORRECTIONS, list(names), of=dataset, at=at)
    )
    if found and where:
        passing = select(facts.c.seq).where(*(facts.c.seq.in_(selection) for selection in where))
        kept = {row.seq for row in select_in(direct.connection, passing, facts.c.seq, [seq for seq, *_ in found])}
        found = [row for row in found if row[0] in kept]
    return {names[value]: (seq, fact_id) for seq, fact_id, value in found}


def ids_by_digest(connection: Connection, dataset: int, digests: Sequence[bytes]) -> dict[bytes, str]:
    """The ids of facts the dataset has already, by digest."""
    statement = select(facts.c.digest, facts.c.id).where(facts.c.dataset_id == dataset)
    return {row.digest: row.id for row in select_in(connection, statement, facts.c.digest, digests)}


def next_ordinal(connection: Connection, dataset: int, source: str) -> int:
    """The ordinal of the next fact of a source."""
    of_source = (facts.c.dataset_id == dataset, facts.c.source == source)
    last = connection.execute(select(func.max(facts.c.ordinal)).where(*of_source)).scalar()
    return 0 if last is None else int(last) + 1


class DisplayRow(NamedTuple):
    """A fact as a hit shows it."""

    seq: int
    id: str
    text: str
    metadata: Metadata
    source: str | None
    start: int
    stop: int
    expires_at: int | None


_SHOWN = Prepared(select(*(facts.c[name] for name in DisplayRow._fields)).where(OneOf(facts.c.seq)))


def display_rows(direct: Direct, seqs: Sequence[int]) -> dict[int, DisplayRow]:
    """A few facts by number, quickly."""
    return {
        seq: DisplayRow(seq, fact_id, text, unpacked(metadata), *others)
        for seq, fact_id, text, metadata, *others in direct.run_for(_SHOWN, seqs)
    }


def by_seq(connection: Connection, seqs: Sequence[int]) -> dict[int, DisplayRow]:
    """The same for those who have a connection."""
    return display_rows(Direct.on(connection), seqs)


_IDS = select(facts.c.seq, facts.c.id).where(facts.c.seq.in_(bindparam("seqs", expanding=True)))


def ids(connection: Connection, seqs: Sequence[int]) -> dict[int, str]:
    """The ids of facts, by number."""
    return {row.seq: row.id for run in batches(seqs) for row in connection.execute(_IDS, {"seqs": list(run)})}


_PLACES = Prepared(select(facts.c.id, facts.c.seq, facts.c.dataset_id).where(OneOf(facts.c.id)))


def locate(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(fact number, dataset number) of the facts that are the transaction's project's; others are left out."""
    return {fact_id: (seq, dataset) for fact_id, seq, dataset in Direct.on(connection).run_for(_PLACES, ids)}


def texts(
    connection: Connection, ids: Sequence[str], *, current: bool = False, at: int | None = None
) -> dict[str, str]:
    """The texts of existing facts, by id; with `current`, of those that are not superseded, and with `at`, that
    have not expired by then."""
    statement = select(facts.c.id, facts.c.text)
    if current:
        statement = statement.where(facts.c.hidden == 0)
    if at is not None:
        statement = statement.where(unexpired(at))
    return {row.id: row.text for row in select_in(connection, statement, facts.c.id, ids)}


def evidence(connection: Connection, ids: Sequence[str], at: int) -> dict[str, AnyRow]:
    """Existing facts by id: text, metadata, and whether recall can find them (`active`)."""
    statement = select(facts.c.id, facts.c.text, facts.c.metadata, active(at).label("active"))
    return {row.id: row for row in select_in(connection, statement, facts.c.id, ids)}


def present(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Those of these facts that still exist."""
    return {row.id for row in select_in(connection, select(facts.c.id), facts.c.id, ids)}


def of_dataset(connection: Connection, dataset: int, source: str | None = None) -> list[tuple[int, str]]:
    """(number, id) of all facts of a dataset, or of one of its sources."""
    statement = select(facts.c.seq, facts.c.id).where(facts.c.dataset_id == dataset)
    if source is not None:
        statement = statement.where(facts.c.source == source)
    return [(row.seq, row.id) for row in connection.execute(statement)]


def with_sources(connection: Connection, sources: Sequence[str], limit: int | None = None) -> list[AnyRow]:
    """The facts of the transaction's project that come from these sources; up to `limit` for each batch of them."""
    return list(select_in(connection, _of_project(connection).limit(limit), facts.c.source, sources))


def with_source_prefix(connection: Connection, prefix: str) -> list[AnyRow]:
    """The facts of the transaction's project whose source begins with `prefix`, which ends in a slash."""
    begins = (facts.c.source >= prefix, facts.c.source < prefix[:-1] + chr(ord("/") + 1))
    return list(connection.execute(_of_project(connection).where(*begins)))


def with_tag(connection: Connection, key: str, values: Sequence[Any]) -> list[AnyRow]:
    """The facts of the transaction's project whose metadata have one of these values under a key."""
    statement = _of_project(connection)
    tagged_seqs = select(fact_tags.c.fact_seq).where(fact_tags.c.key == key)
    return [
        row
        for run in batches([tag(value) for value in values])
        for row in connection.execute(statement.where(facts.c.seq.in_(tagged_seqs.where(fact_tags.c.value.in_(run)))))
    ]


def _of_project(connection: Connection) -> Select[Any]:
    # By the numbers of its datasets, with which the indexes on SQLite begin.
    numbers = select(datasets.c.id).where(datasets.c.project_id == own_project())
    columns = (facts.c.seq, facts.c.id, facts.c.dataset_id, facts.c.text, facts.c.metadata, facts.c.hidden)
    return select(*columns).where(facts.c.dataset_id.in_(list(connection.execute(numbers).scalars())))


def recallable(connection: Connection, dataset: int, at: int | None = None) -> set[int]:
    """The numbers of all facts of a dataset that are not superseded, and with `at`, have not expired by then."""
    return set(connection.execute(select(facts.c.seq).where(*_current(dataset, at))).scalars())


def _current(dataset: int, at: int | None) -> tuple[ColumnElement[bool], ...]:
    return facts.c.dataset_id == dataset, facts.c.hidden == 0 if at is None else active(at)


def count(connection: Connection, dataset: int, at: int | None = None) -> int:
    """How many facts a dataset has that are not superseded, and with `at`, have not expired by then."""
    statement = select(func.count()).select_from(facts).where(*_current(dataset, at))
    return int(connection.execute(statement).scalar_one())


def stored_before(connection: Connection, dataset: int, before: int, now: int) -> list[tuple[int, str]]:
    """(number, id) of the facts of a dataset that can be recalled and were stored before a time."""
    older = select(facts.c.seq, facts.c.id).where(*_current(dataset, now), facts.c.created_at < before)
    return [(row.seq, row.id) for row in connection.execute(older.order_by(facts.c.seq))]


def set_hidden(connection: Connection, dataset: int, seqs: Sequence[int], reason: int, hidden: bool) -> int:
    """Adds a reason to exclude facts from recall, or removes it, with what was learnt from them; they stay in the
    history. Returns how many had it otherwise."""
    differing = select(facts.c.seq, facts.c.text, facts.c.hidden).where(
        facts.c.hidden.op("&")(reason) != (reason if hidden else 0)
    )
    rows = list(select_in(connection, differing, facts.c.seq, seqs))
    changing = update(facts).values(hidden=facts.c.hidden + (reason if hidden else -reason))
    for run in batches([row.seq for row in rows]):
        connection.execute(changing.where(facts.c.seq.in_(run)))
    changed = {row.seq: row.text for row in rows if row.hidden in (0, reason)}
    if changed:
        if hidden:
            word_index.remove(connection, dataset, changed)
        else:
            word_index.add(connection, dataset, changed)
        announce(connection, dataset, list(changed), REMOVED if hidden else ADDED)
        _judge_lessons(connection, dataset, _made_from(connection, dataset, list(changed)))
    return len(rows)


def restore(connection: Connection, dataset: int, ids: Sequence[str]) -> None:
    """Includes facts in recall again that a document says once more."""
    replaced = select(facts.c.seq).where(facts.c.hidden.op("&")(REPLACED) != 0)
    seqs = [row.seq for row in select_in(connection, replaced, facts.c.id, ids)]
    set_hidden(connection, dataset, seqs, REPLACED, False)


def _judge_lessons(connection: Connection, dataset: int, lessons: Sequence[int]) -> None:
    """Excludes those of these learnt facts from recall that were made from one that it doesn't find, and no others."""
    made_from = _sources(connection, lessons)
    hidden = select(facts.c.id).where(facts.c.dataset_id == dataset, facts.c.hidden != 0)
    named = sorted({source for names in made_from.values() for source in names})
    not_found = {row.id for row in select_in(connection, hidden, facts.c.id, named)}
    outdated = [seq for seq, names in made_from.items() if not not_found.isdisjoint(names)]
    set_hidden(connection, dataset, outdated, OUTDATED, True)
    set_hidden(connection, dataset, sorted(made_from.keys() - set(outdated)), OUTDATED, False)


def end_lessons(connection: Connection, dataset: int, changed: Sequence[str]) -> None:
    """Has what was learnt from these facts expire with the first that it was made from."""
    lessons = tagged(connection, dataset, MADE_FROM, changed)
    names = ids(connection, lessons)
    for seq, made_from in _sources(connection, lessons).items():
        end = earliest_expiry(connection, made_from)
        end_lessons(connection, dataset, set_expiry(connection, [names[seq]], end))


def sources(metadata: Metadata) -> list[str]:
    """The ids of the facts that a fact with these metadata was made from."""
    named = metadata.get(MADE_FROM)
    return [source for source in (named if isinstance(named, list) else [named]) if isinstance(source, str)]


def _sources(connection: Connection, lessons: Sequence[int]) -> dict[int, list[str]]:
    """The ids of the facts that each of these was made from."""
    rows = select_in(connection, select(facts.c.seq, facts.c.metadata), facts.c.seq, lessons)
    return {row.seq: sources(row.metadata) for row in rows}


def _made_from(connection: Connection, dataset: int, seqs: Sequence[int]) -> list[int]:
    """The facts that were learnt from these."""
    learnt = select(fact_tags.c.fact_seq).where(fact_tags.c.dataset_id == dataset, fact_tags.c.key == MADE_FROM)
    if connection.execute(learnt.limit(1)).first() is None:
        return []
    return tagged(connection, dataset, MADE_FROM, list(ids(connection, seqs).values()))


def sources_of_lessons(connection: Connection, dataset: int, seqs: Sequence[int]) -> set[int]:
    """Those of these facts that something was learnt from."""
    lessons = _sources(connection, _made_from(connection, dataset, seqs))
    named = {source for made_from in lessons.values() for source in made_from}
    return {seq for seq, fact in ids(connection, seqs).items() if fact in named} if named else set()


def removal_runs(connection: Connection, seqs: Sequence[int]) -> list[list[int]]:
    """Facts in runs that one transaction can remove without letting others wait long."""
    rows = dict.fromkeys(seqs, 4)
    for table, weight in ((fact_tags, 1), (scores, 1), (notes, 1), (links, 2)):
        counting = select(table.c.fact_seq, func.count().label("rows")).group_by(table.c.fact_seq)
        for row in select_in(connection, counting, table.c.fact_seq, seqs):
            rows[row.fact_seq] += weight * row.rows
    return list(weighed(rows.items()))


def with_lessons(connection: Connection, dataset: int, seqs: Sequence[int]) -> list[int]:
    """These facts, each after the facts that were learnt from it."""
    chain, latest = dict.fromkeys(seqs), list(seqs)
    while latest:
        latest = [seq for seq in dict.fromkeys(_made_from(connection, dataset, latest)) if seq not in chain]
        chain |= dict.fromkeys(latest)
    return list(reversed(chain))


def move(connection: Connection, dataset: int, places: dict[int, tuple[int, int, int]]) -> None:
    """Moves facts to new places (ordinal, start, stop) in their source; unchanged ones are skipped."""
    columns = select(facts.c.seq, facts.c.ordinal, facts.c.start, facts.c.stop)
    rows = select_in(connection, columns, facts.c.seq, list(places))
    changed = [row.seq for row in rows if (row.ordinal, row.start, row.stop) != places[row.seq]]
    if changed:
        moved = [dict(zip(("of", "ordinal", "start", "stop"), (seq, *places[seq]), strict=True)) for seq in changed]
        connection.execute(_MOVE, moved)
        announce(connection, dataset, changed, ADDED)


_MOVE = (
    update(facts)
    .where(facts.c.seq == bindparam("of"))
    .values({name: bindparam(name) for name in ("ordinal", "start", "stop")})
)


def last_change(connection: Connection, dataset: int) -> int:
    """The number of the newest line in a dataset's feed; 0 if there is none."""
    statement = select(func.max(changes.c.seq)).where(changes.c.dataset_id == dataset)
    return int(connection.execute(statement).scalar() or 0)


def existing(connection: Connection, seqs: Sequence[int]) -> set[int]:
    """Those of these facts that are stored."""
    return {row.seq for row in select_in(connection, select(facts.c.seq), facts.c.seq, seqs)}


def is_same_fact(connection: Connection, dataset: int, seq: int, fact_id: str) -> bool:
    """Whether the fact of this number is, or was before it was removed, the one with this id."""
    current_id = connection.execute(select(facts.c.id).where(facts.c.seq == seq)).scalar()
    if current_id is not None:
        return bool(current_id == fact_id)
    of_fact = (changes.c.dataset_id == dataset, changes.c.fact_seq == seq, changes.c.kind == REMOVED)
    return connection.execute(select(changes.c.seq).where(*of_fact)).first() is not None


def changes_after(connection: Connection, dataset: int, seq: int) -> list[AnyRow] | None:
    """The feed of a dataset after a known line, in order; None if some of it was removed meanwhile."""
    first = connection.execute(select(datasets.c.changes_from).where(datasets.c.id == dataset)).scalar()
    if first is not None and seq < first:
        return None
    later = (changes.c.dataset_id == dataset, changes.c.seq > seq)
    feed = select(changes.c.seq, changes.c.fact_seq, changes.c.kind).where(*later).order_by(changes.c.seq)
    return list(connection.execute(feed))


def indexable(connection: Connection, dataset: int, model: int, seqs: Sequence[int] | None = None) -> Iterator[AnyRow]:
    """The columns that an index needs of facts, in order: seq, id, text, source, ordinal, vector."""
    base = (
        select(facts.c.seq, facts.c.id, facts.c.text, facts.c.source, facts.c.ordinal, vectors.c.vector)
        .join(vectors, vectors.c.fact_seq == facts.c.seq)
        .where(facts.c.dataset_id == dataset, vectors.c.model_id == model, facts.c.hidden == 0)
        .order_by(facts.c.seq)
    )
    if seqs is None:
        return iter(connection.execution_options(yield_per=2000).execute(base))
    return select_in(connection, base, facts.c.seq, seqs)


def matching(connection: Connection, statements: Sequence[Select[int]]) -> list[int]:
    """The numbers of facts that satisfy every one of the filters."""
    first, *others = statements
    return list(connection.execute(first.intersect(*others) if others else first).scalars())


def announce(connection: Connection, dataset: int, seqs: Sequence[int], kind: int) -> None:
    connection.info[CHANGED] = True
    connection.execute(insert(changes), [{"dataset_id": dataset, "fact_seq": seq, "kind": kind} for seq in seqs])


_COLUMNS = select(
    facts.c.seq.label("number"),
    *(facts.c[name] for name in ["id", "dataset_id", "text", "source", "metadata", "created_at", "expires_at"]),
)


def list_facts(
    connection: Connection,
    dataset: int,
    source: str | None,
    allowed: Sequence[Select[int]],
    after: int | None,
    count: int,
    newest_first: bool,
    now: int,
) -> list[AnyRow]:
    """Up to `count` facts of a dataset, or of one source, that are in all selections of `allowed`, after the number
    `after`; superseded and expired ones are left out."""
    conditions = [facts.c.dataset_id == dataset, active(now), *(facts.c.seq.in_(selection) for selection in allowed)]
    if source is not None:
        conditions.append(facts.c.source == source)
    if after is not None:
        conditions.append(facts.c.seq < after if newest_first else facts.c.seq > after)
    order = facts.c.seq.desc() if newest_first else facts.c.seq
    return list(connection.execute(_COLUMNS.where(*conditions).order_by(order).limit(count)))


def get_fact(connection: Connection, seq: int) -> AnyRow:
    """One fact, superseded or not."""
    return connection.execute(_COLUMNS.where(facts.c.seq == seq)).one()
