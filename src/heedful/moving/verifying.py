"""`heedful verify`: replays the ledger and compares every score with it. Only reads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, select

from heedful.errors import NotFound
from heedful.memory import checks, folds
from heedful.memory.remember import Progress
from heedful.moving import agreement, checksum, damage, stores
from heedful.moving.results import Difference, Sums, Verified
from heedful.storage import facts, link_scores, schema
from heedful.storage.schema import projects

SHOWN = 5
"""Things that differ which are named; the others are counted."""


def verify(
    url_or_path: str | Path | None = None,
    *,
    project: str | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Compares all that is derived from the ledger with the ledger, in one project or in all of them."""
    database = stores.existing(url_or_path)
    try:
        with database.read() as connection:
            verifying = _Verifying(connection)
            wanted = _projects(connection, database.name, project)
            for done, (number, name) in enumerate(wanted, start=1):
                verifying.project(number, name)
                if progress is not None:
                    progress(done, len(wanted))
            if project is None:
                verifying.rows_of_the_store()
        return Verified(
            store=database.name,
            projects=verifying.sums,
            compared=verifying.compared,
            differences=verifying.differences,
        )
    finally:
        database.close()


def _projects(connection: Connection, store: str, project: str | None) -> list[tuple[int, str]]:
    statement = select(projects.c.id, projects.c.name).order_by(projects.c.id)
    if project is not None:
        statement = statement.where(projects.c.name == checks.name("project", project))
    found = [(row.id, row.name) for row in connection.execute(statement)]
    if project is not None and not found:
        raise NotFound(f"store {store} has no project {project!r}", field="project", value=project)
    return found


class _Verifying:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.sums: list[Sums] = []
        self.differences: list[Difference] = []
        self.compared = 0

    def project(self, number: int, name: str) -> None:
        if self._lines_are_readable(number, name):
            self.sums.append(checksum.of_project(self._connection, number, name))
        unknown = damage.unknown_signals(self._connection, number)
        self._note(name, None, "rows of events with an unknown signal (so no scores were compared)", unknown)
        if not unknown:
            for dataset, title in agreement.dataset_numbers(self._connection, number).items():
                self._scores(name, dataset, title)
                self._links(name, dataset, title)
        for what, check in agreement.CHECKS.items():
            self._note(name, None, what, check(self._connection, number))

    def rows_of_the_store(self) -> None:
        """Looks at what belongs to no project: keys for all of them, and jobs."""
        for table, wrong, ids in damage.damaged(self._connection, None):
            self._note(None, None, f"rows of {table} with {wrong}", ids)

    def _lines_are_readable(self, number: int, project: str) -> bool:
        """Whether facts and ledger can be folded into checksums."""
        broken = set()
        for table, wrong, ids in damage.damaged(self._connection, number):
            broken.add(table)
            self._note(project, None, f"rows of {table} with {wrong}", ids)
        return broken.isdisjoint({schema.facts.name, schema.events.name})

    def _scores(self, project: str, dataset: int, title: str) -> None:
        wrong: list[int] = []
        for compared, differing in folds.compared(self._connection, dataset):
            self.compared += compared
            wrong += differing
        ids = facts.ids(self._connection, wrong[:SHOWN])
        named = (ids.get(seq, str(seq)) for seq in wrong)
        self._note(project, title, "scores of facts unlike the fold of the ledger", named)

    def _links(self, project: str, dataset: int, title: str) -> None:
        compared, wrong = folds.compared_links(self._connection, dataset)
        self.compared += compared
        first = sorted(wrong)
        ids = facts.ids(self._connection, [fact for fact, _ in first[:SHOWN]])
        named = (link_scores.target(ids.get(fact, str(fact)), entity) for fact, entity in first)
        self._note(project, title, "scores of links unlike the fold of the ledger", named)

    def _note(self, project: str | None, dataset: str | None, what: str, found: Iterable[str]) -> None:
        named = iter(found)
        examples = list(islice(named, SHOWN))
        if examples:
            count = len(examples) + sum(1 for _ in named)
            self.differences.append(
                Difference(project=project, dataset=dataset, what=what, count=count, examples=examples)
            )
