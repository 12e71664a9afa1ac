"""Statements of one project: the compiler adds the project to each table that a statement reads or changes. So rows
of other projects are neither found nor changed, whatever a query forgets to ask.

It also lets a cluster send each statement to the one node that has the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Delete,
    Engine,
    Executable,
    Insert,
    Join,
    Select,
    Table,
    TextClause,
    Update,
    and_,
    bindparam,
    event,
    literal_column,
    select,
    text,
)
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FromClause
from sqlalchemy.sql.selectable import AliasedReturnsRows

OWN = "own_project"
"""The name of the value that holds the project's number, in statements and in the `info` of a connection."""

_OF_OWN = re.compile(rf"(\b(?:\w+\.)?project_id) = (:{OWN})\b")
"""How statements that are written as text name the project of a row."""

NO_PROJECT = 0
"""The number of a project that is not there yet: no row has it."""


def own_project() -> ColumnElement[int]:
    """The number of the transaction's project, as a value of a statement."""
    return bindparam(OWN, type_=BigInteger)


def name_project(engine: Engine) -> None:
    """Has all statements of an engine name the project of their transaction."""
    dialect = cast(Any, engine.dialect)
    dialect.statement_compiler = _compiler(dialect.statement_compiler, _OneProject)
    event.listen(engine, "before_execute", _give_project, retval=True)


def route_by_project(engine: Engine) -> None:
    """Has an engine that names the project name it so that a cluster finds the project's node."""
    dialect = cast(Any, engine.dialect)
    dialect.statement_compiler = _compiler(type(dialect).statement_compiler, _OneProjectOfCluster)


@cache
def _compiler(of_database: type[SQLCompiler], kind: type[_OneProject]) -> type[SQLCompiler]:
    return type(kind.__name__, (kind, of_database), {})


def _give_project(
    connection: Connection, statement: Executable, many: Any, one: Any, options: Any
) -> tuple[Executable, Any, Any]:
    own = connection.info[OWN]
    return (statement, [row | {OWN: own} for row in many], one) if many else (statement, many, {**one, OWN: own})


class _OneProject(SQLCompiler):
    """A compiler of statements that find the rows of one project only."""

    # SQLAlchemy gives these methods no types.
    def visit_insert(self, insert_stmt: Insert, *args: Any, **options: Any) -> Any:
        if "project_id" in cast(Table, insert_stmt.table).primary_key:
            # The project need not be returned as part of a new key, which would be slow.
            insert_stmt = insert_stmt.inline()
        return super().visit_insert(insert_stmt, *args, **options)  # type: ignore[no-untyped-call]

    def visit_select(self, select_stmt: Select[Any], *args: Any, **options: Any) -> Any:
        narrowed = select_stmt.where(*self._own(select_stmt.get_final_froms()))
        return super().visit_select(narrowed, *args, **options)  # type: ignore[no-untyped-call]

    def visit_update(self, update_stmt: Update, *args: Any, **options: Any) -> Any:
        return super().visit_update(update_stmt.where(*self._own(_changed(update_stmt))), *args, **options)

    def visit_delete(self, delete_stmt: Delete, *args: Any, **options: Any) -> Any:
        narrowed = delete_stmt.where(*self._own(_changed(delete_stmt)))
        return super().visit_delete(narrowed, *args, **options)  # type: ignore[no-untyped-call]

    def visit_join(self, join: Join, *args: Any, **options: Any) -> Any:
        # Of an outer join, the right side may be missing: its condition belongs to the join.
        own = self._own([join.right])
        if own:
            join = Join(join.left, join.right, and_(cast(Any, join.onclause), *own), join.isouter, join.full)
        return super().visit_join(join, *args, **options)  # type: ignore[no-untyped-call]

    def visit_textclause(self, textclause: TextClause, *args: Any, **options: Any) -> Any:
        narrowed = text(_OF_OWN.sub(self._own_in_text(), textclause.text))
        return super().visit_textclause(narrowed, *args, **options)  # type: ignore[no-untyped-call]

    def _own(self, sources: Iterable[FromClause]) -> list[ColumnElement[bool]]:
        """The conditions for these tables, each of a join by its first one."""
        owners = dict.fromkeys(owner for source in sources if (owner := _owner(source)) is not None)
        return [self._is_own(owner) for owner in owners]

    def _is_own(self, owner: ColumnElement[int]) -> ColumnElement[bool]:
        if self.dialect.name == "sqlite":
            # It has one index for each condition, and would rather take that of the project and read all its rows: an
            # expression prevents that.
            return owner + literal_column("0") == own_project()
        # Of a project that was just made, the planner would expect no rows, and read the whole project for each of
        # them. The value of a subquery it doesn't know, so it expects a project of average size.
        return owner == select(own_project()).scalar_subquery()

    def _own_in_text(self) -> str:
        """The same condition for statements that are written as text."""
        return r"\1 + 0 = \2" if self.dialect.name == "sqlite" else r"\1 = (SELECT \2)"


class _OneProjectOfCluster(_OneProject):
    def _is_own(self, owner: ColumnElement[int]) -> ColumnElement[bool]:
        return owner == own_project()

    def _own_in_text(self) -> str:
        return r"\g<0>"


def _changed(statement: Update | Delete) -> list[FromClause]:
    """The table that a statement changes, and those that its conditions name."""
    named = [source for condition in statement._where_criteria for source in condition._from_objects]
    return list(dict.fromkeys([statement.table, *named]))


def _owner(source: FromClause) -> ColumnElement[int] | None:
    """The column with the project's number."""
    while isinstance(source, Join):
        source = source.left
    table = source.element if isinstance(source, AliasedReturnsRows) else source
    if not isinstance(table, Table):
        return None
    name = "id" if table.name == "projects" else "project_id"
    return source.c.get(name)
