"""A proven SQL statement: its literals and their columns, the same with other values, and one text for what means the
same.

Other aliases, another order of joins and conditions, and other quoting mean the same. Only that is made equal which is
certain without the schema; the rest is compared as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from heedful.caching import cache_short
from heedful.sql.reuse.reasons import Bound, Inline
from heedful.sql.reuse.values import Column
from heedful.sql.statements import parse, parse_tokens, tokenize, write
from heedful.text import word_set
from heedful.text.regex import regex

_VOLATILE = word_set("""
now random rand randomblob newid uuid gen_random_uuid uuid_generate_v4 clock_timestamp statement_timestamp
transaction_timestamp timeofday getdate sysdate systimestamp nextval currval lastval last_insert_rowid changes
total_changes current_user session_user curdate curtime unix_timestamp utc_timestamp getutcdate today
current_date current_time current_timestamp current_datetime localtime localtimestamp
""")
_CLOCKS = _VOLATILE - word_set("""
random rand randomblob newid uuid gen_random_uuid uuid_generate_v4 nextval currval lastval last_insert_rowid
changes total_changes current_user session_user
""")
_DATED = frozenset(("date", "time", "datetime", "julianday", "strftime"))
_WRITTEN = (TokenType.STRING, TokenType.NUMBER)
_OPEN = "\x00"  # Stands for a value that is left open; no other text has it.
_WILDCARDS = regex(r"(%*)([^%_\\]*)(%*)")
_TOUCHING = "_:'\"$"
_MAX_LENGTH = 20_000
_MAX_WORDS = 2_000
_MAX_DEPTH = 60
_MAX_HEIGHT = 100
_MAX_SUBSCRIPTS = 20
_WORD = regex(r"\w+|[^\w\s]")
_BRACKET = regex(r"[()\[\]{}]")
_SUBSCRIPTS = regex(r"\]\s*\[")
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is)


@dataclass(frozen=True, slots=True)
class Literal:
    """One literal of a statement: its text, whether it is quoted, and the column it is compared with.

    `span` is where it stands in the statement; None when the parser made it of something else.
    """

    place: int
    text: str
    quoted: bool
    column: Column | None
    operator: str
    span: tuple[int, int] | None

    @property
    def searched(self) -> str | None:
        """The text that it looks for, without the signs around a pattern; None for any other pattern."""
        if self.operator != "like":
            return self.text
        found = _WILDCARDS.fullmatch(self.text)
        return found[2] if found else None

    def pattern(self, text: str) -> str:
        """Another text with the signs that stand around this one."""
        found = _WILDCARDS.fullmatch(self.text) if self.operator == "like" else None
        return f"{found[1]}{text}{found[3]}" if found else text


@dataclass(frozen=True, slots=True)
class Rebound:
    """A statement with other values: with parameters, and with the values written out."""

    sql: str
    parameters: dict[str, Bound]
    display: str


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed statement, without its tree: of thousands that are proven, that would be most of the memory."""

    sql: str
    dialect: str
    literals: tuple[Literal, ...]

    def template(self, places: Sequence[int]) -> str:
        """The statement with the literals at `places` left open: two of one template differ in values alone."""
        opened = [self.literals[place] for place in places]
        written = [(literal.span, f"'{literal.pattern(_OPEN)}'") for literal in opened if literal.span is not None]
        return canonical(_spliced(self.sql, written), self.dialect)

    def rebound(self, values: Mapping[int, Bound]) -> Rebound:
        """The statement with other values at these places, and not a character changed elsewhere.

        A number with a fraction is written out in both: drivers would bind it as a float, which isn't what it was. So
        is a date: `DATE :p1` is no SQL, and PostgreSQL compares no date with a text.
        """
        names: dict[Bound, str] = {}
        bound, written = [], []
        for place, value in values.items():
            span = self.literals[place].span
            assert span is not None
            shown = write(_literal(value, self.literals[place].quoted), self.dialect)
            written.append((span, shown))
            if isinstance(value, (Decimal, Inline)):
                bound.append((span, shown))
            else:
                bound.append((span, f":{names.setdefault(value, f'p{len(names) + 1}')}"))
        parameters = {name: value for value, name in names.items()}
        return Rebound(_spliced(self.sql, bound), parameters, _spliced(self.sql, written))


@cache_short(entries=16_384, characters=1_000)
def canonical(sql: str, dialect: str) -> str:
    """A statement that can be parsed, written in one way however it was spelled: to compare it, not to run it."""
    (tree,) = parse(sql, dialect)
    assert isinstance(tree, exp.Expression)
    return meaning(tree, dialect)


def with_gaps(template: str) -> str:
    """A template as people read it, with … for the values that are left open."""
    return template.replace(_OPEN, "…")


def is_short(sql: str) -> bool:
    """Whether a statement is parsed soon, whatever is in it: others wait while this process reads.

    >>> is_short("SELECT a[1]"), is_short("SELECT a" + "[1]" * 1000)
    (True, False)
    """
    return (
        len(sql) <= _MAX_LENGTH
        and sum(1 for _ in _WORD.finditer(sql)) <= _MAX_WORDS
        and _depth(sql) <= _MAX_DEPTH
        and len(_SUBSCRIPTS.findall(sql)) <= _MAX_SUBSCRIPTS
    )


def _is_tall(tree: exp.Expression) -> bool:
    """Whether a tree is too high to be written, which takes several calls for each of its levels."""
    level: list[exp.Expr] = [tree]
    for _ in range(_MAX_HEIGHT):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return False
    return True


def _depth(sql: str) -> int:
    """How deeply brackets are nested, at most; those in texts count, too."""
    deepest = depth = 0
    for sign in _BRACKET.findall(sql):
        depth += 1 if sign in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


class Parsed(NamedTuple):
    """A statement as a tree, with the tokens that it is made of."""

    tree: exp.Expression
    tokens: list[Token]


def parsed(sql: str, dialect: str) -> exp.Expression | None:
    """The tree of exactly one statement that can be read soon, with all its values; None for anything else."""
    found = parsed_tokens(sql, dialect)
    return None if found is None else found.tree


@cache_short(entries=256, characters=2_000)
def parsed_tokens(sql: str, dialect: str) -> Parsed | None:
    """The same with its tokens."""
    if not is_short(sql):
        return None
    try:
        tokens = tokenize(sql, dialect)
        trees = parse_tokens(tokens, sql, dialect)
    except (SqlglotError, RecursionError):
        return None
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression) or _is_tall(trees[0]):
        return None
    return None if trees[0].find(exp.Placeholder, exp.Parameter) else Parsed(trees[0], tokens)


@cache_short(entries=512, characters=2_000)
def parse_query(sql: str, dialect: str) -> Query | None:
    """The statement, or None when it is not exactly one that can be read soon, with all its values."""
    found = parsed_tokens(sql, dialect)
    if found is None:
        return None
    spans = {(token.start, token.end) for token in found.tokens if token.token_type in _WRITTEN}
    literals = []
    for place, node in enumerate(found.tree.find_all(exp.Literal, bfs=False)):
        column, operator = _compared(node)
        span = (node.meta.get("start"), node.meta.get("end"))
        literals.append(
            Literal(place, str(node.this), bool(node.is_string), column, operator, span if span in spans else None)
        )
    return Query(sql, dialect, tuple(literals))


@cache_short(entries=4_096, characters=2_000)
def nondeterminism(sql: str, dialect: str) -> str | None:
    """Why the statement may answer differently on the same data, or None when it doesn't.

    >>> nondeterminism("SELECT name FROM city LIMIT 3", "sqlite")
    'LIMIT without ORDER BY picks any rows'
    """
    tree = parsed(sql, dialect)
    if tree is None:
        return "the statement can't be parsed"
    for name in _functions(tree):
        if name in _VOLATILE:
            return f"{name.upper()} is different at each call"
    if _reads_clock(tree):
        return "a date is taken from the clock"
    for node in tree.find_all(exp.TableSample):
        return f"{type(node).__name__.upper()} picks any rows"
    for limit in tree.find_all(exp.Limit, exp.Fetch, exp.Offset):
        scope = limit.parent
        if scope is not None and scope.args.get("order") is None and not _one_row(scope):
            return "LIMIT without ORDER BY picks any rows"
    return None


def follows_clock(sql: str, dialect: str) -> bool:
    """Whether the statement takes the current date or time from the database."""
    tree = parsed(sql, dialect)
    return tree is not None and (_reads_clock(tree) or any(name in _CLOCKS for name in _functions(tree)))


def _literal(value: Bound, quoted: bool) -> exp.Expr:
    if isinstance(value, str):
        return exp.Literal.string(value) if quoted or not isinstance(value, Inline) else exp.Literal.number(value)
    return exp.Literal.number(format(value, "f") if isinstance(value, Decimal) else value)


def _spliced(sql: str, changes: Sequence[tuple[tuple[int, int], str]]) -> str:
    """The text with other words at these places; a space only where two words would become one."""
    made, done = "", 0
    for (start, end), text in sorted(changes):
        made += sql[done:start]
        made += f" {text}" if _touch(made[-1:], text[:1]) else text
        done = end + 1
        if _touch(text[-1:], sql[done : done + 1]):
            made += " "
    return made + sql[done:]


def _touch(left: str, right: str) -> bool:
    return all(sign.isalnum() or (sign != "" and sign in _TOUCHING) for sign in (left, right))


def function_name(node: exp.Func) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def _functions(tree: exp.Expression) -> list[str]:
    names = [function_name(node) for node in tree.find_all(exp.Func)]
    names += [node.name.lower() for node in tree.find_all(exp.Column) if not node.table and not node.this.quoted]
    return names


def _reads_clock(tree: exp.Expression) -> bool:
    """SQLite's date('now'), and date() without arguments."""
    for node in tree.find_all(exp.Func):
        inside = [str(literal.this).lower() for literal in node.find_all(exp.Literal)]
        is_empty = not node.args.get("this") and not node.expressions
        if "now" in inside or (is_empty and function_name(node) in _DATED):
            return True
    return False


def _one_row(select: object) -> bool:
    """Whether a SELECT aggregates everything into one row, so that a limit takes nothing away."""
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return False
    return bool(select.expressions) and all(shown.find(exp.AggFunc) for shown in select.expressions)


def _compared(node: exp.Literal) -> tuple[Column | None, str]:
    """The column a literal is compared with, and how; (None, …) when that isn't plain to see."""
    child: exp.Expression = node
    parent = node.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    if isinstance(parent, (exp.Limit, exp.Fetch, exp.Offset)):
        return None, "limit"
    if isinstance(parent, _COMPARED):
        other = parent.expression if child is parent.this else parent.this
        operator = parent.key
    elif isinstance(parent, (exp.In, exp.Between)):
        other, operator = parent.this, parent.key
    elif isinstance(parent, (exp.Like, exp.ILike)) and child is parent.expression:
        other, operator = parent.this, "like"
    else:
        return None, "other"
    while isinstance(other, (exp.Lower, exp.Upper, exp.Paren)):
        other = other.this
    return (_column(other), operator) if isinstance(other, exp.Column) else (None, operator)


def _column(column: exp.Column) -> Column | None:
    """The (table, column) behind a reference, found through the aliases around it."""
    name, owner = column.name.lower(), column.table.lower()
    select = column.find_ancestor(exp.Select)
    while select is not None:
        # A derived table has no table name.
        sources = [
            (source.alias_or_name.lower(), source.name.lower() if isinstance(source, exp.Table) else "")
            for source in _read_from(select)
        ]
        if owner:
            for alias, table in sources:
                if alias == owner:
                    return (table, name) if table else None
        elif len(sources) == 1:
            return (sources[0][1], name) if sources[0][1] else None
        else:
            return None
        select = select.find_ancestor(exp.Select)
    return None


_PLAIN_NAME = regex(r"[a-z_][a-z0-9_]*")
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
        return bool(select.expressions) and all(isinstance(part.unalias(), exp.AggFunc) for part in select.expressions)
    shown = {write(part.unalias(), dialect) for part in select.expressions}
    others = {name for name, value in group.args.items() if value and name != "expressions"}
    return not others and all(write(part, dialect) in shown for part in group.expressions)


def _read_from(select: exp.Select) -> list[exp.Expression]:
    clauses = [_start(select), *select.args.get("joins", [])]
    return [clause.this for clause in clauses if clause is not None]


def _start(select: exp.Select) -> exp.From | None:
    return select.args.get("from_") or select.args.get("from")


def _rename(tree: exp.Expression) -> None:
    """Names each table that a statement reads by its own name and its place among those with that name."""
    counts: Counter[str] = Counter()
    for select in tree.find_all(exp.Select, bfs=False):
        names: dict[str, str] = {}
        tables = [source for source in _read_from(select) if isinstance(source, exp.Table)]
        for table in tables:
            counts[table.name] += 1
            names.setdefault(table.alias_or_name, f"{table.name}_{counts[table.name]}")
        if len(names) < len(tables):
            continue  # Two with one name: the database knows which is meant, and nobody else.
        for column in list(select.find_all(exp.Column)):
            owner = column.table
            if owner in names and _owner(column, owner) is select:
                column.set("table", _identifier(names[owner]))
            elif (
                not owner
                and len(_read_from(select)) == len(tables) == 1
                # It can only be one of this SELECT: no other is around it or in it.
                and column.find_ancestor(exp.Select) is select
                and select.find_ancestor(exp.Select) is None
            ):
                column.set("table", _identifier(names[tables[0].alias_or_name]))
        for table in tables:
            table.set("alias", exp.TableAlias(this=_identifier(names[table.alias_or_name])))


def _owner(column: exp.Column, name: str) -> exp.Select | None:
    """The innermost SELECT around a column that reads something by this name."""
    select = column.find_ancestor(exp.Select)
    while select is not None and all(source.alias_or_name != name for source in _read_from(select)):
        select = select.find_ancestor(exp.Select)
    return select


def _sort(select: exp.Select, dialect: str) -> None:
    """Inner joins as a list of tables, conditions as a list, and both in one order."""
    joins: list[exp.Join] = select.args.get("joins") or []
    # The order of tables is that of the columns which a star stands for.
    plain = not (joins and any(isinstance(shown, exp.Star) for shown in select.expressions)) and all(
        not join.args.get("side") and not join.args.get("using") and join.args.get("method") is None
        and (join.args.get("kind") or "INNER") in ("INNER", "CROSS")
        for join in joins
    )  # fmt: skip
    where = select.args.get("where")
    conditions = _conjuncts(where.this) if where is not None else []
    start = _start(select)
    if plain and start is not None:
        for join in joins:
            conditions += _conjuncts(join.args["on"]) if join.args.get("on") is not None else []
        conditions = _with_one_name(select, conditions, dialect)
        sources = sorted(_read_from(select), key=lambda each: write(each, dialect))
        start.set("this", sources[0].copy())
        select.set("joins", [exp.Join(this=source.copy()) for source in sources[1:]] or None)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None and _is_distinct_anyway(select, dialect):
        select.set("distinct", None)
    for part in select.find_all(exp.In):
        if part.args.get("expressions"):
            part.set("expressions", sorted(part.expressions, key=lambda each: write(each, dialect)))
    found = {
        write(condition, dialect): condition for condition in (_sides_sorted(part, dialect) for part in conditions)
    }
    if found:
        joined = exp.and_(*[found[text].copy() for text in sorted(found)], copy=False)
        select.set("where", exp.Where(this=joined))


def _with_one_name(select: exp.Select, conditions: list[exp.Expression], dialect: str) -> list[exp.Expression]:
    """Calls columns that must be equal by one of their names, wherever they stand, and returns the conditions then."""
    equal: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for condition in conditions:
        sides = (condition.this, condition.expression) if isinstance(condition, exp.EQ) else ()
        if sides and all(isinstance(side, exp.Column) and side.table for side in sides):
            names = [(side.table, side.name) for side in sides]
            together = set[tuple[str, str]]().union(*(equal.get(name, {name}) for name in names))
            equal |= dict.fromkeys(together, together)
    for column in list(select.find_all(exp.Column)):
        if (column.table, column.name) in equal:
            table, name = min(equal[column.table, column.name])
            column.set("table", _identifier(table))
            column.set("this", _identifier(name))
    rest = [
        condition
        for condition in conditions
        if not (isinstance(condition, exp.EQ) and condition.this == condition.expression)
    ]
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
