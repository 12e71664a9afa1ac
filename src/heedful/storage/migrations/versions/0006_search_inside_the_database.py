"""Vectors know their dataset, and are searched inside PostgreSQL."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from heedful.storage.half_vectors import HalfVector

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None

Number = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade() -> None:
    if op.get_bind().dialect.name == 'postgresql':
        _inside_postgresql()
    else:
        _with_datasets()


def _with_datasets() -> None:
    op.rename_table('vectors', 'former_vectors')
    op.create_table('vectors',
    sa.Column('fact_seq', Number, nullable=False),
    sa.Column('model_id', Number, nullable=False),
    sa.Column('dataset_id', Number, nullable=False),
    sa.Column('vector', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['fact_seq'], ['facts.seq'], name=op.f('fk_vectors_fact_seq'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_vectors_model_id')),
    sa.PrimaryKeyConstraint('fact_seq', 'model_id', name=op.f('pk_vectors'))
    )
    op.execute(
        'INSERT INTO vectors (fact_seq, model_id, dataset_id, vector) '
        'SELECT v.fact_seq, v.model_id, f.dataset_id, v.vector FROM former_vectors v JOIN facts f ON f.seq = v.fact_seq'
    )
    op.drop_table('former_vectors')


def _inside_postgresql() -> None:
    # A column that must not be null can be added to an empty table only: no vector can be lost here.
    op.add_column('vectors', sa.Column('dataset_id', sa.BigInteger(), nullable=False))
    op.drop_column('vectors', 'vector')
    op.add_column('vectors', sa.Column('vector', HalfVector(), nullable=False))
    op.create_table('words',
    sa.Column('fact_seq', sa.BigInteger(), nullable=False),
    sa.Column('dataset_id', sa.BigInteger(), nullable=False),
    sa.Column('terms', ARRAY(sa.BigInteger()), nullable=False),
    sa.ForeignKeyConstraint(['fact_seq'], ['facts.seq'], name=op.f('fk_words_fact_seq'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('fact_seq', name=op.f('pk_words'))
    )
    op.create_table('common_terms',
    sa.Column('dataset_id', sa.BigInteger(), nullable=False),
    sa.Column('term', sa.BigInteger(), nullable=False),
    sa.Column('holders', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('dataset_id', 'term', name=op.f('pk_common_terms'))
    )
    op.create_table('searched',
    sa.Column('dataset_id', sa.BigInteger(), nullable=False),
    sa.Column('model_id', sa.BigInteger()),
    sa.Column('facts', sa.BigInteger(), nullable=False),
    sa.Column('length', sa.Float(), nullable=False),
    sa.PrimaryKeyConstraint('dataset_id', name=op.f('pk_searched'))
    )


def downgrade() -> None:
    if op.get_bind().dialect.name == 'postgresql':
        for table in ('searched', 'common_terms', 'words'):
            op.drop_table(table)
        # What pgvector sends has a head of four bytes, and the numbers the other way round: they are made anew.
        op.execute('DELETE FROM vectors')
        op.drop_column('vectors', 'vector')
        op.add_column('vectors', sa.Column('vector', sa.LargeBinary(), nullable=False))
    op.drop_column('vectors', 'dataset_id')
