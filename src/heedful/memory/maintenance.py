"""Checking a store, and rebuilding what is derived: vectors for another model, and the folds of the ledger."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from heedful.errors import HeedfulError
from heedful.files import readable_by_others
from heedful.memory import strengths
from heedful.memory.remember import BATCH_SIZE
from heedful.memory.workspace import Workspace
from heedful.model import Check
from heedful.protocols.engine import Progress
from heedful.providers.embedding import Embedder
from heedful.ranking.policies import Tally
from heedful.search import DatabaseIndex
from heedful.storage import Database, facts, graph, ledger, link_scores, scopes, scores, tallies
from heedful.storage import vectors as stored
from heedful.storage.rows import batches
from heedful.storage.scores import Key
from heedful.storage.vectors import pack


def reembed(database: Database, embedder: Embedder, progress: Progress | None) -> int:
    """Gives every fact of the store a vector of `embedder`; returns how many were made.

    It may be stopped and started again: what is done stays done, and the old model serves until the end.
    """
    with database.write() as connection:
        model = stored.ensure_model(connection, embedder.name, embedder.dimensions)
        total = stored.count_without(connection, model)
    done = 0
    while True:
        with database.read() as connection:
            waiting = stored.facts_without(connection, model, BATCH_SIZE)
        if not waiting:
            with database.write() as connection:
                stored.lock_writes(connection)
                if not stored.facts_without(connection, model, 1):
                    stored.activate(connection, model)
                    return done
            continue
        made = embedder.embed([text for _, text in waiting])
        with database.write() as connection:
            stored.store(connection, model, [(seq, pack(each)) for (seq, _), each in zip(waiting, made, strict=True)])
        done += len(waiting)
        if progress is not None:
            progress(done, max(done, total))


CLOSE = 1e-9
"""Scores that differ by less are the same score."""

FOLD_BATCH_SIZE = 2000
"""Facts that are folded at once."""

REPAIR_BATCH_SIZE = 100
"""Facts, links or entities that one transaction repairs."""

INDEX_LOOKS = 3
"""How often an index is compared before it is called wrong."""

Item = TypeVar("Item")


def compare_scores(connection: Connection, dataset: int) -> Iterator[tuple[int, list[int]]]:
    """The scores of the facts of a dataset, some at a time: how many were compared, and which facts have wrong ones."""
    for run in batches([seq for seq, _ in facts.of_dataset(connection, dataset)], FOLD_BATCH_SIZE):
        stored = scores.all_of(connection, run)
        folded = scores.folded(ledger.surviving(connection, run))
        yield len(stored.keys() | folded.keys()), sorted({fact for fact, _ in _differences(stored, folded)})


def wrong_facts(connection: Connection, dataset: int) -> list[int]:
    """The facts of a dataset whose scores are not the fold of the ledger."""
    return [fact for _, wrong in compare_scores(connection, dataset) for fact in wrong]


def compare_links(connection: Connection, dataset: int) -> tuple[int, set[Key]]:
    """How many links of a dataset have a score, and which of these are not the fold of the ledger."""
    stored, folded = link_scores.rated_in(connection, dataset), link_scores.folded_in(connection, dataset)
    return len(stored.keys() | folded.keys()), _differences(stored, folded)


def refold_links(connection: Connection, wrong: Collection[Key]) -> None:
    """Recomputes the scores of links, as far as their facts still exist."""
    ids = facts.ids(connection, sorted({fact for fact, _ in wrong}))
    link_scores.refold(connection, {key: link_scores.target(ids[key[0]], key[1]) for key in wrong if key[0] in ids})


def refold(database: Database, connection: Connection, dataset: int) -> None:
    """Recomputes all scores of a dataset."""
    seqs = [seq for seq, _ in facts.of_dataset(connection, dataset)]
    scores.refold(database, connection, dict.fromkeys(seqs, dataset), seqs)
    refold_links(connection, compare_links(connection, dataset)[1])


def _differences(stored: dict[Key, Tally], folded: dict[Key, Tally]) -> set[Key]:
    differing = stored.keys() ^ folded.keys()
    for key in stored.keys() & folded.keys():
        one, other = stored[key], folded[key]
        if (one.last_at, one.breakdown) != (other.last_at, other.breakdown) or abs(one.score - other.score) > CLOSE:
            differing.add(key)
    return differing


def doctor(workspace: Workspace, repair: bool, operator: bool) -> list[Check]:
    """One line for each thing that was looked at; only to the `operator` it says where the store is.

    It compares without holding up any writer, each thing in one snapshot.
    """
    checks = [_store(workspace, operator), _model(workspace)]
    if not all(check.ok for check in checks):
        return checks
    checks += [_files(workspace, operator), _counts(workspace, repair)]
    with workspace.read() as connection:
        names = scopes.dataset_names(connection, workspace.project)
    for number, name in names.items():
        checks += [
            _scores(workspace, number, name, repair),
            _strengths(workspace, number, name, repair),
            _filters(workspace, number, name, repair),
            _links(workspace, number, name, repair),
            _index(workspace, number, name, repair),
        ]
    return checks


def _repair_in_runs(
    workspace: Workspace, wrong: Sequence[Item], repair_run: Callable[[Connection, list[Item]], object]
) -> None:
    """Repairs in short transactions. `repair_run` recomputes from what its transaction sees, so that it is right
    whatever others have changed since the comparison."""
    for run in batches(wrong, REPAIR_BATCH_SIZE):
        with workspace.write() as connection:
            repair_run(connection, list(run))


def _store(workspace: Workspace, operator: bool) -> Check:
    found = workspace.database.integrity()
    where = f"{workspace.database.name}: " if operator else ""
    return Check(name="store", ok=found == "ok", detail=f"{where}{found}")


def _files(workspace: Workspace, operator: bool) -> Check:
    """Whether the file of the store is for its owner alone; that of an older version is left alone and reported."""
    folder = workspace.database.folder
    store = Path(workspace.database.name)
    # Those of a database on a server are its own matter.
    paths = [] if folder is None else [folder, *(store.with_name(store.name + each) for each in ("", "-wal", "-shm"))]
    found = [str(each) for each in paths if readable_by_others(each)]
    if not found:
        return Check(name="files", ok=True, detail="none that others may read")
    if not operator:
        detail = "other users of the server's machine may read the store; have the operator run: heedful doctor"
        return Check(name="files", ok=False, detail=detail)
    remedy = f"chmod go= {' '.join(shlex.quote(each) for each in found)}"
    return Check(name="files", ok=False, detail=f"others may read {', '.join(found)}; run: {remedy}")


def _model(workspace: Workspace) -> Check:
    name = workspace.embedder.name
    try:
        width = workspace.embed(["How are you?"]).shape[1]
        with workspace.read() as connection:
            model = workspace.model(connection)
            lacking = 0 if model is None else stored.count_without(connection, model.id)
    except HeedfulError as error:
        return Check(name="model", ok=False, detail=str(error))
    if lacking:
        return Check(name="model", ok=False, detail=f"{lacking} facts have no vector; run: heedful reembed")
    return Check(name="model", ok=True, detail=f"{name}, {width} dimensions")


def _scores(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    def refold_run(connection: Connection, run: list[int]) -> None:
        existing = facts.existing(connection, run)
        scores.refold(workspace.database, connection, dict.fromkeys(existing, dataset), existing)

    with workspace.read() as connection:
        wrong = wrong_facts(connection, dataset)
    if wrong and repair:
        _repair_in_runs(workspace, wrong, refold_run)
        workspace.drop_scores(dataset)
    title = f"scores of {name}"
    if not wrong:
        return Check(name=title, ok=True, detail="equal to the fold of the ledger")
    return Check(
        name=title, ok=repair, detail=f"{len(wrong)} facts differed from the fold of the ledger", repaired=repair
    )


def _strengths(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    """How far evidence is followed, by a fit of the ledger; one that is due is no fault."""
    found, before = strengths.computed(workspace, dataset)
    if found != before and repair:
        strengths.fit(workspace, dataset)
    title = f"strengths of {name}"
    if found is None:
        return Check(name=title, ok=True, detail="too few opinions to fit them")
    words = f"boldness {found.strengths.boldness:+g}, {found.strengths.error:.0%} of opinions wrong"
    detail = f"{words}, by {found.opinions} opinions"
    if found != before and not repair:
        detail += "; not yet noted, a recall or a repair does it"
    return Check(name=title, ok=True, detail=detail)


def _counts(workspace: Workspace, repair: bool) -> Check:
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        wrong = [] if project is None else tallies.differences(connection, project)
    for key in wrong if repair else ():
        assert project is not None
        with workspace.write() as connection:
            tallies.refold(connection, project, key)
    if not wrong:
        return Check(name="counts", ok=True, detail="equal to the fold of the opinions")
    keys = ", ".join(key or "all opinions" for key in wrong)
    return Check(name="counts", ok=repair, detail=f"differed from the fold of the opinions: {keys}", repaired=repair)


def _filters(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    with workspace.read() as connection:
        wrong = facts.with_wrong_tags(connection, dataset)
    if repair:
        _repair_in_runs(workspace, wrong, lambda connection, run: facts.retag(connection, dataset, run))
    title = f"filters of {name}"
    if not wrong:
        return Check(name=title, ok=True, detail="equal to the metadata of the facts")
    return Check(name=title, ok=repair, detail=f"{len(wrong)} facts differed from their metadata", repaired=repair)


def _links(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    with workspace.read() as connection:
        wrong = graph.with_wrong_links(connection, dataset)
    if repair:
        _repair_in_runs(workspace, wrong, lambda connection, run: graph.relink(connection, dataset, run))
    with workspace.read() as connection:
        unmentioned = graph.unmentioned(connection, dataset)
        _, scored = compare_links(connection, dataset)
    if repair:
        _repair_in_runs(workspace, unmentioned, graph.remove_unmentioned)
        _repair_in_runs(workspace, sorted(scored), refold_links)
    title = f"links of {name}"
    found = [
        f"{count} {what}"
        for count, what in (
            (len(wrong), "facts had other links than their texts say"),
            (len(unmentioned), "entities were mentioned by no fact"),
            (len(scored), "links differed from the fold of the ledger"),
        )
        if count
    ]
    if not found:
        return Check(name=title, ok=True, detail="equal to the texts and the fold of the ledger")
    return Check(name=title, ok=repair, detail=", ".join(found), repaired=repair)


def _index(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    title = f"index of {name}"
    # A recall may let the index follow changes that a snapshot lacks: then another one shows that they agree.
    for _ in range(INDEX_LOOKS):
        with workspace.read() as connection:
            model = workspace.model(connection)
            if model is None:
                return Check(name=title, ok=True, detail="empty")
            index = workspace.index(connection, dataset, model)
            index.follow(connection)
            damaged = index.is_damaged()
            wrong = index.differences(connection)
        if not wrong:
            break
    if (wrong or damaged) and repair:
        # An index in memory is rebuilt by reading alone.
        with workspace.write() if isinstance(index, DatabaseIndex) else workspace.read() as connection:
            index.rebuild(connection)
    if damaged:
        return Check(name=title, ok=repair, detail="its file was damaged", repaired=repair)
    if wrong:
        return Check(name=title, ok=repair, detail=f"{wrong} facts differed from the store", repaired=repair)
    return Check(name=title, ok=True, detail=f"{len(index)} facts")
