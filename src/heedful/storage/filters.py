"""`where=`: conditions on metadata, as selections of facts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, select

from heedful.errors import Invalid
from heedful.model import Metadata
from heedful.storage.facts import tag
from heedful.storage.schema import fact_tags, facts

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "exists")

Selection = Select[int]


def selections(dataset: int, where: Metadata) -> list[Selection]:
    """One selection of fact numbers for each condition; a fact must be in all of them.

    `{"lang": "en"}` is equality, `{"lang": ["en", "de"]}` any of them, `{"year": {">=": 2020, "<": 2024}}`
    a comparison. Dotted keys reach inside.
    """
    found: list[Selection] = []
    for key, wanted in where.items():
        if not isinstance(key, str) or not key.strip():
            raise Invalid(f"where has the key {key!r}, which is not a name", field="where", value=key)
        conditions = wanted if isinstance(wanted, dict) else {"in" if isinstance(wanted, list) else "=": wanted}
        if not conditions:
            raise Invalid(f"where[{key!r}] has no condition", field="where", value=wanted)
        found += [_one(dataset, key, operator, value) for operator, value in conditions.items()]
    return found


def _one(dataset: int, key: str, operator: str, value: Any) -> Selection:
    if operator not in OPERATORS:
        raise Invalid(
            f"where[{key!r}] has the operator {operator!r}",
            field="where",
            value=operator,
            remedy=f"Use one of {', '.join(OPERATORS)}",
        )
    if operator == "exists":
        return _having(dataset, key) if value else _lacking(dataset, _having(dataset, key))
    if operator == "in":
        if not isinstance(value, list):
            raise _bad(key, operator, value, "a list")
        return _having(dataset, key, fact_tags.c.value.in_([_scalar(key, operator, item) for item in value]))
    if operator in ("=", "!="):
        equal = _having(dataset, key, fact_tags.c.value == _scalar(key, operator, value))
        return equal if operator == "=" else _lacking(dataset, equal)
    if isinstance(value, str):
        # A text is kept behind a quote, which keeps it apart from numbers.
        is_text = fact_tags.c.value.like('"%')
        return _having(dataset, key, _compare(fact_tags.c.value, operator, tag(value)), is_text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(key, operator, value, "a number or a text")
    return _having(dataset, key, _compare(fact_tags.c.number, operator, float(value)))


def _compare(column: ColumnElement[Any], operator: str, limit: Any) -> ColumnElement[bool]:
    compared: dict[str, ColumnElement[bool]] = {
        "<": column < limit,
        "<=": column <= limit,
        ">": column > limit,
        ">=": column >= limit,
    }
    return compared[operator]


def _having(dataset: int, key: str, *conditions: ColumnElement[bool]) -> Selection:
    return select(fact_tags.c.fact_seq).where(fact_tags.c.dataset_id == dataset, fact_tags.c.key == key, *conditions)


def _lacking(dataset: int, having: Selection) -> Selection:
    return select(facts.c.seq).where(facts.c.dataset_id == dataset, facts.c.seq.not_in(having))


def _scalar(key: str, operator: str, value: Any) -> str:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise _bad(key, operator, value, "a text, a number, true, false or null")
    return tag(value)


def _bad(key: str, operator: str, value: Any, wanted: str) -> Invalid:
    return Invalid(f"where[{key!r}] compares {operator} {value!r}", field="where", value=value, remedy=f"Give {wanted}")
