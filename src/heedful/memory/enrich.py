"""A richer graph: entities that a language model finds in facts, beside those that their words show."""

from __future__ import annotations

from heedful.chat.base import LanguageModel
from heedful.chat.entities import name_entities
from heedful.memory.remember import Progress
from heedful.memory.workspace import Workspace
from heedful.storage import facts, graph
from heedful.storage.rows import batches

MOST = 200
"""Facts that are read in one call; the next call goes on."""

TOGETHER = 10
"""Facts that the model is shown at once."""


def enrich(workspace: Workspace, model: LanguageModel, dataset: str, report: Progress | None = None) -> int:
    """Has the model read facts that it has not read yet, the newest first; returns how many links that added."""
    with workspace.read() as connection:
        number = workspace.dataset(connection, dataset)
        unread = [] if number is None else graph.unenriched(connection, number, MOST)
    added = 0
    for number_of_run, run in enumerate(batches(unread, TOGETHER)):
        if report is not None:
            report(number_of_run * TOGETHER, len(unread))
        named = name_entities(model, [row.text for row in run])
        with workspace.write() as connection:
            assert number is not None
            present = set(facts.by_seq(connection, [row.seq for row in run]))
            for row, names in zip(run, named, strict=True):
                if row.seq in present:
                    added += graph.enrich(connection, number, row.seq, names)
    return added
