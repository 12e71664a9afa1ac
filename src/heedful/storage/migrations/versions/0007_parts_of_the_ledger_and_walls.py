"""Parts of the ledger, and row-level security between projects."""

import sqlalchemy as sa
from alembic import op

from heedful.storage.migrations.row_security import secure_all_tables

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    op.create_table('event_keys',
    sa.Column('project_id', NUMBER, nullable=False),
    sa.Column('idempotency_key', sa.Text(), nullable=False),
    sa.Column('event_id', sa.String(length=36), nullable=False),
    sa.Column('recorded_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_event_keys_project_id')),
    sa.PrimaryKeyConstraint('project_id', 'idempotency_key', name=op.f('pk_event_keys')),
    sqlite_with_rowid=False
    )
    op.execute(
        'INSERT INTO event_keys (project_id, idempotency_key, event_id, recorded_at) '
        'SELECT project_id, idempotency_key, id, recorded_at FROM events WHERE idempotency_key <> id'
    )
    if op.get_bind().dialect.name == 'postgresql':
        _divide()
        secure_all_tables(op.get_bind())
        return
    with op.batch_alter_table('events', table_kwargs={'sqlite_autoincrement': True}) as events:
        events.drop_constraint(op.f('uq_events_project_id_idempotency_key'), type_='unique')
    op.create_index('ix_receipts_at', 'receipts', ['at'], unique=False)


def _divide() -> None:
    """The same two tables, divided by time; what is in them stays."""
    op.execute('ALTER TABLE events RENAME TO events_before')
    op.execute('ALTER TABLE receipts RENAME TO receipts_before')
    for name in ('pk_events', 'uq_events_id', 'uq_events_project_id_idempotency_key', 'fk_events_project_id'):
        op.execute(f'ALTER TABLE events_before DROP CONSTRAINT {name}')
    for name in ('pk_receipts', 'fk_receipts_dataset_id'):
        op.execute(f'ALTER TABLE receipts_before DROP CONSTRAINT {name}')
    for name in ('dataset_id_seq', 'query_id', 'receipt_id', 'target_id_at'):
        op.execute(f'DROP INDEX ix_events_{name}')
    op.execute('DROP INDEX ix_receipts_dataset_id')
    op.execute('CREATE TABLE events (LIKE events_before INCLUDING DEFAULTS) PARTITION BY RANGE (recorded_at)')
    op.execute('ALTER SEQUENCE events_seq_seq OWNED BY events.seq')
    op.execute('CREATE TABLE receipts (LIKE receipts_before INCLUDING DEFAULTS) PARTITION BY RANGE (at)')
    for table in ('events', 'receipts'):
        op.execute(f'CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT')
        op.execute(f'INSERT INTO {table} SELECT * FROM {table}_before')
        op.execute(f'DROP TABLE {table}_before')
    op.create_primary_key(op.f('pk_events'), 'events', ['seq', 'recorded_at'])
    op.create_unique_constraint(op.f('uq_events_id'), 'events', ['id', 'recorded_at'])
    op.create_foreign_key(op.f('fk_events_project_id'), 'events', 'projects', ['project_id'], ['id'])
    op.create_index('ix_events_dataset_id_seq', 'events', ['dataset_id', 'seq'], unique=False)
    op.create_index('ix_events_query_id', 'events', ['query_id'], unique=False)
    op.create_index('ix_events_receipt_id', 'events', ['receipt_id'], unique=False)
    op.create_index('ix_events_target_id_at', 'events', ['target_id', 'at'], unique=False)
    op.create_primary_key(op.f('pk_receipts'), 'receipts', ['id', 'at'])
    op.create_foreign_key(op.f('fk_receipts_dataset_id'), 'receipts', 'datasets', ['dataset_id'], ['id'])
    op.create_index('ix_receipts_dataset_id', 'receipts', ['dataset_id'], unique=False)
    op.create_index('ix_receipts_at', 'receipts', ['at'], unique=False)


def downgrade() -> None:
    if op.get_bind().dialect.name == 'postgresql':
        raise NotImplementedError('a store on PostgreSQL is not taken back to an earlier version: restore a backup')
    op.drop_index('ix_receipts_at', table_name='receipts')
    with op.batch_alter_table('events', table_kwargs={'sqlite_autoincrement': True}) as events:
        events.create_unique_constraint(
            op.f('uq_events_project_id_idempotency_key'), ['project_id', 'idempotency_key']
        )
    op.drop_table('event_keys')
