"""Who said something, who was refused, and how long things are kept."""

import sqlalchemy as sa
from alembic import op

from heedful.storage.migrations.row_security import secure_shared_table, secure_table

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None

Number = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    _connectors()
    _trust()
    _access()
    _executions()
    _retention()
    _corrections()
    _expiry()


def downgrade() -> None:
    op.drop_index('ix_facts_dataset_id_expires_at', table_name='facts')
    op.drop_column('facts', 'expires_at')
    op.drop_index('ix_requests_at', table_name='requests')
    op.drop_column('datasets', 'changes_from')
    _drop_executions()
    op.drop_index('ix_events_successor', table_name='events')
    _access_before()
    _trust_before()
    if op.get_bind().dialect.name == 'postgresql':
        op.execute('DROP POLICY project_isolation ON signing')
        op.execute('ALTER TABLE signing NO FORCE ROW LEVEL SECURITY')
        op.execute('ALTER TABLE signing DISABLE ROW LEVEL SECURITY')
    op.drop_column('connectors', 'enabled')


def _connectors() -> None:
    """Connectors that wait for somebody to confirm them, and a secret that no project's transaction sees."""
    op.add_column('connectors', sa.Column('enabled', sa.SmallInteger(), nullable=False, server_default='1'))
    if op.get_bind().dialect.name == 'postgresql':
        secure_shared_table(op.get_bind(), 'signing')


def _trust() -> None:
    """How far an author is trusted, beside each opinion; and an index by which an author's earlier votes are found."""
    for table in ('events', 'feedbacks'):
        op.add_column(table, sa.Column('author_trust', sa.String(length=10), nullable=False, server_default='anonymous'))
        op.execute(
            f"UPDATE {table} SET author_trust = CASE WHEN author IS NULL THEN 'verified' ELSE 'known' END "
            "WHERE author IS NULL OR substr(author, 1, 8) <> 'visitor-'"
        )
        if op.get_bind().dialect.name == 'postgresql':
            op.execute(f'ALTER TABLE {table} ALTER author_trust TYPE text COLLATE "C"')
    op.create_index(
        'ix_events_target_id_query_id_author', 'events', ['target_id', 'query_id', 'author'], unique=False,
        sqlite_where=sa.text('author IS NOT NULL'), postgresql_where=sa.text('author IS NOT NULL'),
    )


def _trust_before() -> None:
    op.drop_index('ix_events_target_id_query_id_author', table_name='events')
    for table in ('events', 'feedbacks'):
        op.drop_column(table, 'author_trust')


def _access() -> None:
    """Refusals, logins and keys of retries."""
    with op.batch_alter_table('requests') as requests:
        requests.drop_constraint('pk_requests', type_='primary')
        requests.add_column(sa.Column('caller', sa.String(length=60), server_default=sa.text("''"), nullable=False))
        requests.create_primary_key('pk_requests', ['project_id', 'caller', 'idempotency_key'])
    op.add_column('signing', sa.Column('until', sa.BigInteger(), nullable=True))
    op.create_table('logins',
    sa.Column('digest', sa.LargeBinary(length=32), nullable=False),
    sa.Column('key_id', sa.String(length=60), nullable=False),
    sa.Column('expires_at', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('digest', name=op.f('pk_logins')),
    )
    op.create_table('audit',
    sa.Column('seq', Number, autoincrement=True, nullable=False),
    sa.Column('project_id', Number, nullable=True),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('kind', sa.String(length=10), nullable=False),
    sa.Column('operation', sa.String(length=200), nullable=False),
    sa.Column('caller', sa.String(length=60), nullable=True),
    sa.Column('address', sa.String(length=60), nullable=True),
    sa.Column('code', sa.String(length=50), nullable=True),
    sa.Column('target', sa.String(length=200), nullable=True),
    sa.Column('times', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_audit_project_id')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_audit')),
    sqlite_autoincrement=True,
    )
    op.create_index('ix_audit_project_id_seq', 'audit', ['project_id', 'seq'], unique=False)
    op.create_index('ix_audit_at', 'audit', ['at'], unique=False)
    if op.get_bind().dialect.name == 'postgresql':
        texts = {
            'requests': ['caller'],
            'logins': ['key_id'],
            'audit': ['kind', 'operation', 'caller', 'address', 'code', 'target'],
        }
        for table, columns in texts.items():
            for column in columns:
                op.execute(f'ALTER TABLE {table} ALTER "{column}" TYPE text COLLATE "C"')
        secure_table(op.get_bind(), 'audit', ['project_id'])
        secure_shared_table(op.get_bind(), 'logins')


def _access_before() -> None:
    op.drop_table('audit')
    op.drop_table('logins')
    op.execute("DELETE FROM signing WHERE until IS NOT NULL")
    op.drop_column('signing', 'until')
    op.execute("DELETE FROM requests WHERE caller <> ''")
    with op.batch_alter_table('requests') as requests:
        requests.drop_constraint('pk_requests', type_='primary')
        requests.drop_column('caller')
        requests.create_primary_key('pk_requests', ['project_id', 'idempotency_key'])


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


def _expiry() -> None:
    """Facts that have an end."""
    op.add_column('facts', sa.Column('expires_at', sa.BigInteger(), nullable=True))
    has_end = sa.text('expires_at IS NOT NULL')
    op.create_index(
        'ix_facts_dataset_id_expires_at', 'facts', ['dataset_id', 'expires_at'], sqlite_where=has_end, postgresql_where=has_end
    )
