"""Checking a store, and rebuilding what is derived: vectors for another model, and the folds of the ledger."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from heedful.api.parameters import Progress
from heedful.errors import HeedfulError
from heedful.files import readable_by_others
from heedful.ledger import events, scores, strengths, tallies
from heedful.ledger.fold_cache import folds_of
from heedful.ledger.scores import Key
from heedful.ledger.usefulness import Tally
from heedful.memory.remember import BATCH_SIZE
from heedful.model import Check
from heedful.providers.embedding import Embedder
from heedful.search import DatabaseIndex
from heedful.storage import Database, facts, graph, scopes
from heedful.storage import vectors as stored
from heedful.storage.postgresql.distribution import REBALANCE, is_balanced
from heedful.storage.rows import batches
from heedful.storage.vectors import pack
from heedful.text import counted
from heedful.workspace import Workspace


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


CLOSE = 1e-9  # Scores that differ by less are the same score.
FOLD_BATCH_SIZE = 2000  # Facts that are folded at once.
REPAIR_BATCH_SIZE = 100  # Facts, links or entities that one transaction repairs.
INDEX_LOOKS = 3  # How often an index is compared before it is called wrong.

Item = TypeVar("Item")


def compare_scores(connection: Connection, dataset: int) -> Iterator[tuple[int, list[int]]]:
    """The scores of the facts of a dataset, some at a time: how many were compared, and which facts have wrong ones."""
    for run in batches([seq for seq, _ in facts.of_dataset(connection, dataset)], FOLD_BATCH_SIZE):
        stored = scores.all_of(connection, run)
        folded = scores.folded(events.surviving(connection, run))
        yield len(stored.keys() | folded.keys()), sorted({fact for fact, _ in _differences(stored, folded)})


def compare_links(connection: Connection, dataset: int) -> tuple[int, set[Key]]:
    """How many links of a dataset have a score, and which of these are not the fold of the ledger."""
    stored, folded = scores.rated_links_in(connection, dataset), scores.folded_links_in(connection, dataset)
    return len(stored.keys() | folded.keys()), _differences(stored, folded)


def refold_links(connection: Connection, wrong: Collection[Key]) -> None:
    """Recomputes the scores of links, as far as their facts still exist."""
    ids = facts.ids(connection, sorted({fact for fact, _ in wrong}))
    scores.refold_links(connection, {key: scores.link_name(ids[key[0]], key[1]) for key in wrong if key[0] in ids})


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
    checks += [_files(workspace, operator), *_nodes(workspace, operator), _counts(workspace, repair)]
    with workspace.read() as connection:
        names = scopes.dataset_names(connection)
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
    state = workspace.database.integrity()
    where = f"{workspace.database.name}: " if operator else ""
    return Check(name="store", ok=state == "ok", detail=f"{where}{state}")


def _files(workspace: Workspace, operator: bool) -> Check:
    """Whether the file of the store is for its owner alone; that of an older version is left alone and reported."""
    folder = workspace.database.folder
    store = Path(workspace.database.name)
    # Those of a database on a server are its own matter.
    paths = [] if folder is None else [folder, *(store.with_name(store.name + end) for end in ("", "-wal", "-shm"))]
    open_files = [str(path) for path in paths if readable_by_others(path)]
    if not open_files:
        return Check(name="files", ok=True, detail="none that others may read")
    if not operator:
        detail = "other users of the server's machine may read the store; have the operator run: heedful doctor"
        return Check(name="files", ok=False, detail=detail)
    remedy = f"chmod go= {' '.join(shlex.quote(path) for path in open_files)}"
    return Check(name="files", ok=False, detail=f"others may read {', '.join(open_files)}; run: {remedy}")


def _nodes(workspace: Workspace, operator: bool) -> list[Check]:
    """On which node of a cluster the project is, and whether each has its share; nothing for one server."""
    placement = workspace.database.placement(workspace.project)
    if placement is None or not operator:
        return []
    shards = sum(node.shards for node in placement.nodes)
    shares = ", ".join(f"{node.address} has {node.shards} of {shards} shards" for node in placement.nodes)
    detail = f"project {workspace.project} is on {placement.of_project or 'none yet'}; {shares}"
    try:
        with workspace.database.read() as connection:
            problem = "" if is_balanced(connection) else f"; to balance them, run as an administrator: {REBALANCE}"
    except HeedfulError as error:
        problem = f"; {error}"
    return [Check(name="nodes", ok=not problem, detail=detail + problem)]


def _model(workspace: Workspace) -> Check:
    try:
        width = workspace.embed(["How are you?"]).shape[1]
        with workspace.read() as connection:
            model = workspace.model(connection)
            lacking = 0 if model is None else stored.count_without(connection, model.id)
    except HeedfulError as error:
        return Check(name="model", ok=False, detail=str(error))
    if lacking:
        return Check(
            name="model", ok=False, detail=f"without a vector: {counted(lacking, 'fact')}; run: heedful reembed"
        )
    return Check(name="model", ok=True, detail=f"{workspace.embedder.name}, {width} dimensions")


def _compared(name: str, same: str, difference: str, repair: bool) -> Check:
    """The line for derived data: `difference` is empty where there is none."""
    if not difference:
        return Check(name=name, ok=True, detail=same)
    return Check(name=name, ok=repair, detail=difference, repaired=repair)


def _scores(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    def refold_run(connection: Connection, run: list[int]) -> None:
        existing = facts.existing(connection, run)
        scores.refold(workspace.database, connection, dict.fromkeys(existing, dataset), existing)

    with workspace.read() as connection:
        wrong = [fact for _, differing in compare_scores(connection, dataset) for fact in differing]
    if wrong and repair:
        _repair_in_runs(workspace, wrong, refold_run)
        folds_of(workspace).drop_scores(dataset)
    difference = f"{counted(len(wrong), 'fact')} differed from the fold of the ledger" if wrong else ""
    return _compared(f"scores of {name}", "equal to the fold of the ledger", difference, repair)


def _strengths(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    """How far evidence is followed, by a fit of the ledger; one that is due is no fault."""
    fitted, before = strengths.computed(workspace, dataset)
    if fitted != before and repair:
        strengths.fit_dataset(workspace, dataset)
    if fitted is None:
        return Check(name=f"strengths of {name}", ok=True, detail="too few opinions to fit them")
    detail = f"boldness {fitted.strengths.boldness:+g}, {fitted.strengths.error:.0%} of opinions wrong"
    detail += f", by {counted(fitted.opinions, 'opinion')}"
    if fitted != before and not repair:
        detail += "; not yet noted, a recall or a repair does it"
    return Check(name=f"strengths of {name}", ok=True, detail=detail)


def _counts(workspace: Workspace, repair: bool) -> Check:
    with workspace.read() as connection:
        project = scopes.project_id(connection, workspace.project)
        wrong = [] if project is None else tallies.differences(connection, project)
    for key in wrong if repair else ():
        assert project is not None
        with workspace.write() as connection:
            tallies.refold(connection, project, key)
    keys = ", ".join(key or "all opinions" for key in wrong)
    difference = f"differed from the fold of the opinions: {keys}" if wrong else ""
    return _compared("counts", "equal to the fold of the opinions", difference, repair)


def _filters(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    with workspace.read() as connection:
        wrong = facts.with_wrong_tags(connection, dataset)
    if repair:
        _repair_in_runs(workspace, wrong, lambda connection, run: facts.retag(connection, dataset, run))
    difference = f"{counted(len(wrong), 'fact')} differed from their metadata" if wrong else ""
    return _compared(f"filters of {name}", "equal to the metadata of the facts", difference, repair)


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
    counts = {
        "facts had other links than their texts say": len(wrong),
        "entities were mentioned by no fact": len(unmentioned),
        "links differed from the fold of the ledger": len(scored),
    }
    difference = ", ".join(f"{count} {problem}" for problem, count in counts.items() if count)
    return _compared(f"links of {name}", "equal to the texts and the fold of the ledger", difference, repair)


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
            wrong = index.differences(connection)
        if not wrong:
            break
    damaged = index.is_damaged()
    if (wrong or damaged) and repair:
        # An index in memory is rebuilt by reading alone.
        with workspace.write() if isinstance(index, DatabaseIndex) else workspace.read() as connection:
            index.rebuild(connection)
    difference = f"{counted(wrong, 'fact')} differed from the store" if wrong else ""
    return _compared(title, counted(len(index), "fact"), "its file was damaged" if damaged else difference, repair)
