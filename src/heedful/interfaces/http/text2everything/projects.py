"""`/api/projects`: the projects of the store that a key opens."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import select

from heedful.clock import from_stored
from heedful.engine import Heedful, project_of
from heedful.errors import Conflict, Invalid, NotFound, quoted
from heedful.interfaces.http.text2everything import reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.storage import scopes
from heedful.storage.schema import projects

DEFAULT_LIMIT = 50
PROJECT = "project"
"""What a project's description is kept under."""

_IN_A_PATH = re.compile(r"[^/?#%\\\x00-\x1f]+")


def list_projects(heedful: Heedful, request: ForeignRequest) -> Any:
    """The projects that the key opens: all, or its own."""
    names = [name for name in request.server.projects() if request.server.has_project(name)]
    matching = [name for name in sorted(names, key=str.casefold) if reading.has(request, name)]
    return reading.paginate(matching, request, DEFAULT_LIMIT, lambda name: _to_project(_open(heedful, request, name)))


def get_project(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_project(heedful)


def create_project(heedful: Heedful, request: ForeignRequest) -> Any:
    name = reading.text(request, "name").strip()
    if not _IN_A_PATH.fullmatch(name) or name in (".", ".."):
        raise Invalid(
            f"name is {quoted(name)}, which can't be part of a URL",
            field="name",
            value=name,
            remedy="A project's name is its id: leave out / ? # % and \\",
        )
    project = _open(heedful, request, name)
    if reading.remarks(project, reading.DESCRIPTIONS).find(PROJECT) is not None:
        raise Conflict(
            f"project {name!r} already exists", field="name", value=name, remedy="Use it, or choose another name"
        )
    workspace = project_of(project).workspace
    with workspace.write() as connection:
        # Before its description is written, or it would be younger than its last change.
        scopes.ensure_project(connection, name, workspace.now())
    _describe(project, reading.optional(request, "description"))
    return _to_project(project)


def update_project(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes the description; the name is the id, and stays."""
    _to_project(heedful)
    name = reading.optional(request, "name")
    if name is not None and name != reading.project(heedful):
        raise Invalid(
            f"project {quoted(reading.project(heedful))} can't be renamed",
            field="name",
            value=name,
            remedy="Its name is its id: create another project",
        )
    _describe(heedful, reading.optional(request, "description"))
    return _to_project(heedful)


def _open(heedful: Heedful, request: ForeignRequest, name: str) -> Heedful:
    return heedful if name == reading.project(heedful) else request.server.opened(name)


def _describe(heedful: Heedful, description: str | None) -> None:
    name = reading.project(heedful)
    reading.remarks(heedful, reading.DESCRIPTIONS).put(PROJECT, description or name, {"description": description})


def _created_at(heedful: Heedful) -> int | None:
    with project_of(heedful).workspace.read() as connection:
        statement = select(projects.c.created_at).where(projects.c.name == reading.project(heedful))
        at: int | None = connection.execute(statement).scalar()
    return at


def _to_project(heedful: Heedful) -> dict[str, Any]:
    name, at = reading.project(heedful), _created_at(heedful)
    if at is None:
        raise NotFound(
            f"no project {name!r}", field="project_id", value=name, remedy="Create it, or write something to it"
        )
    described = reading.remarks(heedful, reading.DESCRIPTIONS).find(PROJECT)
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


ROUTES = (
    Wire("GET", "/api/projects", list_projects, "read"),
    Wire("POST", "/api/projects", create_project, "write"),
    Wire("GET", "/api/projects/{project_id}", get_project, "read", "project_id"),
    Wire("PUT", "/api/projects/{project_id}", update_project, "write", "project_id"),
)
