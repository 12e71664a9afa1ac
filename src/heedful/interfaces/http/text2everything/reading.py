"""What a request says, checked: fields of its body, numbers and words of its query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heedful.engine import Heedful
from heedful.errors import Invalid, NotFound
from heedful.interfaces.problems import ForeignRequest
from heedful.memory import checks as values
from heedful.sql.feedback import Remark, Remarks

DESCRIPTIONS = "descriptions"
"""The dataset for what the client says of things and Heedful has no field for."""


def body(request: ForeignRequest) -> dict[str, Any]:
    """The body, which is an object."""
    if not isinstance(request.body, dict):
        raise Invalid("the body of the request must be a JSON object", field="body")
    return request.body


def text(request: ForeignRequest, field: str) -> str:
    """A text that must be there."""
    value = optional(request, field)
    if value is None:
        raise Invalid(f"{field} is required and must not be blank", field=field)
    return value


def optional(request: ForeignRequest, field: str) -> str | None:
    """A text that may be missing, null or blank."""
    value = body(request).get(field)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{field} must be a string, got {value!r}", field=field, value=value)
    return value if value is not None and value.strip() else None


def flag(request: ForeignRequest, field: str, default: bool = False) -> bool:
    """True or false; null is the default."""
    value = body(request).get(field)
    return default if value is None else values.flag(field, value)


def wanted(request: ForeignRequest, field: str) -> bool | None:
    """A yes or no in the query, if there is one."""
    value = request.query.get(field)
    if value is None:
        return None
    if value.lower() not in ("true", "false"):
        raise Invalid(f"{field} must be true or false, got {value!r}", field=field, value=value)
    return value.lower() == "true"


def ids(request: ForeignRequest) -> list[str]:
    """The ids in the body of a bulk deletion."""
    value = body(request).get("ids")
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise Invalid("ids must be a list of at least one id", field="ids", value=value)
    return value


def bulk(delete: Callable[[str], object], request: ForeignRequest) -> dict[str, Any]:
    """Deletes each of the ids, and says which were not there."""
    failed, deleted = [], 0
    for each in dict.fromkeys(ids(request)):
        try:
            delete(each)
        except NotFound:
            failed.append(each)
        else:
            deleted += 1
    return {"deleted_count": deleted, "failed_ids": failed}


def project(heedful: Heedful) -> str:
    """The project's name, which is its id."""
    return heedful._workspace.project


def remarks(heedful: Heedful, dataset: str) -> Remarks:
    """The texts that are kept in a dataset of the project."""
    return Remarks(heedful._workspace, dataset)


def descriptions(heedful: Heedful) -> dict[str, Remark]:
    """What the client said of things, by their ids."""
    return {each.id: each for each in remarks(heedful, DESCRIPTIONS).list()}


def describe(heedful: Heedful, about: str, description: str | None, **more: Any) -> None:
    """Keeps what the client says of something; nothing is kept of nothing."""
    kept = remarks(heedful, DESCRIPTIONS)
    if description is not None or any(more.values()):
        kept.put(about, description or about, {"description": description, **more})
    elif kept.find(about) is not None:
        kept.delete(about)
