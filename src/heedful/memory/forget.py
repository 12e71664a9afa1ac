"""Removing facts and everything derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from heedful.api import checks
from heedful.errors import Invalid, NotFound, no_dataset, quoted
from heedful.ledger import receipts, supersessions
from heedful.model import DEFAULT_DATASET, ForgetResult
from heedful.storage import facts, scopes
from heedful.storage.postgresql import word_index
from heedful.workspace import Workspace


def forget(
    workspace: Workspace, fact_ids: str | Sequence[str] | None, source: str | None, dataset: str | None
) -> ForgetResult:
    """Forgets the facts named, or a source, or a whole dataset.

    Texts, metadata, vectors, scores and notes go, and with a dataset its questions and receipts. The ledger keeps who
    said what about which id, without any text.
    """
    if fact_ids is not None:
        if source is not None or dataset is not None:
            message = "fact_ids can't be combined with source or dataset"
            raise Invalid(message, field="fact_ids", value=fact_ids, remedy="Pass fact_ids alone")
        named = [fact_ids] if isinstance(fact_ids, str) else fact_ids
        if not isinstance(named, Sequence):
            raise Invalid(f"fact_ids must be a list of ids, got {quoted(fact_ids)}", field="fact_ids", value=fact_ids)
        return _facts(workspace, [checks.identifier("fact_ids", fact_id) for fact_id in named])
    if source is not None:
        checks.any_text("source", source)
        return _source(workspace, source, checks.name("dataset", dataset or DEFAULT_DATASET))
    if dataset is not None:
        return _dataset(workspace, checks.name("dataset", dataset))
    raise Invalid("nothing to forget", field="fact_ids", remedy="Pass fact_ids, source, dataset or author")


def _facts(workspace: Workspace, ids: list[str]) -> ForgetResult:
    with workspace.write() as connection:
        places = facts.locate(connection, ids)
        for fact_id in ids:
            if fact_id not in places:
                problem = f"no fact {fact_id!r} in project {workspace.project!r}; nothing was forgotten"
                raise NotFound(problem, field="fact_ids", value=fact_id)
        names = scopes.dataset_names(connection)
        by_dataset = _by_dataset(places)
        runs = [(number, run) for number, seqs in by_dataset.items() for run in _runs(connection, number, seqs)]
        superseded = [fact_id for first in runs[:1] for fact_id in supersessions.remove_facts(connection, *first)]
        shown = restored(workspace, connection, superseded)
    shown = _remove_later(workspace, runs[1:], superseded, shown)
    datasets = ", ".join(names[number] for number in by_dataset)
    return ForgetResult(facts=len(places), dataset=datasets, restored=shown)


def _runs(connection: Connection, dataset: int, seqs: Sequence[int]) -> list[list[int]]:
    """Facts with what was learnt from them, in the runs in which they are removed."""
    return facts.removal_runs(connection, facts.with_lessons(connection, dataset, seqs))


def _remove_later(
    workspace: Workspace, runs: Sequence[tuple[int, Sequence[int]]], superseded: list[str], shown: list[str]
) -> list[str]:
    """Removes runs of facts of datasets, in a transaction each; returns those that recall finds again in the end."""
    for number, run in runs:
        with workspace.write() as connection:
            superseded += supersessions.remove_facts(connection, number, sorted(facts.existing(connection, run)))
            shown = restored(workspace, connection, list(dict.fromkeys(superseded)))
    return shown


def _by_dataset(places: Mapping[str, tuple[int, int]]) -> dict[int, list[int]]:
    by_dataset: dict[int, list[int]] = {}
    for seq, number in places.values():
        by_dataset.setdefault(number, []).append(seq)
    return by_dataset


def remove(connection: Connection, places: Mapping[str, tuple[int, int]]) -> tuple[list[int], list[str]]:
    """Removes facts, given as (number, dataset) by id, with what was learnt from them; returns the datasets, and the
    facts that they had superseded."""
    by_dataset = _by_dataset(places)
    removed = (supersessions.remove_facts(connection, number, seqs) for number, seqs in by_dataset.items())
    return list(by_dataset), [fact_id for superseded in removed for fact_id in superseded]


def restored(workspace: Workspace, connection: Connection, superseded: Sequence[str]) -> list[str]:
    """Those of these facts that recall finds."""
    return list(facts.texts(connection, superseded, current=True, at=workspace.now()))


def _source(workspace: Workspace, source: str, dataset: str) -> ForgetResult:
    with workspace.write() as connection:
        number = workspace.dataset(connection, dataset)
        seqs = [] if number is None else [seq for seq, _ in facts.of_dataset(connection, number, source)]
        if number is None or not seqs:
            raise NotFound(f"dataset {dataset!r} has no source {source!r}", field="source", value=source)
        first, *later = _runs(connection, number, seqs)
        superseded = supersessions.remove_facts(connection, number, first)
        shown = restored(workspace, connection, superseded)
    shown = _remove_later(workspace, [(number, run) for run in later], superseded, shown)
    return ForgetResult(facts=len(seqs), dataset=dataset, restored=shown)


def _dataset(workspace: Workspace, dataset: str) -> ForgetResult:
    with workspace.read() as connection:
        number = scopes.dataset_id(connection, dataset)
        if number is None:
            raise no_dataset(workspace.project, dataset, list(scopes.dataset_names(connection).values()))
        runs = _runs(connection, number, [seq for seq, _ in facts.of_dataset(connection, number)])
    removed = 0
    for run in runs[:-1]:
        with workspace.write() as connection:
            present = sorted(facts.existing(connection, run))
            supersessions.remove_facts(connection, number, present)
            removed += len(present)
    with workspace.write() as connection:
        # With the last run, what was stored meanwhile.
        seqs = [seq for seq, _ in facts.of_dataset(connection, number)]
        supersessions.remove_facts(connection, number, seqs)
        receipts.forget_dataset(connection, number)
        word_index.remove_index(connection, number)
    workspace.drop(number)
    return ForgetResult(facts=removed + len(seqs), dataset=dataset)
