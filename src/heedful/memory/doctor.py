"""Checks the store, the model and what is derived, and repairs the latter."""

from __future__ import annotations

import shlex
from pathlib import Path

from heedful.errors import HeedfulError
from heedful.files import readable_by_others
from heedful.memory import maintenance
from heedful.memory.workspace import Workspace
from heedful.model import Check
from heedful.storage import facts, graph, scopes, scores, tallies
from heedful.storage import vectors as stored


def doctor(workspace: Workspace, repair: bool) -> list[Check]:
    """One line for each thing that was looked at."""
    checks = [_store(workspace), _model(workspace)]
    if not all(check.ok for check in checks):
        return checks
    checks += [_files(workspace), _counts(workspace, repair)]
    with workspace.read() as connection:
        names = scopes.dataset_names(connection, workspace.project)
    for number, name in names.items():
        checks += [
            _scores(workspace, number, name, repair),
            _filters(workspace, number, name, repair),
            _links(workspace, number, name, repair),
            _index(workspace, number, name, repair),
        ]
    return checks


def _store(workspace: Workspace) -> Check:
    found = workspace.database.integrity()
    return Check(name="store", ok=found == "ok", detail=f"{workspace.database.name}: {found}")


def _files(workspace: Workspace) -> Check:
    """Whether the file of the store is for its owner alone; that of an older version is left as it is, and told."""
    folder = workspace.database.folder
    store = Path(workspace.database.name)
    # Those of a database on a server are its own matter.
    ours = [] if folder is None else [folder, *(store.with_name(store.name + each) for each in ("", "-wal", "-shm"))]
    found = [str(each) for each in ours if readable_by_others(each)]
    if not found:
        return Check(name="files", ok=True, detail="none that others may read")
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
    with workspace.write() as connection:
        wrong = maintenance.wrong_facts(connection, dataset)
        if wrong and repair:
            scores.refold(workspace.database, connection, dict.fromkeys(wrong, dataset), wrong)
            workspace.drop_scores(dataset)
    title = f"scores of {name}"
    if not wrong:
        return Check(name=title, ok=True, detail="equal to the fold of the ledger")
    return Check(
        name=title, ok=repair, detail=f"{len(wrong)} facts differed from the fold of the ledger", repaired=repair
    )


def _counts(workspace: Workspace, repair: bool) -> Check:
    with workspace.write() as connection:
        project = scopes.project_id(connection, workspace.project)
        wrong = [] if project is None else tallies.differences(connection, project)
        for key in wrong if repair else ():
            assert project is not None
            tallies.refold(connection, project, key)
    if not wrong:
        return Check(name="counts", ok=True, detail="equal to the fold of the opinions")
    told = ", ".join(key or "all opinions" for key in wrong)
    return Check(name="counts", ok=repair, detail=f"differed from the fold of the opinions: {told}", repaired=repair)


def _filters(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    with workspace.write() as connection:
        wrong = facts.with_wrong_tags(connection, dataset)
        if wrong and repair:
            facts.retag(connection, dataset, wrong)
    title = f"filters of {name}"
    if not wrong:
        return Check(name=title, ok=True, detail="equal to the metadata of the facts")
    return Check(name=title, ok=repair, detail=f"{len(wrong)} facts differed from their metadata", repaired=repair)


def _links(workspace: Workspace, dataset: int, name: str, repair: bool) -> Check:
    with workspace.write() as connection:
        wrong = graph.with_wrong_links(connection, dataset)
        unmentioned = graph.unmentioned(connection, dataset)
        if repair:
            graph.relink(connection, dataset, wrong)
            graph.remove_unmentioned(connection, dataset)
        _, scored = maintenance.compare_links(connection, dataset)
        if scored and repair:
            maintenance.refold_links(connection, scored)
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
    with workspace.read() as connection:
        model = workspace.model(connection)
        if model is None:
            return Check(name=title, ok=True, detail="empty")
        index = workspace.index(connection, dataset, model)
        index.follow(connection)
        damaged = index.is_damaged()
        wrong = index.differences(connection)
    if (wrong or damaged) and repair:
        with workspace.write() as connection:
            index.rebuild(connection)
    if damaged:
        return Check(name=title, ok=repair, detail="its file was damaged", repaired=repair)
    if wrong:
        return Check(name=title, ok=repair, detail=f"{wrong} facts differed from the store", repaired=repair)
    return Check(name=title, ok=True, detail=f"{len(index)} facts")
