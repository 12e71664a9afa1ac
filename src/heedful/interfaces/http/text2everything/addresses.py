"""A connector's host, user, password and database as a URL, and a URL as those."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from heedful.errors import HeedfulError, Invalid, quoted
from heedful.sql import secrets

KINDS = {"postgres": "postgresql", "postgresql": "postgresql", "mysql": "mysql", "sqlite": "sqlite", "duckdb": "duckdb"}
FILES = ("sqlite", "duckdb")
SECRETS = "environment/secrets/"
"""What the client takes for the place of a secret, before the name of the variable that holds it."""

_OWN_OPTIONS = ("role", "privileged")
"""Options that are Heedful's, and not the driver's."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?")


def url_of(body: dict[str, Any]) -> str:
    """The URL of what the client describes."""
    kind = KINDS.get(str(body.get("db_type")).lower())
    if kind is None:
        raise Invalid(
            f"db_type is {quoted(body.get('db_type'))}, which Heedful has no connector for",
            field="db_type",
            value=body.get("db_type"),
            remedy="Use postgres, mysql, sqlite or duckdb",
        )
    database = _text(body, "database")
    if "?" in database:
        raise Invalid(f"database {quoted(database)} must not contain ?", field="database", value=database)
    if kind in FILES:
        return f"{kind}:///{database}"
    options = {name: each for name, each in config_of(body).items() if name not in _OWN_OPTIONS}
    query = "&".join(f"{quote(name)}={quote(str(each), safe='')}" for name, each in options.items())
    return f"{kind}://{_user(body)}@{_host_and_port(body)}/{quote(database, safe='')}" + (f"?{query}" if query else "")


def config_of(body: dict[str, Any]) -> dict[str, Any]:
    """The options of a connector."""
    options = body.get("config") or {}
    if not isinstance(options, dict) or not all(isinstance(each, str | int) for each in options.values()):
        raise Invalid("config must be an object of texts and numbers", field="config")
    return options


def parts_of(url: str) -> dict[str, Any]:
    """What the client shows of a connector; nothing of a URL that can't be read, and never a password."""
    try:
        address = secrets.parse_url(url)
    except HeedfulError:
        return {"host": "", "port": None, "username": "", "database": "", "password_secret_name": None}
    reference = re.fullmatch(r"\$\{(\w+)\}", address.password or "")
    return {
        "host": address.host or "",
        "port": address.port,
        "username": address.username or "",
        "database": address.database or "",
        "password_secret_name": None if reference is None else SECRETS + reference[1],
    }


def _user(body: dict[str, Any]) -> str:
    name, password, secret = _text(body, "username"), body.get("password"), body.get("password_secret_id")
    if secret:
        if not isinstance(secret, str) or not _VARIABLE.fullmatch(secret):
            raise Invalid(
                f"invalid password_secret_id {quoted(secret)}",
                field="password_secret_id",
                value=secret,
                remedy="Give the name of a variable of the server's environment that holds the password",
            )
        return f"{quote(name, safe='')}:${{{secret}}}"
    if not password:
        return quote(name, safe="")
    if not isinstance(password, str):
        raise Invalid("password must be a text", field="password")
    reference = password.startswith("${") and password.endswith("}") and _VARIABLE.fullmatch(password[2:-1])
    return f"{quote(name, safe='')}:{password if reference else quote(password, safe='')}"


def _host_and_port(body: dict[str, Any]) -> str:
    host, port = _text(body, "host"), body.get("port")
    if not _HOST.fullmatch(host):
        raise Invalid(f"host is {quoted(host)}, which is not a host name or an address", field="host", value=host)
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65_536):
        raise Invalid(f"port must be a whole number from 1 to 65535, got {quoted(port)}", field="port", value=port)
    bare = host.strip("[]")
    return (f"[{bare}]" if ":" in bare else bare) + (f":{port}" if port is not None else "")


def _text(body: dict[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} is required and must not be blank", field=field, value=value)
    return value
