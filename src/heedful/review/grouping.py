"""Which item an opinion belongs to.

The item that has an opinion about the same target; else the one that began with the same subject; else, for questions,
an open item whose question asks for the same thing; else a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.executions.space import ExecutionSpace
from heedful.index.contexts import SLACK
from heedful.index.vectors import VectorIndex
from heedful.learning.contexts import SAME_NEED, similarity
from heedful.review.opinions import Opinion, read
from heedful.review.subjects import Subject, subjects
from heedful.storage.review import items, members
from heedful.storage.review.items import NewItem
from heedful.storage.review.members import NewMember
from heedful.storage.vectors import Vectors, pack, unpack

NEAREST = 5
"""How many open items are compared word by word."""

MOST_COMPARED = 5_000
"""Open items of a dataset whose questions are compared at all, the newest: a queue of many thousands stays quick."""

Item = int | NewItem
"""An item that is there, by its number, or one that is to be made."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An opinion with its item."""

    member: NewMember
    item: Item


class _Asked:
    """The questions of open items of one dataset."""

    def __init__(self, known: Sequence[tuple[int, bytes]], dimensions: int) -> None:
        self._items: list[Item] = [seq for seq, _ in known]
        self._vectors = VectorIndex(unpack([blob for _, blob in known], dimensions))
        self.texts: dict[int, str] = {}
        """What was asked, by the place of an item; of those that lie near to something."""

    def add(self, item: NewItem, question: str, vector: Vectors) -> None:
        self.texts[len(self._items)] = question
        self._items.append(item)
        self._vectors.append(vector[None])

    def near(self, vector: Vectors, least: float) -> dict[int, float]:
        """The places of the nearest items, if they are near enough, with their cosines."""
        if not self._items:
            return {}
        places, cosines = self._vectors.nearest(vector, NEAREST, np.ones(len(self._items), bool))
        return {
            place: cosine for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True) if cosine >= least
        }

    def item(self, place: int) -> Item:
        return self._items[place]


def placed(space: ExecutionSpace, opinions: Sequence[Opinion]) -> list[Placed]:
    """The opinions that have a subject, each with its item; in order."""
    about = subjects(space, opinions)
    said = [each for each in opinions if each.event_id in about]
    with space.workspace.read() as connection:
        project = space.project(connection)
        of_target: dict[tuple[str, str], Item] = dict(
            members.of_targets(connection, project, [each.target_id for each in said])
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
                asked[subject.dataset].add(item, subject.question, vector)
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
    place_of: dict[int, tuple[str | None, int]] = {}
    with space.workspace.read() as connection:
        project, model = space.project(connection), space.workspace.model(connection)
        for dataset in {each.dataset for each in unknown}:
            rows = (
                []
                if model is None
                else items.open_vectors(connection, project, "entry", dataset, model.id, MOST_COMPARED)
            )
            found[dataset] = _Asked(rows, space.workspace.embedder.dimensions)
        for each in unknown:
            for place in found[each.dataset].near(vectors[each.digest], _least(space)):
                item = found[each.dataset].item(place)
                assert isinstance(item, int)
                place_of[item] = each.dataset, place
        newest = members.newest(connection, sorted(place_of), 1)
    item_of = {rows[0].event_id: seq for seq, rows in newest.items() if rows}
    said = read(space, [rows[0] for rows in newest.values() if rows])
    for event_id, subject in subjects(space, said.values()).items():
        dataset, place = place_of[item_of[event_id]]
        found[dataset].texts[place] = subject.question or ""
    return found


def _near(space: ExecutionSpace, asked: _Asked, subject: Subject, vector: Vectors) -> Item | None:
    """The item whose question asks for the same thing most surely."""
    alike = {
        place: similarity(
            subject.question or "", asked.texts[place], cosine, calibration=space.workspace.embedder.calibration
        )
        for place, cosine in asked.near(vector, _least(space)).items()
        if place in asked.texts
    }
    best = max(alike, key=lambda place: alike[place], default=None)
    return None if best is None or alike[best] < SAME_NEED else asked.item(best)


def _least(space: ExecutionSpace) -> float:
    """The cosine from which two questions are compared word by word."""
    return space.workspace.embedder.calibration.same - SLACK
