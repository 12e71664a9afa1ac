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
    _drop_idle(tree)
    # The innermost first: what stands around them is sorted by what they have become.
    for select in reversed(list(tree.find_all(exp.Select, bfs=False))):
        _sort(select, dialect)
    return write(tree, dialect)


def _drop_idle(tree: exp.Expression) -> None:
    """Takes out what changes no row: DISTINCT in MAX and MIN, and the value that is counted once for each row."""
    for extreme in tree.find_all(exp.Max, exp.Min):
        if isinstance(extreme.this, exp.Distinct) and len(extreme.this.expressions) == 1:
            extreme.set("this", extreme.this.expressions[0].copy())
    for count in tree.find_all(exp.Count):
        if isinstance(count.this, exp.Literal):
            count.set("this", exp.Star())


def _is_distinct_anyway(select: exp.Select, dialect: str) -> bool:
    """Whether its rows differ without DISTINCT: there is one for each group, with all that it is grouped by."""
    group = select.args.get("group")
    if group is None:
        return bool(select.expressions) and all(isinstance(each.unalias(), exp.AggFunc) for each in select.expressions)
    shown = {write(each.unalias(), dialect) for each in select.expressions}
    others = {name for name, value in group.args.items() if value and name != "expressions"}
    return not others and all(write(each, dialect) in shown for each in group.expressions)


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
                column.set("table", _identifier(names[owner]))
            elif not owner and len(_sources(select)) == len(tables) == 1 and _only_select(column, select):
                column.set("table", _identifier(names[tables[0].alias_or_name]))
        for table in tables:
            table.set("alias", exp.TableAlias(this=_identifier(names[table.alias_or_name])))


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
        conditions = _with_one_name(select, conditions, dialect)
        sources = sorted(_sources(select), key=lambda each: write(each, dialect))
        start.set("this", sources[0].copy())
        select.set("joins", [exp.Join(this=each.copy()) for each in sources[1:]] or None)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None and _is_distinct_anyway(select, dialect):
        select.set("distinct", None)
    for part in select.find_all(exp.In):
        if part.args.get("expressions"):
            part.set("expressions", sorted(part.expressions, key=lambda each: write(each, dialect)))
    found = {write(each, dialect): each for each in (_sides_sorted(part, dialect) for part in conditions)}
    if found:
        joined = exp.and_(*[found[text].copy() for text in sorted(found)], copy=False)
        select.set("where", exp.Where(this=joined))


def _with_one_name(select: exp.Select, conditions: list[exp.Expression], dialect: str) -> list[exp.Expression]:
    """Calls columns that must be equal by one of their names, wherever they stand, and returns the conditions then."""
    equal: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for each in conditions:
        sides = (each.this, each.expression) if isinstance(each, exp.EQ) else ()
        if sides and all(isinstance(side, exp.Column) and side.table for side in sides):
            names = [(side.table, side.name) for side in sides]
            together = set[tuple[str, str]]().union(*(equal.get(name, {name}) for name in names))
            equal |= dict.fromkeys(together, together)
    for column in list(select.find_all(exp.Column)):
        if (column.table, column.name) in equal:
            table, name = min(equal[column.table, column.name])
            column.set("table", _identifier(table))
            column.set("this", _identifier(name))
    rest = [each for each in conditions if not (isinstance(each, exp.EQ) and each.this == each.expression)]
    for group in {frozenset(group) for group in equal.values()}:
        first, *others = (exp.Column(this=_identifier(name), table=_identifier(table)) for table, name in sorted(group))
        rest += [exp.EQ(this=first.copy(), expression=other) for other in others]
    return rest


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=not _PLAIN_NAME.fullmatch(name))


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
