"""What somebody was about to do, in words: its form has ids and marks that tell nobody anything."""

from __future__ import annotations

from collections.abc import Mapping

from heedful.errors import HeedfulError
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.context import PageContext
from heedful.interfaces.dashboard.registry import Action

FIX_LABELS = {
    "supersede": "correct a fact",
    "retract": "retract an opinion",
    "teach": "make a fact of an opinion",
    "block": "say that an execution is wrong",
    "promote": "make a golden example of an execution",
    "add_example": "add a golden example",
}

LABELS = {
    "said": "You say that it is",
    "policy": "Rule",
    "dataset": "Dataset",
    "scopes": "The key may",
    "signal_type": "Signal",
    "query": "Asked",
    "author": "By",
    "text": "New text",
    "sql_query": "SQL",
}
"""Fields that people understand, in words."""


def describe(action: Action, fields: Mapping[str, str]) -> str:
    """What it is: "correct a fact"."""
    return FIX_LABELS.get(fields.get("fix", ""), action.about) if action.name == "review_fix" else action.about


def label(field: str) -> str:
    return LABELS.get(field, field.replace("_", " ").capitalize())


def details(here: PageContext, action: Action, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """What it concerns, as it is now, and what was chosen; what is not there any more is left out."""
    found = [*_item(here, fields), *_fact(here, fields), *_execution(here, fields), *_key(here, fields)]
    chosen = [name for name in LABELS if name in fields and name not in action.editable]
    return [*found, *((label(name), fields[name]) for name in chosen if fields[name])]


def _item(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    if not fields.get("item_id"):
        return []
    try:
        item = here.heedful.review.get(fields["item_id"]).item
    except HeedfulError:
        return []
    return [("What was asked", item.question)] if item.question else [("What was said", item.comment or "nothing")]


def _fact(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    try:
        texts = views.texts(here.heedful, [fields["fact_id"]]) if fields.get("fact_id") else {}
    except HeedfulError:
        return []
    return [("The fact says now", text) for text in texts.values()]


def _execution(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    if not fields.get("execution_id"):
        return []
    try:
        return [("The SQL that ran", here.heedful.executions.get(fields["execution_id"]).sql_query)]
    except HeedfulError:
        return []


def _key(here: PageContext, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    if not fields.get("key_id") or not here.may("keys.list"):
        return []
    return [("The key", key.name) for key in here.heedful.keys.list() if key.key_id == fields["key_id"]]
