"""Errors as HTTP expresses them: a status, and a document of RFC 9457."""

from __future__ import annotations

from typing import Any

from heedful.errors import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Unavailable

BY_CODE = {
    "key_missing": 401,
    "key_invalid": 401,
    "token_invalid": 401,
    "token_expired": 401,
    "malformed": 400,
    "body_too_large": 413,
    "too_slow": 408,
    "media_type": 415,
    "method": 405,
    "changed_meanwhile": 412,
    "rate_limited": 429,
    "server_busy": 429,
    "write_limited": 429,
    "query_busy": 429,
    "query_timeout": 422,
    "query_memory": 422,
    "query_disk": 422,
    "upstream_failed": 502,
    "upstream_timeout": 504,
}
"""Statuses that a code has, whatever the kind of the error."""

UNAVAILABLE = frozenset({"query_timeout", "query_memory", "query_disk"})
"""Codes of what may work at another time, although the status says that the caller should ask for less."""

BY_KIND: dict[type[HeedfulError], int] = {Invalid: 422, NotFound: 404, Conflict: 409, Forbidden: 403, Unavailable: 503}

TITLES = {
    400: "The request can't be read",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid",
    429: "Too many requests",
    500: "A fault of the server",
    502: "The endpoint behind the proxy failed",
    503: "Unavailable",
    504: "The endpoint behind the proxy is silent",
}

TITLES_BY_CODE = {
    "key_invalid": "The key is not valid",
    "token_invalid": "The token is not valid",
    "token_expired": "The token has expired",
}
"""Titles that a code has, where that of the status would mislead."""

MAX_VALUE_LENGTH = 200
"""The longest value that is said back to the caller."""


def status_of(error: HeedfulError) -> int:
    return BY_CODE.get(error.code) or status_of_kind(error)


def status_of_kind(error: HeedfulError) -> int:
    """The status of an error, whatever its code."""
    return next((status for kind, status in BY_KIND.items() if isinstance(error, kind)), 500)


def problem(error: HeedfulError, status: int, request_id: str) -> dict[str, Any]:
    """The document of an error."""
    return {
        "type": f"urn:heedful:problem:{error.code}",
        "title": TITLES_BY_CODE.get(error.code) or TITLES.get(status, "Error"),
        "status": status,
        "detail": error.message.encode(errors="replace").decode(),
        "code": error.code,
        "field": error.field,
        "value": _shorten(error.value),
        "remedy": error.remedy,
        "request_id": request_id,
    }


def error_of(status: int, document: Any) -> HeedfulError:
    """The error behind a document: the kind that the engine raises, with its words."""
    fields = document if isinstance(document, dict) else {}
    kinds = {400: Invalid, 401: Forbidden, 412: Conflict, 413: Invalid, 414: Invalid, 415: Invalid, 429: Unavailable}
    kinds |= {number: kind for kind, number in BY_KIND.items()}
    kind = kinds.get(status, Unavailable if status >= 500 else HeedfulError)
    if fields.get("code") in UNAVAILABLE:
        kind = Unavailable
    given = {name: fields.get(name) for name in ("code", "field", "value", "remedy")}
    return kind(str(fields.get("detail") or f"the server answered {status}"), **given)


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_VALUE_LENGTH].encode(errors="replace").decode()
    if isinstance(value, bool | int | None) and abs(value or 0) < 2**53:
        return value
    return value if isinstance(value, float) and abs(value) < 1e300 else None
