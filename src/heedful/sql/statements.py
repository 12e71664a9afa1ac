"""Tokenizes statements: without comments, limited in length and depth; also their templates without values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice, pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from heedful.caching import cache_short
from heedful.errors import Forbidden, HeedfulError, Invalid
from heedful.text.regex import regex

MAX_CHARACTERS = 100_000
MAX_TOKENS = 5_000
MAX_DEPTH = 60
MAX_SUBSCRIPTS = 100
MAX_OPEN_JOINS = 10

_BLANK = " \t\r\n"
"""Characters that every database reads as white space."""

# Linear: no pattern backtracks.
_ROUGH = regex(r"""'[^']*'|"[^"]*"|`[^`]*`|\w+|[^\w\s]""")
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_JOINS = {TokenType.JOIN, TokenType.STRAIGHT_JOIN}
_NO_CONDITION_AFTER = {TokenType.DISTINCT, TokenType.ALIAS, TokenType.DOT}
_CONDITIONS = {TokenType.ON, TokenType.USING}
QUOTED = frozenset(
    {
        TokenType.IDENTIFIER,
        TokenType.STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.HEX_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.NATIONAL_RAW_STRING,
        TokenType.RAW_STRING,
        TokenType.UNICODE_STRING,
    }
)
"""Tokens that may contain any character."""

_READING = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE, TokenType.L_PAREN}


def read(sql: str, dialect: str) -> tuple[str, list[Token]]:
    """The one statement in a text, without comments, and its tokens.

    Databases disagree on where a comment ends: what one skips, another may run. So comments are left out of what runs.
    """
    check_text(sql)
    # Before the slow tokenizer runs; words in comments count, too.
    if next(islice(_ROUGH.finditer(sql), 2 * MAX_TOKENS, None), None) is not None:
        raise _too_long(f"more than {2 * MAX_TOKENS:,} words and signs", MAX_TOKENS)
    words = _tokens(sql, dialect)
    while words and words[-1].token_type is TokenType.SEMICOLON:
        words.pop()
    if not words:
        raise Invalid("there is no SQL in this text", code="sql_empty", field="sql", remedy="Pass one SELECT statement")
    _check_words(words)
    _check_depth(words)
    if len(words) > MAX_TOKENS:
        raise _too_long(f"{len(words):,} words and signs", MAX_TOKENS)
    bare = _joined(sql, words)
    again = _tokens(bare, dialect)
    if [(word.token_type, word.text) for word in again] != [(word.token_type, word.text) for word in words]:
        raise not_understood(words[0], "it is ambiguous")
    return bare, again


def not_understood(first: Token, reason: str) -> HeedfulError:
    """The error for a statement that can't be parsed, or doesn't begin like a query."""
    return unreadable(reason) if first.token_type in _READING else command(first.text)


def unreadable(reason: str) -> Invalid:
    remedy = "Pass one SELECT statement in the dialect of the database"
    return Invalid(f"this SQL can't be read: {reason}", code="sql_unreadable", field="sql", remedy=remedy)


def command(statement: str) -> Forbidden:
    message = f"{statement.upper()} is not a query; only SELECT, VALUES and WITH … SELECT are allowed"
    remedy = "Pass one SELECT statement"
    return Forbidden(message, code="sql_command", field="sql", value=statement.upper(), remedy=remedy)


def too_deep() -> Invalid:
    """The error for a statement that would take too long or too much stack to parse."""
    message = (
        f"this SQL is nested too deeply: up to {MAX_DEPTH} brackets, {MAX_OPEN_JOINS} joins without ON or USING, and"
        f" {MAX_SUBSCRIPTS} subscripts of subscripts, as in a[1][2]"
    )
    return Invalid(message, code="sql_too_deep", field="sql", remedy="Split it with WITH, and give each JOIN its ON")


def check_text(sql: str) -> None:
    """Refuses what is too long, or not a text."""
    if len(sql) > MAX_CHARACTERS:
        raise _too_long(f"{len(sql):,} characters", MAX_CHARACTERS)
    if "\0" in sql:
        raise unreadable("it holds a NUL character")
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise unreadable("it is not valid Unicode") from None


def _too_long(length: str, limit: int) -> Invalid:
    message = f"this SQL has {length}; {limit:,} are allowed"
    remedy = "Shorten it, or put long lists of values into a table"
    return Invalid(message, code="sql_too_long", field="sql", value=limit, remedy=remedy)


def _tokens(sql: str, dialect: str) -> list[Token]:
    try:
        return tokenize(sql, dialect)
    except SqlglotError:
        raise unreadable("a string, name or comment is not closed, or a character is not allowed") from None


def _check_words(words: Sequence[Token]) -> None:
    for index, word in enumerate(words):
        if word.token_type is TokenType.SEMICOLON:
            remedy = "Pass one at a time"
            raise Forbidden("the text contains several statements", code="sql_several", field="sql", remedy=remedy)
        if word.token_type is TokenType.HINT:
            raise unreadable("it holds a hint, /*+ … */")
        if word.token_type is TokenType.IDENTIFIER and _is_escaped(words[max(0, index - 2) : index + 1]):
            raise unreadable('it holds a name with escapes, U&"…"')
        # DuckDB reads some of these as white space, so a name could end earlier there.
        if word.token_type not in QUOTED and not word.text.isprintable():
            raise unreadable("it holds an invisible character in a name")


def _check_depth(words: Sequence[Token]) -> None:
    """Refuses what the parser would overflow the stack on, or read for hours.

    It takes twice as long for each join without ON or USING, and brackets multiply that, so they are counted together.
    After AS and a dot these words are names.
    """
    open_joins, waiting, subscripts = [0], 0, 0
    for index, word in enumerate(words):
        kind = word.token_type
        if kind in _OPENING:
            open_joins.append(0)
            subscripts += kind is TokenType.L_BRACKET and words[index - 1].token_type is TokenType.R_BRACKET
        elif kind in _CLOSING and len(open_joins) > 1:
            open_joins.pop()
        elif kind in _JOINS:
            open_joins[-1] += 1
            waiting += 1
        elif kind in _CONDITIONS and open_joins[-1] and words[index - 1].token_type not in _NO_CONDITION_AFTER:
            open_joins[-1] -= 1
            waiting -= 1
        if len(open_joins) > MAX_DEPTH or waiting > MAX_OPEN_JOINS or subscripts > MAX_SUBSCRIPTS:
            raise too_deep()


def _is_escaped(words: Sequence[Token]) -> bool:
    adjacent = all(before.end + 1 == word.start for before, word in pairwise(words))
    return [word.text.lower() for word in words[:-1]] == ["u", "&"] and adjacent


def _joined(sql: str, words: Sequence[Token]) -> str:
    parts = [sql[words[0].start : words[0].end + 1]]
    for before, word in pairwise(words):
        between = sql[before.end + 1 : word.start]
        if between.strip(_BLANK):
            # Two strings on two lines are one string in standard SQL, and an error on one line.
            between = "\n" if "\n" in between else " "
        parts += [between, sql[word.start : word.end + 1]]
    return "".join(parts)


_SPACE = regex(r"\s+")


@cache_short(entries=4_096, characters=2_000)
def template(sql: str, dialect: str) -> bytes:
    """A hash of SQL that ignores values, layout and the case of keywords.

    >>> template("select a from t where b = 1", "sqlite") == template("SELECT a FROM t WHERE b=2", "sqlite")
    True
    """
    try:
        parsed = parse(sql, dialect)[0]
        for value in list(parsed.find_all(exp.Literal, exp.Placeholder, exp.Parameter)):
            node = value.parent if isinstance(value.parent, exp.Neg) else value
            node.replace(exp.Placeholder())
        canonical = write(parsed, dialect, normalize=True)
    except (SqlglotError, RecursionError):
        # It ran, so the database understands it; its own text is compared then.
        canonical = _SPACE.sub(" ", sql).strip()
    return hashlib.blake2b(canonical.encode(), digest_size=16).digest()


def question_digest(question: str, audience: str | None) -> bytes:
    """A hash of a question that ignores layout and case, and of whom it is for."""
    text = _SPACE.sub(" ", question).strip().rstrip("?!. ").casefold()
    return hashlib.blake2b((text if audience is None else f"{text}\0{audience}").encode(), digest_size=16).digest()


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
    return parse_tokens(tokenize(sql, kind), sql, kind)


def parse_tokens(tokens: list[Token], sql: str, kind: str) -> list[exp.Expr]:
    """The statements of a text whose tokens are known; raises `SqlglotError`."""
    parser = sqlglot.Dialect.get_or_raise(parser_dialect(kind)).parser()
    return [tree for tree in parser.parse(tokens, sql) if tree is not None]


def write(tree: exp.Expr, kind: str, *, normalize: bool = False) -> str:
    """A tree as SQL of a kind of database: to build or to compare, since it is another text than what was parsed."""
    return tree.sql(dialect=parser_dialect(kind), normalize=normalize, comments=False)
