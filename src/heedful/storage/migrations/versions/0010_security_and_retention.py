"""Who said something, who was refused, and how long things are kept."""

import sqlalchemy as sa
from alembic import op

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
    _connectors()
    _trust()
    _access()
    _executions()
    _retention()
    _corrections()


def downgrade() -> None:
    op.drop_index('ix_requests_at', table_name='requests')
    op.drop_column('datasets', 'changes_from')
    _drop_executions()
    op.drop_index('ix_events_successor', table_name='events')
    _trust_before()


def _connectors() -> None:
    """Connectors that wait for somebody to confirm them."""


def _trust() -> None:
    """How far an author is trusted, beside each opinion; and an index by which an author's earlier votes are found."""
    for table in ('events', 'feedbacks'):
        op.add_column(table, sa.Column('author_standing', sa.String(length=10), nullable=False, server_default='anonymous'))
        op.execute(
            f"UPDATE {table} SET author_standing = CASE WHEN author IS NULL THEN 'verified' ELSE 'known' END "
            "WHERE author IS NULL OR substr(author, 1, 8) <> 'visitor-'"
        )
        if op.get_bind().dialect.name == 'postgresql':
            op.execute(f'ALTER TABLE {table} ALTER author_standing TYPE text COLLATE "C"')
    op.create_index(
        'ix_events_target_id_query_id_author', 'events', ['target_id', 'query_id', 'author'], unique=False,
        sqlite_where=sa.text('author IS NOT NULL'), postgresql_where=sa.text('author IS NOT NULL'),
    )


def _trust_before() -> None:
    op.drop_index('ix_events_target_id_query_id_author', table_name='events')
    for table in ('events', 'feedbacks'):
        op.drop_column(table, 'author_standing')


def _access() -> None:
    """Refusals, logins and keys of retries."""


def _executions() -> None:
    """Executions and what the cache keeps of them."""
    op.add_column('connectors', sa.Column('revision', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('feedbacks', sa.Column('about_id', sa.String(length=200), nullable=True))
    op.add_column('executions', sa.Column('hit', sa.SmallInteger(), server_default='0', nullable=False))
    op.add_column('executions', sa.Column('repeats_id', sa.String(length=36), nullable=True))
    op.add_column('executions', sa.Column('result_id', sa.String(length=36), nullable=True))
    op.add_column('executions', sa.Column('result_digest', sa.LargeBinary(length=16), nullable=True))
    op.add_column('executions', sa.Column('last_hit_id', sa.String(length=36), nullable=True))
    op.add_column('executions', sa.Column('used_at', sa.BigInteger(), nullable=True))
    if op.get_bind().dialect.name == 'postgresql':
        for table, column in EXECUTION_TEXTS:
            op.execute(f'ALTER TABLE {table} ALTER {column} TYPE text COLLATE "C"')
    op.execute("UPDATE feedbacks SET about_id = target_id WHERE target_type IN ('execution', 'message')")
    op.create_index(
        'ix_feedbacks_about_id',
        'feedbacks',
        ['project_id', 'target_type', 'rating', 'about_id'],
        sqlite_where=sa.text('about_id IS NOT NULL'),
        postgresql_where=sa.text('about_id IS NOT NULL'),
    )
    op.create_index('ix_executions_connector_id_hit_seq', 'executions', ['connector_id', 'hit', 'seq'])
    op.create_index('ix_executions_hit_at', 'executions', ['hit', 'at'])
    op.create_index('ix_executions_derived_from', 'executions', ['derived_from'])
    op.create_index(
        'ix_executions_connector_id_result_digest',
        'executions',
        ['connector_id', 'result_digest'],
        sqlite_where=sa.text('result_id IS NULL'),
        postgresql_where=sa.text('result_id IS NULL'),
    )
    op.create_index(
        'ix_executions_result_id',
        'executions',
        ['result_id'],
        sqlite_where=sa.text('result_id IS NOT NULL'),
        postgresql_where=sa.text('result_id IS NOT NULL'),
    )


def _drop_executions() -> None:
    for index in ('result_id', 'connector_id_result_digest', 'derived_from', 'hit_at', 'connector_id_hit_seq'):
        op.drop_index(f'ix_executions_{index}', table_name='executions')
    op.drop_index('ix_feedbacks_about_id', table_name='feedbacks')
    for column in ('used_at', 'last_hit_id', 'result_digest', 'result_id', 'repeats_id', 'hit'):
        op.drop_column('executions', column)
    op.drop_column('feedbacks', 'about_id')
    op.drop_column('connectors', 'revision')


EXECUTION_TEXTS = (
    ('feedbacks', 'about_id'),
    ('executions', 'repeats_id'),
    ('executions', 'result_id'),
    ('executions', 'last_hit_id'),
)


def _retention() -> None:
    """How long things are kept, and what was erased."""
    op.add_column('datasets', sa.Column('changes_from', sa.BigInteger(), server_default='0', nullable=False))
    op.create_index('ix_requests_at', 'requests', ['at'], unique=False)


def _corrections() -> None:
    """What a fact took the place of is looked up whenever a correction is made or undone."""
    corrects = sa.text("kind = 'supersession'")
    op.create_index('ix_events_successor', 'events', ['value'], sqlite_where=corrects, postgresql_where=corrects)
