"""Searches inside PostgreSQL: nearest vectors, facts with given words, neighbouring facts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    Select,
    any_,
    bindparam,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, array

from heedful.storage.filters import Allowed
from heedful.storage.half_vectors import HalfVector
from heedful.storage.postgresql.word_index import common_terms, words
from heedful.storage.schema import facts, vectors
from heedful.storage.vectors import ModelRow

EXACT_LIMIT = 2000
"""If no more facts than this pass a filter, all are scored without an index."""

MAX_SCANNED = 100_000
"""The vectors that a search may scan to find enough that pass a filter."""

_NUMBERS = ARRAY(BigInteger)


def only_in(dataset: int, model: int) -> str:
    """The condition of the index of a dataset's vectors, as literals, so that the planner can use the index."""
    return f"dataset_id = {int(dataset)} AND model_id = {int(model)}"


def direction(dimensions: int) -> str:
    """The vectors in the form of that index."""
    return f"(vector::halfvec({int(dimensions)}))"


def narrowed(connection: Connection, dataset: int, allowed: Allowed) -> Allowed:
    """The same facts; if there are few, as a list of numbers."""
    if not allowed.where and allowed.only is None:
        return allowed
    statement = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden == 0)
    seqs = list(connection.execute(_among(statement, facts.c.seq, allowed).limit(EXACT_LIMIT + 1)).scalars())
    return allowed if len(seqs) > EXACT_LIMIT else Allowed(only=seqs)


def permitted(connection: Connection, dataset: int, seqs: Sequence[int], allowed: Allowed) -> list[int]:
    """Those of these facts that are allowed."""
    statement = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden == 0, facts.c.seq == _any(seqs))
    return list(connection.execute(_among(statement, facts.c.seq, allowed)).scalars()) if seqs else []


def nearest(
    connection: Connection, dataset: int, model: ModelRow, vector: bytes, count: int, effort: int, allowed: Allowed
) -> dict[int, float]:
    """About `count` allowed facts with the greatest cosines, and the cosines."""
    # Options of pgvector's index, until the transaction ends.
    options = {"ef_search": effort, "iterative_scan": "relaxed_order", "max_scan_tuples": MAX_SCANNED}
    set_to = (func.set_config(f"hnsw.{name}", str(value), True) for name, value in options.items())
    connection.execute(select(*set_to))
    distance = _distance(model)
    recalled = exists().where(facts.c.seq == vectors.c.fact_seq, facts.c.hidden == 0)
    statement = select(vectors.c.fact_seq, -distance).where(literal_column(only_in(dataset, model.id)), recalled)
    statement = _among(statement, vectors.c.fact_seq, allowed).order_by(distance).limit(count)
    return _pairs(connection, statement, vector=vector)


def cosines(connection: Connection, model: ModelRow, vector: bytes, seqs: Sequence[int]) -> dict[int, float]:
    """The cosines of facts."""
    statement = select(vectors.c.fact_seq, -_distance(model)).where(
        vectors.c.fact_seq == _any(seqs), vectors.c.model_id == model.id
    )
    return _pairs(connection, statement, vector=vector) if seqs else {}


_PLAIN = func.md5(func.lower(func.btrim(func.regexp_replace(facts.c.text, r"\s+", " ", "g"))))


def text_keys(connection: Connection, seqs: Sequence[int]) -> dict[int, str]:
    """The same for facts whose texts differ in case and spaces only."""
    return _pairs(connection, select(facts.c.seq, _PLAIN).where(facts.c.seq == _any(seqs))) if seqs else {}


def copies(connection: Connection, dataset: int, seqs: Sequence[int], allowed: Allowed) -> dict[int, str]:
    """All allowed facts with the texts of these, and the key of the text. The index of words finds them."""
    one = words.alias("one")
    texts = select(one.c.terms).where(one.c.fact_seq == _any(seqs)).distinct()
    found: dict[int, str] = {}
    keys = set(text_keys(connection, seqs).values())
    for terms in connection.execute(texts).scalars().all():
        statement = (
            select(facts.c.seq, _PLAIN)
            .join(words, words.c.fact_seq == facts.c.seq)
            .where(_words_of(dataset), words.c.terms == literal(terms, _NUMBERS), facts.c.hidden == 0)
        )
        found |= _pairs(connection, _among(statement, facts.c.seq, allowed))
    return {fact: key for fact, key in found.items() if key in keys}


def holders(connection: Connection, dataset: int, terms: Sequence[int]) -> dict[int, int]:
    """How many facts have each of these terms; for common terms, as last counted."""
    statement = select(common_terms.c.term, common_terms.c.holders).where(
        common_terms.c.dataset_id == dataset, common_terms.c.term == _any(terms)
    )
    counts = _pairs(connection, statement) if terms else {}
    rare = [term for term in terms if term not in counts]
    if rare:
        term_column = func.unnest(literal(rare, _NUMBERS)).column_valued("term")
        having = select(func.count()).where(_words_of(dataset), words.c.terms.contains(array([term_column])))
        counts |= _pairs(connection, select(term_column, having.scalar_subquery()))
    return counts


class TermCounts(NamedTuple):
    """Facts, their lengths, and the counts of each query term."""

    facts: list[int]
    lengths: list[int]
    counts: list[tuple[int, ...]]


def with_terms(
    connection: Connection,
    dataset: int,
    terms: Sequence[int],
    groups: Sequence[Sequence[int]],
    limit: int,
    allowed: Allowed,
) -> TermCounts:
    """Up to `limit` allowed facts that have all terms of one of the groups."""
    single = [group[0] for group in groups if len(group) == 1]
    conditions: list[ColumnElement[bool]] = [
        words.c.terms.contains(literal(list(group), _NUMBERS)) for group in groups if len(group) > 1
    ]
    if single:
        conditions.append(words.c.terms.overlap(literal(single, _NUMBERS)))
    statement = _counting(terms).where(_words_of(dataset), or_(*conditions)).limit(limit)
    return _term_counts(connection, _among(statement, words.c.fact_seq, allowed))


def term_counts(connection: Connection, terms: Sequence[int], seqs: Sequence[int]) -> TermCounts:
    """The same for those of these facts that have any of the terms and can be recalled."""
    if not seqs or not terms:
        return TermCounts([], [], [])
    having = words.c.terms.overlap(literal(list(terms), _NUMBERS))
    return _term_counts(connection, _counting(terms).where(words.c.fact_seq == _any(seqs), having))


def beside(connection: Connection, dataset: int, seqs: Sequence[int], steps: int) -> list[tuple[int, int, int]]:
    """(fact, other, step) for the facts up to so many steps before and after in the same source. A later fact comes
    after an earlier one at the same place."""
    one = facts.alias("one")
    # The offset makes the planner use the index for each fact, instead of reading all facts.
    other = (
        select(facts.c.seq, facts.c.ordinal)
        .where(
            facts.c.dataset_id == dataset,
            facts.c.source == one.c.source,
            facts.c.ordinal.between(one.c.ordinal - steps, one.c.ordinal + steps),
            facts.c.hidden == 0,
        )
        .offset(0)
        .lateral("other")
    )
    step = (other.c.ordinal - one.c.ordinal).label("step")
    statement = select(one.c.seq, other.c.seq, step).where(one.c.seq == _any(seqs), step != 0).order_by(other.c.seq)
    return list(map(tuple, connection.execute(statement).all())) if seqs else []


def _counting(terms: Sequence[int]) -> Select[Any]:
    times = (func.cardinality(func.array_positions(words.c.terms, literal(term, BigInteger))) for term in terms)
    return select(words.c.fact_seq, func.cardinality(words.c.terms), *times)


def _term_counts(connection: Connection, statement: Select[Any]) -> TermCounts:
    rows = connection.execute(statement).all()
    return TermCounts([row[0] for row in rows], [row[1] for row in rows], [tuple(row[2:]) for row in rows])


def _words_of(dataset: int) -> ColumnElement[bool]:
    return literal_column(f"words.dataset_id = {int(dataset)}")


def _distance(model: ModelRow) -> ColumnElement[float]:
    query_vector = bindparam("vector", type_=HalfVector)
    return literal_column(direction(model.dimensions)).op("<#>", return_type=Float())(query_vector)


def _among(statement: Select[Any], column: ColumnElement[int], allowed: Allowed) -> Select[Any]:
    statement = statement.where(*(column.in_(one) for one in allowed.where))
    if allowed.only is not None:
        statement = statement.where(column == _any(allowed.only))
    if allowed.without:
        statement = statement.where(column != func.all(literal(list(allowed.without), _NUMBERS)))
    return statement


def _pairs(connection: Connection, statement: Select[Any], **values: Any) -> dict[int, Any]:
    return {row[0]: row[1] for row in connection.execute(statement, values).all()}


def _any(seqs: Collection[int]) -> ColumnElement[Any]:
    return any_(literal(list(seqs), _NUMBERS))
