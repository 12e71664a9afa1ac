"""One text for SQL that means the same: other aliases, another order of joins and conditions, other quoting.

Only what is certain without the schema is made equal; what is left apart is only compared as it is written.
"""

from __future__ import annotations

import re
from collections import Counter

from sqlglot import exp

from heedful.sql.statements import write

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_SYMMETRIC = (exp.EQ, exp.NEQ)


def meaning(tree: exp.Expression, dialect: str) -> str:
    """The statement in one form however it is spelled; to compare it, not to run it."""
    tree = tree.copy()
    for name in tree.find_all(exp.Identifier):
        text = str(name.this)
        if not name.quoted or dialect == "sqlite":
            text = text.lower()
        name.set("this", text)
        name.set("quoted", not _PLAIN_NAME.fullmatch(text))
    _rename(tree)
    # The innermost first: what stands around them is sorted by what they have become.
    for select in reversed(list(tree.find_all(exp.Select, bfs=False))):
        _sort(select, dialect)
    return write(tree, dialect)


def _sources(select: exp.Select) -> list[exp.Expression]:
    start = select.args.get("from_") or select.args.get("from")
    clauses = [start, *select.args.get("joins", [])]
    return [clause.this for clause in clauses if clause is not None]


def _rename(tree: exp.Expression) -> None:
    """Names each table that a statement reads by its own name and its place among those with that name."""
    counts: Counter[str] = Counter()
    for select in tree.find_all(exp.Select, bfs=False):
        names: dict[str, str] = {}
        tables = [each for each in _sources(select) if isinstance(each, exp.Table)]
        for table in tables:
            counts[table.name] += 1
            names.setdefault(table.alias_or_name, f"{table.name}_{counts[table.name]}")
        if len(names) < len(tables):
            continue  # Two with one name: the database knows which is meant, and nobody else.
        for column in list(select.find_all(exp.Column)):
            owner = column.table
            if owner in names and _owner(column, owner) is select:
                column.set("table", exp.to_identifier(names[owner]))
            elif not owner and len(_sources(select)) == len(tables) == 1 and _only_select(column, select):
                column.set("table", exp.to_identifier(names[tables[0].alias_or_name]))
        for table in tables:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(names[table.alias_or_name])))


def _only_select(column: exp.Column, select: exp.Select) -> bool:
    """Whether a column without a table can only be one of this SELECT: no other is around it or in it."""
    return column.find_ancestor(exp.Select) is select and select.find_ancestor(exp.Select) is None


def _owner(column: exp.Column, name: str) -> exp.Select | None:
    """The innermost SELECT around a column that reads something by this name."""
    select = column.find_ancestor(exp.Select)
    while select is not None and all(each.alias_or_name != name for each in _sources(select)):
        select = select.find_ancestor(exp.Select)
    return select


def _sort(select: exp.Select, dialect: str) -> None:
    """Inner joins as a list of tables, conditions as a list, and both in one order."""
    joins: list[exp.Join] = select.args.get("joins") or []
    # The order of tables is that of the columns which a star stands for.
    plain = not (joins and any(isinstance(each, exp.Star) for each in select.expressions)) and all(
        not join.args.get("side") and not join.args.get("using") and join.args.get("method") is None
        and (join.args.get("kind") or "INNER") in ("INNER", "CROSS")
        for join in joins
    )  # fmt: skip
    where = select.args.get("where")
    conditions = _conjuncts(where.this) if where is not None else []
    start = select.args.get("from_") or select.args.get("from")
    if plain and start is not None:
        for join in joins:
            conditions += _conjuncts(join.args["on"]) if join.args.get("on") is not None else []
        sources = sorted(_sources(select), key=lambda each: write(each, dialect))
        start.set("this", sources[0].copy())
        select.set("joins", [exp.Join(this=each.copy()) for each in sources[1:]] or None)
    for part in select.find_all(exp.In):
        if part.args.get("expressions"):
            part.set("expressions", sorted(part.expressions, key=lambda each: write(each, dialect)))
    found = {write(each, dialect): each for each in (_sides_sorted(part, dialect) for part in conditions)}
    if found:
        joined = exp.and_(*[found[text].copy() for text in sorted(found)], copy=False)
        select.set("where", exp.Where(this=joined))


def _conjuncts(condition: exp.Expression) -> list[exp.Expression]:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.this), *_conjuncts(condition.expression)]
    return [condition]


def _sides_sorted(condition: exp.Expression, dialect: str) -> exp.Expression:
    if not isinstance(condition, _SYMMETRIC):
        return condition
    left, right = condition.this, condition.expression
    if write(left, dialect) <= write(right, dialect):
        return condition
    return type(condition)(this=right.copy(), expression=left.copy())
