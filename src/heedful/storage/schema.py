"""The tables. Times are integers (see `heedful.clock`); vectors are half floats."""

from __future__ import annotations

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

projects = Table(
    "projects",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("policy", String(50)),
    Column("created_at", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("policy", String(50)),
    Column("created_at", BigInteger, nullable=False),
    Column("metadata", JSON(none_as_null=True)),
    Column("changes_from", BigInteger, nullable=False, default=0, server_default="0"),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)
"""With metadata, even empty ones, a dataset was made on purpose, and is there without facts. `changes` before
`changes_from` were removed."""

models = Table(
    "models",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("dimensions", Integer, nullable=False),
    Column("active", SmallInteger, nullable=False, default=0),
    sqlite_autoincrement=True,
)

facts = Table(
    "facts",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("source", Text),
    Column("ordinal", Integer, nullable=False, default=0),
    Column("start", Integer, nullable=False, default=0),
    Column("stop", Integer, nullable=False, default=0),
    Column("hidden", SmallInteger, nullable=False, default=0),
    Column("linked", SmallInteger, nullable=False, default=0, server_default="0"),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    UniqueConstraint("dataset_id", "digest"),
    Index("ix_facts_dataset_id_source_ordinal", "dataset_id", "source", "ordinal"),
    Index(
        "ix_facts_dataset_id_expires_at",
        "dataset_id",
        "expires_at",
        sqlite_where=text("expires_at IS NOT NULL"),
        postgresql_where=text("expires_at IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
"""From `expires_at` on, a fact is not recalled, listed or counted; maintenance removes it later. Nor is a fact with a
reason in `hidden` (see `facts.SUPERSEDED`), which stays until it is forgotten."""

fact_tags = Table(
    "fact_tags",
    metadata,
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("key", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("number", Float),
    Index("ix_fact_tags_dataset_id_key_value", "dataset_id", "key", "value"),
)
"""Metadata, flattened so that filters use an index on any database."""

vectors = Table(
    "vectors",
    metadata,
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("model_id", ForeignKey("models.id"), primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("vector", HalfVector, nullable=False),
)
"""Each vector is stamped with its model; a change of model writes new rows beside the old ones first."""

changes = Table(
    "changes",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("fact_seq", Sequence, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Index("ix_changes_dataset_id_seq", "dataset_id", "seq"),
    sqlite_autoincrement=True,
)
"""The feed that indexes follow: facts added (1), removed (0) and relinked (2), in order."""

queries = Table(
    "queries",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("model_id", ForeignKey("models.id")),
    Column("vector", LargeBinary),
    UniqueConstraint("dataset_id", "digest"),
    sqlite_autoincrement=True,
)

_CORRECTS = text("kind = 'supersession'")

events = Table(
    "events",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("dataset_id", Sequence),
    Column("idempotency_key", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("target_type", String(20), nullable=False),
    Column("target_id", String(200), nullable=False),
    Column("author", Text),
    Column("author_kind", String(10), nullable=False, server_default="visitor"),
    Column("source", String(50), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Column("query_id", Sequence),
    Column("value", Text),
    Column("confidence", Float),
    Column("receipt_id", String(36)),
    Column("rank", Integer),
    Column("body", JSON),
    Index("ix_events_target_id_at", "target_id", "at"),
    Index("ix_events_dataset_id_seq", "dataset_id", "seq"),
    Index("ix_events_query_id", "query_id"),
    Index("ix_events_receipt_id", "receipt_id"),
    Index("ix_events_project_id_at", "project_id", "at"),
    Index("ix_events_successor", "value", sqlite_where=_CORRECTS, postgresql_where=_CORRECTS),
    Index(
        "ix_events_target_id_query_id_author",
        "target_id",
        "query_id",
        "author",
        sqlite_where=text("author IS NOT NULL"),
        postgresql_where=text("author IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
"""The ledger. Rows are inserted, never changed and never deleted; erasing a person (`storage.erasure`) is the one
exception, and changes their name alone. On PostgreSQL it is divided by `recorded_at`."""

event_keys = Table(
    "event_keys",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("event_id", String(36), nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Which event an idempotency key was used for: nobody uses one twice. Apart from the ledger, because a table that is
divided by time can't hold what is unique for all time. Events whose key is their own id are not here."""

notes = Table(
    "notes",
    metadata,
    Column("event_id", String(36), primary_key=True),
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), nullable=False, index=True),
    Column("text", Text, nullable=False),
)
"""What people wrote with an event. It may quote the fact, so it goes when the fact goes; the event stays."""

scores = Table(
    "scores",
    metadata,
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("query_id", Sequence, primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("score", Float, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    Column("used", Integer, nullable=False),
    Column("ignored", Integer, nullable=False),
    Column("helpful", Integer, nullable=False),
    Column("not_helpful", Integer, nullable=False),
    Index("ix_scores_dataset_id_query_id", "dataset_id", "query_id"),
    sqlite_with_rowid=False,
)
"""Folds of the ledger, kept for speed: one row for each (fact, query), and one with query 0 for all queries."""

receipts = Table(
    "receipts",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("query_id", Sequence, nullable=False),
    Column("mode", String(20), nullable=False),
    Column("policy", String(50), nullable=False),
    Column("weight", Float, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("shown", JSON, nullable=False),
    Index("ix_receipts_dataset_id_at", "dataset_id", "at"),
    Index("ix_receipts_at", "at"),
)
"""What recalls showed. On PostgreSQL it is divided by `at`."""

requests = Table(
    "requests",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("caller", String(60), primary_key=True, server_default=text("''")),
    Column("idempotency_key", String(200), primary_key=True),
    Column("fingerprint", LargeBinary(16), nullable=False),
    Column("result", JSON, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_requests_at", "at"),
)
"""The first result of each call that was given an idempotency key. `caller` is who gave it, by the id of a key or
token; empty where a program has the store open itself."""

entities = Table(
    "entities",
    metadata,
    Column("id", Sequence, primary_key=True, autoincrement=True),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False),
    Column("key", String(200), nullable=False),
    Column("name", Text, nullable=False),
    UniqueConstraint("dataset_id", "key"),
    sqlite_autoincrement=True,
)
"""What facts speak of: people, places, things. `key` is the name as it is compared."""

links = Table(
    "links",
    metadata,
    Column("fact_seq", ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
    Column("entity_id", ForeignKey("entities.id"), primary_key=True),
    Column("dataset_id", Sequence, nullable=False),
    Column("score", Float, nullable=False, default=0.5),
    Column("last_at", BigInteger),
    Column("used", Integer, nullable=False, default=0),
    Column("ignored", Integer, nullable=False, default=0),
    Column("helpful", Integer, nullable=False, default=0),
    Column("not_helpful", Integer, nullable=False, default=0),
    Index("ix_links_entity_id", "entity_id"),
    Index("ix_links_dataset_id", "dataset_id"),
)
"""Which fact mentions which entity, with the fold of the signals about that link."""

sessions = Table(
    "sessions",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("id", String(200), nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("unprocessed_event", String(36)),
    UniqueConstraint("project_id", "id"),
    Index(
        "ix_sessions_unprocessed",
        "project_id",
        sqlite_where=text("unprocessed_event IS NOT NULL"),
        postgresql_where=text("unprocessed_event IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
"""Conversations. `unprocessed_event` is the newest feedback or retraction that `improve` has not seen, if any."""

session_tags = Table(
    "session_tags",
    metadata,
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE"), primary_key=True),
    Column("project_id", Sequence, nullable=False),
    Column("key", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("number", Float),
    Index("ix_session_tags_project_id_key_value", "project_id", "key", "value"),
)

messages = Table(
    "messages",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE"), nullable=False),
    Column("role", String(50), nullable=False),
    Column("content", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_messages_session_seq_seq", "session_seq", "seq"),
    sqlite_autoincrement=True,
)

entries = Table(
    "entries",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE"), nullable=False),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("context", Text),
    Column("at", BigInteger, nullable=False),
    Column("dataset", String(200)),
    Column("recall_id", String(36)),
    Column("used", JSON),
    Column("model", Text),
    Column("usage", JSON),
    Index("ix_entries_session_seq_seq", "session_seq", "seq"),
    sqlite_autoincrement=True,
)
"""Questions and answers. `used` are the facts an answer was made from, as [id, share, links]; null if not yet known."""

external_ids = Table(
    "external_ids",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("external_id", String(200), primary_key=True),
    Column("target_id", String(36), nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("ix_external_ids_target_id", "target_id"),
    Index("ix_external_ids_kind_at", "kind", "at"),
    sqlite_with_rowid=False,
)
"""The ids that callers have for entries, recalls and executions. Apart from them, because `receipts` is divided by
time on PostgreSQL. Those of signals are idempotency keys, in `event_keys`."""

waiting_feedbacks = Table(
    "waiting_feedbacks",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("external_id", String(200), nullable=False),
    Column("author", Text),
    Column("author_kind", String(10), nullable=False),
    Column("rating", String(10)),
    Column("score", SmallInteger),
    Column("comment", Text),
    Column("extra", JSON),
    Column("at", BigInteger, nullable=False),
    Index("ix_waiting_feedbacks_project_id_external_id", "project_id", "external_id"),
    Index("ix_waiting_feedbacks_at", "at"),
)
"""Ratings of entries that are not there yet, one of each author. They become opinions when their entry comes."""

feedbacks = Table(
    "feedbacks",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False),
    Column("event_id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE")),
    Column("target_type", String(20), nullable=False),
    Column("target_id", String(200), nullable=False),
    Column("author", Text),
    Column("author_kind", String(10), nullable=False, server_default="visitor"),
    Column("rating", String(10)),
    Column("score", SmallInteger),
    Column("comment", Text),
    Column("extra", JSON),
    Column("at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("active", SmallInteger, nullable=False),
    Column("message_id", String(36)),
    Column("about_id", String(200)),
    Index("ix_feedbacks_id", "id"),
    Index("ix_feedbacks_session_seq_seq", "session_seq", "seq"),
    Index("ix_feedbacks_target_id", "target_id"),
    Index(
        "ix_feedbacks_about_id",
        "project_id",
        "target_type",
        "rating",
        "about_id",
        sqlite_where=text("about_id IS NOT NULL"),
        postgresql_where=text("about_id IS NOT NULL"),
    ),
    Index("ix_feedbacks_project_id_at", "project_id", "at"),
    Index("ix_feedbacks_message_id", "message_id"),
    sqlite_autoincrement=True,
)
"""What people said, in their words: a row for each version, with its event. One that was replaced or retracted stays,
and is not `active`. What is said in a session goes when the session goes; the event stays.

What replaces feedback about an execution or a message has the same `id`; else that is the event's. `about_id` is what
it counts for: the target, or the execution that the target repeats."""

outbox = Table(
    "outbox",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("session_seq", ForeignKey("sessions.seq", ondelete="CASCADE")),
    Column("channel", String(200), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger),
    Column("delivered_at", BigInteger),
    Column("error", Text),
    Index("ix_outbox_project_id_next_at", "project_id", "next_at"),
    Index("ix_outbox_session_seq_seq", "session_seq", "seq"),
    sqlite_autoincrement=True,
)
"""Alerts on their way. `next_at` is when to try next: null when there is nothing left to do."""

connectors = Table(
    "connectors",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("name", String(200), nullable=False),
    Column("url", Text, nullable=False),
    Column("options", JSON, nullable=False),
    Column("enabled", SmallInteger, nullable=False, server_default="1"),
    Column("schema", JSON),
    Column("fingerprint", String(64)),
    Column("schema_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False, default=0, server_default="0"),
    Column("full_revision", BigInteger, nullable=False, default=0, server_default="0"),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)
"""Databases that executions run against. `url` has references to secrets, or is encrypted; `enabled` is 0 for one that
was imported, until somebody confirms it. `revision` grows with each change of what is proven or wrong on it;
`full_revision` is the last one with changes beyond the executions that have its number."""

executions = Table(
    "executions",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
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
    Column("derived_from", String(36)),
    Column("message_id", String(36)),
    Column("chat_session_id", String(200)),
    Column("audience", String(200)),
    Column("fingerprint", String(64)),
    Column("data_version", String(200)),
    Column("at", BigInteger, nullable=False),
    Column("hit", SmallInteger, nullable=False, default=0, server_default="0"),
    Column("repeats_id", String(36)),
    Column("result_id", String(36)),
    Column("result_digest", LargeBinary(16)),
    Column("last_hit_id", String(36)),
    Column("used_at", BigInteger),
    Column("revision", BigInteger),
    Index("ix_executions_connector_id_seq", "connector_id", "seq"),
    Index("ix_executions_connector_id_hit_seq", "connector_id", "hit", "seq"),
    Index("ix_executions_hit_at", "hit", "at"),
    Index(
        "ix_executions_connector_id_revision",
        "connector_id",
        "revision",
        sqlite_where=text("revision IS NOT NULL"),
        postgresql_where=text("revision IS NOT NULL"),
    ),
    Index("ix_executions_derived_from", "derived_from"),
    Index(
        "ix_executions_connector_id_result_digest",
        "connector_id",
        "result_digest",
        sqlite_where=text("result_id IS NULL"),
        postgresql_where=text("result_id IS NULL"),
    ),
    Index(
        "ix_executions_result_id",
        "result_id",
        sqlite_where=text("result_id IS NOT NULL"),
        postgresql_where=text("result_id IS NOT NULL"),
    ),
    Index("ix_executions_project_id_seq", "project_id", "seq"),
    Index("ix_executions_connector_id_template", "connector_id", "template"),
    Index("ix_executions_message_id", "message_id"),
    sqlite_autoincrement=True,
)
"""SQL that ran, with its result. `template` is the hash of the SQL without its values.

A `hit` (see `storage.executions.runs`) is what the cache ran again. It has no vector; `repeats_id` is the execution
with the same SQL, and `result_id` the one that has the same result, which is stored once. `last_hit_id` is the newest
execution that repeats this one, and `used_at` when it was last used, with other values or not. `revision` is that of
its connector when what people say of it changed last. `audience` is whom it may be reused for: all, if it is NULL.
`chat_session_id` is the session of the message that it ran for."""

golden_examples = Table(
    "golden_examples",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
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
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("connector_id", "digest"),
    Index("ix_golden_examples_project_id_seq", "project_id", "seq"),
    sqlite_autoincrement=True,
)
"""Questions with the SQL that answers them, by people's word, for an audience or for all. `digest` is of both."""

keys = Table(
    "keys",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id")),
    Column("name", String(200), nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("rate_limit", Integer),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("revoked_at", BigInteger),
    Index("ix_keys_project_id", "project_id"),
    sqlite_autoincrement=True,
)
"""Who may call a server. `digest` is a hash of the secret, which is not stored; without a project, a key opens all."""

signing = Table(
    "signing",
    metadata,
    Column("name", String(50), primary_key=True),
    Column("secret", LargeBinary, nullable=False),
    Column("until", BigInteger),
)
"""What tokens for browsers and logins are signed with: the secret in use, and the one before it as long as `until`."""

logins = Table(
    "logins",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("key_id", String(60), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
"""Logins to the dashboard that have not ended, by a hash of the number in the cookie."""

visitor_usage = Table(
    "visitor_usage",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("subject", String(32), primary_key=True),
    Column("changes", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)
"""What visitors wrote today: all of them (an empty subject), each author (by a hash), and each about each target (by a
hash of both)."""

audit = Table(
    "audit",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("project_id", ForeignKey("projects.id")),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("operation", String(200), nullable=False),
    Column("caller", String(60)),
    Column("address", String(60)),
    Column("code", String(50)),
    Column("target", String(200)),
    Column("times", BigInteger, nullable=False),
    Index("ix_audit_project_id_seq", "project_id", "seq"),
    Index("ix_audit_at", "at"),
    sqlite_autoincrement=True,
)
"""Who was refused what, and what admins did. Nothing of what was sent is kept. Without a project, an entry concerns the
whole server, or somebody whose key is not known."""

jobs = Table(
    "jobs",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id")),
    Column("kind", String(50), nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("status", String(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("done", BigInteger),
    Column("total", BigInteger),
    Column("error", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("due_at", BigInteger, nullable=False),
    Column("owner", String(36)),
    Column("leased_until", BigInteger),
    Column("cancelling", SmallInteger, nullable=False, default=0),
    Column("queue_number", BigInteger, unique=True),
    Index("ix_jobs_status_due_at", "status", "due_at"),
    Index("ix_jobs_project_id_seq", "project_id", "seq"),
    Index("ix_jobs_project_id_started_at", "project_id", "started_at"),
    Index("ix_jobs_project_id_status", "project_id", "status"),
    sqlite_autoincrement=True,
)
"""Work that is done later. On PostgreSQL, procrastinate hands it out: `queue_number` is its own, a trigger keeps
`status` and `due_at`, and its tables have owner, lease and cancelling. `due_at` and `leased_until` are by the system's
clock."""
