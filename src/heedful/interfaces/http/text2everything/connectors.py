"""`/connectors`: databases, described by host, user, password and name."""

from __future__ import annotations

from time import monotonic
from typing import Any

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.interfaces.http.text2everything import addresses, reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import Connector

DEFAULT_LIMIT = 100
_PLACE = "/api/projects/{project_id}/connectors"
_ONE = f"{_PLACE}/{{connector_id}}"
_STAYS = ("name", "db_type", "host", "port", "username", "database")


def list_connectors(heedful: Heedful, request: ForeignRequest) -> Any:
    found = [each for each in heedful.connectors.list() if reading.has(request, each.name)]
    return reading.paginate(found, request, DEFAULT_LIMIT, lambda each: _to_connector(heedful, each))


def get_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_connector(heedful, heedful.connectors.get(request.path["connector_id"]))


def create_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    body = reading.body(request)
    url = addresses.url_of(body)
    config = addresses.config_of(body)
    made = heedful.connectors.create(
        reading.text(request, "name"), url, role=config.get("role"), privileged=config.get("privileged", False)
    )
    reading.describe(heedful, made.connector_id, reading.optional(request, "description"))
    return _to_connector(heedful, made)


def update_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes the description; where a connector leads to stays, since proven SQL belongs to its database."""
    found = heedful.connectors.get(request.path["connector_id"])
    body, known = reading.body(request), _to_connector(heedful, found)
    secret = body.get("password_secret_id")
    moved = [field for field in _STAYS if body.get(field) not in (None, known[field])]
    moved += ["password"] if body.get("password") else []
    moved += ["config"] if body.get("config") else []
    moved += ["password_secret_id"] if secret and known["password_secret_name"] != addresses.SECRETS + secret else []
    if moved:
        raise Invalid(
            f"{moved[0]} of connector {found.name!r} can't be changed: what was proven on it belongs to its database",
            field=moved[0],
            remedy="Create another connector, or change the password in the variable that it refers to",
        )
    reading.describe(heedful, found.connector_id, reading.optional(request, "description"))
    return _to_connector(heedful, found)


def delete_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    found = heedful.connectors.get(request.path["connector_id"])
    heedful.connectors.delete(found.connector_id)
    reading.describe(heedful, found.connector_id, None)
    return {"message": f"connector {found.name} is deleted"}


def test_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    """Connects, and reads the schema again."""
    began = monotonic()
    heedful.connectors.refresh(request.path["connector_id"])
    return {"ok": True, "elapsed_ms": round((monotonic() - began) * 1000)}


def _to_connector(heedful: Heedful, connector: Connector) -> dict[str, Any]:
    described = reading.remarks(heedful, reading.DESCRIPTIONS).find(connector.connector_id)
    at = connector.created_at.isoformat()
    return {
        "id": connector.connector_id,
        "name": connector.name,
        "description": None if described is None else described.metadata["description"],
        "db_type": "postgres" if connector.dialect == "postgresql" else connector.dialect,
        **addresses.parts_of(connector.url),
        "password": None,
        "config": None,
        "created_at": at,
        "updated_at": at,
    }


ROUTES = (
    Wire("GET", _PLACE, list_connectors, "read", "project_id"),
    Wire("POST", _PLACE, create_connector, "admin", "project_id", queries=True),
    Wire("GET", _ONE, get_connector, "read", "project_id"),
    Wire("PUT", _ONE, update_connector, "admin", "project_id", queries=True),
    Wire("DELETE", _ONE, delete_connector, "admin", "project_id"),
    Wire("POST", f"{_ONE}/test", test_connector, "admin", "project_id", queries=True),
)
