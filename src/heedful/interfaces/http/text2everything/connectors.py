"""`/connectors`: databases, described by host, user, password and name."""

from __future__ import annotations

from time import monotonic
from typing import Any

from heedful.engine import Heedful
from heedful.errors import Invalid, quoted
from heedful.interfaces.http.text2everything import addresses, reading
from heedful.interfaces.problems import ForeignRequest, Wire
from heedful.model import Connector

DEFAULT_LIMIT = 100
_PATH = "/api/projects/{project_id}/connectors"
_ITEM_PATH = f"{_PATH}/{{connector_id}}"
_STAYS = ("name", "db_type", "host", "port", "username", "database")


def list_connectors(heedful: Heedful, request: ForeignRequest) -> Any:
    connectors = [connector for connector in heedful.connectors.list() if reading.has(request, connector.name)]
    return reading.paginate(connectors, request, DEFAULT_LIMIT, lambda connector: _to_connector(heedful, connector))


def get_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    return _to_connector(heedful, heedful.connectors.get(request.path["connector_id"]))


def create_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    body = reading.body(request)
    url = addresses.url_of(body)
    config = addresses.config_of(body)
    connector = heedful.connectors.create(
        reading.text(request, "name"), url, role=config.get("role"), privileged=config.get("privileged", False)
    )
    reading.describe(heedful, connector.connector_id, reading.optional(request, "description"))
    return _to_connector(heedful, connector)


def update_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    """Changes the description; where a connector leads to stays, since proven SQL belongs to its database."""
    connector = heedful.connectors.get(request.path["connector_id"])
    body, current = reading.body(request), _to_connector(heedful, connector)
    secret = body.get("password_secret_id")
    changed = [field for field in _STAYS if body.get(field) not in (None, current[field])]
    changed += ["password"] if body.get("password") else []
    changed += ["config"] if body.get("config") else []
    changed += (
        ["password_secret_id"] if secret and current["password_secret_name"] != addresses.SECRETS + secret else []
    )
    if changed:
        raise Invalid(
            f"{changed[0]} of connector {quoted(connector.name)} can't be changed: "
            "what was proven on it belongs to its database",
            field=changed[0],
            remedy="Create another connector, or change the password in the variable that it refers to",
        )
    reading.describe(heedful, connector.connector_id, reading.optional(request, "description"))
    return _to_connector(heedful, connector)


def delete_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    connector = heedful.connectors.get(request.path["connector_id"])
    heedful.connectors.delete(connector.connector_id)
    reading.describe(heedful, connector.connector_id, None)
    return {"message": f"connector {connector.name} is deleted"}


def test_connector(heedful: Heedful, request: ForeignRequest) -> Any:
    """Connects, and reads the schema again."""
    started = monotonic()
    heedful.connectors.refresh(request.path["connector_id"])
    return {"ok": True, "elapsed_ms": round((monotonic() - started) * 1000)}


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
    Wire("GET", _PATH, list_connectors, "read", "project_id"),
    Wire("POST", _PATH, create_connector, "admin", "project_id", queries=True),
    Wire("GET", _ITEM_PATH, get_connector, "read", "project_id"),
    Wire("PUT", _ITEM_PATH, update_connector, "admin", "project_id", queries=True),
    Wire("DELETE", _ITEM_PATH, delete_connector, "admin", "project_id"),
    Wire("POST", f"{_ITEM_PATH}/test", test_connector, "admin", "project_id", queries=True),
)
