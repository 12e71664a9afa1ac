"""The cache of folds: scores, votes and contexts in memory follow the ledger, so that no recall reads all of it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.ledger import events, scores
from heedful.ledger.adaptive_policy import (
    RELATED,
    Neighbour,
    Related,
    Strengths,
    VoteTable,
    as_of,
    balance,
    prefix,
    votes_per_fact,
)
from heedful.ledger.contexts import ContextIndex
from heedful.ledger.events import QueryRow
from heedful.ledger.usefulness import KEPT_PER_WEEK, WEEK, decayed
from heedful.model.base import NEUTRAL
from heedful.storage import facts
from heedful.storage.vectors import ModelRow
from heedful.threads import Steps
from heedful.workspace import Workspace

Seqs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEAR = 1e-9  # Scores that are this close to a limit are compared by the exact arithmetic, the others by that of arrays.


class OverallIndex:
    """The scores of one dataset; `follow` it before use."""

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._event = 0
        self._facts = np.empty(0, np.int64)
        self._scores = np.empty(0, np.float64)
        self._times = np.empty(0, np.int64)

    def follow(self, connection: Connection, newest: int) -> None:
        """Takes in every opinion and retraction up to the event `newest`, the last that `connection` sees."""
        with self._lock:
            if newest <= self._event:
                return
            changed = events.rejudged_after(connection, self.dataset, self._event) if self._event else None
            facts, values, times = scores.overall_columns(connection, self.dataset, changed)
            if changed is not None:
                unchanged = ~np.isin(self._facts, np.array(changed, np.int64))
                facts = np.concatenate([self._facts[unchanged], facts])
                values = np.concatenate([self._scores[unchanged], values])
                times = np.concatenate([self._times[unchanged], times])
            self._facts, self._scores, self._times, self._event = facts, values, times, newest

    def reaching(self, least: float, now: int) -> tuple[Seqs, Bools]:
        """Every judged fact, and whether its score, faded to `now`, is at least `least`."""
        with self._lock:
            facts, values, times = self._facts, self._scores, self._times
        elapsed = np.maximum(now - times, 0) / WEEK
        faded = NEUTRAL + (values - NEUTRAL) * KEPT_PER_WEEK**elapsed
        passing: Bools = faded >= least
        for index in np.flatnonzero(np.abs(faded - least) < NEAR).tolist():
            passing[index] = decayed(float(values[index]), now - int(times[index])) >= least
        return facts, passing


CACHED_VOTES = 1_000_000  # Votes about facts that are cached, 24 bytes each. The least recently used queries go first.
MAX_REREAD = 100  # Facts of a query, or a tenth of them if that is more, whose votes are read again one by one.

MAX_DELETED = 10_000
"""Deleted facts that are remembered until cached votes about them go; with more, all cached votes go."""


@dataclass(frozen=True, slots=True)
class View:
    """A dataset as a connection sees it."""

    connection: Connection
    event: int
    """The newest event."""
    change: int
    """The newest line in the feed of facts."""

    @classmethod
    def of(cls, connection: Connection, dataset: int) -> View:
        return cls(connection, events.last_event(connection, dataset), facts.last_change(connection, dataset))


class _VoteCache:
    """Votes by query."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[VoteTable, int]] = {}
        """With the number of deletions that each has seen; the least recently used first."""

    def __contains__(self, query: int) -> bool:
        return query in self._entries

    def use(self, query: int, deleted: Sequence[int]) -> VoteTable | None:
        """The votes of a query, without those about facts that were ever deleted."""
        if query not in self._entries:
            return None
        votes, seen = self._entries.pop(query)
        votes = votes.replaced(deleted[seen:], {}) if seen < len(deleted) else votes
        self._entries[query] = votes, len(deleted)
        return votes

    def store(self, read: Mapping[int, VoteTable], deletions: int) -> None:
        """Adds votes, or replaces them; others may go."""
        for query, votes in read.items():
            self._entries.pop(query, None)
            self._entries[query] = votes, deletions
        excess = sum(max(1, len(votes)) for votes, _ in self._entries.values()) - CACHED_VOTES
        while excess > 0 and len(self._entries) > len(read):
            excess -= max(1, len(self._entries.pop(next(iter(self._entries)))[0]))

    def clear(self) -> None:
        self._entries.clear()


class EvidenceIndex:
    """The votes for the queries of one dataset, and how far they are followed; `follow` it before use.

    Votes are read when a recall needs them, and cached; what changed of cached ones is read again.
    """

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._event = self._change = 0
        self._votes = _VoteCache()
        self._outdated: dict[int, set[int]] = defaultdict(set)
        """The facts of each cached query that opinions came about since it was read."""
        self._deleted: list[int] = []
        """Facts that were deleted, in order."""
        self._fitted: events.Fitted | None = None
        self._signals = self._counted = 0
        """How many signals there are up to the event `_counted`; 0 until somebody counts."""
        self._wanted = (0, 0)

    def follow(self, view: View) -> None:
        """Takes in every opinion, retraction and deletion that `view` sees."""
        with self._lock:
            if view.change > self._change:
                self._follow_deletions(view)
                self._change = view.change
            if view.event > self._event:
                self._follow_opinions(view)
                self._event = view.event

    def _follow_deletions(self, view: View) -> None:
        lines = facts.changes_after(view.connection, self.dataset, self._change) if self._change else None
        if lines is None:
            self._clear()
            return
        removed = [line.fact_seq for line in lines if line.kind == facts.REMOVED]
        # A superseded fact is removed from the feed, and the votes about it stay.
        self._deleted += sorted(set(removed) - facts.existing(view.connection, removed))
        if len(self._deleted) > MAX_DELETED:
            self._clear()

    def _clear(self) -> None:
        self._votes.clear()
        self._outdated.clear()
        self._deleted.clear()

    def _follow_opinions(self, view: View) -> None:
        kinds = events.rare_kinds_after(view.connection, self.dataset, self._event) if self._event else None
        if self._counted:
            self._signals += events.count_signals(view.connection, self.dataset, self._counted)
            self._counted = view.event
        if kinds is None or kinds & {events.STRENGTHS, events.RETRACTION}:
            self._fitted = events.fitted(view.connection, self.dataset)
            if self._fitted is None:
                # A signal behind it was retracted: the next recall asks for another.
                self._wanted = (0, 0)
        if kinds is None:
            return
        if events.ERASURE in kinds:
            # An author has another name: known by both, they would count as two.
            self._clear()
        for opinion in events.opinions_after(view.connection, self.dataset, self._event):
            if opinion.query in self._votes:
                self._outdated[opinion.query].add(opinion.fact)
        if events.RETRACTION in kinds:
            for query, retracted in events.retracted_after(view.connection, self.dataset, self._event).items():
                if query in self._votes:
                    self._outdated[query] |= retracted

    @property
    def strengths(self) -> Strengths:
        """How far evidence is followed in this dataset."""
        return Strengths() if self._fitted is None else self._fitted.strengths

    def count(self, view: View) -> bool:
        """Counts all signals, which takes long; returns False if that was done before."""
        signals = 0 if self._counted else events.count_signals(view.connection, self.dataset, 0)
        with self._lock:
            if self._counted:
                return False
            self._signals, self._counted = signals, view.event
        return True

    def wants_fit(self) -> bool:
        """Whether there are so many more signals than the strengths were fitted on that others should be fitted; says
        so once for each such number, and until they are counted."""
        if not self._counted:
            return True
        known = 0 if self._fitted is None else self._fitted.opinions
        wanted = prefix(self._signals)
        with self._lock:
            if wanted <= known or self._wanted == (wanted, known):
                return False
            self._wanted = wanted, known
        return True

    def votes(self, view: View, queries: Collection[int], now: int) -> dict[int, VoteTable]:
        """The votes, as of `now`, for each of these queries."""
        with self._lock:
            cached = {query: self._votes.use(query, self._deleted) for query in queries}
            tables = self._tables(view.connection, cached)
            changed = {query: table for query, table in tables.items() if cached[query] is not table}
            # A view that is older than what was followed lacks opinions.
            if changed and (view.event, view.change) == (self._event, self._change):
                self._votes.store(changed, len(self._deleted))
                for query in [query for query in self._outdated if query in changed or query not in self._votes]:
                    del self._outdated[query]
        ahead = [query for query, table in tables.items() if table.last.max(initial=now) > now]
        for query, rows in events.of_queries(view.connection, ahead).items():
            tables[query] = VoteTable.of(votes_per_fact(as_of(map(events.opinion, rows), now)))
        return tables

    def related(self, view: View, neighbours: Iterable[Neighbour], same: Collection[int], now: int) -> list[Related]:
        """The queries nearest to the one asked that have votes which count. Those that are the `same` take no places of
        others."""
        nearest = iter(neighbours)
        related: list[Related] = []
        places = RELATED
        while places and (run := list(islice(nearest, places))):
            tables = self.votes(view, [neighbour.query for neighbour in run], now)
            counted = [Related(near, tables[near.query]) for near in run if tables[near.query].counts]
            places -= sum(question.neighbour.query not in same for question in counted)
            related += counted
        return related

    def _tables(self, connection: Connection, cached: Mapping[int, VoteTable | None]) -> dict[int, VoteTable]:
        """The votes for these queries; of those that are cached, only changes are read."""
        outdated = {query: self._outdated[query] for query in cached if query in self._outdated}
        tables = {
            query: table
            for query, table in cached.items()
            if table is not None and len(outdated.get(query, ())) <= max(MAX_REREAD, len(table) // 10)
        }
        changed = {query: outdated_facts for query, outdated_facts in outdated.items() if query in tables}
        for query, opinions in events.of_facts(connection, changed).items():
            tables[query] = tables[query].replaced(changed[query], votes_per_fact(opinions))
        missing = [query for query in cached if query not in tables]
        for query, rows in events.of_queries(connection, missing).items():
            tables[query] = _folded(rows)
        return tables


def _folded(rows: Sequence[Sequence[Any]]) -> VoteTable:
    """The votes in rows of `events.of_queries`. Of most facts there is one, which needs no object and no fold."""
    seqs = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    facts, places, counts = np.unique(seqs, return_index=True, return_counts=True)
    alone = [rows[place] for place in places[counts == 1].tolist()]
    net = np.array([balance(kind, confidence, rank) for _, _, kind, confidence, _, rank, _ in alone], np.float64)
    last = np.fromiter((row[4] for row in alone), np.int64, len(alone))
    table = VoteTable(facts[counts == 1][net != 0], net[net != 0], last[net != 0])
    several = set(facts[counts > 1].tolist())
    return table.replaced((), votes_per_fact(events.opinion(row) for row in rows if row[0] in several))


class FoldCache:
    """The folds over the ledger that a workspace keeps in memory: see `folds_of`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._contexts: dict[tuple[int, int], ContextIndex] = {}
        self._evidence: dict[int, EvidenceIndex] = {}
        self._overall: dict[int, OverallIndex] = {}
        self._unwritten: list[tuple[int, int, bytes]] = []

    def contexts(
        self, connection: Connection, dataset: int, model: ModelRow, newest: int, needed: Iterable[int] | None = None
    ) -> ContextIndex:
        """The queries with signals of a dataset up to the event `newest`, the last that `connection` sees. Those that
        are `needed` are embedded when it returns; without, a few of the newest. The others are soon."""
        with self._lock:
            key = (dataset, model.id)
            if key not in self._contexts:
                self._contexts[key] = ContextIndex(dataset, model, self._workspace.embedder.calibration)
            index = self._contexts[key]
        index.follow(connection, newest)
        for step in index.newest() if needed is None else index.steps(needed):
            made = index.embed(step, partial(events.load_queries, connection), self._workspace.embed)
            with self._lock:
                self._unwritten += [(model.id, *vector) for vector in made]
        if index.waits:
            self._workspace.do_later(f"embedding of queries {dataset}", lambda: self.embed_queries(index))
        return index

    def embed_queries(self, index: ContextIndex, wanted: Iterable[int] | None = None) -> Steps:
        """Embeds the queries that wait in an index, or those of them that are wanted, and writes their vectors."""
        wanted = None if wanted is None else list(wanted)
        while steps := index.steps(wanted):
            for step in steps:
                made = index.embed(step, self._load_queries, self._workspace.embed)
                vectors = [(index.model.id, *vector) for vector in made]
                self._workspace.write_vectors(vectors, events.set_vectors)
                yield None

    def keep_vectors(self) -> None:
        """Writes vectors of queries that were made during a read, so that nobody has to make them again."""
        with self._lock:
            made, self._unwritten = self._unwritten, []
        self._workspace.write_vectors(made, events.set_vectors)

    def _load_queries(self, ids: Sequence[int]) -> list[QueryRow]:
        with self._workspace.read() as connection:
            return events.load_queries(connection, ids)

    def evidence(self, dataset: int) -> EvidenceIndex:
        """The votes of a dataset; `follow` it before use."""
        with self._lock:
            return self._evidence.setdefault(dataset, EvidenceIndex(dataset))

    def overall(self, dataset: int) -> OverallIndex:
        """The scores over all queries of a dataset's facts; `follow` it before use."""
        with self._lock:
            return self._overall.setdefault(dataset, OverallIndex(dataset))

    def drop_scores(self, dataset: int) -> None:
        """Drops cached scores that were recomputed."""
        with self._lock:
            self._overall.pop(dataset, None)

    def drop(self, dataset: int) -> None:
        with self._lock:
            for key in [key for key in self._contexts if key[0] == dataset]:
                del self._contexts[key]
            self._evidence.pop(dataset, None)
            self._overall.pop(dataset, None)


def folds_of(workspace: Workspace) -> FoldCache:
    """The folds over the ledger of a project that are in memory."""
    return workspace.part(FoldCache)
