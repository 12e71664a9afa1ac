"""`heedful verify`: replays the ledger, compares everything derived with it, and only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import JSON, Column, ColumnElement, Connection, Select, String, Table, case, cast, exists, func, select

from heedful.api import checks
from heedful.api.parameters import Progress
from heedful.errors import NotFound
from heedful.ledger import scores
from heedful.ledger.events import FEEDBACK, LINK_SIGNAL, SIGNAL, SUPERSESSION, is_retracted
from heedful.ledger.supersessions import recallable
from heedful.ledger.usefulness import WEIGHTS
from heedful.memory import doctor
from heedful.model.base import Model
from heedful.storage import facts as stored_facts
from heedful.storage import schema, scopes
from heedful.storage.facts import SUPERSEDED
from heedful.storage.rows import dialect_of, select_in
from heedful.storage.schema import event_keys, events, facts, feedbacks, notes, projects, queries, receipts
from heedful.transfer import stores
from heedful.transfer.exporting import ProjectChecksum, in_project, of_project
from heedful.transfer.table_rows import BATCH_SIZE

MAX_LISTED = 5
"""Things that differ which are named; the others are counted."""


class Difference(Model):
    """Something that is not what the ledger says."""

    project: str | None
    """The project it is in; None for what belongs to the whole store."""
    dataset: str | None
    """The dataset it is in, if it is in one."""
    what: str
    """The comparison, in a few words."""
    count: int
    """How many differ."""
    examples: list[str]
    """The first few things that differ, by id."""


class Verified(Model):
    """The result of a replay of the ledger."""

    store: str
    """The file, or the address without secrets."""
    projects: list[ProjectChecksum]
    """The checksums of the projects that were looked at, but for those with facts that can't be read."""
    compared: int
    """How many scores of facts and of links were compared with the fold of the ledger."""
    differences: list[Difference]
    """The differences; empty for a sound store."""

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify(
    url_or_path: str | Path | None = None, *, project: str | None = None, progress: Progress | None = None
) -> Verified:
    """Compares all that is derived from the ledger with the ledger, in one project or in all of them."""
    database = stores.open_existing(url_or_path)
    try:
        with database.read() as connection:
            selected = _projects(connection, database.name, project)
            verifying = _Verifying(connection)
            if project is None:
                verifying.damaged_rows()
        # Each in a transaction of its own, so that nodes of a cluster need not join what they have.
        for index, (number, name) in enumerate(selected, start=1):
            with database.read(name) as verifying.connection:
                verifying.project(number, name)
            if progress is not None:
                progress(index, len(selected))
        return Verified(
            store=database.name,
            projects=verifying.checksums,
            compared=verifying.compared,
            differences=verifying.differences,
        )
    finally:
        database.close()


def _projects(connection: Connection, store: str, project: str | None) -> list[tuple[int, str]]:
    statement = select(projects.c.id, projects.c.name).order_by(projects.c.id)
    if project is not None:
        statement = statement.where(projects.c.name == checks.name("project", project))
    selected = [(row.id, row.name) for row in connection.execute(statement)]
    if project is not None and not selected:
        raise NotFound(f"store {store} has no project {project!r}", field="project", value=project)
    return selected


class _Verifying:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.checksums: list[ProjectChecksum] = []
        self.differences: list[Difference] = []
        self.compared = 0

    def project(self, number: int, name: str) -> None:
        broken_tables = self.damaged_rows(number, name)
        # Facts and ledger can be folded into checksums only if they can be read.
        if broken_tables.isdisjoint({facts.name, events.name}):
            self.checksums.append(of_project(self.connection, number, name))
        unknown = unknown_signals(self.connection)
        self._note(name, None, "rows of events with an unknown signal (so no scores were compared)", unknown)
        if not unknown:
            for dataset, title in scopes.dataset_names(self.connection).items():
                self._scores(name, dataset, title)
                self._links(name, dataset, title)
        for description, check in CHECKS.items():
            self._note(name, None, description, check(self.connection))

    def damaged_rows(self, number: int | None = None, project: str | None = None) -> set[str]:
        """Notes damaged rows of a project, or those that belong to none: keys for all of them, and jobs. Returns the
        names of their tables."""
        broken_tables = set()
        for table, wrong, ids in damaged(self.connection, number):
            broken_tables.add(table)
            self._note(project, None, f"rows of {table} with {wrong}", ids)
        return broken_tables

    def _scores(self, project: str, dataset: int, title: str) -> None:
        wrong: list[int] = []
        for compared, differing in doctor.compare_scores(self.connection, dataset):
            self.compared += compared
            wrong += differing
        ids = stored_facts.ids(self.connection, wrong[:MAX_LISTED])
        names = (ids.get(seq, str(seq)) for seq in wrong)
        self._note(project, title, "scores of facts unlike the fold of the ledger", names)

    def _links(self, project: str, dataset: int, title: str) -> None:
        compared, wrong = doctor.compare_links(self.connection, dataset)
        self.compared += compared
        first = sorted(wrong)
        ids = stored_facts.ids(self.connection, [fact for fact, _ in first[:MAX_LISTED]])
        names = (scores.link_name(ids.get(fact, str(fact)), entity) for fact, entity in first)
        self._note(project, title, "scores of links unlike the fold of the ledger", names)

    def _note(self, project: str | None, dataset: str | None, what: str, ids: Iterable[str]) -> None:
        remaining = iter(ids)
        examples = list(islice(remaining, MAX_LISTED))
        if examples:
            count = len(examples) + sum(1 for _ in remaining)
            difference = Difference(project=project, dataset=dataset, what=what, count=count, examples=examples)
            self.differences.append(difference)


Check = Callable[[Connection], Iterator[str]]
"""Given a transaction of a project."""


def feedback_without_event(connection: Connection) -> Iterator[str]:
    """Words of people whose event is not in the ledger."""
    event = exists().where(_ITS_EVENT, events.c.kind == FEEDBACK)
    return _ids(connection, select(feedbacks.c.id).where(~event))


def feedback_unlike_event(connection: Connection) -> Iterator[str]:
    """Ratings that the ledger has otherwise, or that are active though they were retracted, or the other way round."""
    value = case((feedbacks.c.score.is_not(None), cast(feedbacks.c.score, String)), else_=feedbacks.c.rating)
    unlike = (
        value.is_distinct_from(events.c.value)
        | feedbacks.c.author.is_distinct_from(events.c.author)
        | (feedbacks.c.author_kind != events.c.author_kind)
        | ((feedbacks.c.active == 1) == is_retracted())
    )
    joined = select(feedbacks.c.id).join(events, _ITS_EVENT)
    return _ids(connection, joined.where(unlike))


_ITS_EVENT = events.c.id == feedbacks.c.event_id


def keys_used_twice(connection: Connection) -> Iterator[str]:
    """Idempotency keys that more than one event has."""
    key = events.c.idempotency_key
    return _ids(connection, select(key).group_by(key).having(func.count() > 1))


def keys_unlike_event(connection: Connection) -> Iterator[str]:
    """Idempotency keys that are kept for an event that has another one, and those of events that are not kept."""
    its = (event_keys.c.event_id == events.c.id) & (event_keys.c.idempotency_key == events.c.idempotency_key)
    keyed = events.c.idempotency_key != events.c.id
    yield from _ids(connection, select(event_keys.c.idempotency_key).where(~exists(events.c.id).where(its)))
    yield from _ids(
        connection, select(events.c.idempotency_key).where(keyed, ~exists(event_keys.c.event_id).where(its))
    )


def notes_without_event(connection: Connection) -> Iterator[str]:
    event = exists().where(events.c.id == notes.c.event_id)
    return _ids(connection, select(notes.c.event_id).where(~event))


def superseded_unlike_ledger(connection: Connection) -> Iterator[str]:
    """Facts that can be recalled though they are superseded, or the other way round."""
    is_marked = (facts.c.hidden.op("&")(SUPERSEDED) != 0).label("is_marked")
    named = exists().where(events.c.target_id == facts.c.id, events.c.kind == SUPERSESSION)
    statement = select(facts.c.id, is_marked).where(is_marked | named)
    marked = {row.id: row.is_marked for row in connection.execute(statement)}
    found = recallable(connection, marked)
    return (fact_id for fact_id, is_hidden in marked.items() if is_hidden == (fact_id in found))


def signals_across_datasets(connection: Connection) -> Iterator[str]:
    """Events about a fact that is in another dataset than they say."""
    elsewhere = events.c.dataset_id.is_distinct_from(facts.c.dataset_id)
    joined = select(events.c.id).join(facts, facts.c.id == events.c.target_id)
    return _ids(connection, joined.where(events.c.kind == SIGNAL, elsewhere))


def receipts_across_datasets(connection: Connection) -> Iterator[str]:
    """Receipts that showed a fact of another dataset, or whose query is gone; forgotten facts are not missed."""
    query = exists().where(queries.c.id == receipts.c.query_id, queries.c.dataset_id == receipts.c.dataset_id)
    yield from _ids(connection, select(receipts.c.id).where(~query))
    shown = select(receipts.c.id, receipts.c.dataset_id, raw_json(connection, receipts.c.shown))
    for run in connection.execution_options(yield_per=BATCH_SIZE).execute(shown).partitions(BATCH_SIZE):
        # Damaged rows are reported by themselves.
        sound = [row for row in run if broken("receipts", "shown", row.shown, nullable=False) is None]
        shown_facts = {row.id: {line[0] for line in orjson.loads(row.shown)} for row in sound}
        every = sorted(set().union(*shown_facts.values()))
        located = select_in(connection, select(facts.c.id, facts.c.dataset_id), facts.c.id, every)
        dataset_of = {row.id: row.dataset_id for row in located}
        for row in sound:
            if any(dataset_of.get(fact, row.dataset_id) != row.dataset_id for fact in shown_facts[row.id]):
                yield row.id


def rows_across_projects(connection: Connection) -> Iterator[str]:
    """Rows that refer to what another project has, as the name of their table and their keys."""
    for table in schema.metadata.sorted_tables:
        for reference in table.foreign_keys:
            if "project_id" in reference.column.table.columns and "project_id" in table.columns:
                # Only what is the project's own is found.
                is_own = exists().where(reference.column == reference.parent)
                rows = connection.execute(select(*table.primary_key).where(reference.parent.is_not(None), ~is_own))
                yield from ("/".join([table.name, *map(str, row)]) for row in rows)


CHECKS: dict[str, Check] = {
    "feedback without its event": feedback_without_event,
    "feedback unlike its event": feedback_unlike_event,
    "idempotency keys that are used twice": keys_used_twice,
    "idempotency keys unlike their event": keys_unlike_event,
    "notes without their event": notes_without_event,
    "superseded facts unlike the ledger": superseded_unlike_ledger,
    "signals about a fact of another dataset": signals_across_datasets,
    "receipts of facts or queries of another dataset": receipts_across_datasets,
    "rows of something that another project has": rows_across_projects,
}


def _ids(connection: Connection, statement: Select[str]) -> Iterator[str]:
    return iter(connection.execution_options(yield_per=BATCH_SIZE).execute(statement).scalars())


def raw_json(connection: Connection, column: Column[Any]) -> ColumnElement[Any]:
    """The bytes or text in a column of JSON; SQLite lets anything in."""
    return dialect_of(connection).raw_json(column).label(column.name)


def damaged(connection: Connection, project: int | None) -> Iterator[tuple[str, str, list[str]]]:
    """Tables, the fault of the JSON in them, and the ids of the rows with it: those of a project, or with None those
    that belong to no project."""
    for table in schema.metadata.sorted_tables:
        columns = [column for column in table.columns if isinstance(column.type, JSON)]
        condition = _without_project(table) if project is None else in_project(table, project) if columns else None
        if not columns or condition is None:
            continue
        key = [table.c.id] if "id" in table.columns else list(table.primary_key)
        ids_by_fault: dict[str, list[str]] = {}
        statement = select(*key, *(raw_json(connection, column) for column in columns)).where(condition).order_by(*key)
        for row in connection.execution_options(yield_per=BATCH_SIZE).execute(statement):
            for column, value in zip(columns, row[len(key) :], strict=True):
                fault = broken(table.name, column.name, value, nullable=bool(column.nullable))
                if fault is not None:
                    ids_by_fault.setdefault(fault, []).append("/".join(str(part) for part in row[: len(key)]))
        for fault, ids in sorted(ids_by_fault.items()):
            yield table.name, fault, ids


def _without_project(table: Table) -> ColumnElement[bool] | None:
    column = table.columns.get("project_id")
    return column.is_(None) if column is not None and column.nullable else None


def unknown_signals(connection: Connection) -> list[str]:
    """The events of signals that have no weight: no score can be folded from them."""
    of_signals = events.c.kind.in_((SIGNAL, LINK_SIGNAL))
    unknown = events.c.value.is_(None) | events.c.value.not_in(sorted(WEIGHTS))
    return list(connection.execute(select(events.c.id).where(of_signals, unknown).order_by(events.c.id)).scalars())


Shape = Callable[[Any, str], str | None]
"""Given a value and its name: the fault, or None."""

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}


def broken(table: str, column: str, stored: bytes | str | None, *, nullable: bool) -> str | None:
    """The fault of a stored value, in a few words, or None."""
    if stored is None:
        return None
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return f"broken JSON in {column}"
    if value is None and nullable:
        return None
    wrong = SHAPES[table, column](value, column)
    return wrong and f"wrong JSON: {wrong}"


def _instance_of(*kinds: type) -> Shape:
    expected = _KINDS[kinds[0]]

    def check(value: Any, name: str) -> str | None:
        # Not isinstance: a boolean is a number to Python, and not to a reader.
        return None if type(value) in kinds else f"{name} is {_KINDS.get(type(value), 'null')} instead of {expected}"

    return check


def _list_of(item: Shape) -> Shape:

    def check(value: Any, name: str) -> str | None:
        if wrong := _instance_of(list)(value, name):
            return wrong
        return _first_fault((item, inner, f"an item of {name}") for inner in value)

    return check


def _first_fault(parts: Iterable[tuple[Shape, Any, str]]) -> str | None:
    return next((fault for shape, value, name in parts if (fault := shape(value, name))), None)


def _row(*fields: Shape, min_length: int) -> Shape:
    """A list with fields in a fixed order, of which the first `min_length` are always there."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _instance_of(list)(value, name):
            return wrong
        if not min_length <= len(value) <= len(fields):
            return f"{name} has {len(value)} fields instead of {min_length}"
        numbered = enumerate(zip(fields, value, strict=False), start=1)
        return _first_fault((shape, inner, f"field {index} of {name}") for index, (shape, inner) in numbered)

    return check


def _object(**fields: Shape) -> Shape:
    """An object; the fields that are named have a shape of their own where they are there."""

    def check(value: Any, name: str) -> str | None:
        if wrong := _instance_of(dict)(value, name):
            return wrong
        return _first_fault((shape, value[key], f"{key} of {name}") for key, shape in fields.items() if key in value)

    return check


_TEXT = _instance_of(str)
_NUMBER = _instance_of(float, int)
_TEXTS = _list_of(_TEXT)
_OBJECTS = _list_of(_object())
_ANY = _object()

SHAPES: dict[tuple[str, str], Shape] = {
    ("datasets", "metadata"): _ANY,
    ("facts", "metadata"): _ANY,
    ("events", "body"): _object(created=_instance_of(bool)),
    ("receipts", "shown"): _list_of(_row(_TEXT, _NUMBER, _NUMBER, _NUMBER, _TEXT, _NUMBER, _TEXTS, min_length=6)),
    ("requests", "result"): _ANY,
    ("sessions", "metadata"): _ANY,
    ("entries", "used"): _list_of(_row(_TEXT, _NUMBER, _TEXTS, min_length=3)),
    ("entries", "usage"): _ANY,
    ("feedbacks", "extra"): _ANY,
    ("waiting_feedbacks", "extra"): _ANY,
    ("outbox", "payload"): _ANY,
    ("connectors", "options"): _ANY,
    ("connectors", "schema"): _object(tables=_OBJECTS),
    ("executions", "parameters"): _ANY,
    ("executions", "result"): _object(columns=_OBJECTS, rows=_list_of(_instance_of(list))),
    ("keys", "scopes"): _TEXTS,
    ("jobs", "arguments"): _ANY,
}
"""By table and column."""
