"""The HTTP interface that text2everything_sdk speaks: point its `base_url` at a Heedful server and go on.

A project is a project of the store, and its id is its name. The header `X-Workspace-Name` is accepted and means
nothing here: a key says which projects it opens.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, NoReturn
from urllib.parse import quote

from sqlalchemy import select

from heedful.clock import from_stored
from heedful.compat.foreign_api import ForeignRequest, ForeignRoute
from heedful.compat.text2everything import chat_routes, requests, texts
from heedful.compat.text2everything.requests import project_route
from heedful.compat.text2everything.texts import describe, remarks
from heedful.engine import Heedful, project_of
from heedful.errors import Conflict, HeedfulError, Invalid, NotFound, quoted
from heedful.model import Connector
from heedful.sql import secrets
from heedful.storage import scopes
from heedful.storage.schema import projects

STATUSES = {422: 400}
"""The client knows a value that can't be accepted by 400 alone."""


def error_body(error: HeedfulError, status: int) -> Any:
    """An error as the client reads it: it shows `error` to people."""
    return {
        "error": str(error),
        "detail": error.message,
        "status_code": status,
        "code": error.code,
        "field": error.field,
        "remedy": error.remedy,
    }


PROJECT = "project"
"""The id of a project's description."""

_IN_A_PATH = re.compile(r"[^/?#%\\\x00-\x1f]+")


def list_projects(heedful: Heedful, request: ForeignRequest) -> Any:
    """The projects that the key opens: all, or its own."""
    names = sorted(request.projects(), key=str.casefold)
    matching = [name for name in names if requests.has(request, name)]
    return requests.paginate(matching, request, 50, lambda name: _to_project(_open(heedful, request, name)))


def get_project(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_project(heedful)


def create_project(heedful: Heedful, request: ForeignRequest) -> Any:
    name = requests.text(request, "name").strip()
    if not _IN_A_PATH.fullmatch(name) or name in (".", ".."):
        remedy = "A project's name is its id: leave out / ? # % and \\"
        raise Invalid(f"name is {quoted(name)}, which can't be part of a URL", field="name", value=name, remedy=remedy)
    project = _open(heedful, request, name)
    if remarks(project).find(PROJECT) is not None:
        remedy = "Use it, or choose another name"
        raise Conflict(f"project {name!r} already exists", field="name", value=name, remedy=remedy)
    workspace = project_of(project).workspace
    with workspace.write() as connection:
        # Before its description is written, or it would be younger than its last change.
        scopes.ensure_project(connection, name, workspace.now())
    _describe_project(project, requests.optional(request, "description"))
    return _to_project(project)


def update_project(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes the description; the name is the id, and stays."""
    _to_project(heedful)
    name = requests.optional(request, "name")
    if name is not None and name != requests.project(heedful):
        message = f"project {quoted(requests.project(heedful))} can't be renamed"
        raise Invalid(message, field="name", value=name, remedy="Its name is its id: create another project")
    _describe_project(heedful, requests.optional(request, "description"))
    return _to_project(heedful)


def _open(heedful: Heedful, request: ForeignRequest, name: str) -> Heedful:
    return heedful if name == requests.project(heedful) else request.opened(name)


def _describe_project(heedful: Heedful, description: str | None) -> None:
    name = requests.project(heedful)
    remarks(heedful).put(PROJECT, description or name, {"description": description})


def _to_project(heedful: Heedful) -> dict[str, Any]:
    name = requests.project(heedful)
    with project_of(heedful).workspace.read() as connection:
        at: int | None = connection.execute(select(projects.c.created_at).where(projects.c.name == name)).scalar()
    if at is None:
        remedy = "Create it, or write something to it"
        raise NotFound(f"no project {name!r}", field="project_id", value=name, remedy=remedy)
    described = remarks(heedful).find(PROJECT)
    return {
        "id": name,
        "name": name,
        "description": None if described is None else described.metadata["description"],
        "created_at": from_stored(at).isoformat(),
        "updated_at": from_stored(at if described is None else described.changed_at).isoformat(),
        "workspace_id": None,
        "workspace_authz_name": None,
        "active_chat_preset_id": None,
    }


_STAYS = ("name", "db_type", "host", "port", "username", "database")


KINDS = {"postgres": "postgresql", "postgresql": "postgresql", "mysql": "mysql", "sqlite": "sqlite", "duckdb": "duckdb"}
FILES = ("sqlite", "duckdb")
SECRETS = "environment/secrets/"
"""The place of a secret, as the client reads it, before the name of the variable that holds it."""

_OWN_OPTIONS = ("role", "privileged")
"""Options that are Heedful's, and not the driver's."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?")


def url_of(body: dict[str, Any]) -> str:
    """The URL of what the client describes."""
    kind = KINDS.get(str(body.get("db_type")).lower())
    if kind is None:
        message = f"db_type is {quoted(body.get('db_type'))}, which Heedful has no connector for"
        remedy = "Use postgres, mysql, sqlite or duckdb"
        raise Invalid(message, field="db_type", value=body.get("db_type"), remedy=remedy)
    database = _address_text(body, "database")
    if "?" in database:
        raise Invalid(f"database {quoted(database)} must not contain ?", field="database", value=database)
    if kind in FILES:
        return f"{kind}:///{database}"
    options = {name: value for name, value in config_of(body).items() if name not in _OWN_OPTIONS}
    query = "&".join(f"{quote(name)}={quote(str(value), safe='')}" for name, value in options.items())
    return f"{kind}://{_user(body)}@{_host_and_port(body)}/{quote(database, safe='')}" + (f"?{query}" if query else "")


def config_of(body: dict[str, Any]) -> dict[str, Any]:
    options = body.get("config") or {}
    if not isinstance(options, dict) or not all(isinstance(value, str | int) for value in options.values()):
        raise Invalid("config must be an object of texts and numbers", field="config")
    return options


def parts_of(url: str) -> dict[str, Any]:
    """The parts of a connector's URL that the client shows; none of a URL that can't be read, and never a password."""
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
    name, password, secret = _address_text(body, "username"), body.get("password"), body.get("password_secret_id")
    if secret:
        if not isinstance(secret, str) or not _VARIABLE.fullmatch(secret):
            message = f"invalid password_secret_id {quoted(secret)}"
            remedy = "Give the name of a variable of the server's environment that holds the password"
            raise Invalid(message, field="password_secret_id", value=secret, remedy=remedy)
        return f"{quote(name, safe='')}:${{{secret}}}"
    if not password:
        return quote(name, safe="")
    if not isinstance(password, str):
        raise Invalid("password must be a text", field="password")
    reference = password.startswith("${") and password.endswith("}") and _VARIABLE.fullmatch(password[2:-1])
    return f"{quote(name, safe='')}:{password if reference else quote(password, safe='')}"


def _host_and_port(body: dict[str, Any]) -> str:
    host, port = _address_text(body, "host"), body.get("port")
    if not _HOST.fullmatch(host):
        raise Invalid(f"host is {quoted(host)}, which is not a host name or an address", field="host", value=host)
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65_536):
        raise Invalid(f"port must be a whole number from 1 to 65535, got {quoted(port)}", field="port", value=port)
    bare = host.strip("[]")
    return (f"[{bare}]" if ":" in bare else bare) + (f":{port}" if port is not None else "")


def _address_text(body: dict[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} is required and must not be blank", field=field, value=value)
    return value


def list_connectors(heedful: Heedful, request: ForeignRequest) -> Any:
    connectors = [connector for connector in heedful.connectors.list() if requests.has(request, connector.name)]
    return requests.paginate(
        connectors, request, chat_routes.DEFAULT_LIMIT, lambda connector: _to_connector(heedful, connector)
    )


def get_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_connector(heedful, heedful.connectors.get(request.path["connector_id"]))


def create_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    body = requests.body(request)
    url = url_of(body)
    config = config_of(body)
    connector = heedful.connectors.create(
        requests.text(request, "name"), url, role=config.get("role"), privileged=config.get("privileged", False)
    )
    describe(heedful, connector.connector_id, requests.optional(request, "description"))
    return _to_connector(heedful, connector)


def update_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes the description; where a connector leads to stays, since proven SQL belongs to its database."""
    connector = heedful.connectors.get(request.path["connector_id"])
    body, current = requests.body(request), _to_connector(heedful, connector)
    secret = body.get("password_secret_id")
    changed = [field for field in _STAYS if body.get(field) not in (None, current[field])]
    changed += ["password"] if body.get("password") else []
    changed += ["config"] if body.get("config") else []
    changed += ["password_secret_id"] if secret and current["password_secret_name"] != SECRETS + secret else []
    if changed:
        raise Invalid(
            f"{changed[0]} of connector {quoted(connector.name)} can't be changed: "
            "what was proven on it belongs to its database",
            field=changed[0],
            remedy="Create another connector, or change the password in the variable that it refers to",
        )
    describe(heedful, connector.connector_id, requests.optional(request, "description"))
    return _to_connector(heedful, connector)


def delete_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    connector = heedful.connectors.get(request.path["connector_id"])
    heedful.connectors.delete(connector.connector_id)
    describe(heedful, connector.connector_id, None)
    return {"message": f"connector {connector.name} is deleted"}


def test_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    """Connects, and reads the schema again."""
    started = monotonic()
    heedful.connectors.refresh(request.path["connector_id"])
    return {"ok": True, "elapsed_ms": round((monotonic() - started) * 1000)}


def _to_connector(heedful: Heedful, connector: Connector) -> dict[str, Any]:
    described = remarks(heedful).find(connector.connector_id)
    at = connector.created_at.isoformat()
    return {
        "id": connector.connector_id,
        "name": connector.name,
        "description": None if described is None else described.metadata["description"],
        "db_type": "postgres" if connector.dialect == "postgresql" else connector.dialect,
        **parts_of(connector.url),
        "password": None,
        "config": None,
        "created_at": at,
        "updated_at": at,
    }


def _refuse(feature: str, heedful: Heedful, request: ForeignRequest) -> NoReturn:
    raise requests.missing(feature)


_ABSENT = (
    (requests.CUSTOM_TOOLS, "/custom-tools", "GET POST"),
    (requests.CUSTOM_TOOLS, "/custom-tools/{tool_id}", "GET PUT DELETE"),
    (requests.CUSTOM_TOOLS, "/chat-sessions/{chat_session_id}/custom-tool", "PUT"),
    (requests.PRESETS, "/chat-presets", "GET POST"),
    (requests.PRESETS, "/chat-presets/options", "GET"),
    (requests.PRESETS, "/chat-presets/prompt-templates", "GET POST"),
    (requests.PRESETS, "/chat-presets/prompt-templates/{template_id}", "GET PUT"),
    (requests.PRESETS, "/chat-presets/active/start", "POST"),
    (requests.PRESETS, "/chat-presets/{preset_id}", "GET PUT DELETE"),
    (requests.PRESETS, "/chat-presets/{preset_id}/activate", "POST"),
    (requests.PRESETS, "/chat-presets/{preset_id}/chat-sessions", "POST"),
    (requests.COLLECTIONS, "/collections", "GET"),
    (requests.COLLECTIONS, "/collections/{component_type}", "GET"),
    (requests.SPLITS, "/schema-metadata/split-group/{split_group_id}", "GET"),
    (requests.PROJECTS, "", "DELETE"),
)

_ROUTES: tuple[ForeignRoute, ...] = (
    ForeignRoute("GET", "/api/projects", list_projects, "read"),
    ForeignRoute("POST", "/api/projects", create_project, "write"),
    project_route("GET", "", get_project, "read"),
    project_route("PUT", "", update_project, "write"),
    project_route("GET", "/connectors", list_connectors, "read"),
    project_route("POST", "/connectors", create_connector, "admin", queries=True),
    project_route("GET", "/connectors/{connector_id}", get_connector, "read"),
    project_route("PUT", "/connectors/{connector_id}", update_connector, "admin", queries=True),
    project_route("DELETE", "/connectors/{connector_id}", delete_connector, "admin"),
    project_route("POST", "/connectors/{connector_id}/test", test_connector, "admin", queries=True),
    *texts.ROUTES,
    *chat_routes.ROUTES,
    *(
        project_route(method, path, partial(_refuse, feature), "read")
        for feature, path, methods in _ABSENT
        for method in methods.split()
    ),
)

ROUTES = (*_ROUTES, *(replace(route, path=route.path.removeprefix("/api")) for route in _ROUTES))
"""The client puts /api before every path; its document leaves it out of most."""
