"""The facts that recall may find: corrections hide facts, and removing a correction brings them back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, select

from heedful.ledger.events import SUPERSESSION, is_retracted
from heedful.storage import graph
from heedful.storage.facts import REMOVED, SUPERSEDED, announce, ids, present, removal_runs, set_hidden, with_lessons
from heedful.storage.rows import AnyRow, batches, select_in
from heedful.storage.schema import events, fact_tags, facts, notes, scores, vectors


def superseded(connection: Connection, fact_ids: Collection[str]) -> set[str]:
    """Those of these facts from which active supersessions lead to one that exists, perhaps over some that were
    forgotten."""
    predecessors: dict[str, set[str]] = defaultdict(set)
    ends: set[str] = set()
    seen, latest = set(fact_ids), set(fact_ids)
    while latest:
        rows = supersessions(connection, sorted(latest))
        for row in rows:
            predecessors[row.value].add(row.target_id)
        successors = {row.value for row in rows}
        ends |= present(connection, sorted(successors))
        latest = successors - ends - seen
        seen |= latest
    hidden: set[str] = set()
    latest = ends
    while latest:
        latest = {fact_id for successor in latest for fact_id in predecessors[successor]} - hidden
        hidden |= latest
    return hidden & set(fact_ids)


def superseded_by(connection: Connection, fact_ids: Sequence[str]) -> set[str]:
    """The facts with an active supersession by one of these."""
    return {row.target_id for row in select_in(connection, _ACTIVE, events.c.value, fact_ids)}


def recallable(connection: Connection, fact_ids: Collection[str]) -> set[str]:
    """Those of these facts that recall may find: nothing supersedes them, and a correction that made one is active."""
    current = set(fact_ids) - superseded(connection, fact_ids)
    of_successors = select(events.c.value).where(events.c.kind == SUPERSESSION)
    withdrawn: set[str] = set()
    for run in batches(sorted(current)):
        named = of_successors.where(events.c.value.in_(run))
        active = set(connection.execute(named.where(~is_retracted()).distinct()).scalars())
        retracted = named.add_columns(events.c.body).where(events.c.value.not_in(active))
        withdrawn.update(row.value for row in connection.execute(retracted) if row.body["created"])
    return current - withdrawn


def supersessions(connection: Connection, fact_ids: Sequence[str]) -> list[AnyRow]:
    """The active supersessions of these facts, oldest first."""
    return sorted(select_in(connection, _ACTIVE, events.c.target_id, fact_ids), key=lambda row: row.seq)


_ACTIVE = select(events).where(events.c.kind == SUPERSESSION, ~is_retracted())


def remove_facts(connection: Connection, dataset: int, seqs: Sequence[int]) -> list[str]:
    """Removes facts and everything derived from them, with what was learnt from them; returns those that they had
    superseded, which can be recalled again."""
    names: list[str] = []
    for run in batches(sorted(with_lessons(connection, dataset, seqs))):
        names += ids(connection, run).values()
        graph.remove(connection, run)
        for table in (scores, vectors, fact_tags, notes):
            connection.execute(delete(table).where(table.c.fact_seq.in_(run)))
        connection.execute(delete(facts).where(facts.c.seq.in_(run)))
        announce(connection, dataset, run, REMOVED)
    return judge_superseded(connection, names)


def judge_superseded(connection: Connection, fact_ids: Sequence[str]) -> list[str]:
    """Lets recall find those of these facts that the ledger says it may, and no others; in place of those that don't
    exist, the facts that they superseded. Returns those that exist."""
    places: dict[str, tuple[int, int]] = {}
    seen, latest = set(fact_ids), set(fact_ids)
    while latest:
        rows = select_in(connection, select(facts.c.id, facts.c.seq, facts.c.dataset_id), facts.c.id, sorted(latest))
        places |= {row.id: (row.seq, row.dataset_id) for row in rows}
        latest = superseded_by(connection, sorted(latest - places.keys())) - seen
        seen |= latest
    can_be_found = recallable(connection, list(places))
    judged: dict[tuple[int, bool], list[int]] = {}
    for fact_id, (seq, dataset) in places.items():
        judged.setdefault((dataset, fact_id not in can_be_found), []).append(seq)
    for (dataset, hidden), seqs in judged.items():
        set_hidden(connection, dataset, seqs, SUPERSEDED, hidden)
    # In an order that is the same in every store.
    return sorted(places, key=places.__getitem__)


def retire(connection: Connection, dataset: int, at: int, limit: int, digests: Sequence[bytes] = ()) -> int:
    """Removes facts that have expired, with what was learnt from them: those with these digests, and at most `limit`
    others. Returns how many expired facts that were. The ledger stays, as when they are forgotten."""
    due = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.expires_at <= at)
    oldest = list(connection.execute(due.order_by(facts.c.expires_at).limit(limit)).scalars())
    if not oldest:
        return 0
    # Fewer if they have many tags or links.
    expired = set(removal_runs(connection, oldest)[0])
    expired |= {row.seq for row in select_in(connection, due, facts.c.digest, digests)}
    remove_facts(connection, dataset, sorted(expired))
    return len(expired)
