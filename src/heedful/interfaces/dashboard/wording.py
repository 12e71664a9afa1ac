"""What is wrong, in words for somebody who looks at a page: what programs would do about it is left out."""

from __future__ import annotations

import re

from heedful.errors import HeedfulError, NotFound

FOR_PROGRAMS = re.compile(r"\w\(|\bheedful [a-z]+|\bpass\b|\w=…|next_cursor|if_match", re.IGNORECASE)
"""Calls, commands and parameters."""

LISTS = {
    "fact_id": "facts",
    "session_id": "sessions",
    "item_id": "review",
    "execution_id": "executions",
}
"""The page that lists what a field names."""

CURSOR = "This part of the list can't be found: its address was changed or cut off"


def problem_text(error: HeedfulError) -> str:
    """What is wrong."""
    said = CURSOR if error.field == "cursor" else error.message
    # It begins with somebody's name.
    if error.code == "closed_already":
        return said
    return said[:1].upper() + said[1:]


def remedy_text(error: HeedfulError) -> str | None:
    """What a person can do about it here."""
    if isinstance(error, NotFound) and error.field in LISTS:
        return "It may have been deleted"
    if error.remedy is None or FOR_PROGRAMS.search(error.remedy):
        return None
    return error.remedy


def full_text(error: HeedfulError) -> str:
    """Both, as sentences."""
    return ". ".join(each.rstrip(".") for each in (problem_text(error), remedy_text(error)) if each) + "."


def list_page_for(error: HeedfulError) -> str | None:
    """The page that lists what was not found."""
    return LISTS.get(error.field or "") if isinstance(error, NotFound) else None
