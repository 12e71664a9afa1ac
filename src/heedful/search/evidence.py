"""Scores and evidence in memory: they follow the ledger, so that a recall need not read all of it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from heedful.ranking.affinity import LEAST_COSINE, RELATED, Neighbour, Related, VoteTable
from heedful.ranking.evidence import QueryVotes, votes_per_fact
from heedful.ranking.policies.adaptive import QueryEvidence, dataset_rate
from heedful.ranking.signals import KEPT_PER_WEEK, NEUTRAL, WEEK, decayed
from heedful.ranking.similarity import SAME_NEED, Calibration, normal, similarity
from heedful.search.vectors import VectorIndex
from heedful.storage import ledger, receipts, scores
from heedful.storage.receipts import Row
from heedful.storage.scores import masses_after
from heedful.storage.vectors import ModelRow, Vectors, of_facts, pack, unpack

Seqs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEAR = 1e-9
"""Scores that are this close to a limit are compared by the exact arithmetic, the others by that of arrays."""


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
            changed = ledger.rejudged_after(connection, self.dataset, self._event) if self._event else None
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


CACHED_VOTES = 10_000
"""Votes that are cached: so many of authors, and so many of all authors together. The least recently used queries go
first."""

MAX_REREAD = 100
"""Votes of a query that are read again one by one; with more, all of them are."""

Votes = TypeVar("Votes", QueryVotes, VoteTable)


class EvidenceIndex:
    """The votes of one dataset, by query, and its share of positive opinions. Of related queries, which are many, only
    what all authors together said of a fact is kept."""

    def __init__(self, dataset: int) -> None:
        self.dataset = dataset
        self._lock = threading.Lock()
        self._event = 0
        self._masses = (0.0, 0.0)
        self._votes: dict[int, QueryVotes] = {}
        self._related: dict[int, VoteTable] = {}
        self._outdated: dict[int, set[int]] = defaultdict(set)
        """The facts of each related query that opinions came about since it was read."""
        self._model = 0

    def follow(self, connection: Connection, newest: int) -> None:
        """Takes in every opinion and retraction up to the event `newest`, the last that `connection` sees."""
        with self._lock:
            if newest <= self._event:
                return
            if self._votes or self._related:
                self._take_in(connection)
            positive, negative = masses_after(connection, self.dataset, self._event)
            self._masses = (self._masses[0] + positive, self._masses[1] + negative)
            self._event = newest

    def _take_in(self, connection: Connection) -> None:
        if ledger.is_erased_after(connection, self.dataset, self._event):
            # An author has another name: known by both, they would count as two.
            self._votes.clear()
            self._related.clear()
            self._outdated.clear()
            return
        voters: dict[int, set[ledger.Voter]] = defaultdict(set)
        for opinion in ledger.opinions_after(connection, self.dataset, self._event):
            if opinion.query in self._related:
                self._outdated[opinion.query].add(opinion.fact)
            known = self._votes.get(opinion.query)
            if known is None:
                continue
            vote = known.vote(opinion.fact, opinion.author)
            if vote is None or (opinion.author is None and opinion.at >= vote.last):
                known.add(opinion)
            else:
                # It may replace an earlier one, or belong before it.
                voters[opinion.query].add((opinion.fact, opinion.author))
        for query, retracted in ledger.retracted_after(connection, self.dataset, self._event).items():
            voters[query] |= retracted
            if query in self._related:
                self._outdated[query] |= {fact for fact, _ in retracted}
        for query, changed in voters.items():
            if query in self._votes:
                self._read_votes(connection, query, changed)

    def _read_votes(self, connection: Connection, query: int, voters: set[ledger.Voter]) -> None:
        if len(voters) > MAX_REREAD:
            del self._votes[query]
            return
        for (fact, author), opinions in ledger.of_voters(connection, query, voters).items():
            self._votes[query].replace(fact, author, opinions)

    def rate(self) -> float:
        """The share of positive opinions in the dataset."""
        with self._lock:
            return round(dataset_rate(*self._masses), 9)

    def near(self, connection: Connection, matches: Sequence[Match]) -> list[QueryEvidence]:
        """What was said for queries that are like the one asked."""
        with self._lock:
            lacking = [match.query_id for match in matches if match.query_id not in self._votes]
            read = {query: QueryVotes(found) for query, found in ledger.of_queries(connection, lacking).items()}
            known = self._votes | read if lacking else self._votes
            folded = [(match.similarity, known[match.query_id].folded()) for match in matches]
            self._keep(connection, self._votes, [match.query_id for match in matches], read)
        return [QueryEvidence(similarity, votes) for similarity, votes in folded]

    def related(self, connection: Connection, model: ModelRow, neighbours: Sequence[Neighbour]) -> list[Related]:
        """What was said for queries that are near the one asked."""
        with self._lock:
            if model.id != self._model:
                self._model = model.id
                self._related.clear()
                self._outdated.clear()
            tables = self._tables(connection, [each.query for each in neighbours])
            self._add_fits(connection, model, neighbours, tables)
            changed = {query: table for query, table in tables.items() if self._related.get(query) is not table}
            if self._keep(connection, self._related, tables, changed):
                for query in [each for each in self._outdated if each in changed or each not in self._related]:
                    del self._outdated[query]
        return [Related(each, tables[each.query]) for each in neighbours]

    def _tables(self, connection: Connection, queries: Sequence[int]) -> dict[int, VoteTable]:
        """What was said for these queries; only of those at hand, what changed is read."""
        outdated = {query: self._outdated[query] for query in queries if query in self._outdated}
        lacking = [
            query for query in queries if query not in self._related or len(outdated.get(query, ())) > MAX_REREAD
        ]
        read = ledger.of_queries(connection, lacking)
        reread = ledger.of_facts(connection, {query: outdated[query] for query in outdated if query not in read})
        tables = {}
        for query in queries:
            if query in read:
                tables[query] = VoteTable.of(votes_per_fact(read[query]))
            elif query in outdated:
                tables[query] = self._related[query].replaced(outdated[query], votes_per_fact(reread[query]))
            else:
                tables[query] = self._related[query]
        return tables

    def _add_fits(
        self,
        connection: Connection,
        model: ModelRow,
        neighbours: Sequence[Neighbour],
        tables: dict[int, VoteTable],
    ) -> None:
        """Adds how near facts are to the queries that speak for them."""
        lacking = {each.query: tables[each.query].lacking().tolist() for each in neighbours}
        vectors = of_facts(connection, model, sorted({fact for facts in lacking.values() for fact in facts}))
        for each in neighbours:
            known = {fact: float(vectors[fact] @ each.vector) for fact in lacking[each.query] if fact in vectors}
            if known:
                tables[each.query] = tables[each.query].with_fits(known)

    def _keep(
        self, connection: Connection, cache: dict[int, Votes], used: Iterable[int], read: Mapping[int, Votes]
    ) -> bool:
        """Whether it was kept: a view that is older than what was followed lacks opinions."""
        for query in used:
            if query in cache:
                cache[query] = cache.pop(query)
        if not read or ledger.last_event(connection, self.dataset) != self._event:
            return False
        for query, votes in read.items():
            cache.pop(query, None)
            cache[query] = votes
        excess = sum(map(len, cache.values())) - CACHED_VOTES
        while excess > 0 and len(cache) > len(read):
            excess -= len(cache.pop(next(iter(cache))))
        return True


CANDIDATES = 1000
"""The nearest queries that are compared word by word."""

SLACK = 0.1
"""Queries that differ in case alone may lie this far below the mark."""

MAX_EMBEDDED = 32
"""New queries that a recall embeds itself."""

BATCH_SIZE = 64
"""Queries that are embedded in one call of the model when there are many."""

Embed = Callable[[Sequence[str]], Vectors]
Load = Callable[[Sequence[int]], list[Row]]
"""Reads queries of these numbers from the store."""

StoredVectors = list[tuple[int, bytes]]
"""Queries and their vectors, as the store keeps them."""


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier query that belongs to the context of the one asked."""

    query_id: int
    text: str
    similarity: float


class ContextIndex:
    """The queries of one dataset that signals name. A context is all of them that mean the same as a given one,
    so it needs no bookkeeping, and does not depend on which query came first.

    Of many queries that are new at once, the newest are embedded at once, and the others wait for `embed_waiting`.
    Until then they match by their words alone. Models are asked outside the lock that searches need.
    """

    def __init__(self, dataset: int, model: ModelRow, calibration: Calibration) -> None:
        self.dataset = dataset
        self.model = model
        self._calibration = calibration
        self._following = threading.Lock()
        self._lock = threading.Lock()
        self._event = 0
        self._row_of: dict[int, int] = {}
        self._ids: list[int] = []
        self._texts: list[str] = []
        self._waiting: dict[int, str] = {}
        self._waiting_words: dict[str, set[int]] = {}
        self.judged = np.empty(0, np.int64)
        """The facts that were ever judged, in order; all others are neutral."""
        self._vectors = VectorIndex(np.empty((0, model.dimensions), np.float32))

    def __len__(self) -> int:
        return len(self._ids) + len(self._waiting)

    def follow(self, connection: Connection, newest: int, embed: Embed) -> StoredVectors:
        """Takes in the queries of signals up to the event `newest`; returns vectors that had to be made, for the store
        to keep."""
        if newest <= self._event:
            return []
        # Whoever comes meanwhile needs what is embedded here, which is little.
        with self._following:
            if newest <= self._event:
                return []
            named = ledger.queries_after(connection, self.dataset, self._event)
            unknown = [query for query in named if query not in self._row_of and query not in self._waiting]
            rows = receipts.load_queries(connection, unknown)
            known = {row[0]: row[3] for row in rows if row[2] == self.model.id and row[3] is not None}
            lacking = sorted(row[0] for row in rows if row[0] not in known)
            texts = {row[0]: row[1] for row in rows}
            made = self._made({query: texts[query] for query in lacking[-MAX_EMBEDDED:]}, embed)
            judged = ledger.facts_after(connection, self.dataset, self._event)
            with self._lock:
                self._add([(query, texts[query], vector) for query, vector in [*known.items(), *made]])
                for query in lacking[:-MAX_EMBEDDED]:
                    self._waiting[query] = texts[query]
                    self._waiting_words.setdefault(normal(texts[query]), set()).add(query)
                self.judged = np.union1d(self.judged, np.array(judged, np.int64))
                self._event = newest
            return made

    @property
    def waits(self) -> bool:
        """Whether queries wait to be embedded."""
        return bool(self._waiting)

    def embed_waiting(self, load: Load, embed: Embed, only: Collection[int] | None = None) -> StoredVectors | None:
        """Embeds some of the queries that wait, or of those that are `wanted`; returns vectors that had to be made, and
        None when no query waits. What somebody else has embedded is loaded from the store."""
        with self._lock:
            waiting = self._waiting if only is None else {query: "" for query in only if query in self._waiting}
            taken = list(islice(waiting, BATCH_SIZE))
        if not taken:
            return None
        rows = {row[0]: row for row in load(taken)}
        known = [(query, row[3]) for query, row in rows.items() if row[2] == self.model.id and row[3] is not None]
        ready = {query for query, _ in known}
        made = self._made({query: row[1] for query, row in rows.items() if query not in ready}, embed)
        with self._lock:
            for query in taken:
                text = self._waiting.pop(query, None)
                if text is not None:
                    self._waiting_words[normal(text)].discard(query)
                    if not self._waiting_words[normal(text)]:
                        del self._waiting_words[normal(text)]
            self._add([(query, rows[query][1], vector) for query, vector in [*known, *made]])
        return made

    def matches(self, text: str, vector: Vectors) -> list[Match]:
        """The queries in the context of `text`, the most similar first."""
        return self.near(text, vector, 0)[0]

    def near(self, text: str, vector: Vectors, count: int = RELATED) -> tuple[list[Match], list[Neighbour]]:
        """The queries in the context of `text`, the most similar first, and the `count` nearest ones."""
        neighbours: list[Neighbour] = []
        with self._lock:
            found = [Match(query, self._waiting[query], 1.0) for query in self._waiting_words.get(normal(text), ())]
            if self._ids:
                rows, cosines = self._vectors.nearest(vector, CANDIDATES, np.ones(len(self._ids), bool))
                found += self._alike(text, rows, cosines)
                neighbours = [
                    Neighbour(self._ids[row], round(cosine, 6), self._vectors.row(row))
                    for row, cosine in zip(rows[:count].tolist(), cosines[:count].tolist(), strict=True)
                    if cosine >= LEAST_COSINE
                ]
        return sorted(found, key=lambda match: (-match.similarity, match.query_id)), neighbours

    def vector_of(self, query_id: int) -> Vectors:
        """The vector of a query that a signal names and that does not wait."""
        with self._lock:
            return self._vectors.row(self._row_of[query_id])

    def _alike(self, text: str, rows: Seqs, cosines: Vectors) -> list[Match]:
        found = []
        for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
            if cosine < self._calibration.same - SLACK:
                break
            alike = similarity(text, self._texts[row], cosine, calibration=self._calibration)
            if alike >= SAME_NEED:
                found.append(Match(self._ids[row], self._texts[row], round(alike, 6)))
        return found

    def _made(self, texts: Mapping[int, str], embed: Embed) -> StoredVectors:
        if not texts:
            return []
        vectors = embed(list(texts.values()))
        return [(query, pack(vector)) for query, vector in zip(texts, vectors, strict=True)]

    def _add(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        new = [row for row in rows if row[0] not in self._row_of]
        if not new:
            return
        self._vectors.append(unpack([vector for _, _, vector in new], self.model.dimensions))
        for query, text, _ in new:
            self._row_of[query] = len(self._ids)
            self._ids.append(query)
            self._texts.append(text)
