"""The kinds of database that connectors are tested on: a new kind is a function here, and a row in `KINDS`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pymysql
import pytest
from sqlalchemy import make_url

TABLES = """
CREATE TABLE city (id integer PRIMARY KEY, name varchar(50) NOT NULL, country varchar(50), people integer,
    area decimal(9, 2));
CREATE TABLE street (id integer PRIMARY KEY, city_id integer REFERENCES city (id), name varchar(50));
INSERT INTO city VALUES (1, 'Rome', 'Italy', 2800000, 1285.31), (2, 'Oslo', 'Norway', 700000, 480.76),
    (3, 'Nice', 'France', NULL, 71.92), (4, 'Milan', 'Italy', 1400000, 181.76), (5, 'Paris', 'France', 2100000, 105.40);
INSERT INTO street VALUES (1, 1, 'Via Appia'), (2, 1, 'Via Veneto'), (3, 2, 'Karl Johan');
"""


@dataclass(frozen=True)
class Place:
    """A database that a connector leads to, and a way to change it that isn't ours."""

    kind: str
    url: str
    """As somebody who may only read."""
    write: Callable[[str], object]
    tells_changes: bool = True
    """Whether it can be told that no data changed, so that a stored result can be used."""


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> Place:
    file = folder / "towns.db"

    def write(sql: str) -> None:
        connection = sqlite3.connect(file)
        with connection:
            connection.executescript(sql)
        connection.close()
        _settle(file)

    return Place("sqlite", f"sqlite:///{file}", write)


def _duckdb(request: pytest.FixtureRequest, folder: Path) -> Place:
    file = folder / "towns.duckdb"

    def write(sql: str) -> None:
        with duckdb.connect(str(file)) as connection:
            connection.execute(sql)
        _settle(file)

    return Place("duckdb", f"duckdb:///{file}", write)


def _postgresql(request: pytest.FixtureRequest, folder: Path) -> Place:
    url: str = request.getfixturevalue("postgresql_url")

    def write(sql: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(sql.encode())
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")

    return Place("postgresql", url.replace("postgres@", "guest@"), write)


def _mysql(request: pytest.FixtureRequest, folder: Path) -> Place:
    url: str = request.getfixturevalue("mysql_url")
    address = make_url(url)

    def write(sql: str) -> None:
        values: dict[str, Any] = {"host": address.host, "port": address.port, "database": address.database}
        with pymysql.connect(user="root", **values) as connection, connection.cursor() as cursor:
            for statement in filter(str.strip, sql.split(";")):
                cursor.execute(statement)
            connection.commit()

    return Place("mysql", url, write, tells_changes=False)


KINDS: dict[str, Callable[[pytest.FixtureRequest, Path], Place]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "duckdb": _duckdb,
    "mysql": _mysql,
}


_SETTLED: dict[Path, int] = {}


def _settle(file: Path) -> None:
    """As if it had been written some time ago: of a file that changes now, nobody knows whether it will again."""
    _SETTLED[file] = then = _SETTLED.get(file, 1_600_000_000) + 10
    os.utime(file, (then, then))
