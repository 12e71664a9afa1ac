"""Bodies and parameters of requests, read into models; what can't be accepted is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from heedful.engine import Heedful
from heedful.errors import Invalid
from heedful.web.wire import Asked, Reply


class Body(BaseModel):
    """What a request says; fields that mean nothing here are left out."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


Read = TypeVar("Read", bound=Body)


def read(model: type[Read], given: Any, fallback: Any = None) -> Read:
    """The request as `model` reads it; its first problem is raised, under the kind that pydantic gives it."""
    try:
        return TypeAdapter(model).validate_python(fallback if given is None else given)
    except ValidationError as error:
        found = Invalid.from_validation(error)
        kind = error.errors()[0]["type"]
        raise Invalid(found.message, code=kind, field=found.field, value=found.value, remedy=found.remedy) from None


def unsupported(reason: str) -> Callable[[Heedful, Asked], Reply]:
    """What answers for a route that has no like here."""

    def answer(store: Heedful, asked: Asked) -> Reply:
        return Reply(501, {"detail": reason})

    return answer


def problem(error: Invalid, place: str) -> dict[str, Any]:
    """An error as FastAPI lists it: where, what, and of which kind."""
    parts = (error.field or "").replace("[", ".").replace("]", "").split(".")
    where = [int(part) if part.isdecimal() else part for part in parts if part and part != "value"]
    return {"loc": [place, *where], "msg": str(error), "type": error.code}
