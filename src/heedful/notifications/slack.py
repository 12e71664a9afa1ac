"""Alerts as messages in Slack, or in anything that takes messages of its shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from heedful.notifications import channels, wording
from heedful.notifications.channels import post

MAX_COMMENT = 1_500
"""A block holds 3,000 characters, and some count twice."""

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Slack:
    """POSTs a readable message to an incoming webhook. Its address is a secret, and shown nowhere."""

    def __init__(self, url: str, *, name: str | None = None, timeout: float = 10.0) -> None:
        channels.check_url(url)
        self.name = channels.check_name(name, f"slack:{channels.fingerprint(url)}")
        self._url = url
        self._timeout = channels.check_timeout(timeout)

    def __repr__(self) -> str:
        return f"Slack({self.name!r})"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        post(self._url, orjson.dumps(message(payload)), {}, channel=self.name, timeout=self._timeout)


def message(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The message for an alert: a text for notifications, and blocks for the channel."""
    headline = escaped(wording.headline(payload), 1_000)
    comment = wording.comment(payload)
    facts = " · ".join(f"{label} {escaped(value, 300)}" for label, value in wording.details(payload))
    blocks = [_section(f"*{headline}*")]
    if comment:
        blocks.append(_section(escaped(comment, MAX_COMMENT)))
    if facts:
        blocks.append({"type": "context", "elements": [_text(facts)]})
    short = escaped(wording.one_line(comment, 200), 400)
    return {"text": f"{headline}: {short}" if short else headline, "blocks": blocks}


def escaped(text: str, limit: int) -> str:
    """The text as it has to be written for Slack, cut to a length but not within a character.

    >>> escaped("a < b & c", 100)
    'a &lt; b &amp; c'
    >>> escaped("<!channel>", 8)
    '&lt;!ch…'
    """
    parts = [_ENTITIES.get(character, character) for character in text]
    if sum(map(len, parts)) <= limit:
        return "".join(parts)
    count = length = 0
    while length + len(parts[count]) < limit:
        length += len(parts[count])
        count += 1
    return "".join(parts[:count]) + "…"


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _text(text)}


def _text(text: str) -> dict[str, Any]:
    # Verbatim, so that names in a comment call nobody.
    return {"type": "mrkdwn", "text": text, "verbatim": True}
