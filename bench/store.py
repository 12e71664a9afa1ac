"""A Heedful store with the facts of the benchmark in it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import heedful
from bench.vectors import Served, Vectors
from heedful.clock import new_id
from heedful.engine import Heedful
from heedful.model import DEFAULT_DATASET, DEFAULT_PROJECT
from heedful.storage import facts, open_store, scopes
from heedful.storage.vectors import ensure_model, pack

SOURCE_SIZE = 1000
"""Facts of one source: they are neighbours of each other, like the paragraphs of a long document."""


def fill(store: Heedful, facts: Sequence[str]) -> list[str]:
    """Remembers the facts, a source at a time; returns their ids in order."""
    ids: list[str] = []
    for first in range(0, len(facts), SOURCE_SIZE):
        made = store.remember(list(facts[first : first + SOURCE_SIZE]), source=f"document {first // SOURCE_SIZE}")
        ids += made.fact_ids
    return ids


def write(where: str | Path, model: Served, texts: Sequence[str], vectors: Vectors) -> list[str]:
    """A new store, written by the storage layer alone: what `fill` makes, without the checks, for very many facts.
    Returns their ids in order."""
    heedful.open(where, embedding=model).close()
    database = open_store(where)
    ids: list[str] = []
    at = time.time_ns() // 1000
    with database.write(DEFAULT_PROJECT) as connection:
        number = ensure_model(connection, model.name, model.dimensions)
        dataset = scopes.ensure_dataset(connection, DEFAULT_PROJECT, DEFAULT_DATASET, at)
    for first in range(0, len(texts), SOURCE_SIZE):
        some = texts[first : first + SOURCE_SIZE]
        source = f"document {first // SOURCE_SIZE}"
        new = [
            facts.NewFact(new_id(), text, {}, source, place, 0, len(text), pack(vectors[first + place]))
            for place, text in enumerate(some)
        ]
        with database.write(DEFAULT_PROJECT, durable=False) as connection:
            facts.add(connection, dataset, number, new, at)
        ids += [each.id for each in new]
    database.close()
    return ids


def opened(where: str | Path, model: Served) -> Heedful:
    """The store at an address, new if there is none."""
    return heedful.open(where, embedding=model)
