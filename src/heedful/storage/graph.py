"""The graph: which fact mentions which entity. Derived from texts, by rules or by a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, exists, insert, select, update

from heedful.model.base import NEUTRAL
from heedful.storage.rows import AnyRow, batches, insert_many, select_in
from heedful.storage.schema import changes, facts, links
from heedful.storage.schema import entities as entity_table
from heedful.text.entities import Entity, entities
from heedful.text.entities import entity as parse_entity

LINKED = 2
"""The kind of change in the feed for new links of a fact."""

UNREAD, BY_WORDS, BY_MODEL = 0, 1, 2
"""Who extracted the entities of a fact; the column `facts.linked`."""

BATCH_SIZE = 2000
"""Facts per batch."""

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Links: numbers of facts, and of the entities that they mention."""


def add(connection: Connection, dataset: int, texts: Mapping[int, str]) -> None:
    """Links new facts, by number, to the entities in their texts."""
    link(connection, dataset, {seq: entities(text) for seq, text in texts.items()})


def unenriched(connection: Connection, dataset: int, limit: int) -> list[AnyRow]:
    """Facts that no language model has read, the newest first: seq and text."""
    unread = (facts.c.dataset_id == dataset, facts.c.linked == BY_WORDS, facts.c.hidden == 0)
    newest = select(facts.c.seq, facts.c.text).where(*unread).order_by(facts.c.seq.desc())
    return list(connection.execute(newest.limit(limit)))


def enrich(connection: Connection, dataset: int, fact_seq: int, names: Sequence[str]) -> int:
    """Adds the entities that a language model found in a fact, and marks the fact as read by one.

    Returns how many links are new.
    """
    known = mentioned(connection, [fact_seq]).get(fact_seq, {})
    parsed = {entity.key: entity for entity in map(parse_entity, names) if entity is not None}
    new = [entity for key, entity in parsed.items() if key not in known]
    link(connection, dataset, {fact_seq: new})
    connection.execute(update(facts).where(facts.c.seq == fact_seq).values(linked=BY_MODEL))
    _announce(connection, dataset, [fact_seq])
    return len(new)


def unlinked(connection: Connection, dataset: int) -> list[int]:
    """The facts whose entities were never extracted."""
    statement = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.linked == UNREAD)
    return list(connection.execute(statement).scalars())


def link_unread(connection: Connection, dataset: int, fact_seqs: Sequence[int]) -> None:
    """Links those of these facts that still are not linked."""
    unread = select(facts.c.seq, facts.c.text).where(facts.c.seq.in_(fact_seqs), facts.c.linked == UNREAD)
    texts = {row.seq: row.text for row in connection.execute(unread)}
    add(connection, dataset, texts)
    connection.execute(update(facts).where(facts.c.seq.in_(list(texts))).values(linked=BY_WORDS))
    _announce(connection, dataset, list(texts))


def remove(connection: Connection, fact_seqs: Sequence[int]) -> None:
    """Removes the links of facts, and the entities that no other fact mentions."""
    entity_ids = select(links.c.entity_id).where(links.c.fact_seq.in_(fact_seqs)).distinct()
    numbers = list(connection.execute(entity_ids).scalars())
    connection.execute(delete(links).where(links.c.fact_seq.in_(fact_seqs)))
    remove_unmentioned(connection, numbers)


def forget_dataset(connection: Connection, dataset: int) -> None:
    """Removes all links and entities of a dataset."""
    connection.execute(delete(links).where(links.c.dataset_id == dataset))
    connection.execute(delete(entity_table).where(entity_table.c.dataset_id == dataset))


_PAIRS = (
    select(links.c.fact_seq, links.c.entity_id).join(facts, facts.c.seq == links.c.fact_seq).where(facts.c.hidden == 0)
)


def pairs_in(connection: Connection, dataset: int) -> Pairs:
    """The links of a dataset; superseded facts have none."""
    return _arrays(connection.execute(_PAIRS.where(links.c.dataset_id == dataset)).all())


def pairs_of(connection: Connection, fact_seqs: Sequence[int]) -> Pairs:
    """The links of facts; superseded facts have none."""
    return _arrays(list(select_in(connection, _PAIRS, links.c.fact_seq, fact_seqs)))


def _arrays(rows: Sequence[AnyRow]) -> Pairs:
    flat = np.fromiter((number for row in rows for number in row), np.int64, 2 * len(rows))
    return flat[0::2], flat[1::2]


def entity_numbers(connection: Connection, dataset: int, keys: Sequence[str]) -> dict[str, int]:
    """The numbers of the entities of a dataset that have one of these keys."""
    statement = select(entity_table.c.key, entity_table.c.id).where(entity_table.c.dataset_id == dataset)
    return {row.key: row.id for row in select_in(connection, statement, entity_table.c.key, keys)}


def names(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The names of entities, by number."""
    rows = connection.execute(select(entity_table.c.id, entity_table.c.name).where(entity_table.c.id.in_(ids)))
    return {row.id: row.name for row in rows}


def mentioned(connection: Connection, fact_seqs: Sequence[int]) -> dict[int, dict[str, int]]:
    """The entities of each of these facts: their keys and numbers."""
    result: dict[int, dict[str, int]] = {}
    statement = select(links.c.fact_seq, entity_table.c.key, entity_table.c.id).join(
        entity_table, entity_table.c.id == links.c.entity_id
    )
    for row in select_in(connection, statement, links.c.fact_seq, fact_seqs):
        result.setdefault(row.fact_seq, {})[row.key] = row.id
    return result


def with_wrong_links(connection: Connection, dataset: int) -> list[int]:
    """The facts whose links don't match the entities in their texts."""
    wrong: list[int] = []
    read = (facts.c.dataset_id == dataset, facts.c.linked != UNREAD)
    rows = connection.execute(select(facts.c.seq, facts.c.text, facts.c.linked).where(*read)).all()
    for run in batches(rows, BATCH_SIZE):
        stored = mentioned(connection, [row.seq for row in run])
        for row in run:
            expected, linked = {entity.key for entity in entities(row.text)}, stored.get(row.seq, {}).keys()
            if not expected <= linked or (row.linked == BY_WORDS and expected != linked):
                wrong.append(row.seq)
    return wrong


def relink(connection: Connection, dataset: int, fact_seqs: Sequence[int]) -> None:
    """Corrects the links of facts by their texts; right links stay, with their signals."""
    for run in batches(fact_seqs, BATCH_SIZE):
        rows = connection.execute(select(facts.c.seq, facts.c.text, facts.c.linked).where(facts.c.seq.in_(run))).all()
        stored = mentioned(connection, run)
        missing: dict[int, list[Entity]] = {}
        for row in rows:
            expected = {entity.key: entity for entity in entities(row.text)}
            has = stored.get(row.seq, {})
            missing[row.seq] = [entity for key, entity in expected.items() if key not in has]
            extra = [number for key, number in has.items() if key not in expected]
            if extra and row.linked == BY_WORDS:
                connection.execute(delete(links).where(links.c.fact_seq == row.seq, links.c.entity_id.in_(extra)))
        link(connection, dataset, missing)
        _announce(connection, dataset, list(missing))


def unmentioned(connection: Connection, dataset: int) -> list[int]:
    """The entities of a dataset that no fact mentions."""
    return list(connection.execute(_UNMENTIONED.where(entity_table.c.dataset_id == dataset)).scalars())


def remove_unmentioned(connection: Connection, entity_ids: Sequence[int]) -> None:
    """Removes those of these entities that no fact mentions."""
    for run in batches(entity_ids):
        connection.execute(delete(entity_table).where(entity_table.c.id.in_(run), _IS_UNMENTIONED))


_IS_UNMENTIONED = ~exists().where(links.c.entity_id == entity_table.c.id)
_UNMENTIONED = select(entity_table.c.id).where(_IS_UNMENTIONED)


def link(connection: Connection, dataset: int, by_fact: Mapping[int, Sequence[Entity]]) -> None:
    """Links facts, by number, to entities."""
    names = {entity.key: entity.name for entities in by_fact.values() for entity in entities}
    numbers = entity_numbers(connection, dataset, list(names))
    new = [key for key in names if key not in numbers]
    rows = [{"dataset_id": dataset, "key": key, "name": names[key]} for key in new]
    insert_many(connection, entity_table, insert(entity_table), rows)
    numbers |= entity_numbers(connection, dataset, new)
    neutral = {"score": NEUTRAL, "last_at": None, "used": 0, "ignored": 0, "helpful": 0, "not_helpful": 0}
    link_rows = [
        {"fact_seq": seq, "entity_id": numbers[entity.key], "dataset_id": dataset, **neutral}
        for seq, entities in by_fact.items()
        for entity in entities
    ]
    insert_many(connection, links, insert(links), link_rows)


def _announce(connection: Connection, dataset: int, seqs: Sequence[int]) -> None:
    lines = [{"dataset_id": dataset, "fact_seq": seq, "kind": LINKED} for seq in seqs]
    insert_many(connection, changes, insert(changes), lines)
