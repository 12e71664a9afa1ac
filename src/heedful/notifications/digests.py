"""The channels that digests go to, as settings name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from heedful.errors import Invalid
from heedful.notifications import channels
from heedful.notifications.channels import Channel, post
from heedful.notifications.mail import Email
from heedful.notifications.webhook import ALERT_ID, Webhook

BY_MAIL, BY_WEBHOOK = "digest by e-mail", "digest by webhook"
TIMEOUT = 10.0
REMEDY = "Use smtp://user:password@host:587?from=heedful@example.com&to=team@example.com"


class UnsignedWebhook:
    """POSTs the payload as JSON, to a receiver that takes it from anybody."""

    name = BY_WEBHOOK

    def __init__(self, url: str) -> None:
        channels.check_url(url)
        self._url = url

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        post(self._url, orjson.dumps(dict(payload)), {ALERT_ID: alert_id}, channel=self.name, timeout=TIMEOUT)


def digest_channels(email: str | None, webhook: str | None, secret: str | None) -> tuple[Channel, ...]:
    """A mail server with its recipients, an address that takes JSON, both or none.

    They have names of their own, so that what is on its way goes to the new address when a setting changes.
    """
    found: list[Channel] = [] if email is None else [_email(email)]
    if webhook is not None:
        try:
            found.append(
                UnsignedWebhook(webhook) if secret is None else Webhook(webhook, secret=secret, name=BY_WEBHOOK)
            )
        except Invalid as error:
            raise Invalid(error.message, field="digest_webhook", remedy=error.remedy) from None
    return tuple(found)


def _email(url: str) -> Email:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Invalid("digest_email is not an address", field="digest_email", remedy=REMEDY) from None
    # A plus is part of many mail addresses, and here it is no space.
    options = parse_qs(parts.query.replace("+", "%2B"), keep_blank_values=True)
    unknown = options.keys() - {"from", "to", "starttls"}
    if parts.scheme != "smtp" or not parts.hostname or unknown or len(options.get("from", [])) != 1:
        raise Invalid("digest_email must name a server, a sender and recipients", field="digest_email", remedy=REMEDY)
    recipients = [each.strip() for listed in options.get("to", []) for each in listed.split(",") if each.strip()]
    try:
        return Email(
            parts.hostname,
            sender=options["from"][0],
            recipients=recipients,
            port=port,
            username=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
            starttls=options.get("starttls", ["yes"])[-1] != "no",
            name=BY_MAIL,
        )
    except Invalid as error:
        raise Invalid(error.message, field="digest_email", remedy=error.remedy or REMEDY) from None
