"""The tables of the first release."""

from importlib.resources import files

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from heedful.storage.half_vectors import HalfVector
from heedful.storage.migrations.row_security import secure_all_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite generates numbers for INTEGER keys only.
Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# Texts are ordered by their bytes, as in SQLite, whatever the database's own collation is.
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def string(length):
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def label(length):
    """A short text whose length PostgreSQL doesn't check."""
    return sa.String(length).with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    connection = op.get_bind()
    on_postgresql = connection.dialect.name == "postgresql"
    _create_tables(partitioned=on_postgresql)
    if on_postgresql:
        _create_search_tables()
        secure_all_tables(connection)
        for table in ("events", "receipts"):
            op.execute(f"CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT")
        _create_job_queue(connection)


def _create_job_queue(connection) -> None:
    """The tables of procrastinate as of its version 3.10, whichever version is installed."""
    # The driver takes many statements at once where they have no parameters; SQLAlchemy would look for some.
    execute = connection.connection.driver_connection.execute
    execute(files("heedful.storage.migrations").joinpath("procrastinate.sql").read_text(encoding="utf-8"))
    execute(FOLLOW)


# What procrastinate decides is what the record says, in the same transaction.
FOLLOW = """
CREATE FUNCTION jobs_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_stored bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    new_status text := CASE NEW.status::text
        WHEN 'todo' THEN 'waiting' WHEN 'doing' THEN 'running' WHEN 'succeeded' THEN 'done'
        WHEN 'failed' THEN 'failed' ELSE 'cancelled' END;
BEGIN
    UPDATE jobs SET
        status = new_status,
        due_at = COALESCE((extract(epoch FROM NEW.scheduled_at) * 1000000)::bigint, due_at),
        finished_at = CASE WHEN new_status IN ('waiting', 'running') THEN NULL
            ELSE COALESCE(finished_at, now_stored) END
        WHERE queue_number = NEW.id;
    RETURN NEW;
END;
$$;
CREATE TRIGGER jobs_follow AFTER UPDATE OF status ON procrastinate_jobs
    FOR EACH ROW EXECUTE PROCEDURE jobs_follow();
"""


def _create_search_tables() -> None:
    """What PostgreSQL searches words in, and the indexes that processes keep; on SQLite, files do that."""
    op.create_table(
        "words",
        sa.Column(
            "fact_seq",
            sa.BigInteger,
            sa.ForeignKey("facts.seq", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("dataset_id", sa.BigInteger, nullable=False),
        sa.Column("terms", ARRAY(sa.BigInteger), nullable=False),
    )
    op.create_table(
        "common_terms",
        sa.Column("dataset_id", sa.BigInteger, primary_key=True),
        sa.Column("term", sa.BigInteger, primary_key=True),
        sa.Column("holders", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "searched",
        sa.Column("dataset_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("model_id", sa.BigInteger),
        sa.Column("facts", sa.BigInteger, nullable=False),
        sa.Column("length", sa.Float, nullable=False),
    )
    op.create_table(
        "saved_indexes",
        sa.Column(
            "dataset_id",
            sa.BigInteger,
            sa.ForeignKey("datasets.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("model_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("change", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    # Compressing it would take longer than reading it.
    op.execute("ALTER TABLE saved_indexes ALTER COLUMN content SET STORAGE EXTERNAL")


def _where(condition):
    """An index of those rows alone."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _create_tables(partitioned) -> None:
    """With `partitioned`, the ledger and the receipts are partitioned by time, which has to be in their keys then."""
    op.create_table(
        "projects",
        sa.Column("id", Number, primary_key=True, autoincrement=True),
        sa.Column("name", string(200), nullable=False, unique=True),
        sa.Column("policy", string(50)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "datasets",
        sa.Column("id", Number, primary_key=True, autoincrement=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("name", string(200), nullable=False),
        sa.Column("policy", string(50)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("metadata", sa.JSON(none_as_null=True)),
        sa.Column("changes_from", sa.BigInteger, nullable=False, server_default="0"),
        sa.UniqueConstraint("project_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "models",
        sa.Column("id", Number, primary_key=True, autoincrement=True),
        sa.Column("name", Text, nullable=False, unique=True),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("active", sa.SmallInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "facts",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("dataset_id", Number, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("text", Text, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("source", Text),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("stop", sa.Integer, nullable=False),
        sa.Column("hidden", sa.SmallInteger, nullable=False),
        sa.Column("linked", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.UniqueConstraint("dataset_id", "digest"),
        sa.Index("ix_facts_dataset_id_expires_at", "dataset_id", "expires_at", **_where("expires_at IS NOT NULL")),
        sa.Index("ix_facts_dataset_id_source_ordinal", "dataset_id", "source", "ordinal"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "fact_tags",
        sa.Column("fact_seq", Number, sa.ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
        sa.Column("dataset_id", Number, nullable=False),
        sa.Column("key", Text, primary_key=True),
        sa.Column("value", Text, primary_key=True),
        sa.Column("number", sa.Float),
        sa.Index("ix_fact_tags_dataset_id_key_value", "dataset_id", "key", "value"),
    )
    op.create_table(
        "vectors",
        sa.Column("fact_seq", Number, sa.ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
        sa.Column("model_id", Number, sa.ForeignKey("models.id"), primary_key=True),
        sa.Column("dataset_id", Number, nullable=False),
        sa.Column("vector", HalfVector, nullable=False),
    )
    op.create_table(
        "changes",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("dataset_id", Number, nullable=False),
        sa.Column("fact_seq", Number, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Index("ix_changes_dataset_id_seq", "dataset_id", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "queries",
        sa.Column("id", Number, primary_key=True, autoincrement=True),
        sa.Column("dataset_id", Number, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("text", Text, nullable=False),
        sa.Column("model_id", Number, sa.ForeignKey("models.id")),
        sa.Column("vector", sa.LargeBinary),
        sa.UniqueConstraint("dataset_id", "digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "events",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("dataset_id", Number),
        sa.Column("idempotency_key", Text, nullable=False),
        sa.Column("kind", string(20), nullable=False),
        sa.Column("target_type", string(20), nullable=False),
        sa.Column("target_id", string(200), nullable=False),
        sa.Column("author", Text),
        sa.Column("author_kind", label(10), nullable=False, server_default="visitor"),
        sa.Column("source", string(50), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("recorded_at", sa.BigInteger, primary_key=partitioned, nullable=False),
        sa.Column("query_id", Number),
        sa.Column("value", Text),
        sa.Column("confidence", sa.Float),
        sa.Column("receipt_id", string(36)),
        sa.Column("rank", sa.Integer),
        sa.Column("body", sa.JSON),
        sa.UniqueConstraint("id", *(["recorded_at"] if partitioned else []), name="uq_events_id"),
        sa.Index("ix_events_dataset_id_seq", "dataset_id", "seq"),
        sa.Index("ix_events_project_id_at", "project_id", "at"),
        sa.Index("ix_events_query_id", "query_id"),
        sa.Index("ix_events_receipt_id", "receipt_id"),
        sa.Index("ix_events_successor", "value", **_where("kind = 'supersession'")),
        sa.Index("ix_events_target_id_at", "target_id", "at"),
        sa.Index(
            "ix_events_target_id_query_id_author", "target_id", "query_id", "author", **_where("author IS NOT NULL")
        ),
        sqlite_autoincrement=True,
        postgresql_partition_by="RANGE (recorded_at)",
    )
    op.create_table(
        "event_keys",
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("idempotency_key", Text, primary_key=True),
        sa.Column("event_id", string(36), nullable=False),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "notes",
        sa.Column("event_id", string(36), primary_key=True),
        sa.Column("fact_seq", Number, sa.ForeignKey("facts.seq", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("text", Text, nullable=False),
    )
    op.create_table(
        "scores",
        sa.Column("fact_seq", Number, sa.ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
        sa.Column("query_id", Number, primary_key=True),
        sa.Column("dataset_id", Number, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("last_at", sa.BigInteger, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.Column("ignored", sa.Integer, nullable=False),
        sa.Column("helpful", sa.Integer, nullable=False),
        sa.Column("not_helpful", sa.Integer, nullable=False),
        sa.Index("ix_scores_dataset_id_query_id", "dataset_id", "query_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "receipts",
        sa.Column("id", string(36), primary_key=True),
        sa.Column("dataset_id", Number, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("query_id", Number, nullable=False),
        sa.Column("mode", string(20), nullable=False),
        sa.Column("policy", string(50), nullable=False),
        sa.Column("weight", sa.Float, nullable=False),
        sa.Column("at", sa.BigInteger, primary_key=partitioned, nullable=False),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Index("ix_receipts_at", "at"),
        sa.Index("ix_receipts_dataset_id_at", "dataset_id", "at"),
        postgresql_partition_by="RANGE (at)",
    )
    op.create_table(
        "requests",
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("caller", label(60), primary_key=True, server_default=sa.text("''")),
        sa.Column("idempotency_key", string(200), primary_key=True),
        sa.Column("fingerprint", sa.LargeBinary(16), nullable=False),
        sa.Column("result", sa.JSON, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Index("ix_requests_at", "at"),
    )
    op.create_table(
        "entities",
        sa.Column("id", Number, primary_key=True, autoincrement=True),
        sa.Column("dataset_id", Number, sa.ForeignKey("datasets.id"), nullable=False),
        sa.Column("key", string(200), nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.UniqueConstraint("dataset_id", "key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "links",
        sa.Column("fact_seq", Number, sa.ForeignKey("facts.seq", ondelete="CASCADE"), primary_key=True),
        sa.Column("entity_id", Number, sa.ForeignKey("entities.id"), primary_key=True),
        sa.Column("dataset_id", Number, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("last_at", sa.BigInteger),
        sa.Column("used", sa.Integer, nullable=False),
        sa.Column("ignored", sa.Integer, nullable=False),
        sa.Column("helpful", sa.Integer, nullable=False),
        sa.Column("not_helpful", sa.Integer, nullable=False),
        sa.Index("ix_links_dataset_id", "dataset_id"),
        sa.Index("ix_links_entity_id", "entity_id"),
    )
    op.create_table(
        "sessions",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("id", string(200), nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("unprocessed_event", string(36)),
        sa.UniqueConstraint("project_id", "id"),
        sa.Index("ix_sessions_unprocessed", "project_id", **_where("unprocessed_event IS NOT NULL")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "session_tags",
        sa.Column("session_seq", Number, sa.ForeignKey("sessions.seq", ondelete="CASCADE"), primary_key=True),
        sa.Column("project_id", Number, nullable=False),
        sa.Column("key", Text, primary_key=True),
        sa.Column("value", Text, primary_key=True),
        sa.Column("number", sa.Float),
        sa.Index("ix_session_tags_project_id_key_value", "project_id", "key", "value"),
    )
    op.create_table(
        "messages",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("session_seq", Number, sa.ForeignKey("sessions.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("role", string(50), nullable=False),
        sa.Column("content", Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Index("ix_messages_session_seq_seq", "session_seq", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "entries",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("session_seq", Number, sa.ForeignKey("sessions.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("question", Text, nullable=False),
        sa.Column("answer", Text, nullable=False),
        sa.Column("context", Text),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("dataset", string(200)),
        sa.Column("recall_id", string(36)),
        sa.Column("used", sa.JSON),
        sa.Column("model", Text),
        sa.Column("usage", sa.JSON),
        sa.Index("ix_entries_session_seq_seq", "session_seq", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "external_ids",
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("kind", label(20), primary_key=True),
        sa.Column("external_id", string(200), primary_key=True),
        sa.Column("target_id", string(36), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Index("ix_external_ids_target_id", "target_id"),
        sa.Index("ix_external_ids_kind_at", "kind", "at"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "waiting_feedbacks",
        sa.Column("id", string(36), primary_key=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("external_id", string(200), nullable=False),
        sa.Column("author", Text),
        sa.Column("author_kind", label(10), nullable=False),
        sa.Column("rating", label(10)),
        sa.Column("score", sa.SmallInteger),
        sa.Column("comment", Text),
        sa.Column("extra", sa.JSON),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Index("ix_waiting_feedbacks_project_id_external_id", "project_id", "external_id"),
        sa.Index("ix_waiting_feedbacks_at", "at"),
    )
    op.create_table(
        "feedbacks",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False),
        sa.Column("event_id", string(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("session_seq", Number, sa.ForeignKey("sessions.seq", ondelete="CASCADE")),
        sa.Column("target_type", string(20), nullable=False),
        sa.Column("target_id", string(200), nullable=False),
        sa.Column("author", Text),
        sa.Column("author_kind", label(10), nullable=False, server_default="visitor"),
        sa.Column("rating", string(10)),
        sa.Column("score", sa.SmallInteger),
        sa.Column("comment", Text),
        sa.Column("extra", sa.JSON),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("active", sa.SmallInteger, nullable=False),
        sa.Column("message_id", string(36)),
        sa.Column("about_id", label(200)),
        sa.Index(
            "ix_feedbacks_about_id", "project_id", "target_type", "rating", "about_id", **_where("about_id IS NOT NULL")
        ),
        sa.Index("ix_feedbacks_id", "id"),
        sa.Index("ix_feedbacks_message_id", "message_id"),
        sa.Index("ix_feedbacks_project_id_at", "project_id", "at"),
        sa.Index("ix_feedbacks_session_seq_seq", "session_seq", "seq"),
        sa.Index("ix_feedbacks_target_id", "target_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "outbox",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("session_seq", Number, sa.ForeignKey("sessions.seq", ondelete="CASCADE")),
        sa.Column("channel", string(200), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.BigInteger),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("error", Text),
        sa.Index("ix_outbox_project_id_next_at", "project_id", "next_at"),
        sa.Index("ix_outbox_session_seq_seq", "session_seq", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "connectors",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("name", string(200), nullable=False),
        sa.Column("url", Text, nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("enabled", sa.SmallInteger, nullable=False, server_default="1"),
        sa.Column("schema", sa.JSON),
        sa.Column("fingerprint", string(64)),
        sa.Column("schema_at", sa.BigInteger),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("full_revision", sa.BigInteger, nullable=False, server_default="0"),
        sa.UniqueConstraint("project_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "executions",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("connector_id", string(36), nullable=False),
        sa.Column("question", Text),
        sa.Column("model_id", Number, sa.ForeignKey("models.id")),
        sa.Column("vector", sa.LargeBinary),
        sa.Column("sql_query", Text, nullable=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("template", sa.LargeBinary(16), nullable=False),
        sa.Column("result", sa.JSON, nullable=False),
        sa.Column("row_count", sa.Integer, nullable=False),
        sa.Column("truncated", sa.SmallInteger, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("origin", string(20), nullable=False),
        sa.Column("derived_from", string(36)),
        sa.Column("message_id", string(36)),
        sa.Column("chat_session_id", string(200)),
        sa.Column("audience", string(200)),
        sa.Column("fingerprint", string(64)),
        sa.Column("data_version", string(200)),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("hit", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("repeats_id", label(36)),
        sa.Column("result_id", label(36)),
        sa.Column("result_digest", sa.LargeBinary(16)),
        sa.Column("last_hit_id", label(36)),
        sa.Column("used_at", sa.BigInteger),
        sa.Column("revision", sa.BigInteger),
        sa.Index("ix_executions_connector_id_hit_seq", "connector_id", "hit", "seq"),
        sa.Index(
            "ix_executions_connector_id_result_digest", "connector_id", "result_digest", **_where("result_id IS NULL")
        ),
        sa.Index("ix_executions_connector_id_revision", "connector_id", "revision", **_where("revision IS NOT NULL")),
        sa.Index("ix_executions_connector_id_seq", "connector_id", "seq"),
        sa.Index("ix_executions_connector_id_template", "connector_id", "template"),
        sa.Index("ix_executions_derived_from", "derived_from"),
        sa.Index("ix_executions_hit_at", "hit", "at"),
        sa.Index("ix_executions_message_id", "message_id"),
        sa.Index("ix_executions_project_id_seq", "project_id", "seq"),
        sa.Index("ix_executions_result_id", "result_id", **_where("result_id IS NOT NULL")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "golden_examples",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("connector_id", string(36), nullable=False),
        sa.Column("question", Text, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("model_id", Number, sa.ForeignKey("models.id")),
        sa.Column("vector", sa.LargeBinary),
        sa.Column("sql_query", Text, nullable=False),
        sa.Column("template", sa.LargeBinary(16), nullable=False),
        sa.Column("origin", string(20), nullable=False),
        sa.Column("execution_id", string(36)),
        sa.Column("audience", string(200)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("connector_id", "digest"),
        sa.Index("ix_golden_examples_project_id_seq", "project_id", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "keys",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", string(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id")),
        sa.Column("name", string(200), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("rate_limit", sa.Integer),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Index("ix_keys_project_id", "project_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "signing",
        sa.Column("name", string(50), primary_key=True),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("until", sa.BigInteger),
    )
    op.create_table(
        "logins",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("key_id", label(60), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "visitor_usage",
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("subject", label(32), primary_key=True),
        sa.Column("changes", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id")),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", label(10), nullable=False),
        sa.Column("operation", label(200), nullable=False),
        sa.Column("caller", label(60)),
        sa.Column("address", label(60)),
        sa.Column("code", label(50)),
        sa.Column("target", label(200)),
        sa.Column("times", sa.BigInteger, nullable=False),
        sa.Index("ix_audit_at", "at"),
        sa.Index("ix_audit_project_id_seq", "project_id", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "jobs",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", label(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id")),
        sa.Column("kind", label(50), nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("status", label(20), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("done", sa.BigInteger),
        sa.Column("total", sa.BigInteger),
        sa.Column("error", Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("owner", label(36)),
        sa.Column("leased_until", sa.BigInteger),
        sa.Column("cancelling", sa.SmallInteger, nullable=False),
        sa.Column("queue_number", sa.BigInteger, unique=True),
        sa.Index("ix_jobs_project_id_seq", "project_id", "seq"),
        sa.Index("ix_jobs_project_id_started_at", "project_id", "started_at"),
        sa.Index("ix_jobs_project_id_status", "project_id", "status"),
        sa.Index("ix_jobs_status_due_at", "status", "due_at"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tallies",
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("key", Text, primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("value", Text, primary_key=True),
        sa.Column("target_type", label(20), primary_key=True),
        sa.Column("dataset", Text, primary_key=True),
        sa.Column("model", Text, primary_key=True),
        sa.Column("source", label(50), primary_key=True),
        sa.Column("author_kind", label(10), primary_key=True),
        sa.Column("up", sa.BigInteger, nullable=False),
        sa.Column("down", sa.BigInteger, nullable=False),
        sa.Column("neutral", sa.BigInteger, nullable=False),
        sa.Column("scores", sa.BigInteger, nullable=False),
        sa.Column("score_sum", sa.BigInteger, nullable=False),
        sa.Column("rated", sa.BigInteger, nullable=False),
        sa.Column("shown", sa.BigInteger, nullable=False),
        sa.Index(
            "ix_tallies_empty",
            "project_id",
            **_where(
                "up = 0 AND down = 0 AND neutral = 0 AND scores = 0 AND score_sum = 0 AND rated = 0 AND shown = 0"
            ),
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "watermarks",
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), primary_key=True),
        sa.Column("key", Text, primary_key=True),
        sa.Column("name", label(20), primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", label(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("connector_id", label(36), nullable=False),
        sa.Column("question", Text, nullable=False),
        sa.Column("decision", label(10), nullable=False),
        sa.Column("gate", label(50), nullable=False),
        sa.Column("reason", Text, nullable=False),
        sa.Column("similarity", sa.Float),
        sa.Column("candidate_id", label(36)),
        sa.Column("execution_id", label(36)),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Index("ix_decisions_project_id_at", "project_id", "at", "decision", "gate"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "review_items",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", label(36), nullable=False, unique=True),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("target_type", label(20), nullable=False),
        sa.Column("dataset", Text),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("model_id", Number, sa.ForeignKey("models.id")),
        sa.Column("vector", sa.LargeBinary),
        sa.Column("status", label(10), nullable=False),
        sa.Column("assignee", Text),
        sa.Column("opinions", sa.Integer, nullable=False),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("project_id", "digest"),
        sa.Index("ix_review_items_project_id_status_opinions", "project_id", "status", "opinions"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "review_members",
        sa.Column("event_id", label(36), primary_key=True),
        sa.Column("item_seq", Number, sa.ForeignKey("review_items.seq", ondelete="CASCADE"), nullable=False),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("target_type", label(20), nullable=False),
        sa.Column("target_id", label(200), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("active", sa.SmallInteger, nullable=False),
        sa.Index("ix_review_members_item_seq_active_at", "item_seq", "active", "at"),
        sa.Index("ix_review_members_target_id", "target_id"),
    )
    op.create_table(
        "review_notes",
        sa.Column("event_id", label(36), primary_key=True),
        sa.Column(
            "item_seq", Number, sa.ForeignKey("review_items.seq", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("project_id", Number, sa.ForeignKey("projects.id"), nullable=False),
        sa.Column("text", Text, nullable=False),
    )
