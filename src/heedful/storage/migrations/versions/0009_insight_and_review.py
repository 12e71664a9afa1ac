"""What people said, counted by day; what the cache decided; and the review queue."""

import sqlalchemy as sa
from alembic import op

from heedful.storage.migrations.row_security import secure_table

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None

Number = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')

TEXTS = {
    'tallies': ['key', 'value', 'target_type', 'dataset', 'model', 'source', 'author_kind'],
    'watermarks': ['key', 'name'],
    'decisions': ['id', 'connector_id', 'question', 'decision', 'gate', 'reason', 'candidate_id', 'execution_id'],
    'review_items': ['id', 'target_type', 'dataset', 'status', 'assignee'],
    'review_members': ['event_id', 'target_type', 'target_id'],
    'review_notes': ['event_id', 'text'],
}


def upgrade() -> None:
    op.create_table('tallies',
    sa.Column('project_id', Number, nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('day', sa.Integer(), nullable=False),
    sa.Column('value', sa.Text(), nullable=False),
    sa.Column('target_type', sa.String(length=20), nullable=False),
    sa.Column('dataset', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('source', sa.String(length=50), nullable=False),
    sa.Column('author_kind', sa.String(length=10), nullable=False),
    sa.Column('up', sa.BigInteger(), nullable=False),
    sa.Column('down', sa.BigInteger(), nullable=False),
    sa.Column('neutral', sa.BigInteger(), nullable=False),
    sa.Column('scores', sa.BigInteger(), nullable=False),
    sa.Column('score_sum', sa.BigInteger(), nullable=False),
    sa.Column('rated', sa.BigInteger(), nullable=False),
    sa.Column('shown', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_tallies_project_id')),
    sa.PrimaryKeyConstraint('project_id', 'key', 'day', 'value', 'target_type', 'dataset', 'model', 'source', 'author_kind', name=op.f('pk_tallies')),
    sqlite_with_rowid=False,
    )
    op.create_table('watermarks',
    sa.Column('project_id', Number, nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('name', sa.String(length=20), nullable=False),
    sa.Column('seq', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_watermarks_project_id')),
    sa.PrimaryKeyConstraint('project_id', 'key', 'name', name=op.f('pk_watermarks')),
    )
    op.create_table('decisions',
    sa.Column('seq', Number, autoincrement=True, nullable=False),
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('project_id', Number, nullable=False),
    sa.Column('connector_id', sa.String(length=36), nullable=False),
    sa.Column('question', sa.Text(), nullable=False),
    sa.Column('decision', sa.String(length=10), nullable=False),
    sa.Column('gate', sa.String(length=50), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('similarity', sa.Float(), nullable=True),
    sa.Column('candidate_id', sa.String(length=36), nullable=True),
    sa.Column('execution_id', sa.String(length=36), nullable=True),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_decisions_project_id')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_decisions')),
    sa.UniqueConstraint('id', name=op.f('uq_decisions_id')),
    sqlite_autoincrement=True,
    )
    op.create_index('ix_decisions_project_id_at', 'decisions', ['project_id', 'at', 'decision', 'gate'], unique=False)
    op.create_table('review_items',
    sa.Column('seq', Number, autoincrement=True, nullable=False),
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('project_id', Number, nullable=False),
    sa.Column('target_type', sa.String(length=20), nullable=False),
    sa.Column('dataset', sa.Text(), nullable=True),
    sa.Column('digest', sa.LargeBinary(length=16), nullable=False),
    sa.Column('model_id', Number, nullable=True),
    sa.Column('vector', sa.LargeBinary(), nullable=True),
    sa.Column('status', sa.String(length=10), nullable=False),
    sa.Column('assignee', sa.Text(), nullable=True),
    sa.Column('opinions', sa.Integer(), nullable=False),
    sa.Column('opened_at', sa.BigInteger(), nullable=False),
    sa.Column('last_at', sa.BigInteger(), nullable=False),
    sa.Column('changed_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_review_items_model_id')),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_review_items_project_id')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_review_items')),
    sa.UniqueConstraint('id', name=op.f('uq_review_items_id')),
    sa.UniqueConstraint('project_id', 'digest', name=op.f('uq_review_items_project_id_digest')),
    sqlite_autoincrement=True,
    )
    op.create_index('ix_review_items_project_id_status_opinions', 'review_items', ['project_id', 'status', 'opinions'], unique=False)
    op.create_table('review_members',
    sa.Column('event_id', sa.String(length=36), nullable=False),
    sa.Column('item_seq', Number, nullable=False),
    sa.Column('project_id', Number, nullable=False),
    sa.Column('target_type', sa.String(length=20), nullable=False),
    sa.Column('target_id', sa.String(length=200), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('active', sa.SmallInteger(), nullable=False),
    sa.ForeignKeyConstraint(['item_seq'], ['review_items.seq'], name=op.f('fk_review_members_item_seq'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_review_members_project_id')),
    sa.PrimaryKeyConstraint('event_id', name=op.f('pk_review_members')),
    )
    op.create_index('ix_review_members_item_seq_active_at', 'review_members', ['item_seq', 'active', 'at'], unique=False)
    op.create_index('ix_review_members_target_id', 'review_members', ['target_id'], unique=False)
    op.create_table('review_notes',
    sa.Column('event_id', sa.String(length=36), nullable=False),
    sa.Column('item_seq', Number, nullable=False),
    sa.Column('project_id', Number, nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['item_seq'], ['review_items.seq'], name=op.f('fk_review_notes_item_seq'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_review_notes_project_id')),
    sa.PrimaryKeyConstraint('event_id', name=op.f('pk_review_notes')),
    )
    op.create_index('ix_review_notes_item_seq', 'review_notes', ['item_seq'], unique=False)
    op.create_index('ix_events_project_id_at', 'events', ['project_id', 'at'], unique=False)
    op.create_index('ix_receipts_dataset_id_at', 'receipts', ['dataset_id', 'at'], unique=False)
    op.drop_index('ix_receipts_dataset_id', table_name='receipts')
    if op.get_bind().dialect.name == 'postgresql':
        for table, columns in TEXTS.items():
            for column in columns:
                op.execute(f'ALTER TABLE {table} ALTER "{column}" TYPE text COLLATE "C"')
            secure_table(op.get_bind(), table, ['project_id'])


def downgrade() -> None:
    op.create_index('ix_receipts_dataset_id', 'receipts', ['dataset_id'], unique=False)
    op.drop_index('ix_receipts_dataset_id_at', table_name='receipts')
    op.drop_index('ix_events_project_id_at', table_name='events')
    for table in ('review_notes', 'review_members', 'review_items', 'decisions', 'watermarks', 'tallies'):
        op.drop_table(table)

