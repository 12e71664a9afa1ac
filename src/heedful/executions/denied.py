"""Functions that no query may call: they write, reach files or networks, hide a statement in a text, or hold others up.

Names that aren't listed may be called. A list of all harmless functions would refuse every function that people
have defined for themselves, and what a list of harmful ones misses still meets the read-only connection and the limits.
"""

from __future__ import annotations

import re
from functools import cache

_SQLITE_TABLES = r"fsdir|lsdir|zipfile(?:_cds)?|pragma_\w+|sqlite_dbpage|sqlite_stmt"
"""Functions of SQLite that are called by selecting from them, without brackets."""

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
"""Functions of PostgreSQL's extensions that reach other systems."""

_POSTGRESQL_NAMES = (
    rf"pg_(?!(?:{_LOOKING})$)\w+|{_LARGE_OBJECTS}|nextval|setval|set_config|txid_current|{_REACHING}"
    r"|postgres_fdw_\w+|(?:query|cursor|table|schema|database)_to_xml\w*|ts_stat|ts_rewrite|crosstab\w*|connectby"
    r"|xpath_table|brin_(?:de)?summarize\w*|gin_clean_pending_list|heap_force_\w+|autoprewarm_\w+|binary_upgrade_\w+"
    r"|create_foreign_table_for_log_file|plpgsql_\w+|fmgr_\w+_validator|verify_heapam|get_raw_page"
)
"""Also refused as attributes: PostgreSQL takes `x.f` for `f(x)`."""

# Ordinary words: functions of these names take more than what stands before a dot, or belong to a denied schema.
_POSTGRESQL_WORDS = r"invoke|schedule|schedule_in_database|unschedule|alter_job|cypher"

_POSTGRESQL_SCHEMAS = (
    r"aws_\w+|cron|net|http|dblink|vault|pgsodium\w*|graphql|graphql_public|azure_\w+|google_ml\w*|ai|pgml|sqlj|utl_\w+"
    r"|dbms_\w+|rds_\w+|pgmq|pgtle|partman|plpython\w*|plperl\w*"
)
"""Schemas of extensions that reach other systems, keep secrets, or run what they are told."""

_DUCKDB_TABLES = r"pragma_\w+|duckdb_secrets|duckdb_logs\w*"
"""Views of DuckDB that show more than the data."""

_DUCKDB = (
    rf"{_DUCKDB_TABLES}|read_\w+|\w+_scan|scan_\w+|arrow_scan\w*|parquet_\w+|glob|sniff_csv|query|query_table"
    r"|json_execute_serialized_sql|from_substrait\w*|getenv|st_read\w*|(?:postgres|mysql|sqlite)_(?:query|execute|attach)"
    r"|http_\w+|write_\w+|load_aws_credentials|which_secret|force_checkpoint|checkpoint|nextval|setval|enable_\w+"
    r"|disable_\w+|add_parquet_key|start_ui\w*|stop_ui\w*|sleep_ms|pg_sleep|python_map_function|truncate_duckdb_logs"
    r"|\w+_external_resource\w*|duckdb_external_\w+|duckdb_temporary_files|copy_database|import_database"
)

_OTHER = (
    r"sleep|benchmark|get_lock|release_lock|load_file|xp_\w+|openrowset|opendatasource|openquery"
    r"|url|s3\w*|hdfs\w*|file|remote|remotesecure|executable|jdbc|odbc"
)

_CALLS = {"sqlite": _SQLITE, "postgres": f"{_POSTGRESQL_NAMES}|{_POSTGRESQL_WORDS}", "duckdb": _DUCKDB}
_TABLES = {"sqlite": _SQLITE_TABLES, "duckdb": _DUCKDB_TABLES, "postgres": None}
_NO_ATTRIBUTES = frozenset({"sqlite", "duckdb"})


def is_denied(function: str, dialect: str) -> bool:
    """Whether a query may not call this function; a dialect without a list of its own has them all."""
    return _calls(dialect).fullmatch(function) is not None


def is_denied_attribute(name: str, dialect: str) -> bool:
    """Whether this name may not follow a dot, where that could call a function."""
    return dialect not in _NO_ATTRIBUTES and _ATTRIBUTE.fullmatch(name) is not None


def is_denied_table(name: str, dialect: str) -> bool:
    """Whether a query may not select from this name."""
    known = _tables(dialect)
    return known is not None and known.fullmatch(name) is not None


def is_denied_schema(name: str, dialect: str) -> bool:
    """Whether no function of this schema may be called."""
    return dialect not in _NO_ATTRIBUTES and _SCHEMA.fullmatch(name) is not None


def reaches_out(schema: str, function: str) -> bool:
    """Whether a function of PostgreSQL reaches other systems, as far as its name tells."""
    return is_denied_schema(schema, "postgres") or _OUT.fullmatch(function) is not None


_OUT = re.compile(_REACHING, re.IGNORECASE)
_ATTRIBUTE = re.compile(_POSTGRESQL_NAMES, re.IGNORECASE)
_SCHEMA = re.compile(_POSTGRESQL_SCHEMAS, re.IGNORECASE)


@cache
def _calls(dialect: str) -> re.Pattern[str]:
    known = _CALLS.get(dialect)
    return re.compile(known or "|".join([*_CALLS.values(), _OTHER]), re.IGNORECASE)


@cache
def _tables(dialect: str) -> re.Pattern[str] | None:
    known = _TABLES.get(dialect, f"{_SQLITE_TABLES}|{_DUCKDB_TABLES}")
    return None if known is None else re.compile(known, re.IGNORECASE)
