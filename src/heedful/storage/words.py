"""The words of large datasets, kept in PostgreSQL so that it can search them itself.

They are derived: a dataset has them from the moment that its index is begun, and only of facts that can be recalled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import BigInteger, Column, Connection, Float, MetaData, Table, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from heedful.storage.dialects import dialect_of
from heedful.storage.schema import facts
from heedful.text.words import terms

COMMON = 100
"""Terms in at least so many facts are common: their counts are stored. Others are counted when needed."""

BATCH_SIZE = 2000
"""Facts per batch."""

inside = MetaData()
"""Tables that only PostgreSQL has; migrations create them."""

words = Table(
    "words",
    inside,
    Column("fact_seq", BigInteger, primary_key=True),
    Column("dataset_id", BigInteger, nullable=False),
    Column("terms", ARRAY(BigInteger), nullable=False),
)
"""The terms of each text, in order and with repetitions."""

common_terms = Table(
    "common_terms",
    inside,
    Column("dataset_id", BigInteger, primary_key=True),
    Column("term", BigInteger, primary_key=True),
    Column("holders", BigInteger, nullable=False),
)
"""How many facts had a common term when they were last counted."""

searched = Table(
    "searched",
    inside,
    Column("dataset_id", BigInteger, primary_key=True),
    Column("model_id", BigInteger),
    Column("facts", BigInteger, nullable=False),
    Column("length", Float, nullable=False),
)
"""Datasets whose words are kept, with the model whose vectors are indexed (null until they are), and how many facts
there were and how long they were on average when they were last counted."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is known of a dataset that the database searches."""

    facts: int
    length: float


def numbers(query: str) -> list[int]:
    """The terms of a text as signed 64-bit numbers, as the database stores them."""
    return [term - (1 << 64) if term >> 63 else term for term in terms(query)]


def searched_dataset(connection: Connection, dataset: int, model: int) -> Searched | None:
    """The dataset as it was last counted; None if the database can't search it."""
    row = connection.execute(
        select(searched.c.facts, searched.c.length).where(
            searched.c.dataset_id == dataset, searched.c.model_id == model
        )
    ).first()
    return None if row is None else Searched(row.facts, row.length)


def are_stored(connection: Connection, dataset: int) -> bool:
    """Whether a dataset's words are stored."""
    if not dialect_of(connection).searches:
        return False
    return connection.execute(select(searched.c.dataset_id).where(searched.c.dataset_id == dataset)).first() is not None


def add(connection: Connection, dataset: int, texts: Mapping[int, str]) -> None:
    """Stores the words of facts, if the dataset's words are stored."""
    if texts and are_stored(connection, dataset):
        rows = [{"fact_seq": seq, "dataset_id": dataset, "terms": numbers(text)} for seq, text in texts.items()]
        connection.execute(insert(words).on_conflict_do_nothing(), rows)


def remove(connection: Connection, dataset: int, seqs: Iterable[int]) -> None:
    """Deletes the words of facts that must not be found; deleting a fact deletes its words."""
    if are_stored(connection, dataset):
        connection.execute(delete(words).where(words.c.fact_seq.in_(list(seqs))))


def begin(connection: Connection, dataset: int) -> None:
    """From now on, writers of facts store their words, too."""
    row = {"dataset_id": dataset, "model_id": None, "facts": 0, "length": 0.0}
    connection.execute(insert(searched).values(row).on_conflict_do_nothing())


def fill(connection: Connection, dataset: int, after: int, limit: int) -> int | None:
    """Stores the words of the next `limit` facts after a number; returns the last of them, or None at the end."""
    rows = connection.execute(
        select(facts.c.seq, facts.c.text)
        .where(facts.c.dataset_id == dataset, facts.c.hidden == 0, facts.c.seq > after)
        .order_by(facts.c.seq)
        .limit(limit)
    ).all()
    stored = select(words.c.fact_seq).where(words.c.fact_seq.in_([row.seq for row in rows]))
    existing = set(connection.execute(stored).scalars())
    add(connection, dataset, {row.seq: row.text for row in rows if row.seq not in existing})
    return rows[-1].seq if rows else None


def fill_all(connection: Connection, dataset: int) -> None:
    """Stores the words of all facts that have none."""
    last: int | None = 0
    while last is not None:
        last = fill(connection, dataset, last, BATCH_SIZE)


def count_differing(connection: Connection, dataset: int) -> int:
    """How many facts have no words though they can be recalled, or have some though they can't."""
    recalled = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden == 0).subquery()
    stored = select(words.c.fact_seq).where(words.c.dataset_id == dataset).subquery()
    differs = recalled.c.seq.is_(None) | stored.c.fact_seq.is_(None)
    joined = recalled.join(stored, recalled.c.seq == stored.c.fact_seq, full=True)
    return int(connection.execute(select(func.count()).select_from(joined).where(differs)).scalar_one())


def remove_stale(connection: Connection, dataset: int) -> None:
    """Deletes the words of facts that can't be recalled."""
    hidden = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden != 0)
    connection.execute(delete(words).where(words.c.dataset_id == dataset, words.c.fact_seq.in_(hidden)))


_COUNT_TERMS = text("""
INSERT INTO common_terms (dataset_id, term, holders)
SELECT :dataset, term, count(*)
FROM words, LATERAL (SELECT DISTINCT unnest(terms) AS term) AS each
WHERE dataset_id = :dataset GROUP BY term HAVING count(*) >= :common
""")


def count(connection: Connection, dataset: int) -> None:
    """Counts facts, their length, and the common terms again."""
    row = connection.execute(
        select(func.count(), func.coalesce(func.avg(func.cardinality(words.c.terms)), 0.0)).where(
            words.c.dataset_id == dataset
        )
    ).one()
    connection.execute(delete(common_terms).where(common_terms.c.dataset_id == dataset))
    connection.execute(_COUNT_TERMS, {"dataset": dataset, "common": COMMON})
    connection.execute(
        update(searched).where(searched.c.dataset_id == dataset).values(facts=row[0], length=float(row[1]))
    )


def finish(connection: Connection, dataset: int, model: int) -> None:
    """From now on, the database searches the dataset with vectors of this model."""
    connection.execute(update(searched).where(searched.c.dataset_id == dataset).values(model_id=model))


def forget(connection: Connection, dataset: int) -> None:
    """Deletes everything stored here about a dataset."""
    for table in (searched, common_terms, words):
        connection.execute(delete(table).where(table.c.dataset_id == dataset))


def every(connection: Connection) -> dict[int, Searched]:
    """All datasets whose words are stored, by number."""
    return {row.dataset_id: Searched(row.facts, row.length) for row in connection.execute(select(searched))}
