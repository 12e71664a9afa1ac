"""The tables of the first release.

They are those of the schema: nothing is released yet that a later revision would have to start from."""

from alembic import op

from heedful.storage.postgresql.tables import create_tables
from heedful.storage.schema import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        create_tables(connection)
    else:
        metadata.create_all(connection, checkfirst=False)
