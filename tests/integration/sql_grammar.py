"""Random SQL: statements of all kinds, denied names in all places, and separators that databases disagree on."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

Words = list[str]

SEPARATORS = [" "] * 12 + ["\n", "\t", "/**/", "/* ' */", "-- x\n", "/* /* */ */", "\r\n", ' /* " */ ', ""]
ODD = [
    "\u00a0",
    "\u200b",
    "\ufeff",
    "\x0b",
    "\x0c",
    "#",
    ";",
    "\\",
    "`",
    "/*",
    "*/",
    "--",
    "'",
    '"',
    "$$",
    "U&",
    "E",
    "@",
]
DENIED = {
    "postgresql": [
        "pg_sleep", "pg_read_file", "nextval", "pg_advisory_lock", "lo_creat", "set_config", "query_to_xml",
        "pg_notify", "PG_SLEEP", '"pg_read_file"', 'U&"pg_re\\0061d_file"', "pg_catalog.pg_sleep", "pg_ls_dir",
    ],
    "duckdb": ["read_text", "getenv", "glob", "query", "nextval", "READ_CSV", '"read_blob"', "query_table"],
    "sqlite": ["load_extension", "writefile", "readfile", "edit", "[readfile]", '"writefile"', "`edit`", "READFILE"],
}  # fmt: skip
SAFE = ["lower", "abs", "count", "coalesce", "max"]
NAMES = ["a", "b", "t", "u", "t.a", "u.b", '"a"', "A", "x", "é", "select_", "t.b", "u.a"]
TYPES = ["int", "text", "float8", "bigint"]
OPERATORS = ["+", "-", "||", "=", "<>", "<", "AND", "OR", "IS NOT DISTINCT FROM", "LIKE", "IN", "%", "&", "~"]
STRINGS = ["'x'", "''", "'it''s'", "'a; DROP TABLE t; --'", "'/*'", "'SELECT 1'", "'{file}'", "'s'"]
DOLLARS = ["$$x$$", "$q$ ' $q$", "E'\\'; --'", "E'a\\\\'", "U&'\\0061'", "N'x'", "$$SELECT 1$$"]
TAILS = [
    "", "", "", "", "", "", "", "LIMIT 2", "ORDER BY 1", "FOR UPDATE", "FOR SHARE OF t", "INTO v",
    "UNION ALL SELECT 1", "; DELETE FROM t", "RETURNING a", "OFFSET 1",
]  # fmt: skip
WRITES = [
    "INSERT INTO t VALUES (9, 'n')", "DELETE FROM t", "UPDATE t SET a = 0", "DROP TABLE t", "CREATE TABLE v (a int)",
    "CREATE TABLE v AS SELECT 1", "COPY t TO '{file}'", "COPY t FROM PROGRAM 'true'", "SET x = 1",
    "PRAGMA user_version = 3",
    "ATTACH '{file}' AS o", "DO $$ BEGIN DELETE FROM t; END $$", "CALL f()", "VACUUM INTO '{file}'", "LOCK TABLE t",
    "EXPLAIN ANALYZE DELETE FROM t", "TRUNCATE t", "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE",
    "EXPORT DATABASE '{file}'", "REPLACE INTO t VALUES (1, 'n')", "PREPARE p AS DELETE FROM t",
    "ALTER TABLE t ADD c int",
]  # fmt: skip
RETURNING = [
    "DELETE FROM t RETURNING a", "INSERT INTO t VALUES (9, 'n') RETURNING a", "UPDATE t SET a = 0 RETURNING a",
]  # fmt: skip


def _together(*parts: st.SearchStrategy[Words] | str) -> st.SearchStrategy[Words]:
    made = [st.just(part.split(" ")) if isinstance(part, str) else part for part in parts]
    return st.tuples(*made).map(lambda found: [word for each in found for word in each])


def _one(*words: str) -> st.SearchStrategy[Words]:
    return st.sampled_from(words).map(lambda word: [word])


def statements(dialect: str, file: str) -> st.SearchStrategy[str]:
    """Texts that are mostly SQL of a dialect; `file` is one that nothing may touch."""
    strings = STRINGS + (DOLLARS if dialect == "postgresql" else [])
    functions = _one(*SAFE, *DENIED[dialect])
    names = _one(*NAMES)
    leaves = names | _one(*strings) | _one("1", "0", "1.5", "NULL", "2")

    def wider(inner: st.SearchStrategy[Words]) -> st.SearchStrategy[Words]:
        calls = _together(functions, "(", inner, ")") | _together(functions, "(", inner, ",", inner, ")")
        attributes = _together("(", inner, ")", ".", functions)
        casts = _together("(", inner, ")", "::", _one(*TYPES)) | _together("CAST (", inner, "AS", _one(*TYPES), ")")
        others = (
            _together(inner, _one(*OPERATORS), inner)
            | _together("(", inner, ")")
            | _together("CASE WHEN", inner, "THEN", inner, "END")
            | _together("( SELECT", inner, "FROM t LIMIT 1 )")
            | _together("ARRAY [", inner, "]")
            | _together("EXISTS ( SELECT", inner, ")")
            | _together(inner, ".", functions, "( )")
            | _together("t .", functions)
        )
        return calls | attributes | casts | others

    values = st.recursive(leaves, wider, max_leaves=5)
    tables = _one("t", "u", '"t"', "'{file}'", "file.csv") | _together(functions, "(", values, ") AS x")
    joined = tables | _together(tables, ",", tables) | _together(tables, "CROSS JOIN LATERAL", tables)
    joined |= _together("( SELECT", values, "AS a ) AS x") | _together("t JOIN u ON", values)
    nothing: st.SearchStrategy[Words] = st.just([])
    where = nothing | _together("WHERE", values) | _together("GROUP BY", values) | _together("ORDER BY", values)
    selects = _together("SELECT", values, "FROM", joined, where) | _together("SELECT", values)
    inner = selects | st.sampled_from(RETURNING).map(lambda text: text.split(" "))
    queries = (
        selects
        | _together("WITH x AS (", inner, ")", selects)
        | _together("WITH RECURSIVE x ( a ) AS (", inner, "UNION SELECT 1 ) SELECT * FROM x")
        | _together("VALUES (", values, ")")
        | _together("SELECT * FROM (", inner, ") AS x")
    )
    queries = _together(queries, st.sampled_from(TAILS).map(str.split))
    writes = st.sampled_from(WRITES).map(lambda text: text.split(" "))
    mixed = st.one_of(*[queries] * 7, writes, _together(queries, ";", writes))
    return st.builds(_written, mixed, st.lists(st.sampled_from(SEPARATORS), min_size=3, max_size=9), _oddity()).map(
        lambda text: text.replace("{file}", file)
    )


def _oddity() -> st.SearchStrategy[tuple[int, str] | None]:
    return st.one_of(st.none(), st.none(), st.none(), st.tuples(st.integers(0, 30), st.sampled_from(ODD)))


def _written(words: Words, separators: Sequence[str], odd: tuple[int, str] | None) -> str:
    if odd is not None:
        words = [*words[: odd[0]], odd[1], *words[odd[0] :]]
    return "".join(word + separators[place % len(separators)] for place, word in enumerate(words))
