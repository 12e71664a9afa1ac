"""Jobs, and on PostgreSQL the tables of the library that hands them out."""

import sqlalchemy as sa
from alembic import op

from heedful.storage.migrations.row_security import secure_table

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None

# What procrastinate decides is what the record says, in the same transaction.
FOLLOW = """
CREATE FUNCTION jobs_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    now_stored bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    told text := CASE NEW.status::text
        WHEN 'todo' THEN 'waiting' WHEN 'doing' THEN 'running' WHEN 'succeeded' THEN 'done'
        WHEN 'failed' THEN 'failed' ELSE 'cancelled' END;
BEGIN
    UPDATE jobs SET
        status = told,
        due_at = COALESCE((extract(epoch FROM NEW.scheduled_at) * 1000000)::bigint, due_at),
        finished_at = CASE WHEN told IN ('waiting', 'running') THEN NULL ELSE COALESCE(finished_at, now_stored) END
        WHERE queue_number = NEW.id;
    RETURN NEW;
END;
$$;
CREATE TRIGGER jobs_follow AFTER UPDATE OF status ON procrastinate_jobs
    FOR EACH ROW EXECUTE PROCEDURE jobs_follow();
"""

REMOVE = """
DROP TABLE procrastinate_events, procrastinate_periodic_defers, procrastinate_jobs, procrastinate_workers CASCADE;
DO $$
DECLARE
    each regprocedure;
BEGIN
    FOR each IN SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
        AND (proname LIKE 'procrastinate\\_%' OR proname = 'jobs_follow')
    LOOP
        EXECUTE 'DROP FUNCTION ' || each || ' CASCADE';
    END LOOP;
END;
$$;
DROP TYPE procrastinate_job_to_defer_v1, procrastinate_job_status, procrastinate_job_event_type;
"""


def upgrade() -> None:
    op.create_table('jobs',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('project_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('kind', sa.String(length=50), nullable=False),
    sa.Column('arguments', sa.JSON(), nullable=False),
    sa.Column('digest', sa.LargeBinary(length=16), nullable=False),
    sa.Column('status', sa.String(length=20), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('done', sa.BigInteger(), nullable=True),
    sa.Column('total', sa.BigInteger(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('started_at', sa.BigInteger(), nullable=True),
    sa.Column('finished_at', sa.BigInteger(), nullable=True),
    sa.Column('due_at', sa.BigInteger(), nullable=False),
    sa.Column('owner', sa.String(length=36), nullable=True),
    sa.Column('leased_until', sa.BigInteger(), nullable=True),
    sa.Column('cancelling', sa.SmallInteger(), nullable=False),
    sa.Column('queue_number', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['project_id'], ['projects.id'], name=op.f('fk_jobs_project_id')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_jobs')),
    sa.UniqueConstraint('id', name=op.f('uq_jobs_id')),
    sa.UniqueConstraint('queue_number', name=op.f('uq_jobs_queue_number')),
    sqlite_autoincrement=True
    )
    op.create_index('ix_jobs_status_due_at', 'jobs', ['status', 'due_at'], unique=False)
    op.create_index('ix_jobs_project_id_seq', 'jobs', ['project_id', 'seq'], unique=False)
    if op.get_bind().dialect.name == 'postgresql':
        from procrastinate.schema import SchemaManager

        _run(SchemaManager.get_schema())
        _run(FOLLOW)
        for column in ('id', 'kind', 'status', 'error', 'owner'):
            op.execute(f'ALTER TABLE jobs ALTER {column} TYPE text COLLATE "C"')
        secure_table(op.get_bind(), 'jobs', ['project_id'])


def downgrade() -> None:
    if op.get_bind().dialect.name == 'postgresql':
        _run(REMOVE)
    op.drop_index('ix_jobs_project_id_seq', table_name='jobs')
    op.drop_index('ix_jobs_status_due_at', table_name='jobs')
    op.drop_table('jobs')


def _run(statements: str) -> None:
    # The driver takes many statements at once where they have no parameters; the toolkit would look for some.
    op.get_bind().connection.driver_connection.execute(statements)
