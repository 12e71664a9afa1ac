"""Search inside PostgreSQL, for datasets that are too large for the memory of every process.

Its indexes find candidates, by vectors (HNSW) and by words (GIN); the formulas that score them are those of the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
from sqlalchemy import Connection

from heedful.search import relevance
from heedful.search.relevance import Copies, Distinct, Floats, Found, Search, best, one_of_each, scored
from heedful.storage import Database, scopes, vectors
from heedful.storage.filters import Allowed
from heedful.storage.postgresql import search as searching
from heedful.storage.postgresql import word_index
from heedful.storage.postgresql.search import TermCounts
from heedful.storage.postgresql.word_index import Searched
from heedful.storage.rows import POOLED, SCHEMA
from heedful.storage.vectors import ModelRow, pack

EF_SEARCH = 200  # The vectors that a search in the graph keeps at hand, at least; the more, the surer and slower.
ROUNDS = 4  # The times that a search looks further because copies of one text hid others.
FAR = 2  # Steps to the neighbours of the neighbours of a fact.


class DatabaseIndex:
    """A dataset that the database searches. There is nothing to follow: a transaction sees what it sees."""

    def __init__(self, dataset: int, model: ModelRow, known: Searched) -> None:
        self.dataset = dataset
        self.model = model
        self._known = known

    def __len__(self) -> int:
        return self._known.facts

    def follow(self, connection: Connection, newest: int | None = None) -> None:
        """Nothing has to be done."""

    def is_damaged(self) -> bool:
        return False

    def differences(self, connection: Connection) -> int:
        return word_index.count_differing(connection, self.dataset)

    def rebuild(self, connection: Connection) -> None:
        word_index.refill(connection, self.dataset)

    def vectors_of(self, connection: Connection, seqs: Sequence[int]) -> dict[int, vectors.Vectors]:
        """The vectors of facts, by number."""
        return vectors.of_facts(connection, self.model, seqs)

    def search(self, connection: Connection, search: Search) -> Found:
        allowed, distinct = search.allowed, search.distinct
        if distinct is not None and distinct.shown:
            same = searching.copies(connection, self.dataset, distinct.shown, Allowed())
            allowed = replace(allowed, without=[*allowed.without, *same])
        allowed = searching.narrowed(connection, self.dataset, allowed)
        question = _Question(connection, self.dataset, self.model, self._known, search)
        found = question.scored(self._candidates(question, allowed, search.also))
        alike: dict[int, Copies] = {}
        for _ in range(ROUNDS if distinct is not None else 0):
            assert distinct is not None
            repeated = self._repeated(connection, found, allowed, distinct, search.also)
            if not repeated:
                break
            alike |= {fact: copies for fact, (copies, _) in repeated.items()}
            hidden = [other for _, others in repeated.values() for other in others]
            allowed = replace(allowed, without=[*allowed.without, *hidden])
            found = question.scored(self._candidates(question, allowed, [*search.also, *repeated]))
        further = [] if search.expand is None else search.expand(found)
        if further:
            joining = searching.permitted(connection, self.dataset, further, allowed)
            found = question.scored({*found.facts.tolist(), *joining})
        if distinct is not None:
            found = _first_of_each(found, searching.text_keys(connection, found.facts.tolist()))
        return replace(found, copies=alike) if alike else found

    def _candidates(self, question: _Question, allowed: Allowed, also: Sequence[int]) -> set[int]:
        """The allowed facts that a query should score."""
        chosen: set[int] = set()
        by_meaning = question.search.by_meaning is not None
        if by_meaning:
            chosen.update(question.nearest(allowed))
        joining = list(also)
        if question.search.by_words:
            worded = question.best_words(allowed)
            chosen.update(worded)
            if by_meaning:
                joining += [other for _, other, _ in searching.beside(question.connection, self.dataset, worded, FAR)]
        chosen.update(searching.permitted(question.connection, self.dataset, joining, allowed))
        return chosen

    def _repeated(
        self, connection: Connection, found: Found, allowed: Allowed, distinct: Distinct, also: Sequence[int]
    ) -> dict[int, tuple[Copies, list[int]]]:
        """The facts to show of texts that several facts have, with their copies, and all of those."""
        numbers = found.facts.tolist()
        keys = searching.text_keys(connection, numbers)
        counts = Counter(keys.values())
        several = {keys[fact]: fact for fact in numbers if counts[keys.get(fact, "")] > 1}
        copies = searching.copies(connection, self.dataset, list(several.values()), allowed) if several else {}
        if not copies:
            return {}
        lent = {} if found.neighbours is None else dict(zip(numbers, found.neighbours.tolist(), strict=True))
        members: dict[str, list[int]] = {}
        for fact, key in sorted(copies.items()):
            members.setdefault(key, []).append(fact)
        places = {key: place for place, key in enumerate(sorted(members))}
        seqs = sorted(copies)
        _, shown = one_of_each(
            np.array(seqs, np.int64),
            np.array([places[copies[fact]] for fact in seqs], np.uint64),
            np.array([lent.get(fact, 0.0) for fact in seqs], np.float32),
            distinct.judged(),
            also,
        )
        return {
            fact: (named, [copy for copy in members[copies[fact]] if copy != fact]) for fact, named in shown.items()
        }


def _first_of_each(found: Found, keys: Mapping[int, str]) -> Found:
    """The candidates, the best of each text."""
    order = sorted(range(len(found.facts)), key=lambda place: (-found.relevance[place], found.facts[place]))
    first: dict[object, int] = {}
    for place in order:
        fact = int(found.facts[place])
        first.setdefault(keys.get(fact, fact), place)
    if len(first) == len(order):
        return found
    kept = np.sort(np.fromiter(first.values(), np.int64, len(first)))
    vector, own, lent = (None if part is None else part[kept] for part in (found.vector, found.words, found.neighbours))
    return Found(found.facts[kept], found.relevance[kept], vector, own, lent)


class _Question:
    """One search, with what it knows of facts so far."""

    def __init__(self, connection: Connection, dataset: int, model: ModelRow, known: Searched, search: Search) -> None:
        self.connection = connection
        self.search = search
        self._dataset = dataset
        self._model = model
        self._known = known
        self._vector = b"" if search.vector is None else pack(search.vector)
        self._cosines: dict[int, float] = {}
        self._words: dict[int, float] = {}
        self._terms: list[int] = []
        if search.by_words:
            self._holders = searching.holders(
                connection, dataset, list(dict.fromkeys(word_index.numbers(search.query)))
            )
            self._terms = rarest(self._holders)
            living = max([known.facts, *self._holders.values()])
            self._weights = {term: relevance.rarity(living, count) for term, count in self._holders.items()}

    def nearest(self, allowed: Allowed) -> Iterable[int]:
        """The allowed facts that are nearest in meaning."""
        count = self.search.wanted
        if allowed.only is None or len(allowed.only) > searching.EXACT_LIMIT:
            effort = min(1000, max(count, EF_SEARCH))
            near = searching.nearest(self.connection, self._dataset, self._model, self._vector, count, effort, allowed)
            self._cosines |= near
            return near
        passing = searching.permitted(self.connection, self._dataset, list(allowed.only), allowed)
        self._learn_cosines(passing)
        return sorted(passing, key=lambda fact: (-self._cosines.get(fact, 0.0), fact))[:count]

    def best_words(self, allowed: Allowed) -> list[int]:
        """The allowed facts whose words cover most of the query."""
        if not self._terms:
            return []
        if allowed.only is None or len(allowed.only) > searching.EXACT_LIMIT:
            grouped = groups(self._terms, self._holders, self._known.facts)
            most = 2 * MAX_SCANNED_FACTS
            counts = searching.with_terms(self.connection, self._dataset, self._terms, grouped, most, allowed)
        else:
            passing = searching.permitted(self.connection, self._dataset, list(allowed.only), allowed)
            counts = searching.term_counts(self.connection, self._terms, passing)
        covered = self._learn_words(counts)
        return [counts.facts[place] for place in best(covered, self.search.wanted).tolist()]

    def scored(self, chosen: set[int]) -> Found:
        """Candidates with their relevance."""
        order = sorted(chosen)
        cosines = own = None
        if self.search.by_meaning is not None:
            self._learn_cosines(order)
            cosines = np.clip(_row(self._cosines, order), 0, 1)
        if self.search.by_words:
            self._look_up(order)
            own = _row(self._words, order)
        return scored(np.array(order, np.int64), cosines, own, lambda: self._borrowed(order))

    def _borrowed(self, order: Sequence[int]) -> tuple[Floats, Floats]:
        """The words of the better fact at distance 1, and at distance 2."""
        borrowed = np.zeros((FAR, len(order)), np.float32)
        if self._terms:
            columns = {fact: column for column, fact in enumerate(order)}
            links = searching.beside(self.connection, self._dataset, order, FAR)
            self._look_up([other for _, other, _ in links])
            # A later fact takes the place of an earlier one, as in memory.
            at = {(fact, step): other for fact, other, step in links}
            for (fact, step), other in at.items():
                row, column = abs(step) - 1, columns[fact]
                borrowed[row, column] = max(borrowed[row, column], self._words[other])
        return borrowed[0], borrowed[1]

    def _look_up(self, seqs: Sequence[int]) -> None:
        """Learns how much of the query is covered by facts that are not known yet."""
        lacking = [fact for fact in dict.fromkeys(seqs) if fact not in self._words]
        self._words |= dict.fromkeys(lacking, 0.0)
        self._learn_words(searching.term_counts(self.connection, self._terms, lacking))

    def _learn_words(self, term_counts: TermCounts) -> Floats:
        counts = np.array(term_counts.counts, np.float32).reshape(len(term_counts.facts), len(self._terms))
        norms = relevance.norms(np.array(term_counts.lengths, np.float32), self._known.length)
        total: Floats = np.zeros(len(term_counts.facts), np.float32)
        for column, term in enumerate(self._terms):
            total += relevance.gains(self._weights[term], counts[:, column], norms)
        covered = relevance.to_coverage(total, sum(self._weights.values()))
        self._words |= zip(term_counts.facts, covered.tolist(), strict=True)
        return covered

    def _learn_cosines(self, seqs: Sequence[int]) -> None:
        lacking = [fact for fact in seqs if fact not in self._cosines]
        self._cosines |= searching.cosines(self.connection, self._model, self._vector, lacking)


def _row(known: dict[int, float], order: Sequence[int]) -> Floats:
    return np.array([known.get(fact, 0.0) for fact in order], np.float32)


IN_MEMORY = 100_000
"""Facts that every process can be asked to keep an index of in memory: it takes some hundred megabytes and seconds."""

RECOUNT_GROWTH = 1.2  # Words are counted again when a dataset has grown by this factor.
LINKS, CARE = 16, 128
"""The links of a vector in the graph, and the candidates for them: pgvector's `m` and `ef_construction`. With half the
candidates, a search found 96 of 100 nearest facts in place of 98."""

NODE = 32 * LINKS + 208  # Bytes that pgvector takes for a vector's place in the graph, while it is built.

GRAPH_MEMORY = 2**31
"""Bytes that building a graph may take, unless the server is set to allow more. What doesn't fit is built by reading
and writing pages, which takes many times as long."""

Report = Callable[[str], None]


def build_due(database: Database, report: Report, *, limit: int = IN_MEMORY) -> int:
    """Builds the indexes that are missing for datasets of more than `limit` facts; returns how many datasets were
    worked on.

    It may be stopped at any time and called again, and by several processes at once: each dataset is worked on by one
    of them. An exception from `report`, which is called before each step, stops it. Call it outside of any
    transaction: an index waits for all that were open before it.
    """
    if not database.searches:
        return 0
    with database.read() as connection:
        model = vectors.active_model(connection)
        sizes = scopes.sizes(connection)
        known = word_index.searched_datasets(connection)
    if model is None:
        return 0
    worked = sum(build(database, dataset, model, report) for dataset, size in sizes.items() if size > limit)
    small = [dataset for dataset in known if sizes.get(dataset, 0) <= limit // 2]
    return worked + sum(drop(database, dataset, report) for dataset in small)


def build(database: Database, dataset: int, model: ModelRow, report: Report) -> bool:
    """Has the database search a dataset by the vectors of a model; returns whether anything was to do."""
    with database.outside(f"build {dataset}") as connection:
        if connection is None:
            return False
        with database.read() as looking:
            project = scopes.project_of(looking, dataset)
            size = scopes.sizes(looking, dataset).get(dataset, 0)
            before = word_index.searched_dataset(looking, dataset, model.id)
        indexes = _indexes(dataset, model)
        is_counted = before is not None and size <= RECOUNT_GROWTH * before.facts
        if project is None or (is_counted and all(_is_valid(connection, name) for name in indexes)):
            return False
        with database.write(project) as writing:
            word_index.begin(writing, dataset)
        last: int | None = 0
        while last is not None:
            report(f"words of dataset {dataset}")
            # A few at a time, because other writers of the project wait for it.
            with database.write(project) as writing:
                last = word_index.fill(writing, dataset, last, word_index.BATCH_SIZE)
        for name, statement in indexes.items():
            if not _is_valid(connection, name):
                report(f"index {name}")
                _create(connection, name, statement, size, model)
        report(f"counts of dataset {dataset}")
        with database.write(project, exclusive=False) as writing:
            word_index.count(writing, dataset)
            word_index.finish(writing, dataset, model.id)
            word_index.remove_index(writing, dataset)
        connection.exec_driver_sql(f"ANALYZE {SCHEMA}.words")
        connection.exec_driver_sql(f"ANALYZE {SCHEMA}.vectors")
        _drop_others(connection, dataset, indexes)
    return True


def drop(database: Database, dataset: int, report: Report) -> bool:
    """Drops the indexes of a dataset that is small again, or gone; returns whether anything was to do."""
    with database.outside(f"build {dataset}") as connection:
        if connection is None:
            return False
        report(f"indexes of dataset {dataset} are dropped")
        with database.read() as looking:
            project = scopes.project_of(looking, dataset)
        with database.write(project) as writing:
            word_index.forget(writing, dataset)
        _drop_others(connection, dataset, {})
    return True


def _indexes(dataset: int, model: ModelRow) -> dict[str, str]:
    """The definitions of the indexes of a dataset, by name."""
    vectors_of, words_of = f"ix_vectors_of_{dataset}_{model.id}", f"ix_words_of_{dataset}"
    return {
        # Kept up with every write: a list of what is still to be done would be read by every search.
        words_of: f"ON {SCHEMA}.words USING gin (terms) WITH (fastupdate = off) WHERE dataset_id = {dataset}",
        vectors_of: f"ON {SCHEMA}.vectors USING hnsw ({searching.direction(model.dimensions)} halfvec_ip_ops) "
        f"WITH (m = {LINKS}, ef_construction = {CARE}) WHERE {searching.only_in(dataset, model.id)}",
    }


def _is_valid(connection: Connection, name: str) -> bool:
    valid = connection.exec_driver_sql(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"{SCHEMA}.{name}",)
    )
    return bool(valid.scalar())


def _create(connection: Connection, name: str, statement: str, size: int, model: ModelRow) -> None:
    # One that was begun by a process that died is there, but is not used.
    connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS {SCHEMA}.{name}")
    if not connection.info[POOLED]:
        # Several processes build it in shared memory, all of which is allocated at once: no more than is needed.
        needed = 2**16 + size * (2 * model.dimensions + NODE) // 2**10
        allowed = "(SELECT setting::bigint FROM pg_settings WHERE name = 'maintenance_work_mem')"
        room = f"least({needed}, greatest({GRAPH_MEMORY // 2**10}, {allowed}))"
        connection.exec_driver_sql(f"SELECT set_config('maintenance_work_mem', {room}::text, false)")
    connection.exec_driver_sql(f"CREATE INDEX CONCURRENTLY {name} {statement}")


def _drop_others(connection: Connection, dataset: int, current: dict[str, str]) -> None:
    """Drops indexes of a dataset that belong to no model in use."""
    named = connection.exec_driver_sql(
        "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        f"WHERE indrelid IN ('{SCHEMA}.words'::regclass, '{SCHEMA}.vectors'::regclass)"
    ).scalars()
    for name in list(named):
        owned = name == f"ix_words_of_{dataset}" or name.startswith(f"ix_vectors_of_{dataset}_")
        if owned and name not in current:
            connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS {SCHEMA}.{name}")


MAX_SCANNED_FACTS = 3000  # The facts that are looked at for their words, or about so many.
MAX_TERMS = 64  # A long query is searched by so many of its rarest terms.
COMBINED = 8  # The rarest terms that are sought together.
Group = tuple[int, ...]


def rarest(holders: Mapping[int, int]) -> list[int]:
    """The terms of a query that some fact has, the rarest first, as far as they are used."""
    return sorted((term for term in holders if holders[term]), key=lambda term: (holders[term], term))[:MAX_TERMS]


def groups(terms: Sequence[int], holders: Mapping[int, int], living: int) -> list[Group]:
    """Terms to look for: each alone as long as that is not too many facts, then common ones in pairs, then in threes.

    How many facts have several terms is guessed as if terms had nothing to do with each other. If even the least is too
    many, it is returned.
    """
    every: list[list[Group]] = [[(term,) for term in terms]]
    every += [list(combinations(terms[:COMBINED], size)) for size in (2, 3)]

    def expected(group: Group) -> float:
        return living * prod(holders[term] / max(living, 1) for term in group)

    chosen: list[Group] = []
    total = 0.0
    for level in every:
        fewer = list(chosen)
        for group in sorted(level, key=expected):
            if any(set(smaller) <= set(group) for smaller in fewer):
                continue
            total += expected(group)
            if total > MAX_SCANNED_FACTS:
                return chosen or [min((group for level in every for group in level), key=expected)]
            chosen.append(group)
    return chosen
