"""Which item an opinion belongs to.

The item that has an opinion about the same target; else the one that began with the same subject; else, for questions,
an open item whose question asks for the same thing; else a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from heedful.executions.space import ExecutionSpace
from heedful.index.contexts import SLACK
from heedful.learning.contexts import SAME_NEED, similarity
from heedful.review.opinions import Opinion, read
from heedful.review.subjects import Subject, subjects
from heedful.storage.review import items
from heedful.storage.review.items import NewItem, NewMember
from heedful.storage.vectors import Vectors, pack, unpack

NEAREST = 5
"""How many open items are compared word by word."""

Item = int | NewItem
"""An item that is there, by its number, or one that is to be made."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An opinion with its item."""

    member: NewMember
    item: Item


@dataclass(slots=True)
class _Asked:
    """The questions of open items of one dataset."""

    seqs: list[int]
    vectors: Vectors
    texts: dict[int, str] = field(default_factory=dict)
    new: list[tuple[NewItem, str, Vectors]] = field(default_factory=list)


def placed(space: ExecutionSpace, opinions: Sequence[Opinion]) -> list[Placed]:
    """The opinions that have a subject, each with its item; in order."""
    about = subjects(space, opinions)
    said = [each for each in opinions if each.event_id in about]
    with space.workspace.read() as connection:
        project = space.project(connection)
        of_target: dict[tuple[str, str], Item] = dict(
            items.of_targets(connection, project, [each.target_id for each in said])
        )
        of_digest: dict[bytes, Item] = dict(
            items.with_digests(connection, project, [about[each.event_id].digest for each in said])
        )
    unknown = [
        each
        for each in said
        if each.target_type == "entry" and each.target not in of_target and about[each.event_id].digest not in of_digest
    ]
    vectors = _vectors(space, [about[each.event_id] for each in unknown])
    asked = _asked(space, [about[each.event_id] for each in unknown], vectors)
    found = []
    for each in said:
        subject = about[each.event_id]
        item = of_target.get(each.target) or of_digest.get(subject.digest)
        vector = vectors.get(subject.digest)
        if item is None and vector is not None:
            item = _near(space, asked[subject.dataset], subject, vector)
        if item is None:
            item = NewItem(
                each.target_type, subject.dataset, subject.digest, None if vector is None else pack(vector), each.at
            )
            if vector is not None and subject.question is not None:
                asked[subject.dataset].new.append((item, subject.question, vector))
        of_target[each.target] = of_digest[subject.digest] = item
        found.append(Placed(NewMember(each.event_id, each.target_type, each.target_id, each.at), item))
    return found


def _vectors(space: ExecutionSpace, unknown: Sequence[Subject]) -> dict[bytes, Vectors]:
    questions = {each.digest: each.question or "" for each in unknown}
    if not questions:
        return {}
    return dict(zip(questions, space.workspace.embed(list(questions.values())), strict=True))


def _asked(
    space: ExecutionSpace, unknown: Sequence[Subject], vectors: dict[bytes, Vectors]
) -> dict[str | None, _Asked]:
    """The open questions of the datasets that questions come from, with the words of those that lie near."""
    found: dict[str | None, _Asked] = {}
    with space.workspace.read() as connection:
        project, model = space.project(connection), space.workspace.model(connection)
        for dataset in {each.dataset for each in unknown}:
            rows = [] if model is None else items.open_vectors(connection, project, "entry", dataset, model.id)
            size = space.workspace.embedder.dimensions
            found[dataset] = _Asked([seq for seq, _ in rows], unpack([blob for _, blob in rows], size))
        near = {seq for each in unknown for seq in _nearest(space, found[each.dataset], vectors[each.digest])}
        newest = items.newest(connection, sorted(near), 1)
    named = {rows[0].event_id: seq for seq, rows in newest.items() if rows}
    about = subjects(space, read(space, [rows[0] for rows in newest.values() if rows]).values())
    for event_id, subject in about.items():
        if subject.question is not None:
            found[subject.dataset].texts[named[event_id]] = subject.question
    return found


def _nearest(space: ExecutionSpace, asked: _Asked, vector: Vectors) -> dict[int, float]:
    """The items whose questions may ask for the same thing, the nearest first, with their cosines."""
    if not asked.seqs:
        return {}
    cosines = asked.vectors @ vector
    order = np.argsort(-cosines, kind="stable")[:NEAREST]
    least = space.workspace.embedder.calibration.same - SLACK
    return {asked.seqs[place]: float(cosines[place]) for place in order.tolist() if cosines[place] >= least}


def _near(space: ExecutionSpace, asked: _Asked, subject: Subject, vector: Vectors) -> Item | None:
    """The item whose question asks for the same thing most surely."""
    calibration = space.workspace.embedder.calibration
    question = subject.question or ""
    best: tuple[float, Item | None] = (SAME_NEED, None)
    near: list[tuple[Item, str, float]] = [
        (seq, asked.texts[seq], cosine) for seq, cosine in _nearest(space, asked, vector).items() if seq in asked.texts
    ]
    near += [(item, text, float(other @ vector)) for item, text, other in asked.new]
    for item, text, cosine in near:
        alike = similarity(question, text, cosine, calibration=calibration)
        if alike > best[0] or (alike == best[0] and best[1] is None):
            best = (alike, item)
    return best[1]
