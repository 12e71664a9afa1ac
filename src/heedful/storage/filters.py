"""`where=`: conditions on metadata, as selections of facts or sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, Table, select

from heedful.errors import Invalid, quoted
from heedful.model import Metadata, limits
from heedful.storage.facts import tag
from heedful.storage.schema import fact_tags, facts, session_tags, sessions

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "only", "exists")

Selection = Select[int]


@dataclass(frozen=True, slots=True)
class Allowed:
    """The facts that a search may find: those in all selections and in `only`, except those in `without`."""

    where: Sequence[Selection] = ()
    only: Collection[int] | None = None
    without: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Tagged:
    """Things with metadata, inside a dataset or a project, and the table that their metadata are flattened to."""

    tags: Table
    item: Column[int]
    scope: Column[int]
    all_items: Column[int]
    all_scope: Column[int]

    def having(self, scope: int, key: str, *required: ColumnElement[bool]) -> Selection:
        return select(self.item).where(self.scope == scope, self.tags.c.key == key, *required)

    def without(self, scope: int, having: Selection) -> Selection:
        return select(self.all_items).where(self.all_scope == scope, self.all_items.not_in(having))


FACTS = Tagged(fact_tags, fact_tags.c.fact_seq, fact_tags.c.dataset_id, facts.c.seq, facts.c.dataset_id)
SESSIONS = Tagged(
    session_tags, session_tags.c.session_seq, session_tags.c.project_id, sessions.c.seq, sessions.c.project_id
)


def conditions(where: Metadata) -> Iterator[tuple[str, str, Any]]:
    """Each condition as (key, operator, value).

    `{"lang": "en"}` is equality, `{"lang": ["en", "de"]}` any of them, `{"year": {">=": 2020, "<": 2024}}`
    a comparison, `{"user": {"only": ["ada"]}}` nothing but these, which is also what has no such key. Dotted keys reach
    inside.
    """
    count = sum(len(condition) if isinstance(condition, dict) else 1 for condition in where.values())
    if count > limits.MAX_CONDITIONS:
        message = f"where has {count} conditions, the limit is {limits.MAX_CONDITIONS}"
        raise Invalid(message, field="where", value=count, remedy="Use fewer conditions; a list of values is one")
    for key, condition in where.items():
        if not isinstance(key, str) or not key.strip():
            raise Invalid(f"where has the key {quoted(key)}, which is not a name", field="where", value=key)
        comparisons = (
            condition if isinstance(condition, dict) else {"in" if isinstance(condition, list) else "=": condition}
        )
        if not comparisons:
            raise Invalid(f"where[{quoted(key)}] has no condition", field="where", value=condition)
        for operator, value in comparisons.items():
            _check(key, operator, value)
            yield key, operator, value


def selections(scope: int, where: Metadata, tagged: Tagged = FACTS) -> list[Selection]:
    """One selection of numbers for each condition; a match is in all of them."""
    return [_selection(tagged, scope, key, operator, value) for key, operator, value in conditions(where)]


def _check(key: str, operator: str, value: Any) -> None:
    if operator not in OPERATORS:
        message = f"where[{quoted(key)}] has the operator {quoted(operator)}"
        raise Invalid(message, field="where", value=operator, remedy=f"Use one of {', '.join(OPERATORS)}")
    if operator == "exists":
        return
    if operator in ("in", "only") and not isinstance(value, list):
        raise _bad(key, operator, value, "a list")
    if isinstance(value, list) and len(value) > limits.MAX_CHOICES:
        message = f"where[{quoted(key)}] lists {len(value)} values, the limit is {limits.MAX_CHOICES}"
        remedy = "Ask in several calls, or mark what belongs together with one value"
        raise Invalid(message, field="where", value=len(value), remedy=remedy)
    if operator in ("=", "!=", "in", "only"):
        for item in value if operator in ("in", "only") else [value]:
            if item is not None and not isinstance(item, str | int | float | bool):
                raise _bad(key, operator, item, "a text, a number, true, false or null")
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _bad(key, operator, value, "a number or a text")


def _selection(tagged: Tagged, scope: int, key: str, operator: str, value: Any) -> Selection:
    tags = tagged.tags.c
    if operator == "exists":
        having = tagged.having(scope, key)
        return having if value else tagged.without(scope, having)
    if operator == "in":
        return tagged.having(scope, key, tags.value.in_([tag(item) for item in value]))
    if operator == "only":
        return tagged.without(scope, tagged.having(scope, key, tags.value.not_in([tag(item) for item in value])))
    if operator in ("=", "!="):
        equal = tagged.having(scope, key, tags.value == tag(value))
        return equal if operator == "=" else tagged.without(scope, equal)
    compare = _COMPARISONS[operator]
    if isinstance(value, str):
        # Texts are stored with a leading quote, which distinguishes them from numbers.
        return tagged.having(scope, key, compare(tags.value, tag(value)), tags.value.like('"%'))
    return tagged.having(scope, key, compare(tags.number, float(value)))


_COMPARISONS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def _bad(key: str, operator: str, value: Any, expected: str) -> Invalid:
    message = f"where[{quoted(key)}] compares {operator} {quoted(value)}"
    return Invalid(message, field="where", value=value, remedy=f"Give {expected}")
