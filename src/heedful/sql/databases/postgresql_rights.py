"""What the login of a PostgreSQL connector may do beyond reading, and the SQL that makes one that may only read.

The guard and the read-only transaction hold by themselves; this is for the day on which one of them has a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from heedful.sql.databases import errors
from heedful.sql.guard import connects_out, is_denied

_SHOWN = 3

# The login, and all roles that it could switch to with `SET ROLE`.
_ROLES = "WITH roles AS (SELECT * FROM pg_catalog.pg_roles WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER'))"

_ATTRIBUTES = f"""
{_ROLES} SELECT rolname, rolsuper, rolbypassrls, rolreplication, rolcreaterole, rolcreatedb FROM roles ORDER BY rolname
"""

_TABLES = f"""
{_ROLES} SELECT c.oid::pg_catalog.regclass::text FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND EXISTS (SELECT FROM roles WHERE pg_catalog.has_table_privilege(roles.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    OR pg_catalog.has_any_column_privilege(roles.oid, c.oid, 'INSERT, UPDATE'))
ORDER BY 1
"""

_SCHEMAS = f"""
{_ROLES} SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.has_schema_privilege('public', n.oid, 'CREATE')
FROM pg_catalog.pg_namespace n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND EXISTS (SELECT FROM roles WHERE pg_catalog.has_schema_privilege(roles.oid, n.oid, 'CREATE'))
ORDER BY 1
"""

_DATABASE = f"""
{_ROLES} SELECT pg_catalog.quote_ident(pg_catalog.current_database()),
    pg_catalog.has_database_privilege('public', pg_catalog.current_database(), 'CREATE')
WHERE EXISTS (SELECT FROM roles WHERE pg_catalog.has_database_privilege(oid, pg_catalog.current_database(), 'CREATE'))
"""

_SERVERS = f"""
{_ROLES} SELECT 'SERVER', pg_catalog.quote_ident(s.srvname), pg_catalog.has_server_privilege('public', s.oid, 'USAGE')
FROM pg_catalog.pg_foreign_server s
WHERE EXISTS (SELECT FROM roles WHERE pg_catalog.has_server_privilege(roles.oid, s.oid, 'USAGE'))
UNION ALL
SELECT 'DATA WRAPPER', pg_catalog.quote_ident(w.fdwname),
    pg_catalog.has_foreign_data_wrapper_privilege('public', w.oid, 'USAGE')
FROM pg_catalog.pg_foreign_data_wrapper w
WHERE EXISTS (SELECT FROM roles WHERE pg_catalog.has_foreign_data_wrapper_privilege(roles.oid, w.oid, 'USAGE'))
ORDER BY 1, 2
"""

# Objects with lower numbers are built into PostgreSQL.
_FUNCTIONS = f"""
{_ROLES} SELECT n.nspname, p.proname, p.oid::pg_catalog.regprocedure::text, l.lanispl AND NOT l.lanpltrusted,
    pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE')
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE p.oid >= 16384
AND EXISTS (SELECT FROM roles WHERE pg_catalog.has_function_privilege(roles.oid, p.oid, 'EXECUTE')
    AND pg_catalog.has_schema_privilege(roles.oid, n.oid, 'USAGE'))
ORDER BY 3
"""

# Other ways to call a function than by its name.
_OTHER_NAMES = """
SELECT 'the operator ' || o.oid::pg_catalog.regoperator::text, p.proname
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode WHERE o.oid >= 16384
UNION ALL
SELECT 'the cast from ' || pg_catalog.format_type(c.castsource, NULL) || ' to '
    || pg_catalog.format_type(c.casttarget, NULL), p.proname
FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc WHERE c.oid >= 16384
UNION ALL
SELECT 'the aggregate ' || a.aggfnoid::pg_catalog.regproc::text, p.proname
FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc p ON p.oid IN (a.aggtransfn, a.aggfinalfn)
WHERE a.aggfnoid >= 16384
ORDER BY 1
"""

_MEANINGS = {
    "pg_execute_server_program": "run programs on the server",
    "pg_read_server_files": "read files of the server",
    "pg_write_server_files": "write files of the server",
    "pg_write_all_data": "write to all tables",
    "pg_signal_backend": "end other sessions",
    "pg_maintain": "maintain all tables",
    "pg_checkpoint": "force checkpoints",
    "pg_create_subscription": "subscribe to other servers",
}
_FLAGS = ("bypass row-level security", "replicate", "create roles", "create databases")

Finding = tuple[str, str | None]
"""What the login may do, and the SQL that revokes it from PUBLIC, if PUBLIC has it."""


def check(connection: Any, address: str) -> None:
    """Fails if the login, or a role that it can switch to, may do more than read."""
    (user,) = connection.execute("SELECT pg_catalog.quote_ident(session_user)").fetchone()
    findings = list(_findings(connection))
    if findings:
        (database,) = connection.execute("SELECT pg_catalog.quote_ident(pg_catalog.current_database())").fetchone()
        revoked = dict.fromkeys(sql for _, sql in findings if sql)
        raise errors.privileged(user, address, [may for may, _ in findings], [*reader(database), *revoked])


def reader(database: str) -> list[str]:
    """The SQL that creates a read-only login for a database; its name is quoted where needed."""
    return [
        "CREATE ROLE heedful_reader LOGIN PASSWORD 'change me' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"
        " NOBYPASSRLS",
        "ALTER ROLE heedful_reader SET default_transaction_read_only = on",
        f"GRANT CONNECT ON DATABASE {database} TO heedful_reader",
        "GRANT USAGE ON SCHEMA public TO heedful_reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO heedful_reader",
    ]


def _findings(connection: Any) -> Iterator[Finding]:
    roles = connection.execute(_ATTRIBUTES).fetchall()
    if any(row[1] for row in roles):
        yield "do everything, as a superuser", None
        return
    for flag, what in enumerate(_FLAGS, 2):
        if any(row[flag] for row in roles):
            yield what, None
    yield from ((_MEANINGS[row[0]], None) for row in roles if row[0] in _MEANINGS)
    yield from _writing(connection)
    yield from _outside_access(connection)
    for where, function in connection.execute(_OTHER_NAMES).fetchall():
        if is_denied(function, "postgres"):
            yield f"call {function} through {where}", None


def _writing(connection: Any) -> Iterator[Finding]:
    tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
    if tables:
        yield f"write to tables ({_join_some(tables)})", None
    for name, is_public in connection.execute(_SCHEMAS).fetchall():
        yield f"create tables in the schema {name}", _revoked(is_public, f"CREATE ON SCHEMA {name}")
    for name, is_public in connection.execute(_DATABASE).fetchall():
        yield f"create schemas in the database {name}", _revoked(is_public, f"CREATE ON DATABASE {name}")


def _outside_access(connection: Any) -> Iterator[Finding]:
    for kind, name, is_public in connection.execute(_SERVERS).fetchall():
        yield f"use the foreign {kind.lower()} {name}", _revoked(is_public, f"USAGE ON FOREIGN {kind} {name}")
    functions = connection.execute(_FUNCTIONS).fetchall()
    yield from _calling("which reach other systems", [row for row in functions if connects_out(row[0], row[1])])
    yield from _calling("which can do anything on the server", [row for row in functions if row[3]])


def _calling(why: str, functions: Sequence[Sequence[Any]]) -> Iterator[Finding]:
    if functions:
        names = list(dict.fromkeys(row[1] for row in functions))
        open_to_all = [row[2] for row in functions if row[4]]
        revoked = _revoked(bool(open_to_all), f"EXECUTE ON FUNCTION {', '.join(open_to_all)}")
        yield f"call functions {why} ({_join_some(names)})", revoked


def _revoked(is_public: bool, grant: str) -> str | None:
    return f"REVOKE {grant} FROM PUBLIC" if is_public else None


def _join_some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
