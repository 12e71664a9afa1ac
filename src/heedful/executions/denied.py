"""Functions that no query may call: they write, reach files or networks, hide a statement in a text, or hold others up.

Names that aren't listed may be called. A list of all harmless functions would refuse every function that people
have defined for themselves, and what a list of harmful ones misses still meets the read-only connection and the limits.
"""

from __future__ import annotations

import re
from functools import cache

_SQLITE = (
    r"load_extension|readfile|writefile|edit|fsdir|lsdir|zipfile\w*|sha3_query|eval|fts3_tokenizer|fts5"
    r"|pragma_\w+|sqlite_dbpage|shell|system|exec"
)

# Most functions whose names start with pg_ act on the server or its files; these only look at it.
_LOOKING = (
    r"typeof|size_pretty|size_bytes|column_size|column_compression|relation_size|total_relation_size|table_size"
    r"|indexes_size|database_size|tablespace_size|backend_pid|postmaster_start_time|conf_load_time|client_encoding"
    r"|encoding_to_char|char_to_encoding|is_in_recovery|input_is_valid|describe_object|collation_for|timezone_names"
    r"|timezone_abbrevs|get_\w+|\w+_is_visible|has_role"
)

_POSTGRESQL = (
    rf"pg_(?!(?:{_LOOKING})$)\w+|nextval|setval|set_config|txid_current|lo_\w+|lowrite|loread|dblink\w*"
    r"|postgres_fdw_\w+|query_to_xml\w*|cursor_to_xml\w*|ts_stat|ts_rewrite|crosstab\w*|connectby|xpath_table"
    r"|brin_(?:de)?summarize\w*|gin_clean_pending_list|heap_force_\w+|autoprewarm_\w+|binary_upgrade_\w+"
    r"|http_(?:get|post|put|patch|delete|head)"
)

_DUCKDB = (
    r"read_\w+|\w+_scan|scan_\w+|parquet_\w+|glob|sniff_csv|query|query_table|json_execute_serialized_sql"
    r"|from_substrait\w*|getenv|st_read\w*|(?:postgres|mysql|sqlite)_(?:query|execute|attach)|http_\w+|write_\w+"
    r"|load_aws_credentials|duckdb_secrets|which_secret|force_checkpoint|checkpoint|nextval|pragma_\w+|enable_\w+"
    r"|disable_\w+|add_parquet_key|start_ui\w*|stop_ui\w*"
)

_OTHER = (
    r"sleep|benchmark|get_lock|release_lock|load_file|xp_\w+|openrowset|opendatasource|openquery"
    r"|url|s3\w*|hdfs\w*|file|remote|remotesecure|executable|jdbc|odbc"
)

_OF = {"sqlite": _SQLITE, "postgres": _POSTGRESQL, "duckdb": _DUCKDB}


def is_denied(function: str, dialect: str) -> bool:
    """Whether a query may not call this function; a dialect without a list of its own has them all."""
    return _pattern(dialect).fullmatch(function) is not None


@cache
def _pattern(dialect: str) -> re.Pattern[str]:
    known = _OF.get(dialect)
    return re.compile(known or "|".join([*_OF.values(), _OTHER]), re.IGNORECASE)
