"""Denied names, wherever a database could take them for a function.

The words of the statement decide, and the tree only says which of them are harmless: a form of call that the parser
doesn't know as one is refused, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from heedful.errors import Forbidden
from heedful.executions.denied import is_denied, is_denied_attribute, is_denied_schema, is_denied_table
from heedful.executions.tokens import QUOTED

_TEXTS = (QUOTED - {TokenType.IDENTIFIER}) | {TokenType.NUMBER}
_QUALIFIERS = ("table", "db", "catalog")
# Types whose values are functions, written as texts.
_FUNCTION_TYPES = re.compile(r"(?:pg_catalog\.)?reg(?:proc|procedure|oper|operator)", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def check_names(words: Sequence[Token], nodes: Sequence[exp.Expr], dialect: str) -> None:
    """Refuses a statement in which a denied name stands where it could be called."""
    aliases = set(_aliases(nodes))
    columns = aliases | set(_columns(nodes))
    harmless = columns | set(_tables(nodes))
    for place, word in enumerate(words):
        if word.token_type in _TEXTS:
            continue
        name = word.text.lower()
        if _next_is(words, place, TokenType.L_PAREN):
            if is_denied(name, dialect) and not _is_operator(words, place) and not _is_plain(word, aliases, dialect):
                raise _refused(name)
            # OPERATOR(schema.+) has its dot inside of the brackets.
            _check_schemas(words, place + 4 if word.token_type is TokenType.OPERATOR else place, dialect)
        elif is_denied_attribute(name, dialect) and word.start not in harmless:
            raise _refused(name, attribute=True)
        elif is_denied_table(name, dialect) and word.start not in columns:
            raise _refused(name)
    for name in _denied_in_casts(nodes, dialect):
        raise _refused(name)


def _is_plain(word: Token, aliases: set[int], dialect: str) -> bool:
    """Whether an ordinary word names the columns of a table here: `WITH query (a, b) AS …`."""
    return word.start in aliases and not is_denied_attribute(word.text, dialect)


def _is_operator(words: Sequence[Token], place: int) -> bool:
    """Whether this is GLOB between two values, or the method of a sample."""
    if place == 0:
        return False
    before, word = words[place - 1], words[place]
    if before.token_type is TokenType.TABLE_SAMPLE:
        return True
    values = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, *_TEXTS}
    return word.token_type is TokenType.GLOB and before.token_type in values


def _check_schemas(words: Sequence[Token], place: int, dialect: str) -> None:
    """Refuses a call, or an operator, of a denied schema: looks at the names before the dots."""
    while place >= 2 and place < len(words) and words[place - 1].token_type is TokenType.DOT:
        place -= 2
        if is_denied_schema(words[place].text, dialect):
            raise _refused(f"{words[place].text.lower()}.{words[place + 2].text.lower()}")


def _next_is(words: Sequence[Token], place: int, kind: TokenType) -> bool:
    return place + 1 < len(words) and words[place + 1].token_type is kind


def _aliases(nodes: Iterable[exp.Expr]) -> Iterator[int]:
    """Where names are given."""
    for node in nodes:
        if isinstance(node, exp.TableAlias):
            yield from _starts(node.this, *(node.args.get("columns") or ()))
        elif isinstance(node, exp.Alias):
            yield from _starts(node.args.get("alias"))


def _columns(nodes: Iterable[exp.Expr]) -> Iterator[int]:
    """Where names can only be those of columns, or of tables before their columns."""
    for node in nodes:
        # SQLite has tables there: a IN t.
        if isinstance(node, exp.Column) and not (isinstance(node.parent, exp.In) and node.arg_key == "field"):
            yield from _starts(*(node.args.get(part) for part in _QUALIFIERS))
            if not node.args.get("table"):
                yield from _starts(node.this)
        elif isinstance(node, exp.Join):
            yield from _starts(*(node.args.get("using") or ()))


def _tables(nodes: Iterable[exp.Expr]) -> Iterator[int]:
    """Where names can only be those of tables: without brackets."""
    for node in nodes:
        if isinstance(node, exp.Table):
            yield from _starts(node.this, *(node.args.get(part) for part in _QUALIFIERS))


def _starts(*parts: object) -> Iterator[int]:
    for part in parts:
        if isinstance(part, exp.Identifier) and "start" in part.meta:
            yield part.meta["start"]


def _denied_in_casts(nodes: Iterable[exp.Expr], dialect: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, exp.Cast) and node.this.is_string and _FUNCTION_TYPES.fullmatch(node.to.sql("postgres")):
            yield from (name for name in _WORD.findall(node.this.name.lower()) if is_denied(name, dialect))


def _refused(name: str, *, attribute: bool = False) -> Forbidden:
    advice = "; if it is a column, write it without the name of its table" if attribute else ""
    return Forbidden(
        f"the function {name} may not be called: it can do more than read tables",
        code="sql_function",
        field="sql",
        value=name,
        remedy=f"Leave it out{advice}",
    )
