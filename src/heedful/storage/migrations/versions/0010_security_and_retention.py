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


def downgrade() -> None:
    op.drop_index('ix_requests_at', table_name='requests')
    op.drop_column('datasets', 'changes_from')


def _connectors() -> None:
    """Connectors that wait for somebody to confirm them."""


def _trust() -> None:
    """How far an author is to be believed."""


def _access() -> None:
    """Refusals, logins and keys of retries."""


def _executions() -> None:
    """Executions and what the cache keeps of them."""


def _retention() -> None:
    """How long things are kept, and what was erased."""
    op.add_column('datasets', sa.Column('changes_from', sa.BigInteger(), server_default='0', nullable=False))
    op.create_index('ix_requests_at', 'requests', ['at'], unique=False)
