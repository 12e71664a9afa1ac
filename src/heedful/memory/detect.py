"""Which recalled facts an answer used, told from the answer itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.errors import Invalid
from heedful.memory.workspace import Workspace
from heedful.model import Detection
from heedful.ranking.attribution import attribute
from heedful.storage import facts
from heedful.storage.vectors import Vectors, unpack
from heedful.text.words import sentences

MAX_ANSWER = 100_000


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts that are still there, with their vectors."""

    ids: list[str]
    texts: list[str]
    vectors: Vectors


def detect(workspace: Workspace, answer: str, fact_ids: Sequence[str], *, query: str = "") -> list[Detection]:
    """For each of the facts that an answer was given from: `used`, `ignored`, or None where it can't be told.

    Name all facts that were shown, because they are told apart by what only one of them says; those that were deleted
    are left out. `query` is the question, if known: it makes the result a little surer.
    """
    if not isinstance(answer, str):
        raise Invalid(f"answer must be a string, got {answer!r}", field="answer", value=answer)
    if len(answer) > MAX_ANSWER:
        raise Invalid(
            f"answer has {len(answer)} characters, the limit is {MAX_ANSWER}", field="answer", value=answer[:50]
        )
    known = _known(workspace, list(dict.fromkeys(fact_ids)))
    if not known.ids:
        return []
    parts = sentences(answer)
    near = np.zeros((len(parts), len(known.ids)), np.float32)
    overall = None
    if parts:
        *told, whole = workspace.embed([*parts, f"{query} {answer}".strip()]) @ known.vectors.T
        near, overall = np.stack(told), whole
    found = attribute(parts, known.texts, near, overall, query=query, calibration=workspace.embedder.calibration)
    return [
        Detection(
            fact_id=fact_id, signal_type=each.signal_type, confidence=round(each.confidence, 4), reasons=each.reasons
        )
        for fact_id, each in zip(known.ids, found, strict=True)
    ]


def _known(workspace: Workspace, fact_ids: list[str]) -> _Known:
    with workspace.read() as connection:
        model = workspace.model(connection)
        places = facts.locate(connection, workspace.project, fact_ids)
        if model is None or not places:
            return _Known([], [], np.empty((0, 0), np.float32))
        rows = {
            row.id: row
            for dataset in sorted({dataset for _, dataset in places.values()})
            for row in facts.indexable(
                connection, dataset, model.id, [seq for seq, at in places.values() if at == dataset]
            )
        }
    found = [rows[fact_id] for fact_id in fact_ids if fact_id in rows]
    return _Known(
        [row.id for row in found],
        [row.text for row in found],
        unpack([row.vector for row in found], model.dimensions),
    )
