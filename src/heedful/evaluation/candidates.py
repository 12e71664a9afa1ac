"""Opens the two stores that rated questions are put to: the store as it is, and as it would be. Nothing is written."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, select

from heedful import settings
from heedful.errors import Conflict, NotFound, Unavailable
from heedful.ledger import events as ledger
from heedful.ledger import strengths, supersessions
from heedful.memory import doctor
from heedful.providers.configured import configured_embedder
from heedful.providers.embedding import Embedder
from heedful.settings import Settings
from heedful.storage import Database, open_store, scopes
from heedful.storage.schema import facts
from heedful.storage.vectors import active_model, ensure_model, pack
from heedful.transfer.exporting import KINDS, Line, Names, Numbers, lines
from heedful.transfer.importing import EMBEDDED_AT_ONCE, FileLine, Writing
from heedful.transfer.stores import display_name
from heedful.workspace import Workspace

__all__ = ["copied", "display_name", "other_store"]

COPIED = ("project", "dataset", "query", "fact", "event")
"""The tables that recalls depend on. Conversations and executions are not copied."""

Report = Callable[[int, int], object]


@contextmanager
def copied(
    workspace: Workspace, embedder: Embedder, until: int | None, report: Report | None = None
) -> Iterator[Workspace]:
    """A project in a temporary store: embedded by another model, or as its ledger was at a time. Facts that were
    forgotten since are gone for good."""
    with (
        TemporaryDirectory(prefix="heedful-regress-") as folder,
        closing(open_store(Path(folder) / "candidate.db")) as database,
    ):
        copy = workspace.elsewhere(database, embedder)
        with workspace.read() as source:
            _fill(source, database, copy, until, report)
            names = scopes.dataset_names(source)
            fitted = [name for number, name in names.items() if ledger.fitted(source, number) is not None]
        with copy.read() as connection:
            numbers = {name: number for number, name in scopes.dataset_names(connection).items()}
        for name in fitted:
            strengths.fit_dataset(copy, numbers[name])
        view = copy.looking()
        try:
            yield view
        finally:
            view.close()


def _fill(source: Connection, database: Database, copy: Workspace, until: int | None, report: Report | None) -> None:
    project = copy.project
    number = scopes.project_id(source, project)
    if number is None:
        return
    own = active_model(source)
    made_by = (copy.embedder.name, copy.embedder.dimensions)
    model = own.id if own is not None and (own.name, own.dimensions) == made_by else None
    names, done = Names(source, number), 0
    made: Iterator[bytes] = iter(())

    def vector(line: FileLine, *, must: bool) -> bytes | None:
        if "vector" in line.fields:
            return b64decode(line.fields["vector"])
        return next(made) if must else None

    with database.write(project) as target:
        target_model = ensure_model(target, copy.embedder.name, copy.embedder.dimensions)
        numbers = Numbers(target, scopes.ensure_project(target, project, 0))
        writing = Writing(target, numbers, target_model, vector)
        for kind in COPIED:
            for run in lines(source, KINDS[kind], number, names, model):
                kept = [line for line in run if until is None or _recorded(line) <= until]
                if kind == "fact":
                    lacking = [line["text"] for line in kept if "vector" not in line]
                    made = map(pack, embedded(copy.embedder, lacking))
                if kept:
                    writing.write(KINDS[kind], [FileLine(done + place, line) for place, line in enumerate(kept, 1)])
                done += len(kept)
                if report is not None and kind == "fact":
                    report(done, done)
        if until is not None:
            _forget_later_corrections(target)
        for dataset in numbers.datasets.values():
            doctor.refold(database, target, dataset)


def embedded(embedder: Embedder, texts: Sequence[str]) -> Iterator[Any]:
    """The vectors of texts, made in runs."""
    for start in range(0, len(texts), EMBEDDED_AT_ONCE):
        yield from embedder.embed(texts[start : start + EMBEDDED_AT_ONCE])


def _recorded(line: Line) -> int:
    """When a fact was stored or an event recorded; the rest has always been there."""
    time = {"fact": "created_at", "event": "recorded_at"}.get(line["type"])
    return 0 if time is None else int(line[time])


def _forget_later_corrections(connection: Connection) -> None:
    """Shows the facts again whose corrections came later."""
    for dataset in scopes.dataset_names(connection):
        hidden = select(facts.c.id).where(facts.c.dataset_id == dataset, facts.c.hidden != 0)
        supersessions.judge_superseded(connection, list(connection.execute(hidden).scalars()))


@contextmanager
def other_store(workspace: Workspace, against: str | Path, embedder: Embedder | None) -> Iterator[Workspace]:
    """The same project in another store, such as a copy; with the model that made its vectors."""
    with closing(open_store(against, create=False)) as database:
        with database.read(workspace.project) as connection:
            if scopes.project_id(connection, workspace.project) is None:
                message = f"store {database.name} has no project {workspace.project!r}"
                raise NotFound(message, field="against", value=database.name, remedy="Name a copy of this store")
            model = active_model(connection)
        chosen = embedder or workspace.embedder
        if embedder is None and model is not None and model.name != chosen.name:
            chosen = embedder_of(model.name, database.name, settings.load())
        view = workspace.elsewhere(database, chosen).looking()
        try:
            yield view
        finally:
            view.close()


def embedder_of(name: str, store: str, config: Settings) -> Embedder:
    """The model of this name, with which a store was made: that of the settings, or one that comes with Heedful."""
    for spec in dict.fromkeys((config.embedding, "bundled", "fast")):
        with suppress(Unavailable):
            embedder = configured_embedder(config, spec)
            if embedder.name == name:
                return embedder
    message = f"the vectors of {store} were made by {name}, which is not the model of the settings"
    remedy = "Name it in the settings (HEEDFUL_EMBEDDING)"
    raise Conflict(message, code="other_model", field="embedding", remedy=remedy)
