"""The tables; migrations create them, for PostgreSQL in the form of `storage.postgresql.tables`.

Times are integers (see `heedful.clock`); vectors are half floats."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from heedful.storage.half_vectors import HalfVector
from heedful.storage.isolation import own_project

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite generates numbers for INTEGER keys only.
Sequence = BigInteger().with_variant(Integer, "sqlite")


class Label(String):
    """A short text whose length PostgreSQL doesn't check."""


def _where(condition: str) -> dict[str, Any]:
    """The options of an index of those rows alone."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _columns(kind: Any, names: str, **options: Any) -> list[Column[Any]]:
    """Columns of one type."""
    return [Column(name, kind, **options) for name in names.split()]


def project_column(**options: Any) -> Column[int]:
    """The project of a row: that of the transaction, if none is given."""
    return Column("project_id", Sequence, nullable=False, default=own_project(), **options)


def _id() -> tuple[Column[Any], UniqueConstraint]:
    """An id that no other row of the project has."""
    return Column("id", String(36), nullable=False), UniqueConstraint("id", "project_id")


def _indexes(*columns: str) -> list[Index]:
    """Indexes that are named after their columns."""
    return [Index(None, *names.split()) for names in columns]


def _table(name: str, *parts: Column[Any] | Index | UniqueConstraint, **options: Any) -> Table:
    # Columns first: constraints name them.
    return Table(name, metadata, *sorted(parts, key=lambda part: not isinstance(part, Column)), **options)


def _numbered(key: str, *parts: Column[Any] | Index | UniqueConstraint) -> Table:
    """A table whose rows get numbers in the column after the dot, none of them twice."""
    name, _, key = key.partition(".")
    number = Column(key, Sequence, primary_key=True, autoincrement=True)
    return _table(name, number, *parts, sqlite_autoincrement=True)


projects = _numbered(
    "projects.id",
    Column("name", String(200), nullable=False, unique=True),
    Column("policy", String(50)),
    Column("created_at", BigInteger, nullable=False),
)

datasets = _numbered(
    "datasets.id",
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("policy", String(50)),
    Column("created_at", BigInteger, nullable=False),
    Column("metadata", JSON(none_as_null=True)),
    Column("changes_from", BigInteger, nullable=False, default=0, server_default="0"),
    UniqueConstraint("project_id", "name"),
)
"""With metadata, even empty ones, a dataset was made on purpose, and is there without facts. `changes` before
`changes_from` were removed."""

models = _numbered(
    "models.id",
    Column("name", Text, nullable=False, unique=True),
    Column("dimensions", Integer, nullable=False),
    Column("active", SmallInteger, nullable=False, default=0),
)

facts = _numbered(
    "facts.seq",
    *_id(),
    project_column(),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("source", Text),
    *_columns(Integer, "ordinal start stop", nullable=False, default=0),
    Column("hidden", SmallInteger, nullable=False, default=0),
    Column("linked", SmallInteger, nullable=False, default=0, server_default="0"),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    UniqueConstraint("dataset_id", "digest", "project_id"),
    *_indexes("dataset_id source ordinal", "dataset_id seq"),
    Index("ix_facts_dataset_id_expires_at", "dataset_id", "expires_at", **_where("expires_at IS NOT NULL")),
)
"""From `expires_at` on, a fact is not recalled, listed or counted; maintenance removes it later. Nor is a fact with a
reason in `hidden` (see `facts.SUPERSEDED`), which stays until it is forgotten."""

fact_tags = _table(
    "fact_tags",
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    project_column(primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    *_columns(Text, "key value", primary_key=True),
    Column("number", Float),
    *_indexes("dataset_id key value"),
)
"""Metadata, flattened so that filters use an index on any database."""

vectors = _table(
    "vectors",
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("model_id", ForeignKey("models.id"), primary_key=True),
    project_column(primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("vector", HalfVector, nullable=False),
)
"""Each vector is stamped with its model; a change of model writes new rows beside the old ones first."""

changes = _numbered(
    "changes.seq",
    project_column(),
    *_columns(Sequence, "dataset_id fact_seq", nullable=False),
    Column("kind", SmallInteger, nullable=False),
    *_indexes("dataset_id seq"),
)
"""The feed that indexes follow: facts added (1), removed (0) and relinked (2), in order."""

queries = _numbered(
    "queries.id",
    project_column(),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("model_id", ForeignKey("models.id")),
    Column("vector", LargeBinary),
    UniqueConstraint("dataset_id", "digest", "project_id"),
)

events = _numbered(
    "events.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("dataset_id", Sequence),
    Column("idempotency_key", Text, nullable=False),
    *_columns(String(20), "kind target_type", nullable=False),
    Column("target_id", String(200), nullable=False),
    Column("author", Text),
    Column("author_kind", Label(10), nullable=False, server_default="visitor"),
    Column("source", String(50), nullable=False),
    *_columns(BigInteger, "at recorded_at", nullable=False),
    Column("query_id", Sequence),
    Column("value", Text),
    Column("confidence", Float),
    Column("receipt_id", String(36)),
    Column("rank", Integer),
    Column("body", JSON),
    *_indexes("target_id at", "dataset_id seq", "query_id", "receipt_id", "project_id at"),
    Index("ix_events_successor", "value", **_where("kind = 'supersession'")),
    Index("ix_events_retracted", "target_id", **_where("kind = 'retraction'")),
    Index(
        "ix_events_rare", "dataset_id", "seq", **_where("kind = 'retraction' OR kind = 'strengths' OR kind = 'erasure'")
    ),
    Index("ix_events_target_id_query_id_author", "target_id", "query_id", "author", **_where("author IS NOT NULL")),
)
"""The ledger. Rows are inserted, never changed and never deleted; erasing a person (`ledger.erasure`) is the one
exception, and changes their name alone. On PostgreSQL it is divided by `recorded_at`."""

event_keys = _table(
    "event_keys",
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("event_id", String(36), nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""The event of each idempotency key: nobody uses one twice. Apart from the ledger, because a table that is
divided by time can't hold what is unique for all time. Events whose key is their own id are not here."""

notes = _table(
    "notes",
    Column("event_id", String(36), primary_key=True),
    project_column(primary_key=True),
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), nullable=False, index=True),
    Column("text", Text, nullable=False),
)
"""Comments of people on an event. They may quote the fact, so they go when the fact goes; the event stays."""

scores = _table(
    "scores",
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("query_id", Sequence, primary_key=True),
    project_column(primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("score", Float, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    *_columns(Integer, "used ignored helpful not_helpful", nullable=False),
    *_indexes("dataset_id query_id"),
    sqlite_with_rowid=False,
)
"""Folds of the ledger, kept for speed: one row for each (fact, query), and one with query 0 for all queries."""

receipts = _table(
    "receipts",
    Column("id", String(36), primary_key=True),
    project_column(primary_key=True),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("query_id", Sequence, nullable=False),
    Column("mode", String(20), nullable=False),
    Column("policy", String(50), nullable=False),
    Column("weight", Float, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("shown", JSON, nullable=False),
    *_indexes("dataset_id at", "at"),
)
"""The facts that recalls showed. On PostgreSQL the table is divided by `at`."""

requests = _table(
    "requests",
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("caller", Label(60), primary_key=True, server_default=text("''")),
    Column("idempotency_key", String(200), primary_key=True),
    Column("fingerprint", LargeBinary(16), nullable=False),
    Column("result", JSON, nullable=False),
    Column("at", BigInteger, nullable=False),
    *_indexes("at"),
)
"""The first result of each call that was given an idempotency key. `caller` is who gave it, by the id of a key or
token; empty where a program has the store open itself."""

entities = _numbered(
    "entities.id",
    project_column(),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("key", String(200), nullable=False),
    Column("name", Text, nullable=False),
    UniqueConstraint("dataset_id", "key", "project_id"),
)
"""The people, places and things in facts. `key` is the name as it is compared."""

links = _table(
    "links",
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("entity_id", ForeignKey("entities.id"), primary_key=True),
    project_column(primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("score", Float, nullable=False, default=0.5),
    Column("last_at", BigInteger),
    *_columns(Integer, "used ignored helpful not_helpful", nullable=False, default=0),
    *_indexes("entity_id", "dataset_id"),
)
"""A fact and an entity that it mentions, with the fold of the signals about that link."""

sessions = _numbered(
    "sessions.seq",
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("id", String(200), nullable=False),
    Column("metadata", JSON, nullable=False),
    *_columns(BigInteger, "created_at updated_at", nullable=False),
    Column("unprocessed_event", String(36)),
    UniqueConstraint("project_id", "id"),
    Index("ix_sessions_unprocessed", "project_id", **_where("unprocessed_event IS NOT NULL")),
)
"""Conversations. `unprocessed_event` is the newest feedback or retraction that `improve` has not seen, if any."""

session_tags = _table(
    "session_tags",
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE"), primary_key=True),
    project_column(primary_key=True),
    *_columns(Text, "key value", primary_key=True),
    Column("number", Float),
    *_indexes("project_id key value"),
)

messages = _numbered(
    "messages.seq",
    *_id(),
    project_column(),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE"), nullable=False),
    Column("role", String(50), nullable=False),
    Column("content", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    *_indexes("session_seq seq"),
)

entries = _numbered(
    "entries.seq",
    *_id(),
    project_column(),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE"), nullable=False),
    *_columns(Text, "question answer", nullable=False),
    Column("context", Text),
    Column("at", BigInteger, nullable=False),
    Column("dataset", String(200)),
    Column("recall_id", String(36)),
    Column("used", JSON),
    Column("model", Text),
    Column("usage", JSON),
    *_indexes("session_seq seq"),
)
"""Questions and answers. `used` are the facts an answer was made from, as [id, share, links]; null if not yet known."""

external_ids = _table(
    "external_ids",
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("kind", Label(20), primary_key=True),
    Column("external_id", String(200), primary_key=True),
    Column("target_id", String(36), nullable=False),
    Column("at", BigInteger, nullable=False),
    *_indexes("target_id", "kind at"),
    sqlite_with_rowid=False,
)
"""The ids that callers have for entries, recalls and executions. Apart from them, because `receipts` is divided by
time on PostgreSQL. Those of signals are idempotency keys, in `event_keys`."""

waiting_feedbacks = _table(
    "waiting_feedbacks",
    Column("id", String(36), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("external_id", String(200), nullable=False),
    Column("author", Text),
    Column("author_kind", Label(10), nullable=False),
    Column("rating", Label(10)),
    Column("score", SmallInteger),
    Column("comment", Text),
    Column("extra", JSON),
    Column("at", BigInteger, nullable=False),
    *_indexes("project_id external_id", "at"),
)
"""Ratings of entries that are not there yet, one of each author. They become opinions when their entry comes."""

feedbacks = _numbered(
    "feedbacks.seq",
    Column("id", String(36), nullable=False),
    Column("event_id", String(36), nullable=False),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE")),
    Column("target_type", String(20), nullable=False),
    Column("target_id", String(200), nullable=False),
    Column("author", Text),
    Column("author_kind", Label(10), nullable=False, server_default="visitor"),
    Column("rating", String(10)),
    Column("score", SmallInteger),
    Column("comment", Text),
    Column("extra", JSON),
    *_columns(BigInteger, "at updated_at", nullable=False),
    Column("active", SmallInteger, nullable=False),
    Column("message_id", String(36)),
    Column("about_id", Label(200)),
    UniqueConstraint("event_id", "project_id"),
    *_indexes("id", "session_seq seq", "target_id"),
    Index("ix_feedbacks_about_id", "project_id", "target_type", "rating", "about_id", **_where("about_id IS NOT NULL")),
    *_indexes("project_id at", "message_id"),
)
"""Opinions in the words of people: a row for each version, with its event. One that was replaced or retracted stays,
and is not `active`. What is said in a session goes when the session goes; the event stays.

What replaces feedback about an execution or a message has the same `id`; else that is the event's. `about_id` is what
it counts for: the target, or the execution that the target repeats."""

outbox = _numbered(
    "outbox.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE")),
    Column("channel", String(200), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    *_columns(BigInteger, "next_at delivered_at"),
    Column("error", Text),
    *_indexes("project_id next_at", "session_seq seq"),
)
"""Alerts on their way. `next_at` is when to try next: null when there is nothing left to do."""

connectors = _numbered(
    "connectors.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("url", Text, nullable=False),
    Column("options", JSON, nullable=False),
    Column("enabled", SmallInteger, nullable=False, server_default="1"),
    Column("schema", JSON),
    Column("fingerprint", String(64)),
    Column("schema_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    *_columns(BigInteger, "revision full_revision", nullable=False, default=0, server_default="0"),
    UniqueConstraint("project_id", "name"),
)
"""Databases that executions run against. `url` has references to secrets, or is encrypted; `enabled` is 0 for one that
was imported, until somebody confirms it. `revision` grows with each change of what is proven or wrong on it;
`full_revision` is the last one with changes beyond the executions that have its number."""

executions = _numbered(
    "executions.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("connector_id", String(36), nullable=False),
    Column("question", Text),
    Column("model_id", ForeignKey("models.id")),
    Column("vector", LargeBinary),
    Column("sql_query", Text, nullable=False),
    Column("parameters", JSON, nullable=False),
    Column("template", LargeBinary(16), nullable=False),
    Column("result", JSON, nullable=False),
    Column("row_count", Integer, nullable=False),
    Column("truncated", SmallInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("origin", String(20), nullable=False),
    *_columns(String(36), "derived_from message_id"),
    *_columns(String(200), "chat_session_id audience"),
    Column("fingerprint", String(64)),
    Column("data_version", String(200)),
    Column("at", BigInteger, nullable=False),
    Column("hit", SmallInteger, nullable=False, default=0, server_default="0"),
    *_columns(Label(36), "repeats_id result_id"),
    Column("result_digest", LargeBinary(16)),
    Column("last_hit_id", Label(36)),
    *_columns(BigInteger, "used_at revision"),
    *_indexes("connector_id seq", "connector_id hit seq", "hit at"),
    Index("ix_executions_connector_id_revision", "connector_id", "revision", **_where("revision IS NOT NULL")),
    *_indexes("derived_from"),
    Index("ix_executions_connector_id_result_digest", "connector_id", "result_digest", **_where("result_id IS NULL")),
    Index("ix_executions_result_id", "result_id", **_where("result_id IS NOT NULL")),
    *_indexes("project_id seq", "connector_id template", "message_id"),
)
"""SQL that ran, with its result. `template` is the hash of the SQL without its values.

A `hit` (see `sql.records`) is what the cache ran again. It has no vector; `repeats_id` is the execution
with the same SQL, and `result_id` the one that has the same result, which is stored once. `last_hit_id` is the newest
execution that repeats this one, and `used_at` when it was last used, with other values or not. `revision` is that of
its connector when what people say of it changed last. `audience` is whom it may be reused for: all, if it is NULL.
`chat_session_id` is the session of the message that it ran for."""

golden_examples = _numbered(
    "golden_examples.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("connector_id", String(36), nullable=False),
    Column("question", Text, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("model_id", ForeignKey("models.id")),
    Column("vector", LargeBinary),
    Column("sql_query", Text, nullable=False),
    Column("template", LargeBinary(16), nullable=False),
    Column("origin", String(20), nullable=False),
    Column("execution_id", String(36)),
    Column("audience", String(200)),
    *_columns(BigInteger, "created_at updated_at", nullable=False),
    UniqueConstraint("connector_id", "digest", "project_id"),
    *_indexes("project_id seq"),
)
"""Questions with the SQL that answers them, by people's word, for an audience or for all. `digest` is of both."""

keys = _numbered(
    "keys.seq",
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id")),
    Column("name", String(200), nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("rate_limit", Integer),
    Column("created_at", BigInteger, nullable=False),
    *_columns(BigInteger, "last_used_at revoked_at"),
    *_indexes("project_id"),
)
"""Who may call a server. `digest` is a hash of the secret, which is not stored; without a project, a key opens all."""

signing = _table(
    "signing",
    Column("name", String(50), primary_key=True),
    Column("secret", LargeBinary, nullable=False),
    Column("until", BigInteger),
)
"""The secrets that sign tokens for browsers and logins: the one in use, and the one before it as long as `until`."""

logins = _table(
    "logins",
    Column("digest", LargeBinary(32), primary_key=True),
    Column("key_id", Label(60), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
"""Logins to the dashboard that have not ended, by a hash of the number in the cookie."""

visitor_usage = _table(
    "visitor_usage",
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("subject", Label(32), primary_key=True),
    *_columns(BigInteger, "changes bytes", nullable=False),
)
"""Writes of visitors today: all of them (an empty subject), each author (by a hash), and each about each target (by a
hash of both)."""

audit = _numbered(
    "audit.seq",
    Column("project_id", ForeignKey("projects.id")),
    Column("at", BigInteger, nullable=False),
    Column("kind", Label(10), nullable=False),
    Column("operation", Label(200), nullable=False),
    *_columns(Label(60), "caller address"),
    Column("code", Label(50)),
    Column("target", Label(200)),
    Column("times", BigInteger, nullable=False),
    *_indexes("project_id seq", "at"),
)
"""Who was refused what, and what admins did. Nothing of what was sent is kept. Without a project, an entry concerns the
whole server, or somebody whose key is not known."""

jobs = _numbered(
    "jobs.seq",
    Column("id", Label(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id")),
    Column("kind", Label(50), nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("status", Label(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    *_columns(BigInteger, "done total"),
    Column("error", Text),
    Column("created_at", BigInteger, nullable=False),
    *_columns(BigInteger, "started_at finished_at"),
    Column("due_at", BigInteger, nullable=False),
    Column("owner", Label(36)),
    Column("leased_until", BigInteger),
    Column("cancelling", SmallInteger, nullable=False, default=0),
    *_indexes("status due_at", "project_id seq", "project_id started_at", "project_id status"),
)
"""Work that is done later. A worker that runs a job is its `owner` until `leased_until`, which it renews. `due_at` and
`leased_until` are by the clock of the database's machine."""


IS_EMPTY = "up = 0 AND down = 0 AND neutral = 0 AND scores = 0 AND score_sum = 0 AND rated = 0 AND shown = 0"
"""The condition of counts that say nothing."""

tallies = _table(
    "tallies",
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("target_type", Label(20), primary_key=True),
    *_columns(Text, "dataset model", primary_key=True),
    Column("source", Label(50), primary_key=True),
    Column("author_kind", Label(10), primary_key=True),
    *_columns(BigInteger, "up down neutral scores score_sum rated shown", nullable=False),
    Index("ix_tallies_empty", "project_id", **_where(IS_EMPTY)),
    sqlite_with_rowid=False,
)
"""Folds of what people said, kept for speed: counts by day (since 1970, UTC). The rows with the key "" have all
opinions; those with a key of the sessions' metadata have them by its `value`. Where there is nothing to say, texts are
empty. `rated` and `shown` are counted on the day of the thing itself."""

watermarks = _table(
    "watermarks",
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("name", Label(20), primary_key=True),
    Column("seq", BigInteger, nullable=False),
)
"""Up to which number a table is in a fold; -1 for counts that are to be removed."""

decisions = _numbered(
    "decisions.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("connector_id", Label(36), nullable=False),
    Column("question", Text, nullable=False),
    Column("decision", Label(10), nullable=False),
    Column("gate", Label(50), nullable=False),
    Column("reason", Text, nullable=False),
    Column("similarity", Float),
    *_columns(Label(36), "candidate_id execution_id"),
    Column("at", BigInteger, nullable=False),
    Index("ix_decisions_project_id_at", "project_id", "at", "decision", "gate"),
)
"""Decisions of the cache, with the reason."""

review_items = _numbered(
    "review_items.seq",
    *_id(),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("target_type", Label(20), nullable=False),
    Column("dataset", Text),
    Column("digest", LargeBinary(16), nullable=False),
    Column("model_id", ForeignKey("models.id")),
    Column("vector", LargeBinary),
    Column("status", Label(10), nullable=False),
    Column("assignee", Text),
    Column("opinions", Integer, nullable=False),
    *_columns(BigInteger, "opened_at last_at changed_at", nullable=False),
    UniqueConstraint("project_id", "digest"),
    *_indexes("project_id status opinions"),
)
"""Work to do: negative opinions that say the same. `digest` is a hash of what makes them the same, `vector` the
question they are about, `status` and `assignee` the fold of the events about the item."""

review_members = _table(
    "review_members",
    Column("event_id", Label(36), primary_key=True),
    Column("item_seq", ForeignKey("review_items.seq", ondelete="CASCADE"), nullable=False),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("target_type", Label(20), nullable=False),
    Column("target_id", Label(200), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("active", SmallInteger, nullable=False),
    *_indexes("item_seq active at", "target_id"),
)
"""The opinions that an item is made of, under the ids of their events."""

review_notes = _table(
    "review_notes",
    Column("event_id", Label(36), primary_key=True),
    Column("item_seq", ForeignKey("review_items.seq", ondelete="CASCADE"), nullable=False, index=True),
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("text", Text, nullable=False),
)
"""Comments of reviewers on an event, which itself has no words."""
