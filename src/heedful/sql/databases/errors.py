"""Errors of connectors' databases. Messages about connecting quote nothing, since it could be the password."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.engine import URL

from heedful.errors import Forbidden, Invalid, NotFound, Unavailable, extra_missing
from heedful.text import shortened

_SHOWN = 500


def existing_file(path: Path, product: str) -> Path:
    """The path, if a file exists; opening never creates a database."""
    try:
        # Opening a pipe would block until somebody writes to it.
        regular = stat.S_ISREG(path.stat().st_mode)
    except PermissionError:
        raise unreachable(str(path), "it may not be read") from None
    except (OSError, ValueError):
        message = f"there is no file {path}"
        remedy = "Check the path in the connector's URL; opening a database does not create it"
        raise NotFound(message, code="database_missing", field="url", value=str(path), remedy=remedy) from None
    if not regular:
        raise not_a_database(path, product)
    return path


def not_a_database(path: Path, product: str) -> Invalid:
    message = f"{path} is not a {product} database"
    remedy = "Check the path in the connector's URL"
    return Invalid(message, code="not_a_database", field="url", value=str(path), remedy=remedy)


def no_file(product: str) -> Invalid:
    message = f"a connector to {product} needs the path of a file"
    return Invalid(message, code="not_a_database", field="url", remedy=f"Use {product.lower()}:///path/to/file")


def missing_database(address: str) -> NotFound:
    remedy = "Check the database's name in the connector's URL"
    return NotFound(f"{address} does not exist on its server", code="database_missing", field="url", remedy=remedy)


def address(url: URL) -> str:
    """Where a server is, without secrets."""
    port = f":{url.port}" if url.port else ""
    return f"{url.get_backend_name()}://{url.host or 'localhost'}{port}/{url.database or ''}"


def unreachable(address: str, reason: str) -> Unavailable:
    message = f"{address} can't be reached ({reason})"
    remedy = "Check host and port in the connector's URL, and that the server runs"
    return Unavailable(message, code="database_unreachable", field="url", remedy=remedy)


def refused_login(address: str) -> Unavailable:
    remedy = "Check user and password of the connector's URL, and what the server allows them from here"
    return Unavailable(f"{address} refused the login", code="database_login", field="url", remedy=remedy)


def no_tls(address: str) -> Unavailable:
    message = f"{address} can't be reached over TLS as its URL asks"
    remedy = "Check sslmode, sslrootcert and the server's certificate"
    return Unavailable(message, code="database_tls", field="url", remedy=remedy)


def in_use(address: str) -> Unavailable:
    remedy = "Close the other connection, or try again later"
    return Unavailable(f"{address} is locked by another connection", code="database_in_use", remedy=remedy)


def missing_driver(package: str, extra: str) -> Unavailable:
    message = f"the package {package}, which this database needs, is not installed"
    return extra_missing(extra, message)


def changes_data(reason: object) -> Forbidden:
    message = f"the database refused this: it is open for reading only ({one_line(reason)})"
    return Forbidden(message, code="read_only", field="sql", remedy="Pass one SELECT statement")


def not_allowed(reason: object) -> Forbidden:
    message = f"this user lacks the rights for that ({one_line(reason)})"
    remedy = "Grant the right to the connector's user or role"
    return Forbidden(message, code="database_forbidden", field="sql", remedy=remedy)


def failed(reason: object) -> Invalid:
    return Invalid(_cannot_run(reason), code="query_failed", field="sql", remedy="Correct the SQL")


def unknown_table(reason: object) -> Invalid:
    remedy = "Use a table of the connector's schema"
    return Invalid(_cannot_run(reason), code="unknown_table", field="sql", remedy=remedy)


def unknown_column(reason: object) -> Invalid:
    remedy = "Use a column of the connector's schema"
    return Invalid(_cannot_run(reason), code="unknown_column", field="sql", remedy=remedy)


def _cannot_run(reason: object) -> str:
    return f"the database can't run this: {one_line(reason)}"


def out_of_memory() -> Unavailable:
    remedy = "Ask for fewer or shorter values; whoever runs the server can raise query_memory in its settings"
    return Unavailable("the query needs more memory than a query may use", code="query_memory", remedy=remedy)


def out_of_disk() -> Unavailable:
    message = "the query needs more room for temporary files than a query may use, to sort or to group"
    remedy = "Ask for less; whoever runs the server can raise query_disk in its settings"
    return Unavailable(message, code="query_disk", remedy=remedy)


def timed_out(seconds: float) -> Unavailable:
    message = f"the query took longer than {seconds:g} seconds and was stopped"
    remedy = "Ask for less, or add an index"
    return Unavailable(message, code="query_timeout", field="seconds", value=seconds, remedy=remedy)


def one_line(reason: object) -> str:
    """The first line of a database's message."""
    return shortened(str(reason).strip().split("\n")[0], _SHOWN)


def privileged(user: str, address: str, may: Sequence[str], advice: Sequence[str]) -> Forbidden:
    """The error for a login that `may` do more than read; `advice` is SQL that makes one that may only read."""
    message = f"the login {user} of {address} may do more than read: it may {', '.join(may)}"
    remedy = f"Connect as a role that may only read: {'; '.join(advice)}. Or the operator allows it: privileged=True"
    return Forbidden(message, code="role_privileged", field="url", value=user, remedy=remedy)


def own_store(address: object) -> Forbidden:
    """The error for a Heedful store as a connector: queries would see every project and its secrets."""
    message = f"{address} is a Heedful store; a connector would see all of its projects"
    remedy = "Name a database that holds no store of Heedful"
    return Forbidden(message, code="store_as_connector", field="url", remedy=remedy)
