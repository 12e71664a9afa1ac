"""Facts: inserting, finding, filtering and removing them, with the feed that indexes follow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Select, bindparam, delete, func, insert, select, update

from heedful.model import Metadata
from heedful.storage import fact_expiry, graph, ledger, words
from heedful.storage.backend import CHANGED
from heedful.storage.fact_expiry import active, unexpired
from heedful.storage.rows import AnyRow, Direct, Prepared, batches, one_of, unpacked, weighed
from heedful.storage.schema import changes, datasets, fact_tags, facts, links, notes, projects, scores, vectors
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


def rows_to_add(metadata: Metadata, found: Sequence[Entity]) -> int:
    """At most so many rows are written for a new fact: itself, its vector, its change, tags, links and entities."""
    return 3 + len(flattened(metadata)) + 2 * len(found)


def add(connection: Connection, dataset: int, model: int, new: Sequence[NewFact], at: int) -> None:
    """Stores facts with vectors, tags, links to entities, and their lines in the feed."""
    for run in batches(new, 2000):
        connection.execute(
            insert(facts),
            [
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
            ],
        )
        ids = [fact.id for fact in run]
        seqs = {
            row.id: row.seq for row in connection.execute(select(facts.c.id, facts.c.seq).where(facts.c.id.in_(ids)))
        }
        connection.execute(
            insert(vectors),
            [
                {"fact_seq": seqs[fact.id], "model_id": model, "dataset_id": dataset, "vector": fact.vector}
                for fact in run
            ],
        )
        tags = [
            {"fact_seq": seqs[fact.id], "dataset_id": dataset, **tag}
            for fact in run
            for tag in flattened(fact.metadata)
        ]
        if tags:
            connection.execute(insert(fact_tags), tags)
        texts = {seqs[fact.id]: fact.text for fact in run}
        found = {seqs[fact.id]: entities(fact.text) if fact.entities is None else fact.entities for fact in run}
        graph.link(connection, dataset, found)
        words.add(connection, dataset, texts)
        _announce(connection, dataset, [seqs[fact.id] for fact in run], ADDED)
        _judge_lessons(connection, dataset, [seqs[fact.id] for fact in run if MADE_FROM in fact.metadata])


def with_wrong_tags(connection: Connection, dataset: int) -> list[int]:
    """The facts whose tags are not those of their metadata."""
    stored: dict[int, set[tuple[str, str]]] = {}
    for row in connection.execute(
        select(fact_tags.c.fact_seq, fact_tags.c.key, fact_tags.c.value).where(fact_tags.c.dataset_id == dataset)
    ):
        stored.setdefault(row.fact_seq, set()).add((row.key, row.value))
    rows = connection.execute(select(facts.c.seq, facts.c.metadata).where(facts.c.dataset_id == dataset))
    return [
        row.seq
        for row in rows
        if stored.get(row.seq, set()) != {(tag["key"], tag["value"]) for tag in flattened(row.metadata)}
    ]


def retag(connection: Connection, dataset: int, seqs: Sequence[int]) -> None:
    """Rebuilds the tags of facts from their metadata."""
    for run in batches(seqs):
        connection.execute(delete(fact_tags).where(fact_tags.c.fact_seq.in_(run)))
        rows = connection.execute(select(facts.c.seq, facts.c.metadata).where(facts.c.seq.in_(run))).all()
        tags = [{"fact_seq": row.seq, "dataset_id": dataset, **tag} for row in rows for tag in flattened(row.metadata)]
        if tags:
            connection.execute(insert(fact_tags), tags)


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
    return [
        seq
        for run in batches([tag(value) for value in values])
        for seq in connection.execute(statement.where(fact_tags.c.value.in_(run))).scalars()
    ]


def corrections(
    connection: Connection, dataset: int, ids: Sequence[str], where: Sequence[Select[int]], at: int
) -> dict[str, tuple[int, str]]:
    """(number, id) of the newest active fact that passes the filters and corrects each of these, where there is one."""
    statement = (
        select(fact_tags.c.value, facts.c.seq, facts.c.id)
        .join(facts, facts.c.seq == fact_tags.c.fact_seq)
        .where(fact_tags.c.dataset_id == dataset, fact_tags.c.key == CORRECTS, active(at))
        .order_by(facts.c.seq)
    )
    for selection in where:
        statement = statement.where(facts.c.seq.in_(selection))
    names = {tag(fact_id): fact_id for fact_id in ids}
    return {
        names[row.value]: (row.seq, row.id)
        for run in batches(list(names))
        for row in connection.execute(statement.where(fact_tags.c.value.in_(run)))
    }


def ids_by_digest(connection: Connection, dataset: int, digests: Sequence[bytes]) -> dict[bytes, str]:
    """The ids of facts the dataset has already, by digest."""
    ids: dict[bytes, str] = {}
    for run in batches(digests):
        rows = connection.execute(
            select(facts.c.digest, facts.c.id).where(facts.c.dataset_id == dataset, facts.c.digest.in_(run))
        )
        ids.update({row.digest: row.id for row in rows})
    return ids


def next_ordinal(connection: Connection, dataset: int, source: str) -> int:
    """The ordinal of the next fact of a source."""
    last = connection.execute(
        select(func.max(facts.c.ordinal)).where(facts.c.dataset_id == dataset, facts.c.source == source)
    ).scalar()
    return 0 if last is None else int(last) + 1


_BY_SEQ = select(
    facts.c.seq,
    facts.c.id,
    facts.c.text,
    facts.c.metadata,
    facts.c.source,
    facts.c.start,
    facts.c.stop,
    facts.c.expires_at,
).where(facts.c.seq.in_(bindparam("seqs", expanding=True)))


def by_seq(connection: Connection, seqs: Sequence[int]) -> dict[int, AnyRow]:
    """The columns of a hit, by fact number."""
    return {row.seq: row for row in connection.execute(_BY_SEQ, {"seqs": list(seqs)})}


@dataclass(frozen=True, slots=True)
class DisplayRow:
    """What a hit shows of a fact."""

    id: str
    text: str
    metadata: Metadata
    source: str | None
    start: int
    stop: int


_SHOWN = Prepared(
    select(facts.c.seq, facts.c.id, facts.c.text, facts.c.metadata, facts.c.source, facts.c.start, facts.c.stop).where(
        one_of(facts.c.seq)
    )
)


def display_rows(direct: Direct, seqs: Sequence[int]) -> dict[int, DisplayRow]:
    """A few facts by number, quickly."""
    return {
        seq: DisplayRow(fact_id, text, unpacked(metadata), source, start, stop)
        for seq, fact_id, text, metadata, source, start, stop in direct.run_for(_SHOWN, seqs)
    }


_IDS = select(facts.c.seq, facts.c.id).where(facts.c.seq.in_(bindparam("seqs", expanding=True)))


def ids(connection: Connection, seqs: Sequence[int]) -> dict[int, str]:
    """The ids of facts, by number."""
    return {row.seq: row.id for run in batches(seqs) for row in connection.execute(_IDS, {"seqs": list(run)})}


_PLACES = select(facts.c.id, facts.c.seq, facts.c.dataset_id).where(facts.c.id.in_(bindparam("ids", expanding=True)))
_PROJECT_DATASETS = (
    select(datasets.c.id)
    .join(projects, projects.c.id == datasets.c.project_id)
    .where(projects.c.name == bindparam("project"), datasets.c.id.in_(bindparam("numbers", expanding=True)))
)


def locate(connection: Connection, project: str, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(fact number, dataset number) of the facts that are this project's; others are left out."""
    places: dict[str, tuple[int, int]] = {}
    # Two steps: in one, SQLite would scan all facts of the project.
    for run in batches(ids):
        rows = connection.execute(_PLACES, {"ids": list(run)}).all()
        numbers = sorted({row.dataset_id for row in rows})
        own_datasets = set(connection.execute(_PROJECT_DATASETS, {"project": project, "numbers": numbers}).scalars())
        places.update({row.id: (row.seq, row.dataset_id) for row in rows if row.dataset_id in own_datasets})
    return places


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
    return {
        row.id: row.text for run in batches(ids) for row in connection.execute(statement.where(facts.c.id.in_(run)))
    }


def evidence(connection: Connection, ids: Sequence[str], at: int) -> dict[str, AnyRow]:
    """Existing facts by id: text, metadata, and whether recall can find them (`active`)."""
    statement = select(facts.c.id, facts.c.text, facts.c.metadata, active(at).label("active"))
    return {row.id: row for run in batches(ids) for row in connection.execute(statement.where(facts.c.id.in_(run)))}


def present(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Which of these facts still exist."""
    return {row.id for run in batches(ids) for row in connection.execute(select(facts.c.id).where(facts.c.id.in_(run)))}


def of_dataset(connection: Connection, dataset: int, source: str | None = None) -> list[tuple[int, str]]:
    """(number, id) of all facts of a dataset, or of one of its sources."""
    statement = select(facts.c.seq, facts.c.id).where(facts.c.dataset_id == dataset)
    if source is not None:
        statement = statement.where(facts.c.source == source)
    return [(row.seq, row.id) for row in connection.execute(statement)]


def with_sources(
    connection: Connection, project: str, sources: Sequence[str], limit: int | None = None
) -> list[AnyRow]:
    """The facts of a project that come from these sources; up to `limit` for each batch of them."""
    statement = _of_project(connection, project).limit(limit)
    return [row for run in batches(sources) for row in connection.execute(statement.where(facts.c.source.in_(run)))]


def with_source_prefix(connection: Connection, project: str, prefix: str) -> list[AnyRow]:
    """The facts of a project whose source begins with `prefix`, which ends in a slash."""
    after = prefix[:-1] + chr(ord("/") + 1)
    statement = _of_project(connection, project)
    return list(connection.execute(statement.where(facts.c.source >= prefix, facts.c.source < after)))


def with_tag(connection: Connection, project: str, key: str, values: Sequence[Any]) -> list[AnyRow]:
    """The facts of a project whose metadata have one of these values under a key."""
    statement = _of_project(connection, project)
    tagged_seqs = select(fact_tags.c.fact_seq).where(fact_tags.c.key == key)
    return [
        row
        for run in batches([tag(value) for value in values])
        for row in connection.execute(statement.where(facts.c.seq.in_(tagged_seqs.where(fact_tags.c.value.in_(run)))))
    ]


def _of_project(connection: Connection, project: str) -> Select[Any]:
    dataset_ids = select(datasets.c.id).join(projects).where(projects.c.name == project)
    numbers = list(connection.execute(dataset_ids).scalars())
    columns = (facts.c.seq, facts.c.id, facts.c.dataset_id, facts.c.text, facts.c.metadata, facts.c.hidden)
    return select(*columns).where(facts.c.dataset_id.in_(numbers))


def recallable(connection: Connection, dataset: int, at: int | None = None) -> set[int]:
    """The numbers of all facts of a dataset that are not superseded, and with `at`, have not expired by then."""
    statement = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden == 0)
    if at is not None:
        statement = statement.where(unexpired(at))
    return set(connection.execute(statement).scalars())


def count(connection: Connection, dataset: int, at: int | None = None) -> int:
    """How many facts a dataset has that are not superseded, and with `at`, have not expired by then."""
    statement = select(func.count()).select_from(facts).where(facts.c.dataset_id == dataset, facts.c.hidden == 0)
    if at is not None:
        statement = statement.where(unexpired(at))
    return int(connection.execute(statement).scalar_one())


def stored_before(connection: Connection, dataset: int, before: int, now: int) -> list[tuple[int, str]]:
    """(number, id) of the facts of a dataset that can be recalled and were stored before a time."""
    statement = select(facts.c.seq, facts.c.id).where(
        facts.c.dataset_id == dataset, facts.c.created_at < before, active(now)
    )
    return [(row.seq, row.id) for row in connection.execute(statement.order_by(facts.c.seq))]


def set_hidden(connection: Connection, dataset: int, seqs: Sequence[int], reason: int, hidden: bool) -> int:
    """Adds a reason to exclude facts from recall, or removes it, with what was learnt from them; they stay in the
    history. Returns how many had it otherwise."""
    differing = select(facts.c.seq, facts.c.text, facts.c.hidden).where(
        facts.c.hidden.op("&")(reason) != (reason if hidden else 0)
    )
    rows = [row for run in batches(seqs) for row in connection.execute(differing.where(facts.c.seq.in_(run)))]
    changing = update(facts).values(hidden=facts.c.hidden + (reason if hidden else -reason))
    for run in batches([row.seq for row in rows]):
        connection.execute(changing.where(facts.c.seq.in_(run)))
    changed = {row.seq: row.text for row in rows if row.hidden in (0, reason)}
    if not changed:
        return len(rows)
    if hidden:
        words.remove(connection, dataset, changed)
    else:
        words.add(connection, dataset, changed)
    _announce(connection, dataset, list(changed), REMOVED if hidden else ADDED)
    _judge_lessons(connection, dataset, _made_from(connection, dataset, list(changed)))
    return len(rows)


def restore(connection: Connection, dataset: int, said: Sequence[str]) -> None:
    """Includes facts in recall again that a document says once more."""
    replaced = select(facts.c.seq).where(facts.c.hidden.op("&")(REPLACED) != 0)
    seqs = [seq for run in batches(said) for seq in connection.execute(replaced.where(facts.c.id.in_(run))).scalars()]
    set_hidden(connection, dataset, seqs, REPLACED, False)


def _judge_lessons(connection: Connection, dataset: int, lessons: Sequence[int]) -> None:
    """Excludes those of these learnt facts from recall that were made from one that it doesn't find, and no others."""
    made_from = _sources(connection, lessons)
    hidden = select(facts.c.id).where(facts.c.dataset_id == dataset, facts.c.hidden != 0)
    not_found = {
        fact_id
        for run in batches(sorted({source for each in made_from.values() for source in each}))
        for fact_id in connection.execute(hidden.where(facts.c.id.in_(run))).scalars()
    }
    outdated = [seq for seq, each in made_from.items() if not not_found.isdisjoint(each)]
    set_hidden(connection, dataset, outdated, OUTDATED, True)
    set_hidden(connection, dataset, sorted(made_from.keys() - set(outdated)), OUTDATED, False)


def end_lessons(connection: Connection, dataset: int, changed: Sequence[str]) -> None:
    """Has what was learnt from these facts expire with the first that it was made from."""
    lessons = tagged(connection, dataset, MADE_FROM, changed)
    names = ids(connection, lessons)
    for seq, made_from in _sources(connection, lessons).items():
        end = fact_expiry.earliest(connection, made_from)
        end_lessons(connection, dataset, fact_expiry.change(connection, [names[seq]], end))


def sources(metadata: Metadata) -> list[str]:
    """The ids of the facts that a fact with these metadata was made from."""
    named = metadata.get(MADE_FROM)
    return [source for source in (named if isinstance(named, list) else [named]) if isinstance(source, str)]


def _sources(connection: Connection, lessons: Sequence[int]) -> dict[int, list[str]]:
    """The ids of the facts that each of these was made from."""
    return {
        row.seq: sources(row.metadata)
        for run in batches(lessons)
        for row in connection.execute(select(facts.c.seq, facts.c.metadata).where(facts.c.seq.in_(run)))
    }


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
    for table, each in ((fact_tags, 1), (scores, 1), (notes, 1), (links, 2)):
        counting = select(table.c.fact_seq, func.count().label("rows")).group_by(table.c.fact_seq)
        for run in batches(seqs):
            for row in connection.execute(counting.where(table.c.fact_seq.in_(run))):
                rows[row.fact_seq] += each * row.rows
    return list(weighed(rows.items()))


def with_lessons(connection: Connection, dataset: int, seqs: Sequence[int]) -> list[int]:
    """These facts, each after the facts that were learnt from it."""
    found, latest = dict.fromkeys(seqs), list(seqs)
    while latest:
        latest = [seq for seq in dict.fromkeys(_made_from(connection, dataset, latest)) if seq not in found]
        found |= dict.fromkeys(latest)
    return list(reversed(found))


def remove(connection: Connection, dataset: int, seqs: Sequence[int]) -> list[str]:
    """Removes facts and everything derived from them, with what was learnt from them; returns those that they had
    superseded, which can be recalled again."""
    names: list[str] = []
    for run in batches(sorted(with_lessons(connection, dataset, seqs))):
        names += ids(connection, run).values()
        graph.remove(connection, run)
        for table in (scores, vectors, fact_tags, notes):
            connection.execute(delete(table).where(table.c.fact_seq.in_(run)))
        connection.execute(delete(facts).where(facts.c.seq.in_(run)))
        _announce(connection, dataset, run, REMOVED)
    return judge_superseded(connection, names)


def judge_superseded(connection: Connection, fact_ids: Sequence[str]) -> list[str]:
    """Lets recall find those of these facts that the ledger says it may, and no others; in place of those that don't
    exist, the facts that they superseded. Returns those that exist."""
    places: dict[str, tuple[int, int]] = {}
    seen, latest = set(fact_ids), set(fact_ids)
    while latest:
        rows = [row for run in batches(sorted(latest)) for row in connection.execute(_PLACES, {"ids": list(run)})]
        places.update({row.id: (row.seq, row.dataset_id) for row in rows})
        latest = ledger.superseded_by(connection, sorted(latest - places.keys())) - seen
        seen |= latest
    recallable = ledger.recallable(connection, list(places))
    judged: dict[tuple[int, bool], list[int]] = {}
    for fact_id, (seq, dataset) in places.items():
        judged.setdefault((dataset, fact_id not in recallable), []).append(seq)
    for (dataset, hidden), seqs in judged.items():
        set_hidden(connection, dataset, seqs, SUPERSEDED, hidden)
    return list(places)


def move(connection: Connection, dataset: int, places: dict[int, tuple[int, int, int]]) -> None:
    """Moves facts to new places (ordinal, start, stop) in their source; unchanged ones are skipped."""
    changed = []
    for run in batches(list(places)):
        rows = connection.execute(
            select(facts.c.seq, facts.c.ordinal, facts.c.start, facts.c.stop).where(facts.c.seq.in_(run))
        )
        changed += [row.seq for row in rows if (row.ordinal, row.start, row.stop) != places[row.seq]]
    if changed:
        moved = [dict(zip(("of", "ordinal", "start", "stop"), (seq, *places[seq]), strict=True)) for seq in changed]
        connection.execute(_MOVE, moved)
        _announce(connection, dataset, changed, ADDED)


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
    """Which of these facts are stored."""
    found: set[int] = set()
    for run in batches(seqs):
        found.update(connection.execute(select(facts.c.seq).where(facts.c.seq.in_(run))).scalars())
    return found


def is_same_fact(connection: Connection, dataset: int, seq: int, fact_id: str) -> bool:
    """Whether the fact of this number is, or was before it was removed, the one with this id."""
    current_id = connection.execute(select(facts.c.id).where(facts.c.seq == seq)).scalar()
    if current_id is not None:
        return bool(current_id == fact_id)
    removal = select(changes.c.seq).where(
        changes.c.dataset_id == dataset, changes.c.fact_seq == seq, changes.c.kind == REMOVED
    )
    return connection.execute(removal).first() is not None


def changes_after(connection: Connection, dataset: int, seq: int) -> list[AnyRow] | None:
    """The feed of a dataset after a known line, in order; None if some of it was removed meanwhile."""
    first = connection.execute(select(datasets.c.changes_from).where(datasets.c.id == dataset)).scalar()
    if first is not None and seq < first:
        return None
    return list(
        connection.execute(
            select(changes.c.seq, changes.c.fact_seq, changes.c.kind)
            .where(changes.c.dataset_id == dataset, changes.c.seq > seq)
            .order_by(changes.c.seq)
        )
    )


def indexable(connection: Connection, dataset: int, model: int, seqs: Sequence[int] | None = None) -> Iterator[AnyRow]:
    """What an index needs of facts, in order: seq, id, text, source, ordinal, vector."""
    base = (
        select(facts.c.seq, facts.c.id, facts.c.text, facts.c.source, facts.c.ordinal, vectors.c.vector)
        .join(vectors, vectors.c.fact_seq == facts.c.seq)
        .where(facts.c.dataset_id == dataset, vectors.c.model_id == model, facts.c.hidden == 0)
        .order_by(facts.c.seq)
    )
    if seqs is None:
        yield from connection.execution_options(yield_per=2000).execute(base)
        return
    for run in batches(seqs):
        yield from connection.execute(base.where(facts.c.seq.in_(run)))


def matching(connection: Connection, statements: Sequence[Select[int]]) -> list[int]:
    """The numbers of facts that satisfy every one of the filters."""
    first, *others = statements
    combined = first.intersect(*others) if others else first
    return list(connection.execute(combined).scalars())


def _announce(connection: Connection, dataset: int, seqs: Sequence[int], kind: int) -> None:
    connection.info[CHANGED] = True
    connection.execute(insert(changes), [{"dataset_id": dataset, "fact_seq": seq, "kind": kind} for seq in seqs])


_COLUMNS = select(
    facts.c.seq.label("number"),
    facts.c.id,
    facts.c.dataset_id,
    facts.c.text,
    facts.c.source,
    facts.c.metadata,
    facts.c.created_at,
    facts.c.expires_at,
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
    order = facts.c.seq.desc() if newest_first else facts.c.seq
    current = (facts.c.dataset_id == dataset, active(now))
    statement = _COLUMNS.where(*current).order_by(order).limit(count)
    if source is not None:
        statement = statement.where(facts.c.source == source)
    for selection in allowed:
        statement = statement.where(facts.c.seq.in_(selection))
    if after is not None:
        statement = statement.where(facts.c.seq < after if newest_first else facts.c.seq > after)
    return list(connection.execute(statement))


def get_fact(connection: Connection, seq: int) -> AnyRow:
    """One fact, superseded or not."""
    return connection.execute(_COLUMNS.where(facts.c.seq == seq)).one()
