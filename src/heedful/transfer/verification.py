"""`heedful verify`: replays the ledger, compares everything derived with it, and only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import orjson
from sqlalchemy import ColumnElement, Connection, Select, String, case, cast, exists, func, select

from heedful.errors import NotFound
from heedful.memory import checks, maintenance
from heedful.protocols.engine import Progress
from heedful.storage import facts as stored_facts
from heedful.storage import link_scores, schema
from heedful.storage.facts import SUPERSEDED
from heedful.storage.ledger import FEEDBACK, SIGNAL, SUPERSESSION, is_retracted, recallable
from heedful.storage.rows import batches
from heedful.storage.schema import datasets, event_keys, events, facts, feedbacks, notes, projects, queries, receipts
from heedful.transfer import checksum, lines, stores
from heedful.transfer.checksum import raw_json
from heedful.transfer.lines import in_project
from heedful.transfer.results import Difference, ProjectChecksum, Verified
from heedful.transfer.table_rows import BATCH_SIZE

MAX_LISTED = 5
"""Things that differ which are named; the others are counted."""


def verify(
    url_or_path: str | Path | None = None,
    *,
    project: str | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Compares all that is derived from the ledger with the ledger, in one project or in all of them."""
    database = stores.open_existing(url_or_path)
    try:
        with database.read() as connection:
            verifying = _Verifying(connection)
            selected = _projects(connection, database.name, project)
            for index, (number, name) in enumerate(selected, start=1):
                verifying.project(number, name)
                if progress is not None:
                    progress(index, len(selected))
            if project is None:
                verifying.rows_of_the_store()
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
        self._connection = connection
        self.checksums: list[ProjectChecksum] = []
        self.differences: list[Difference] = []
        self.compared = 0

    def project(self, number: int, name: str) -> None:
        if self._lines_are_readable(number, name):
            self.checksums.append(checksum.of_project(self._connection, number, name))
        unknown = checksum.unknown_signals(self._connection, number)
        self._note(name, None, "rows of events with an unknown signal (so no scores were compared)", unknown)
        if not unknown:
            for dataset, title in dataset_numbers(self._connection, number).items():
                self._scores(name, dataset, title)
                self._links(name, dataset, title)
        for description, check in CHECKS.items():
            self._note(name, None, description, check(self._connection, number))

    def rows_of_the_store(self) -> None:
        """Looks at what belongs to no project: keys for all of them, and jobs."""
        for table, wrong, ids in checksum.damaged(self._connection, None):
            self._note(None, None, f"rows of {table} with {wrong}", ids)

    def _lines_are_readable(self, number: int, project: str) -> bool:
        """Whether facts and ledger can be folded into checksums."""
        broken = set()
        for table, wrong, ids in checksum.damaged(self._connection, number):
            broken.add(table)
            self._note(project, None, f"rows of {table} with {wrong}", ids)
        return broken.isdisjoint({schema.facts.name, schema.events.name})

    def _scores(self, project: str, dataset: int, title: str) -> None:
        wrong: list[int] = []
        for compared, differing in maintenance.compare_scores(self._connection, dataset):
            self.compared += compared
            wrong += differing
        ids = stored_facts.ids(self._connection, wrong[:MAX_LISTED])
        names = (ids.get(seq, str(seq)) for seq in wrong)
        self._note(project, title, "scores of facts unlike the fold of the ledger", names)

    def _links(self, project: str, dataset: int, title: str) -> None:
        compared, wrong = maintenance.compare_links(self._connection, dataset)
        self.compared += compared
        first = sorted(wrong)
        ids = stored_facts.ids(self._connection, [fact for fact, _ in first[:MAX_LISTED]])
        names = (link_scores.target(ids.get(fact, str(fact)), entity) for fact, entity in first)
        self._note(project, title, "scores of links unlike the fold of the ledger", names)

    def _note(self, project: str | None, dataset: str | None, what: str, ids: Iterable[str]) -> None:
        remaining = iter(ids)
        examples = list(islice(remaining, MAX_LISTED))
        if examples:
            count = len(examples) + sum(1 for _ in remaining)
            self.differences.append(
                Difference(project=project, dataset=dataset, what=what, count=count, examples=examples)
            )


Check = Callable[[Connection, int], Iterator[str]]
"""Given a transaction and the number of a project."""


def feedback_without_event(connection: Connection, project: int) -> Iterator[str]:
    """Words of people whose event is not in the ledger."""
    event = exists().where(_its_event(), events.c.project_id == project, events.c.kind == FEEDBACK)
    yield from _ids(connection, select(feedbacks.c.id).where(feedbacks.c.project_id == project, ~event))


def feedback_unlike_event(connection: Connection, project: int) -> Iterator[str]:
    """Ratings that the ledger has otherwise, or that are active though they were retracted, or the other way round."""
    value = case((feedbacks.c.score.is_not(None), cast(feedbacks.c.score, String)), else_=feedbacks.c.rating)
    unlike = (
        value.is_distinct_from(events.c.value)
        | feedbacks.c.author.is_distinct_from(events.c.author)
        | (feedbacks.c.author_kind != events.c.author_kind)
        | ((feedbacks.c.active == 1) == is_retracted())
    )
    statement = select(feedbacks.c.id).join(events, _its_event()).where(feedbacks.c.project_id == project, unlike)
    yield from _ids(connection, statement)


def keys_used_twice(connection: Connection, project: int) -> Iterator[str]:
    """Idempotency keys that more than one event has."""
    key = events.c.idempotency_key
    statement = select(key).where(events.c.project_id == project).group_by(key).having(func.count() > 1)
    yield from _ids(connection, statement)


def keys_unlike_event(connection: Connection, project: int) -> Iterator[str]:
    """Idempotency keys that are kept for an event that has another one, and those of events that are not kept."""
    its = (event_keys.c.event_id == events.c.id) & (event_keys.c.idempotency_key == events.c.idempotency_key)
    of_event, of_key = events.c.project_id == project, event_keys.c.project_id == project
    yield from _ids(connection, select(event_keys.c.idempotency_key).where(of_key, ~exists().where(of_event, its)))
    keyed = events.c.idempotency_key != events.c.id
    yield from _ids(connection, select(events.c.idempotency_key).where(of_event, keyed, ~exists().where(of_key, its)))


def notes_without_event(connection: Connection, project: int) -> Iterator[str]:
    event_exists = exists().where(events.c.id == notes.c.event_id, events.c.project_id == project)
    yield from _ids(connection, select(notes.c.event_id).where(in_project(notes, project), ~event_exists))


def superseded_unlike_ledger(connection: Connection, project: int) -> Iterator[str]:
    """Facts that can be recalled though they are superseded, or the other way round."""
    is_marked = (facts.c.hidden.op("&")(SUPERSEDED) != 0).label("is_marked")
    named = exists().where(events.c.target_id == facts.c.id, events.c.kind == SUPERSESSION)
    statement = select(facts.c.id, is_marked).where(in_project(facts, project), is_marked | named)
    marked = {row.id: row.is_marked for row in connection.execute(statement)}
    found = recallable(connection, marked)
    yield from (fact_id for fact_id, is_hidden in marked.items() if is_hidden == (fact_id in found))


def signals_across_datasets(connection: Connection, project: int) -> Iterator[str]:
    """Events about a fact that is in another dataset than they say."""
    statement = (
        select(events.c.id)
        .join(facts, facts.c.id == events.c.target_id)
        .where(
            events.c.project_id == project,
            events.c.kind == SIGNAL,
            events.c.dataset_id.is_distinct_from(facts.c.dataset_id),
        )
    )
    yield from _ids(connection, statement)


def receipts_across_datasets(connection: Connection, project: int) -> Iterator[str]:
    """Receipts that showed a fact of another dataset, or whose query is gone; forgotten facts are not missed."""
    query = exists().where(queries.c.id == receipts.c.query_id, queries.c.dataset_id == receipts.c.dataset_id)
    yield from _ids(connection, select(receipts.c.id).where(in_project(receipts, project), ~query))
    rows = connection.execution_options(yield_per=BATCH_SIZE).execute(
        select(receipts.c.id, receipts.c.dataset_id, raw_json(connection, receipts.c.shown)).where(
            in_project(receipts, project)
        )
    )
    for run in rows.partitions(BATCH_SIZE):
        # Damaged rows are reported by themselves.
        sound = [row for row in run if lines.broken("receipts", "shown", row.shown, nullable=False) is None]
        shown_facts = {row.id: {line[0] for line in orjson.loads(row.shown)} for row in sound}
        dataset_of = {
            row.id: row.dataset_id
            for batch in batches(sorted(set().union(*shown_facts.values())))
            for row in connection.execute(select(facts.c.id, facts.c.dataset_id).where(facts.c.id.in_(batch)))
        }
        for row in sound:
            if any(dataset_of.get(fact, row.dataset_id) != row.dataset_id for fact in shown_facts[row.id]):
                yield row.id


CHECKS: dict[str, Check] = {
    "feedback without its event": feedback_without_event,
    "feedback unlike its event": feedback_unlike_event,
    "idempotency keys that are used twice": keys_used_twice,
    "idempotency keys unlike their event": keys_unlike_event,
    "notes without their event": notes_without_event,
    "superseded facts unlike the ledger": superseded_unlike_ledger,
    "signals about a fact of another dataset": signals_across_datasets,
    "receipts of facts or queries of another dataset": receipts_across_datasets,
}


def dataset_numbers(connection: Connection, project: int) -> dict[int, str]:
    rows = connection.execute(
        select(datasets.c.id, datasets.c.name).where(datasets.c.project_id == project).order_by(datasets.c.id)
    )
    return {row.id: row.name for row in rows}


def _its_event() -> ColumnElement[bool]:
    return events.c.id == feedbacks.c.event_id


def _ids(connection: Connection, statement: Select[str]) -> Iterator[str]:
    for row in connection.execution_options(yield_per=BATCH_SIZE).execute(statement):
        yield row[0]
