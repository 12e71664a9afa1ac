"""What is left of a person's name and words in what is stored as JSON. Pure."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from heedful.learning.trust import VISITOR
from heedful.model import Metadata
from heedful.storage.contributions import PROGRAM
from heedful.storage.executions.opinions import OUTLIVED

PERSON_KEYS = ("author", "user", "user_id")
"""Keys of metadata whose value names the person that a fact or a session belongs to."""

PLACEHOLDER = "[erased]"
"""What stands where there must be words: an entry has a question, which its ratings are about."""

_OWN_KEYS = ("retract/", "improve/", "undo/")
"""How idempotency keys begin that the engine makes of ids."""

_OF_AN_ALERT = ("id", "target_type", "target_id", "rating", "score", "author_standing", "created_at")


@dataclass(frozen=True, slots=True)
class Erased:
    """A person who is erased, and the name that is put in place of theirs."""

    name: str
    pseudonym: str

    def in_metadata(self, metadata: Mapping[str, Any]) -> Metadata:
        """The metadata of one of their sessions: no text in it has their name any more."""
        return {key: self._replaced(value) for key, value in metadata.items()}

    def is_in(self, text: str) -> bool:
        """Whether a text has their name in it, as a word."""
        return re.search(rf"(?<!\w){re.escape(self.name)}(?!\w)", text, re.IGNORECASE) is not None

    def is_in_key(self, key: str) -> bool:
        """Whether an idempotency key that a caller chose has their name in it."""
        return not key.startswith(_OWN_KEYS) and self.is_in(key)

    def in_opinion(self, kept: Mapping[str, Any]) -> Metadata:
        """An opinion of theirs that is kept to be given again, without its words."""
        return {
            **kept,
            "author": self.pseudonym,
            "comment": None if kept.get("target_type") != "session" else "",
            "extra": outlived(kept.get("extra")),
        }

    def in_alert(self, payload: Mapping[str, Any], opinions: Set[str]) -> Metadata | None:
        """The payload of an alert without what these opinions, which are theirs, say; None if it has nothing of it."""
        said = payload.get("feedback")
        if isinstance(said, dict) and (said.get("author") == self.name or said.get("id") in opinions):
            left = {key: said.get(key) for key in _OF_AN_ALERT}
            return {**payload, "feedback": {**left, "author": self.pseudonym, "comment": ""}}
        if payload.get("type") != "digest" or not mentions(payload, opinions):
            return None
        themes = [each for each in payload["themes"] if opinions.isdisjoint(each["feedback_ids"])]
        notes = [each for each in payload["notes"] if each["about"] != "theme"]
        # Its sentences were made of the comments: there is no telling which words are whose.
        return {**payload, "themes": themes, "notes": notes, "headline": PLACEHOLDER, "text": PLACEHOLDER}

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.in_metadata(value)
        if isinstance(value, list):
            return [self._replaced(each) for each in value]
        return self.pseudonym if isinstance(value, str) and self.is_in(value) else value


def pseudonym_for(name: str) -> str:
    """A random name that says as much of an author as the old one: whether it is a visitor's or a program's."""
    kind = next((prefix for prefix in (VISITOR, PROGRAM) if name.startswith(prefix)), "")
    return f"{kind}erased-{secrets.token_hex(8)}"


def outlived(extra: Mapping[str, Any] | None) -> Metadata:
    """Of what is kept beside an opinion, the SQL that it is about: an opinion that blocks SQL goes on blocking it."""
    return {key: value for key, value in (extra or {}).items() if key == OUTLIVED}


def mentions(value: Any, names: Set[str]) -> bool:
    """Whether one of these texts stands alone somewhere in what JSON can say."""
    if isinstance(value, str):
        return value in names
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(mentions(each, names) for each in inside)
