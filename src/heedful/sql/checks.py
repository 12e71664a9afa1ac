"""Checks the arguments of calls about executions before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from heedful.errors import Invalid, quoted
from heedful.memory import checks
from heedful.model import Reuse, limits


def question(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} must not be empty or blank, got {quoted(value)}", field=field, value=value)
    if len(value) > limits.MAX_QUERY:
        raise Invalid(
            f"{field} has {len(value)} characters, the limit is {limits.MAX_QUERY}", field=field, value=value[:50]
        )
    return checks.any_text(field, value)


def sql(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"sql_query must not be empty or blank, got {quoted(value)}", field="sql_query", value=value)
    if len(value) > limits.MAX_SQL:
        raise Invalid(
            f"sql_query has {len(value)} characters, the limit is {limits.MAX_SQL}", field="sql_query", value=value[:50]
        )
    return checks.identifier("sql_query", value)


def feedback_text(field: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{field} must be a string, got {quoted(value)}", field=field, value=value)
    if len(value) > limits.MAX_FEEDBACK:
        raise Invalid(
            f"{field} has {len(value)} characters, the limit is {limits.MAX_FEEDBACK}", field=field, value=value[:50]
        )
    return checks.any_text(field, value)


def remarks(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Invalid(f"remarks must be a list of texts, got {quoted(value)}", field="remarks", value=value)
    return [checks.text("remarks", remark) for remark in value]


def whole_number(field: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Invalid(
            f"{field} must be a whole number from {low} to {high}, got {quoted(value)}", field=field, value=value
        )
    return value


def age(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limits.MAX_AGE_DAYS:
        raise Invalid(
            f"max_age_days must be a number from 0 to {limits.MAX_AGE_DAYS}, got {quoted(value)}",
            field="max_age_days",
            value=value,
        )
    return float(value)


def reuse(value: Any) -> Reuse:
    if value not in ("sql", "result"):
        raise Invalid(f"invalid reuse {quoted(value)}", field="reuse", value=value, remedy='Use "sql" or "result"')
    return cast(Reuse, value)
