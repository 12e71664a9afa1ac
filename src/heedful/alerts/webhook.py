"""Alerts as signed JSON, to any address."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from heedful.alerts import arguments
from heedful.alerts.posting import post
from heedful.alerts.signature import ALERT_ID, SIGNATURE, TIMESTAMP, key, signature


class Webhook:
    """POSTs the payload as JSON. The receiver checks it with `verify` and the same `secret`.

    Without a `name` it is known by its host and path: give it one if the path is a secret.
    """

    def __init__(self, url: str, *, secret: str | bytes, name: str | None = None, timeout: float = 10.0) -> None:
        parts = arguments.url(url)
        # What comes after the path may be a secret, and still tells two webhooks apart.
        rest = f"#{arguments.fingerprint(parts.query)}" if parts.query else ""
        self.name = arguments.name(name, f"webhook:{parts.netloc}{parts.path}{rest}")
        self._url = url
        self._secret = key(secret)
        self._timeout = arguments.timeout(timeout)

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
