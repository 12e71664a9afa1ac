"""Vectors in PostgreSQL: kept to the last bit, and refused in plain words where pgvector is not as it has to be."""

from __future__ import annotations

import psycopg
import pytest
from postgresql_process import PASSWORD
from sqlalchemy import select

import heedful
from heedful import Unavailable
from heedful.storage import open_store
from heedful.storage.schema import vectors
from heedful.storage.vectors import active_model, pack
from heedful.testing import WordEmbedder


def test_a_vector_comes_back_as_it_was_stored(empty_database: str) -> None:
    with heedful.open(empty_database, embedding=WordEmbedder()) as store:
        store.remember(["one two three", "four"])
    database = open_store(empty_database)
    with database.read() as connection:
        assert active_model(connection) is not None
        rows = list(connection.execute(select(vectors.c.vector).order_by(vectors.c.fact_seq)).scalars())
    database.close()
    assert rows == [pack(each) for each in WordEmbedder().embed(["one two three", "four"])]


def test_a_vector_of_nothing_is_kept_and_found(empty_database: str) -> None:
    with heedful.open(empty_database, embedding=WordEmbedder()) as store:
        store.remember(["!!!", "something"])
        assert {hit.text for hit in store.recall("?!", mode="semantic")} == {"!!!", "something"}


class TestPgvector:
    def test_one_who_may_not_create_it_is_told_what_an_administrator_runs(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(f"GRANT CREATE ON DATABASE {postgresql_url.rpartition('/')[2]} TO locked".encode())
        with pytest.raises(Unavailable) as caught:
            heedful.open(postgresql_url.replace("postgres@", f"locked:{PASSWORD}@"), embedding=WordEmbedder())
        assert caught.value.code == "pgvector_missing"
        assert "CREATE EXTENSION vector" in str(caught.value)
        assert PASSWORD not in str(caught.value)

    @pytest.mark.slow
    def test_one_that_an_administrator_created_is_enough(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(f"GRANT CREATE ON DATABASE {postgresql_url.rpartition('/')[2]} TO locked".encode())
            connection.execute("CREATE EXTENSION vector SCHEMA public")
        url = postgresql_url.replace("postgres@", f"locked:{PASSWORD}@")
        with heedful.open(url, embedding=WordEmbedder()) as store:
            assert store.remember("x").added == 1

    def test_an_old_one_is_refused(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
        with pytest.raises(Unavailable, match=r"pgvector 0\.7\.4") as caught:
            heedful.open(postgresql_url, embedding=WordEmbedder())
        assert caught.value.code == "pgvector_missing"
        assert "ALTER EXTENSION vector UPDATE" in str(caught.value)

    def test_one_in_a_schema_that_is_not_searched_is_refused(self, postgresql_url: str) -> None:
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA elsewhere")
            connection.execute("CREATE EXTENSION vector SCHEMA elsewhere")
        with pytest.raises(Unavailable, match="schema") as caught:
            heedful.open(postgresql_url, embedding=WordEmbedder())
        assert "SET SCHEMA public" in str(caught.value)
