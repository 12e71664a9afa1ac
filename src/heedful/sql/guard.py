"""The first safeguard: exactly one statement that only reads, or an error that says what was found instead.

What runs afterwards is `CheckedStatement.sql`: the words that were checked, without the comments between them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from heedful.caching import cache_short
from heedful.errors import Forbidden, Invalid
from heedful.sql.statements import QUOTED, command, not_understood, parse, parser_dialect, read, too_deep, unreadable
from heedful.text.regex import regex

# The parser logs what it can't read; here that becomes an error.
logging.getLogger("sqlglot").addFilter(lambda record: "Falling back to parsing" not in record.getMessage())

_READS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_WRITES = (exp.DML, exp.DDL, exp.Drop, exp.Alter, exp.TruncateTable)
_STATEMENTS = (exp.Command, exp.Pragma, exp.Attach, exp.Detach, exp.Set, exp.Describe, exp.Summarize, exp.Show)
_FILE = regex(
    r"\.(csv|tsv|txt|parquet|json|jsonl|ndjson|geojson|xlsx|arrows?|avro|db|duckdb|sqlite)(\.gz|\.zst)?$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ParameterPlace:
    """The position of a named parameter in the SQL."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """One statement that only reads."""

    sql: str
    dialect: str
    slots: tuple[ParameterPlace, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, each once."""
        return tuple(dict.fromkeys(slot.name for slot in self.slots))

    def written(self, mark: Callable[[str], str], plain: Callable[[str], str] = lambda text: text) -> str:
        """The SQL with parameters in the form of a driver (`mark`), and the text between them escaped by `plain`."""
        parts, position = [], 0
        for slot in self.slots:
            parts += [plain(self.sql[position : slot.start]), mark(slot.name)]
            position = slot.end
        return "".join([*parts, plain(self.sql[position:])])


@cache_short(entries=1_024, characters=10_000)
def check_statement(sql: str, dialect: str) -> CheckedStatement:
    """The one reading statement in `sql`, or an error with the code of what was found.

    `dialect` is the database's name in a SQLAlchemy URL, or sqlglot's: `sqlite`, `postgresql`, `duckdb`, `mysql`, …
    """
    name = parser_dialect(dialect)
    text, words = read(sql, name)
    tree = _parsed(text, words[0], name)
    nodes = list(tree.walk())
    if isinstance(tree, _WRITES) and not isinstance(tree, exp.Copy):
        raise _writes(words[0].text)
    if not isinstance(tree, _READS):
        raise command(words[0].text)
    for node in nodes:
        _check_node(node, name)
    check_names(words, nodes, name)
    return CheckedStatement(text, name, _slots(words, nodes))


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
    errors = getattr(error, "errors", None)
    if not errors:
        return "it has no known form"
    return f"{errors[0]['description'].rstrip('.')} at line {errors[0]['line']}, column {errors[0]['col']}"


def _check_node(node: exp.Expr, dialect: str) -> None:
    if isinstance(node, exp.Into):
        remedy = "Leave out INTO; rows are returned"
        raise Forbidden("SELECT … INTO makes a table", code="sql_into", field="sql", remedy=remedy)
    if isinstance(node, exp.Lock):
        message = "this SELECT locks rows (FOR UPDATE or FOR SHARE)"
        remedy = "Leave out the FOR … clause; nothing is written after reading"
        raise Forbidden(message, code="sql_locks", field="sql", remedy=remedy)
    if isinstance(node, _WRITES):
        raise _writes(node.key)
    if isinstance(node, _STATEMENTS) or (_is_inner(node) and not isinstance(node, (*_READS, exp.Table))):
        raise command(node.key)
    # DuckDB takes x.csv for a file without quotes, too.
    if dialect in ("duckdb", "") and isinstance(node, exp.Table):
        table_name = ".".join(part.name for part in node.parts)
        if any(mark in table_name for mark in "/\\*?[") or _FILE.search(table_name):
            message = f"{table_name!r} names a file and not a table"
            remedy = "Read tables of the connector's database only"
            raise Forbidden(message, code="sql_file", field="sql", value=table_name, remedy=remedy)


def _is_inner(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.CTE | exp.Subquery) and node.arg_key == "this"


def _writes(statement: str) -> Forbidden:
    message = f"{statement.upper()} changes the database; only reading is allowed"
    remedy = "Pass one SELECT statement"
    return Forbidden(message, code="sql_writes", field="sql", value=statement.upper(), remedy=remedy)


def _slots(words: list[Token], nodes: list[exp.Expr]) -> tuple[ParameterPlace, ...]:
    names = [node.name for node in nodes if isinstance(node, exp.Placeholder)]
    others = [node for node in nodes if isinstance(node, exp.Parameter | exp.SessionParameter)]
    slots = tuple(
        ParameterPlace(colon.start, word.end + 1, word.text)
        for colon, word in pairwise(words)
        if colon.token_type is TokenType.COLON and colon.end + 1 == word.start and word.text in names
    )
    if others or sorted(slot.name for slot in slots) != sorted(names):
        message = "this SQL holds a parameter that is not of the form :name, or a name that could be one"
        remedy = "Write parameters as :name, and put a space after other colons"
        raise Invalid(message, code="sql_parameter", field="sql", remedy=remedy)
    return slots


_TEXTS = (QUOTED - {TokenType.IDENTIFIER}) | {TokenType.NUMBER}
_QUALIFIERS = ("table", "db", "catalog")
# Types whose values are functions, written as texts.
_FUNCTION_TYPES = regex(r"(?:pg_catalog\.)?reg(?:proc|procedure|oper|operator)", re.IGNORECASE)
_WORD = regex(r"\w+")


def check_names(words: Sequence[Token], nodes: Sequence[exp.Expr], dialect: str) -> None:
    """Refuses a statement with a denied name in a position where it could be called."""
    aliases = set(_aliases(nodes))
    columns = aliases | set(_columns(nodes))
    harmless = columns | set(_named_tables(nodes))
    for index, word in enumerate(words):
        if word.token_type in _TEXTS:
            continue
        name = word.text.lower()
        if index + 1 < len(words) and words[index + 1].token_type is TokenType.L_PAREN:
            if is_denied(name, dialect) and not (
                _is_operator(words, index) or _is_plain(word, aliases, dialect) or _is_stored(words, index, dialect)
            ):
                raise _refused(name, dialect)
            # OPERATOR(schema.+) has its dot inside the brackets.
            _check_schemas(words, index + 4 if word.token_type is TokenType.OPERATOR else index, dialect)
        elif is_denied_attribute(name, dialect) and word.start not in harmless:
            raise _refused(name, dialect, attribute=True)
        elif is_denied_table(name, dialect) and word.start not in columns:
            raise _refused(name, dialect)
    for name in _denied_in_casts(nodes, dialect):
        raise _refused(name, dialect)


def _is_plain(word: Token, aliases: set[int], dialect: str) -> bool:
    """Whether an ordinary word is followed by a list of columns here: `WITH query (a, b) AS …`."""
    return word.start in aliases and not is_denied_attribute(word.text, dialect)


def _is_operator(words: Sequence[Token], index: int) -> bool:
    """Whether this is GLOB between two values, or the method of a sample."""
    if index == 0:
        return False
    before, word = words[index - 1], words[index]
    if before.token_type is TokenType.TABLE_SAMPLE:
        return True
    values = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, *_TEXTS}
    return word.token_type is TokenType.GLOB and before.token_type in values


def _is_stored(words: Sequence[Token], index: int, dialect: str) -> bool:
    """Whether MySQL can only find a stored function here, which runs in the query's read-only transaction."""
    if dialect != "mysql" or index < 2:
        return False
    schema, dot = words[index - 2 : index]
    return dot.token_type is TokenType.DOT and schema.token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _check_schemas(words: Sequence[Token], index: int, dialect: str) -> None:
    """Refuses a call or an operator whose schema, before the dot, is denied."""
    while index >= 2 and index < len(words) and words[index - 1].token_type is TokenType.DOT:
        index -= 2
        if is_denied_schema(words[index].text, dialect):
            raise _refused(f"{words[index].text.lower()}.{words[index + 2].text.lower()}", dialect)


def _aliases(nodes: Iterable[exp.Expr]) -> Iterator[int]:
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


def _named_tables(nodes: Iterable[exp.Expr]) -> Iterator[int]:
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


def _refused(name: str, dialect: str, *, attribute: bool = False) -> Forbidden:
    advice = "; if it is a column, write it without the name of its table" if attribute else ""
    reason = "it can do more than read tables"
    if dialect == "mysql":
        reason = "it is not known to only read"
        advice = "; if it is a stored function, write it with its database: shop.tax(price)"
    message = f"the function {name} may not be called: {reason}"
    return Forbidden(message, code="sql_function", field="sql", value=name, remedy=f"Leave it out{advice}")


_SQLITE_TABLES = r"fsdir|lsdir|zipfile(?:_cds)?|pragma_\w+|sqlite_dbpage|sqlite_stmt"
"""Table-valued functions of SQLite, which are called without brackets."""

_SQLITE = (
    rf"{_SQLITE_TABLES}|load_extension|readfile|writefile|edit|sha3_query|eval|fts3_tokenizer|fts5|sqlite_log|optimize"
    r"|shell|system|exec"
)

# Most functions whose names start with pg_ act on the server or its files; these only look at it.
_LOOKING = (
    r"catalog|typeof|size_pretty|size_bytes|column_size|column_compression|relation_size|total_relation_size|table_size"
    r"|indexes_size|database_size|tablespace_size|backend_pid|postmaster_start_time|conf_load_time|client_encoding"
    r"|encoding_to_char|char_to_encoding|is_in_recovery|input_is_valid|describe_object|collation_for|timezone_names"
    r"|timezone_abbrevs|get_\w+|\w+_is_visible|has_role"
)

_LARGE_OBJECTS = (
    r"lo_(?:close|creat|create|export|from_bytea|get|import|lseek|lseek64|open|put|tell|tell64|truncate|truncate64"
    r"|unlink|manage)|lowrite|loread"
)

_REACHING = (
    r"dblink(?:_\w+)?|http|http_(?:get|post|put|patch|delete|head|set_curlopt|reset_curlopt|list_curlopt|collect_response)"
    r"|table_import_from_s3|query_export_to_s3|oracle_(?:execute|diag)|run_command_on_\w+|master_run_on_worker"
)
"""Functions of PostgreSQL extensions that connect to other systems."""

_POSTGRESQL_NAMES = (
    rf"pg_(?!(?:{_LOOKING})$)\w+|{_LARGE_OBJECTS}|nextval|setval|set_config|txid_current|{_REACHING}"
    r"|postgres_fdw_\w+|(?:query|cursor|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite|crosstab\w*|connectby"
    r"|xpath_table|brin_(?:de)?summarize\w*|gin_clean_pending_list|heap_force_\w+|autoprewarm_\w+|binary_upgrade_\w+"
    r"|create_foreign_table_for_log_file|plpgsql_\w+|fmgr_\w+_validator|verify_heapam|get_raw_page"
)
"""Also refused as attributes: PostgreSQL takes `x.f` for `f(x)`."""

# Ordinary words: functions of these names need more arguments, or are in a denied schema.
_POSTGRESQL_WORDS = r"invoke|schedule|schedule_in_database|unschedule|alter_job|cypher"

_POSTGRESQL_SCHEMAS = (
    r"aws_\w+|cron|net|http|dblink|vault|pgsodium\w*|graphql|graphql_public|azure_\w+|google_ml\w*|ai|pgml|sqlj|utl_\w+"
    r"|dbms_\w+|rds_\w+|pgmq|pgtle|partman|plpython\w*|plperl\w*"
)
"""Schemas of extensions that connect to other systems, hold secrets, or run arbitrary SQL."""

_DUCKDB_TABLES = (
    r"pragma_\w+|duckdb_(?!(?:tables|columns|views|schemas|constraints|indexes|sequences|types|functions|keywords)$)\w+"
)
"""Views of DuckDB that show more than the data and its schema: settings, paths, secrets, extensions."""

_DUCKDB = (
    rf"{_DUCKDB_TABLES}|read_\w+|\w+_scan|scan_\w+|arrow_scan\w*|parquet_\w+|glob|sniff_csv|query|query_table"
    r"|json_execute_serialized_sql|from_substrait\w*|getenv|current_setting|st_read\w*|(?:postgres|mysql|sqlite)_(?:query|execute|attach)"
    r"|http_\w+|write_\w+|load_aws_credentials|which_secret|force_checkpoint|checkpoint|nextval|setval|enable_\w+"
    r"|disable_\w+|add_parquet_key|start_ui\w*|stop_ui\w*|sleep_ms|pg_sleep|python_map_function|truncate_duckdb_logs"
    r"|\w+_external_resource\w*|copy_database|import_database"
)

_MYSQL_WORDS = (
    r"[^\w$]+|\w+\s+by|all|and|any|as|between|by|case|columns|distinct|distinctrow|div|else|except|exists|for|from|group"
    r"|having|in|index|intersect|interval|join|key|lateral|like|minus|not|of|on|or|over|partition|regexp|rlike|row|select"
    r"|some|straight_join|then|union|using|values|when|where|xor|bigint|binary|bit|blob|char|character|date|datetime|dec"
    r"|decimal|double|fixed|float|int|integer|mediumint|nchar|numeric|nvarchar|real|smallint|text|time|timestamp|tinyint"
    r"|varbinary|varchar|varying|vector|year"
)
"""Signs, keywords and types: they may stand before a bracket in a query without being a function."""

_MYSQL_FUNCTIONS = (
    r"abs|acos|add_months|adddate|addtime|aes_\w+|against|any_value|ascii|asin|atan2?|avg|bin|bin_to_uuid"
    r"|bit_(?:and|count|length|or|xor)|cast|ceil|ceiling|char_length|character_length|charset|chr|coalesce|coercibility"
    r"|collation|column_\w+|compress|concat|concat_ws|connection_id|contains|conv|convert|convert_tz|cos|cot|count"
    r"|crc32c?|cume_dist|curdate|current_(?:date|role|time|timestamp|user)|curtime|database|date_(?:add|format|sub)"
    r"|datediff|day|dayname|dayof\w+|decode|default|degrees|dense_rank|elt|encode|exp|export_set|extract|extractvalue"
    r"|field|find_in_set|first_value|floor|format|format_(?:bytes|pico_time)|found_rows|from_(?:base64|days|unixtime)"
    r"|get_format|greatest|group_concat|grouping|hex|hour|if|ifnull|inet6?_(?:aton|ntoa)|insert|instr|is_ipv\w+|is_uuid"
    r"|isnull|json_\w+|lag|last_day|last_value|lcase|lead|least|left|length|lengthb|ln|localtime|localtimestamp|locate"
    r"|log|log10|log2|lower|lpad|ltrim|make_set|makedate|maketime|match|max|mbr\w+|md5|median|member|microsecond|mid|min"
    r"|minute|mod|month|monthname|natural_sort_key|now|nth_value|ntile|nullif|nvl2?|oct|octet_length|ord"
    r"|percent(?:_rank|ile_cont|ile_disc)|period_(?:add|diff)|pi|position|pow|power|quarter|quote|radians|rand"
    r"|random_bytes|rank|regexp_\w+|repeat|replace|reverse|right|round|row_(?:count|number)|rpad|rtrim"
    r"|schemas?|sec_to_time|second|session_user|sformat|sha[12]?|sign|sin|soundex|space|sqrt|st_\w+|std|stddev"
    r"|stddev_(?:pop|samp)|str_to_date|strcmp|subdate|substr|substring|substring_index|subtime|sum|sys_guid|sysdate"
    r"|system_user|tan|time_(?:format|to_sec)|timediff|timestamp(?:add|diff)|to_(?:base64|char|days|seconds)|trim|trunc"
    r"|truncate|ucase|uncompress|uncompressed_length|unhex|unix_timestamp|updatexml|upper|user|utc_\w+|uuid|uuid_to_bin"
    r"|var_(?:pop|samp)|variance|vec_\w+|version|week|weekday|weekofyear|weight_string|yearweek"
    r"|(?:multi)?(?:point|linestring|polygon)|geometrycollection|geomcollection"
)
"""Functions of MySQL and MariaDB that only compute. Another may be loaded into the server and do anything there."""

_MYSQL_SCHEMAS = r"(?:mariadb|oracle|maxdb)_schema"
"""Schemas under which MariaDB finds functions that are built in."""

_OTHER = (
    r"sleep|benchmark|get_lock|release_lock|load_file|xp_\w+|openrowset|opendatasource|openquery"
    r"|url|s3\w*|hdfs\w*|file|remote|remotesecure|executable|jdbc|odbc"
)

_CALLS = {"sqlite": _SQLITE, "postgres": f"{_POSTGRESQL_NAMES}|{_POSTGRESQL_WORDS}", "duckdb": _DUCKDB}
_TABLES = {"sqlite": _SQLITE_TABLES, "duckdb": _DUCKDB_TABLES, "postgres": None, "mysql": None}
_NO_ATTRIBUTES = frozenset({"sqlite", "duckdb", "mysql"})


def is_denied(function: str, dialect: str) -> bool:
    """Whether a query may not call this function; a dialect without its own list uses all lists."""
    if dialect == "mysql":
        return _MYSQL.fullmatch(function) is None
    return _calls(dialect).fullmatch(function) is not None


def is_denied_attribute(name: str, dialect: str) -> bool:
    """Whether this name may not follow a dot, where that could call a function."""
    return dialect not in _NO_ATTRIBUTES and _ATTRIBUTE.fullmatch(name) is not None


def is_denied_table(name: str, dialect: str) -> bool:
    """Whether a query may not select from this name."""
    pattern = _denied_tables(dialect)
    return pattern is not None and pattern.fullmatch(name) is not None


def is_denied_schema(name: str, dialect: str) -> bool:
    """Whether no function of this schema may be called."""
    pattern = _BUILT_IN if dialect == "mysql" else _SCHEMA
    return dialect not in ("sqlite", "duckdb") and pattern.fullmatch(name) is not None


def connects_out(schema: str, function: str) -> bool:
    """Whether a PostgreSQL function connects to other systems, judging by its name."""
    return is_denied_schema(schema, "postgres") or _OUT.fullmatch(function) is not None


_OUT = regex(_REACHING, re.IGNORECASE)
_ATTRIBUTE = regex(_POSTGRESQL_NAMES, re.IGNORECASE)
_SCHEMA = regex(_POSTGRESQL_SCHEMAS, re.IGNORECASE)
_BUILT_IN = regex(_MYSQL_SCHEMAS, re.IGNORECASE)
_MYSQL = regex(f"{_MYSQL_WORDS}|{_MYSQL_FUNCTIONS}", re.IGNORECASE)


@cache
def _calls(dialect: str) -> re.Pattern[str]:
    pattern = _CALLS.get(dialect)
    return regex(pattern or "|".join([*_CALLS.values(), _OTHER]), re.IGNORECASE)


@cache
def _denied_tables(dialect: str) -> re.Pattern[str] | None:
    pattern = _TABLES.get(dialect, f"{_SQLITE_TABLES}|{_DUCKDB_TABLES}")
    return None if pattern is None else regex(pattern, re.IGNORECASE)
