"""Tables for searches that only PostgreSQL has: the words of large datasets, which it searches itself, and the indexes
that one process keeps for the next. On SQLite, files beside the store do that.

Words are derived: a dataset has them from the moment that its index is begun, and only of facts that can be recalled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    delete,
    func,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from heedful.storage.isolation import OWN
from heedful.storage.rows import binary_cursor, dialect_of, lock_exclusive
from heedful.storage.schema import datasets, facts, metadata, project_column
from heedful.text.words import terms

COMMON = 100
"""Terms in at least so many facts are common: their counts are stored. Others are counted when needed."""

BATCH_SIZE = 2000
"""Facts per batch."""

inside = MetaData(naming_convention=metadata.naming_convention)
"""Tables that only PostgreSQL has; migrations create them."""

words = Table(
    "words",
    inside,
    Column("fact_seq", BigInteger, ForeignKey(facts.c.seq, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    project_column(primary_key=True),
    Column("dataset_id", BigInteger, nullable=False),
    Column("terms", ARRAY(BigInteger), nullable=False),
)
"""The terms of each text, in order and with repetitions."""

common_terms = Table(
    "common_terms",
    inside,
    Column("dataset_id", BigInteger, primary_key=True),
    Column("term", BigInteger, primary_key=True),
    project_column(primary_key=True),
    Column("holders", BigInteger, nullable=False),
)
"""The number of facts with a common term when they were last counted."""

searched = Table(
    "searched",
    inside,
    Column("dataset_id", BigInteger, primary_key=True, autoincrement=False),
    project_column(primary_key=True),
    Column("model_id", BigInteger),
    Column("facts", BigInteger, nullable=False),
    Column("length", Float, nullable=False),
)
"""Datasets whose words are kept, with the model whose vectors are indexed (null until they are), and how many facts
there were and how long they were on average when they were last counted."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A dataset that the database searches, as it was last counted."""

    facts: int
    length: float


def numbers(query: str) -> list[int]:
    """The terms of a text as signed 64-bit numbers, as the database stores them."""
    return [term - (1 << 64) if term >> 63 else term for term in terms(query)]


def searched_dataset(connection: Connection, dataset: int, model: int) -> Searched | None:
    """The dataset as it was last counted; None if the database can't search it."""
    is_ready = (searched.c.dataset_id == dataset, searched.c.model_id == model)
    row = connection.execute(select(searched.c.facts, searched.c.length).where(*is_ready)).first()
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


def count_differing(connection: Connection, dataset: int) -> int:
    """How many facts have no words though they can be recalled, or have some though they can't."""
    recalled = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden == 0).subquery()
    stored = select(words.c.fact_seq).where(words.c.dataset_id == dataset).subquery()
    differs = recalled.c.seq.is_(None) | stored.c.fact_seq.is_(None)
    joined = recalled.join(stored, recalled.c.seq == stored.c.fact_seq, full=True)
    return int(connection.execute(select(func.count()).select_from(joined).where(differs)).scalar_one())


_COUNT_TERMS = text("""
INSERT INTO common_terms (project_id, dataset_id, term, holders)
SELECT project_id, dataset_id, term, count(*)
FROM words, LATERAL (SELECT DISTINCT unnest(terms) AS term) AS unique_terms
WHERE project_id = :own_project AND dataset_id = :dataset GROUP BY 1, 2, 3 HAVING count(*) >= :common
""")


def count(connection: Connection, dataset: int) -> None:
    """Counts facts, their length, and the common terms again."""
    counts = select(func.count(), func.coalesce(func.avg(func.cardinality(words.c.terms)), 0.0))
    row = connection.execute(counts.where(words.c.dataset_id == dataset)).one()
    connection.execute(delete(common_terms).where(common_terms.c.dataset_id == dataset))
    connection.execute(_COUNT_TERMS, {"dataset": dataset, "common": COMMON})
    set_counts = update(searched).where(searched.c.dataset_id == dataset)
    connection.execute(set_counts.values(facts=row[0], length=float(row[1])))


def refill(connection: Connection, dataset: int) -> None:
    """Deletes the words of facts that can't be recalled, stores those that are missing, and counts again."""
    hidden = select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.hidden != 0)
    connection.execute(delete(words).where(words.c.dataset_id == dataset, words.c.fact_seq.in_(hidden)))
    last: int | None = 0
    while last is not None:
        last = fill(connection, dataset, last, BATCH_SIZE)
    count(connection, dataset)


def finish(connection: Connection, dataset: int, model: int) -> None:
    """From now on, the database searches the dataset with vectors of this model."""
    connection.execute(update(searched).where(searched.c.dataset_id == dataset).values(model_id=model))


def forget(connection: Connection, dataset: int) -> None:
    """Deletes everything stored here about a dataset."""
    for table in (searched, common_terms, words):
        connection.execute(delete(table).where(table.c.dataset_id == dataset))


def searched_datasets(connection: Connection) -> list[int]:
    """The numbers of all datasets whose words are stored."""
    return list(connection.execute(select(searched.c.dataset_id)).scalars())


PART_BYTES = 4 * 2**20
"""An index is stored in parts of so many bytes."""

saved_indexes = Table(
    "saved_indexes",
    inside,
    Column("dataset_id", BigInteger, ForeignKey(datasets.c.id, ondelete="CASCADE"), primary_key=True),
    Column("model_id", BigInteger, primary_key=True),
    Column("part", Integer, primary_key=True),
    project_column(primary_key=True),
    Column("change", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
"""An index as it was after a change. Deleting a dataset deletes it."""


def read_index(connection: Connection, dataset: int, model: int) -> bytes | None:
    """The index of a dataset as it was last saved."""
    with binary_cursor(connection) as cursor:
        cursor.execute(
            "SELECT content FROM saved_indexes WHERE project_id = %s AND dataset_id = %s AND model_id = %s "
            "ORDER BY part",
            (connection.info[OWN], dataset, model),
        )
        return b"".join(content for (content,) in cursor) or None


def save_index(connection: Connection, dataset: int, model: int, change: int, content: bytes, *, replace: bool) -> None:
    """Saves an index; one after a later change stays, unless `replace` is set. A dataset that is gone has none."""
    # One process at a time, or two could mix their parts.
    lock_exclusive(connection, f"saved index {dataset}")
    if connection.execute(select(datasets.c.id).where(datasets.c.id == dataset)).first() is None:
        return
    of_model = (saved_indexes.c.dataset_id == dataset, saved_indexes.c.model_id == model)
    last = connection.execute(select(func.max(saved_indexes.c.change)).where(*of_model)).scalar()
    if last is not None and last > change and not replace:
        return
    remove_index(connection, dataset)
    for part, start in enumerate(range(0, len(content), PART_BYTES)):
        row = {"dataset_id": dataset, "model_id": model, "part": part, "change": change}
        connection.execute(insert(saved_indexes).values(**row, content=content[start : start + PART_BYTES]))


def remove_index(connection: Connection, dataset: int) -> None:
    """Deletes the saved indexes of a dataset, where tables hold them."""
    if dialect_of(connection).searches:
        connection.execute(delete(saved_indexes).where(saved_indexes.c.dataset_id == dataset))
