"""The tables of insight and of the review queue."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from heedful.storage.schema import Sequence, metadata

IS_EMPTY = text("up = 0 AND down = 0 AND neutral = 0 AND scores = 0 AND score_sum = 0 AND rated = 0 AND shown = 0")
"""The condition of counts that say nothing."""

tallies = Table(
    "tallies",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("target_type", String(20), primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("source", String(50), primary_key=True),
    Column("author_kind", String(10), primary_key=True),
    Column("up", BigInteger, nullable=False),
    Column("down", BigInteger, nullable=False),
    Column("neutral", BigInteger, nullable=False),
    Column("scores", BigInteger, nullable=False),
    Column("score_sum", BigInteger, nullable=False),
    Column("rated", BigInteger, nullable=False),
    Column("shown", BigInteger, nullable=False),
    Index("ix_tallies_empty", "project_id", sqlite_where=IS_EMPTY, postgresql_where=IS_EMPTY),
    sqlite_with_rowid=False,
)
"""Folds of what people said, kept for speed: counts by day (since 1970, UTC). The rows with the key "" have all
opinions; those with a key of the sessions' metadata have them by its `value`. Where there is nothing to say, texts are
empty. `rated` and `shown` are counted on the day of the thing itself."""

watermarks = Table(
    "watermarks",
    metadata,
    Column("project_id", ForeignKey("projects.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("name", String(20), primary_key=True),
    Column("seq", BigInteger, nullable=False),
)
"""Up to which number a table is in a fold; -1 for counts that are to be removed."""

decisions = Table(
    "decisions",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("connector_id", String(36), nullable=False),
    Column("question", Text, nullable=False),
    Column("decision", String(10), nullable=False),
    Column("gate", String(50), nullable=False),
    Column("reason", Text, nullable=False),
    Column("similarity", Float),
    Column("candidate_id", String(36)),
    Column("execution_id", String(36)),
    Column("at", BigInteger, nullable=False),
    Index("ix_decisions_project_id_at", "project_id", "at", "decision", "gate"),
    sqlite_autoincrement=True,
)
"""What the cache decided, and why."""

review_items = Table(
    "review_items",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=True),
    Column("id", String(36), nullable=False, unique=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("target_type", String(20), nullable=False),
    Column("dataset", Text),
    Column("digest", LargeBinary(16), nullable=False),
    Column("model_id", ForeignKey("models.id")),
    Column("vector", LargeBinary),
    Column("status", String(10), nullable=False),
    Column("assignee", Text),
    Column("opinions", Integer, nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    UniqueConstraint("project_id", "digest"),
    Index("ix_review_items_project_id_status_opinions", "project_id", "status", "opinions"),
    sqlite_autoincrement=True,
)
"""Work to do: negative opinions that say the same. `digest` is a hash of what makes them the same, `vector` the
question they are about, `status` and `assignee` the fold of the events about the item."""

review_members = Table(
    "review_members",
    metadata,
    Column("event_id", String(36), primary_key=True),
    Column("item_seq", ForeignKey("review_items.seq", ondelete="CASCADE"), nullable=False),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("target_type", String(20), nullable=False),
    Column("target_id", String(200), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("active", SmallInteger, nullable=False),
    Index("ix_review_members_item_seq_active_at", "item_seq", "active", "at"),
    Index("ix_review_members_target_id", "target_id"),
)
"""Which opinions an item is made of, under the ids of their events."""

review_notes = Table(
    "review_notes",
    metadata,
    Column("event_id", String(36), primary_key=True),
    Column("item_seq", ForeignKey("review_items.seq", ondelete="CASCADE"), nullable=False, index=True),
    Column("project_id", ForeignKey("projects.id"), nullable=False),
    Column("text", Text, nullable=False),
)
"""What reviewers wrote with an event, which itself has no words."""
