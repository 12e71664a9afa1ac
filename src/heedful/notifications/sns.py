"""Alerts through AWS SNS."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from typing import Any

import orjson

from heedful.errors import Invalid, Unavailable, quoted
from heedful.notifications import channels, wording

_ARN = re.compile(r"arn:[\w-]+:sns:(?P<region>[\w-]+):\d+:(?P<topic>[\w.-]+)")
TIMEOUT = 10.0


class Sns:
    """Publishes the payload as JSON, and in words to subscribers by e-mail; needs the extra `sns`.

    Credentials are found the way boto3 finds them, unless a `client` is given.
    """

    def __init__(self, topic_arn: str, *, name: str | None = None, client: Any = None) -> None:
        match = _ARN.fullmatch(topic_arn) if isinstance(topic_arn, str) else None
        if match is None:
            raise Invalid(
                f"topic_arn must look like arn:aws:sns:region:account:topic, got {quoted(topic_arn)}",
                field="topic_arn",
                value=topic_arn,
            )
        if client is None and importlib.util.find_spec("boto3") is None:
            raise Unavailable("boto3 is not installed", code="extra_missing", remedy='Run: pip install "heedful[sns]"')
        self.name = channels.check_name(name, f"sns:{topic_arn}")
        self._topic_arn = topic_arn
        self._region = match["region"]
        self._ordered = match["topic"].endswith(".fifo")
        self._injected_client = client
        self._made: tuple[int, Any] | None = None

    def __repr__(self) -> str:
        return f"Sns({self.name!r})"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        message: dict[str, Any] = {
            "TopicArn": self._topic_arn,
            "Subject": _subject(payload),
            "Message": orjson.dumps(
                {"default": orjson.dumps(dict(payload)).decode(), "email": wording.text(payload)}
            ).decode(),
            "MessageStructure": "json",
            "MessageAttributes": {"alert_id": {"DataType": "String", "StringValue": alert_id}},
        }
        if self._ordered:
            message |= {"MessageGroupId": "heedful", "MessageDeduplicationId": alert_id}
        try:
            self._client().publish(**message)
        except Exception as error:  # A client that was given may raise anything, and boto3's errors may be elsewhere.
            raise Unavailable(f"{self.name} rejected the message ({_reason(error)})") from error

    def _client(self) -> Any:
        if self._injected_client is not None:
            return self._injected_client
        # A forked child must not use its parent's connections.
        if self._made is None or self._made[0] != os.getpid():
            self._made = (os.getpid(), self._make())
        return self._made[1]

    def _make(self) -> Any:
        import boto3
        from botocore.config import Config

        # One attempt: the outbox tries again.
        config = Config(connect_timeout=TIMEOUT, read_timeout=TIMEOUT, retries={"total_max_attempts": 1})
        return boto3.session.Session().client("sns", region_name=self._region, config=config)


def _subject(payload: Mapping[str, Any]) -> str:
    """The headline as SNS takes it: ASCII, and fewer than 100 characters."""
    return wording.headline(payload).encode("ascii", "replace").decode()[:99]


def _reason(error: Exception) -> str:
    answer = getattr(error, "response", None)
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
    return type(error).__name__ if code is None else f"{type(error).__name__}: {code}"
