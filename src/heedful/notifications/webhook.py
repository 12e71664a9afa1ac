"""Alerts as signed JSON, to any address; how to sign them and to check the signature."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from typing import Any

import orjson

from heedful.errors import Forbidden, Invalid
from heedful.notifications import channels
from heedful.notifications.channels import post


class Webhook:
    """POSTs the payload as JSON. The receiver checks it with `verify` and the same `secret`.

    Without a `name` it is known by its host and path: give it one if the path is a secret.
    """

    def __init__(self, url: str, *, secret: str | bytes, name: str | None = None, timeout: float = 10.0) -> None:
        parts = channels.check_url(url)
        # What comes after the path may be a secret, and still distinguishes two webhooks.
        rest = f"#{channels.fingerprint(parts.query)}" if parts.query else ""
        self.name = channels.check_name(name, f"webhook:{parts.netloc}{parts.path}{rest}")
        self._url = url
        self._secret = key(secret)
        self._timeout = channels.check_timeout(timeout)

    def __repr__(self) -> str:
        return f"Webhook({self.name!r})"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        body = orjson.dumps(dict(payload))
        timestamp = str(int(time.time()))
        headers = {
            ALERT_ID: alert_id,
            TIMESTAMP: timestamp,
            SIGNATURE: signature(self._secret, timestamp, body),
        }
        post(self._url, body, headers, channel=self.name, timeout=self._timeout)


ALERT_ID = "X-Heedful-Alert-Id"
TIMESTAMP = "X-Heedful-Timestamp"
SIGNATURE = "X-Heedful-Signature"

_SECONDS = re.compile("[0-9]{1,12}")


def key(secret: str | bytes) -> bytes:
    """The secret as bytes."""
    found = secret.encode() if isinstance(secret, str) else secret
    if not isinstance(found, bytes) or not found.strip():
        raise Invalid("secret must be a non-empty string or bytes", field="secret")
    return found


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """What `X-Heedful-Signature` must be for this body."""
    return "v1=" + hmac.new(secret, timestamp.encode(errors="replace") + b"." + body, hashlib.sha256).hexdigest()


def verify(
    secret: str | bytes,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> dict[str, Any]:
    """The payload of an alert that a webhook received; raises `Forbidden` if it is not genuine, or too old.

    `body` is the request's body as it came. The header `X-Heedful-Alert-Id` is the same whenever an alert is sent
    again, but it is not signed: to drop duplicates safely, use the payload's `feedback.id`. `now` is in seconds
    since 1970, by default the system's clock.
    """
    lowercase = {name.lower(): value for name, value in headers.items()}
    timestamp = lowercase.get(TIMESTAMP.lower(), "")
    expected = signature(key(secret), timestamp, body).encode()
    found = lowercase.get(SIGNATURE.lower(), "").encode(errors="replace")
    if not hmac.compare_digest(expected, found) or not _SECONDS.fullmatch(timestamp):
        raise Forbidden(
            "the alert's signature is missing or wrong",
            field=SIGNATURE,
            remedy="Compare the secrets, and pass the body as it arrived, byte for byte",
        )
    age = (time.time() if now is None else now) - int(timestamp)
    if abs(age) > tolerance_seconds:
        raise Forbidden(
            f"the alert's timestamp is {abs(age):.0f} s off, the limit is {tolerance_seconds} s",
            field=TIMESTAMP,
            value=timestamp,
            remedy="Set both clocks right, or refuse it as a replay",
        )
    payload: dict[str, Any] = orjson.loads(body)
    return payload
