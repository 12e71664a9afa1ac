"""The one way to the SQL parser: whatever a kind of database is called, it is read in the dialect that the parser has.

SQLAlchemy says `postgresql` where sqlglot says `postgres`. No other module calls sqlglot's functions that take a name.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token

_DIALECTS = {"postgresql": "postgres", "cockroachdb": "postgres", "mariadb": "mysql", "mssql": "tsql"}


def parser_dialect(kind: str) -> str:
    """The parser's name for a kind of database; SQL of a kind that it doesn't know is read as standard SQL.

    >>> parser_dialect("postgresql"), parser_dialect("postgres"), parser_dialect("unheard-of")
    ('postgres', 'postgres', '')
    """
    name = _DIALECTS.get(kind.lower(), kind.lower())
    return name if sqlglot.Dialect.get(name) else ""


def tokenize(sql: str, kind: str) -> list[Token]:
    """The tokens of a text in the SQL of a kind of database; raises `SqlglotError`."""
    return sqlglot.tokenize(sql, read=parser_dialect(kind))


def parse(sql: str, kind: str) -> list[exp.Expr]:
    """The statements of a text in the SQL of a kind of database; raises `SqlglotError`."""
    return [tree for tree in sqlglot.parse(sql, read=parser_dialect(kind)) if tree is not None]


def write(tree: exp.Expr, kind: str, *, normalize: bool = False) -> str:
    """A tree as SQL of a kind of database: to build or to compare, since it is another text than what was parsed."""
    return tree.sql(dialect=parser_dialect(kind), normalize=normalize, comments=False)
