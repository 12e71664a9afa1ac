"""The scores of links, stored with them. Derived: `refold` recomputes them from the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from sqlalchemy import ColumnElement, Connection, bindparam, or_, select, update

from heedful.model import SignalType
from heedful.ranking.policies import Documented, Tally
from heedful.ranking.signals import NEUTRAL, Observation
from heedful.storage.ledger import LINK_SIGNAL, effective_time, is_retracted
from heedful.storage.rows import batches
from heedful.storage.schema import events, facts, links

Key = tuple[int, int]
"""(fact number, entity number)."""

_COUNTS = ("used", "ignored", "helpful", "not_helpful")
_POLICY = Documented()

BATCH_SIZE = 2000
"""Links per batch."""


def target(fact_id: str, entity: int) -> str:
    """How the ledger and receipts name a link."""
    return f"{fact_id}/{entity}"


def parse_target(name: str) -> tuple[str, int] | None:
    """Parses such a name: the fact's id and the entity's number; None if it is not one."""
    fact_id, _, entity = name.rpartition("/")
    return (fact_id, int(entity)) if fact_id and entity.isascii() and entity.isdigit() else None


_STORED = select(
    links.c.fact_seq, links.c.entity_id, links.c.score, links.c.last_at, *(links.c[name] for name in _COUNTS)
)
_RATED = _STORED.where(links.c.last_at.is_not(None), links.c.fact_seq.in_(bindparam("facts", expanding=True)))
_NOT_NEW = or_(links.c.last_at.is_not(None), links.c.score != NEUTRAL, *(links.c[name] != 0 for name in _COUNTS))


def rated(connection: Connection, fact_seqs: Sequence[int]) -> dict[Key, Tally]:
    """The tallies of these facts' links that have signals."""
    return {
        (fact, entity): Tally(score, last_at, *counts)
        for run in batches(fact_seqs)
        for fact, entity, score, last_at, *counts in connection.execute(_RATED, {"facts": list(run)})
    }


def rated_in(connection: Connection, dataset: int) -> dict[Key, Tally]:
    """The same for a dataset: all links that differ from a new one."""
    rows = connection.execute(_STORED.where(links.c.dataset_id == dataset, _NOT_NEW))
    return {(fact, entity): Tally(score, last_at, *counts) for fact, entity, score, last_at, *counts in rows}


def present(connection: Connection, fact_seqs: Sequence[int]) -> set[Key]:
    """Which links these facts have."""
    keys: set[Key] = set()
    for run in batches(fact_seqs):
        rows = connection.execute(select(links.c.fact_seq, links.c.entity_id).where(links.c.fact_seq.in_(run)))
        keys.update((row.fact_seq, row.entity_id) for row in rows)
    return keys


def observe(connection: Connection, ids: Mapping[int, str], signals: Iterable[tuple[Key, Observation]]) -> None:
    """Adds new signals about links to their scores; `ids` are those of the facts, by number.

    A late signal, older than the link's last one, makes that link be recomputed.
    """
    by_key: dict[Key, list[Observation]] = defaultdict(list)
    for key, observation in signals:
        by_key[key].append(observation)
    stored = rated(connection, sorted({fact for fact, _ in by_key}))
    updated: dict[Key, Tally] = {}
    late: list[Key] = []
    for key, observations in by_key.items():
        state = stored.get(key, Tally())
        observations.sort(key=lambda observation: observation.at)
        if state.last_at is not None and observations[0].at < state.last_at:
            late.append(key)
            continue
        updated[key] = _POLICY.fold(observations, state)
    _write(connection, updated)
    refold(connection, {key: target(ids[key[0]], key[1]) for key in late})


def refold(connection: Connection, names: Mapping[Key, str]) -> None:
    """Recomputes the scores of these links, given with their names, from the active signals."""
    folded: dict[Key, Tally] = dict.fromkeys(names, Tally())
    for run in batches(list(names.values()), BATCH_SIZE):
        folded |= _folded(connection, events.c.target_id.in_(run))
    _write(connection, {key: folded[key] for key in names})


def refold_named(connection: Connection, names: Sequence[str]) -> list[str]:
    """Recomputes the scores of the links with these names; returns the facts whose links still exist."""
    keys = _keys(connection, names)
    refold(connection, {key: name for name, key in keys.items()})
    return [name.rpartition("/")[0] for name in keys]


def folded_in(connection: Connection, dataset: int) -> dict[Key, Tally]:
    """The tallies of a dataset's links, folded from the ledger."""
    return _folded(connection, events.c.dataset_id == dataset)


def _folded(connection: Connection, condition: ColumnElement[bool]) -> dict[Key, Tally]:
    rows = connection.execute(
        select(events.c.target_id, events.c.value, events.c.confidence, effective_time())
        .where(events.c.kind == LINK_SIGNAL, ~is_retracted(), condition)
        .order_by(effective_time(), events.c.seq)
    )
    by_name: dict[str, list[Observation]] = defaultdict(list)
    for name, value, confidence, at in rows:
        by_name[name].append(Observation(cast(SignalType, value), confidence, at))
    keys = _keys(connection, list(by_name))
    return {keys[name]: _POLICY.fold(observations) for name, observations in by_name.items() if name in keys}


def _keys(connection: Connection, names: Sequence[str]) -> dict[str, Key]:
    """The existing links with these names."""
    split = {name: pair for name in names if (pair := parse_target(name)) is not None}
    seqs: dict[str, int] = {}
    for run in batches(sorted({fact_id for fact_id, _ in split.values()})):
        rows = connection.execute(select(facts.c.id, facts.c.seq).where(facts.c.id.in_(run)))
        seqs.update({row.id: row.seq for row in rows})
    existing = present(connection, list(seqs.values()))
    keys = {name: (seqs[fact_id], entity) for name, (fact_id, entity) in split.items() if fact_id in seqs}
    return {name: key for name, key in keys.items() if key in existing}


_UPDATE = (
    update(links)
    .where(links.c.fact_seq == bindparam("of_fact"), links.c.entity_id == bindparam("to_entity"))
    .values({name: bindparam(f"new_{name}") for name in ("score", "last_at", *_COUNTS)})
)


def _write(connection: Connection, tallies: Mapping[Key, Tally]) -> None:
    rows = [
        {
            "of_fact": fact,
            "to_entity": entity,
            **{f"new_{name}": getattr(tally, name) for name in ("score", "last_at", *_COUNTS)},
        }
        for (fact, entity), tally in tallies.items()
    ]
    if rows:
        connection.execute(_UPDATE, rows)
