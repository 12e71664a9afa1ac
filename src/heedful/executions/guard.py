"""The first wall: exactly one statement that only reads, or an error that says what was found instead.

What runs afterwards is `Guarded.sql`: the words that were checked, without the comments between them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from heedful.dialects import parse, parser_dialect
from heedful.errors import Forbidden, Invalid
from heedful.executions.names import check_names
from heedful.executions.tokens import command, not_understood, read, too_deep, unreadable

# The parser reports there what it can't read; here that is an error of its own.
logging.getLogger("sqlglot").addFilter(lambda record: "Falling back to parsing" not in record.getMessage())

_READS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_WRITES = (exp.DML, exp.DDL, exp.Drop, exp.Alter, exp.TruncateTable)
_STATEMENTS = (exp.Command, exp.Pragma, exp.Attach, exp.Detach, exp.Set, exp.Describe, exp.Summarize, exp.Show)
_FILE = re.compile(
    r"\.(csv|tsv|txt|parquet|json|jsonl|ndjson|geojson|xlsx|arrows?|avro|db|duckdb|sqlite)(\.gz|\.zst)?$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where in the SQL a named parameter stands."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Guarded:
    """One statement that only reads."""

    sql: str
    dialect: str
    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, each once."""
        return tuple(dict.fromkeys(slot.name for slot in self.slots))

    def written(self, mark: Callable[[str], str], plain: Callable[[str], str] = lambda text: text) -> str:
        """The SQL with parameters as a driver wants them, and the text between them made `plain` for it."""
        parts, done = [], 0
        for slot in self.slots:
            parts += [plain(self.sql[done : slot.start]), mark(slot.name)]
            done = slot.end
        return "".join([*parts, plain(self.sql[done:])])


@lru_cache(maxsize=1024)
def guarded(sql: str, dialect: str) -> Guarded:
    """The one reading statement in `sql`, or an error with the code of what was found.

    `dialect` is the database's name in a SQLAlchemy URL, or sqlglot's: `sqlite`, `postgresql`, `duckdb`, `mysql`, …
    """
    name = parser_dialect(dialect)
    text, words = read(sql, name)
    tree = _parsed(text, words[0], name)
    nodes = list(tree.walk())
    _check_statement(tree, words[0])
    for node in nodes:
        _check_node(node, name)
    check_names(words, nodes, name)
    functions = tuple(sorted({called for node in nodes for called in _names(node)}))
    return Guarded(text, name, tuple(sorted(set(_tables(nodes)))), functions, _slots(words, nodes))


def _parsed(text: str, first: Token, dialect: str) -> exp.Expr:
    try:
        trees = parse(text, dialect)
    except RecursionError:
        raise too_deep() from None
    except SqlglotError as error:
        raise not_understood(first, _first_line(error)) from None
    except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        # The parser fails in many ways on text that isn't SQL.
        raise not_understood(first, f"the parser gave up ({type(error).__name__})") from None
    if len(trees) != 1:
        raise unreadable("it is not one statement")
    return trees[0]


def _first_line(error: SqlglotError) -> str:
    found = getattr(error, "errors", None)
    if not found:
        return "it has no known form"
    return f"{found[0]['description'].rstrip('.')} at line {found[0]['line']}, column {found[0]['col']}"


def _check_statement(tree: exp.Expr, first: Token) -> None:
    if isinstance(tree, _WRITES) and not isinstance(tree, exp.Copy):
        raise _writes(first.text)
    if not isinstance(tree, _READS):
        raise command(first.text)


def _check_node(node: exp.Expr, dialect: str) -> None:
    if isinstance(node, exp.Into):
        raise Forbidden(
            "SELECT … INTO makes a table", code="sql_into", field="sql", remedy="Leave the INTO out; rows are returned"
        )
    if isinstance(node, exp.Lock):
        raise Forbidden(
            "this SELECT locks rows (FOR UPDATE or FOR SHARE)",
            code="sql_locks",
            field="sql",
            remedy="Leave the FOR … out; nothing is written after reading",
        )
    if isinstance(node, _WRITES):
        raise _writes(node.key)
    if isinstance(node, _STATEMENTS) or (_is_inner(node) and not isinstance(node, (*_READS, exp.Table))):
        raise command(node.key)
    # DuckDB takes x.csv for a file without quotes, too.
    if dialect in ("duckdb", "") and isinstance(node, exp.Table) and _is_file(named := _full_name(node)):
        raise Forbidden(
            f"{named!r} names a file and not a table",
            code="sql_file",
            field="sql",
            value=named,
            remedy="Read tables of the connector's database only",
        )


def _is_inner(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.CTE | exp.Subquery) and node.arg_key == "this"


def _is_file(name: str) -> bool:
    return any(mark in name for mark in "/\\*?[") or _FILE.search(name) is not None


def _writes(what: str) -> Forbidden:
    return Forbidden(
        f"{what.upper()} changes the database; only reading is allowed",
        code="sql_writes",
        field="sql",
        value=what.upper(),
        remedy="Pass one SELECT statement",
    )


def _names(node: exp.Expr) -> Iterator[str]:
    """All names under which the database may know a function that is called here."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.UserDefinedFunction):
        yield node.name.lower()
    elif isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        yield from (name.lower() for name in node.sql_names())


def _tables(nodes: list[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and node.arg_key != "indexed":
            if _is_named_by_with(node):
                continue
            yield _full_name(node)


def _full_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _is_named_by_with(table: exp.Table) -> bool:
    if table.args.get("db"):
        return False
    inside: exp.Expr = table
    above = table.parent
    while above is not None:
        clause = above.args.get("with_")
        if clause is not None and clause is not inside and _has(clause.expressions, table.name):
            return True
        if isinstance(above, exp.With):
            place = next((i for i, each in enumerate(above.expressions) if each is inside), 0)
            visible = above.expressions if above.args.get("recursive") else above.expressions[:place]
            if _has(visible, table.name):
                return True
        inside, above = above, above.parent
    return False


def _has(ctes: list[exp.Expr], name: str) -> bool:
    return any(cte.alias.lower() == name.lower() for cte in ctes)


def _slots(words: list[Token], nodes: list[exp.Expr]) -> tuple[Slot, ...]:
    named = [node.name for node in nodes if isinstance(node, exp.Placeholder)]
    others = [node for node in nodes if isinstance(node, exp.Parameter | exp.SessionParameter)]
    slots = tuple(
        Slot(colon.start, word.end + 1, word.text)
        for colon, word in pairwise(words)
        if colon.token_type is TokenType.COLON and colon.end + 1 == word.start and word.text in named
    )
    if others or sorted(slot.name for slot in slots) != sorted(named):
        raise Invalid(
            "this SQL holds a parameter that is not of the form :name, or a name that could be one",
            code="sql_parameter",
            field="sql",
            remedy="Write parameters as :name, and put a space after other colons",
        )
    return slots
