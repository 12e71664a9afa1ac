"""What stands in messages: errors, schemas and parameters as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful import errors
from heedful.errors import HeedfulError
from heedful.executions.databases.schema import ForeignKey, Schema, SchemaColumn, Table
from heedful.results import Column, Result, decode, encode

_KINDS = {
    kind.__name__: kind
    for kind in (errors.NotFound, errors.Invalid, errors.Conflict, errors.Forbidden, errors.Unavailable)
}


def error_sent(error: HeedfulError) -> dict[str, Any]:
    """An error as JSON."""
    about = {"code": error.code, "field": error.field, "value": _plain(error.value), "remedy": error.remedy}
    return {"kind": type(error).__name__, "message": error.message, "about": about}


def error_received(sent: Mapping[str, Any]) -> HeedfulError:
    """The error that was sent."""
    return _KINDS.get(sent["kind"], errors.Unavailable)(sent["message"], **sent["about"])


def parameters_sent(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON, without loss: a result with one row."""
    return encode(Result(tuple(Column(name, "") for name in parameters), (tuple(parameters.values()),)))


def parameters_received(sent: dict[str, Any]) -> dict[str, Any]:
    """The parameters that were sent."""
    result = decode(sent)
    return dict(zip((column.name for column in result.columns), result.rows[0], strict=True))


def schema_received(sent: Mapping[str, Any]) -> Schema:
    """The schema of which `asdict` was sent."""
    return Schema(tuple(_table(each) for each in sent["tables"]))


def _table(sent: Mapping[str, Any]) -> Table:
    return Table(
        sent["name"],
        tuple(SchemaColumn(**column) for column in sent["columns"]),
        tuple(sent["primary_key"]),
        tuple(ForeignKey(tuple(key["columns"]), key["table"], tuple(key["referred"])) for key in sent["foreign_keys"]),
        sent["schema"],
        sent["is_view"],
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
