"""The channels that alerts and digests go to (webhooks, Slack, SNS, e-mail), and alerts in words for people."""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import logging
import math
import os
import smtplib
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr
from html import escape
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import orjson

from heedful.errors import Forbidden, Invalid, Unavailable, extra_missing, quoted
from heedful.text.regex import regex


class Channel(Protocol):
    """A place to send alerts to. `name` is kept with each alert, so that a later process can deliver it."""

    @property
    def name(self) -> str: ...

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        """Delivers one alert, or raises. It may be called again with the same `alert_id`.

        Of a `HeedfulError` the message is kept with the alert and logged. Of any other error it is only the kind:
        what libraries say may hold an address or a key that nobody should read.
        """


MAX_NAME = 200
MAX_TIMEOUT = 30.0  # So that an attempt is over before its alert may be claimed by somebody else.


def check_name(name: str | None, default: str) -> str:
    """The name of a channel: the one that was given, or the default, shortened if need be."""
    if name is None:
        return default if len(default) <= MAX_NAME else f"{default[: MAX_NAME - 9]}#{fingerprint(default)}"
    return valid_name(name)


def valid_name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        message = f"a channel's name must be one line of 1 to {MAX_NAME} characters, got {quoted(value)}"
        raise Invalid(message, field="name", value=value)
    return value


def check_url(value: Any) -> SplitResult:
    """The parts of an address for HTTP."""
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("url must be an address that starts with https:// or http://", field="url")
    if "@" in parts.netloc:
        remedy = "Leave out what is before the @"
        raise Invalid("url must not contain a user name or password", field="url", remedy=remedy)
    return parts


def check_timeout(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid.got("timeout", "must be a number of seconds", value)
    if not 0 < value <= MAX_TIMEOUT:
        raise Invalid(f"timeout must be above 0 and up to {MAX_TIMEOUT:g} s, got {value}", field="timeout", value=value)
    return float(value)


def fingerprint(text: str) -> str:
    """Eight characters that identify a text without revealing it."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _split(value: Any) -> SplitResult | None:
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return None
    try:
        parts = urlsplit(value)
        # Reading the port is what checks it.
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def post(url: str, body: bytes, headers: Mapping[str, str], *, channel: str, timeout: float) -> None:
    """Sends JSON; raises `Unavailable`, which doesn't reveal the address, unless the answer is a success."""
    # Loading it takes longer than opening a store.
    import httpx

    request = httpx.Request(
        "POST",
        url,
        headers={"Content-Type": "application/json", "User-Agent": "heedful", **headers},
        content=body,
        extensions={"timeout": httpx.Timeout(timeout).as_dict()},
    )
    try:
        # Not through a client, which would write the address to its log.
        with httpx.HTTPTransport() as transport:
            response = transport.handle_request(request)
            response.close()
    except httpx.TransportError as error:
        raise Unavailable(f"{channel} can't be reached ({type(error).__name__}: {error})") from error
    if not response.is_success:
        raise Unavailable(f"{channel} answered with HTTP {response.status_code}")


_BREAKS = regex(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def one_line(text: str, limit: int) -> str:
    """The text without line breaks and control characters, cut to a length."""
    return cut(_BREAKS.sub(" ", text).strip(), limit)


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_digest(payload: Mapping[str, Any]) -> bool:
    """Whether it sums up what people said, and is not about one opinion."""
    return payload.get("type") == "digest"


def alert_headline(payload: Mapping[str, Any]) -> str:
    """The event on one line.

    >>> alert_headline({"session_id": "s1", "feedback": {"target_type": "entry", "rating": "down", "score": 2}})
    'Feedback "down" (2 of 5) on an answer in session s1'
    """
    if is_digest(payload):
        return one_line(str(payload.get("headline")), 150)
    feedback = payload.get("feedback") or {}
    score = feedback.get("score")
    rating = f'"{feedback.get("rating") or "neutral"}"' + ("" if score is None else f" ({score} of 5)")
    where = "on an answer in" if feedback.get("target_type") == "entry" else "on"
    return one_line(f"Feedback {rating} {where} session {payload.get('session_id')}", 150)


def alert_details(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The rest of it but the comment, as labels and values of one line each."""
    feedback = payload.get("feedback") or {}
    about_answer = feedback.get("target_type") == "entry"
    details = {
        "project": payload.get("project"),
        "session": payload.get("session_id"),
        "answer": feedback.get("target_id") if about_answer else None,
        "author": feedback.get("author"),
        "at": feedback.get("created_at"),
        "feedback": feedback.get("id"),
    }
    return [(label, one_line(str(value), 200)) for label, value in details.items() if value is not None]


def alert_comment(payload: Mapping[str, Any]) -> str:
    """The comment of an opinion, or the text of a digest; empty if there is none."""
    if is_digest(payload):
        return str(payload.get("text")).strip()
    text = (payload.get("feedback") or {}).get("comment")
    return "" if text is None else str(text).strip()


def alert_text(payload: Mapping[str, Any]) -> str:
    """All of it: what happened, the comment, and where it was."""
    if is_digest(payload):
        return alert_comment(payload) + "\n"
    facts = "\n".join(f"{label}: {value}" for label, value in alert_details(payload))
    return "\n\n".join(part for part in (alert_headline(payload), alert_comment(payload), facts) if part) + "\n"


def alert_page(payload: Mapping[str, Any]) -> str | None:
    """A digest as a simple page; None for other alerts, which are short enough."""
    if not is_digest(payload):
        return None
    first, *rest = alert_comment(payload).split("\n\n")
    parts = [f"<h2>{escape(first)}</h2>"]
    for part in rest:
        lines = part.split("\n")
        points = [line[2:] for line in lines if line.startswith("- ")]
        plain = "<br>".join(escape(line) for line in lines if not line.startswith("- "))
        listed = "".join(f"<li>{escape(point)}</li>" for point in points)
        parts.append(f"<p>{plain}</p>" + (f"<ul>{listed}</ul>" if points else ""))
    return f"<!doctype html><html><body>{''.join(parts)}</body></html>\n"


class _Named:
    """Shows its name and nothing else: an address or a key may be a secret."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Webhook(_Named):
    """POSTs the payload as JSON. The receiver checks it with `verify` and the same `secret`.

    Without a `name` it is known by its host and path: give it one if the path is a secret.
    """

    def __init__(self, url: str, *, secret: str | bytes, name: str | None = None, timeout: float = 10.0) -> None:
        parts = check_url(url)
        # What comes after the path may be a secret, and still distinguishes two webhooks.
        rest = f"#{fingerprint(parts.query)}" if parts.query else ""
        self.name = check_name(name, f"webhook:{parts.netloc}{parts.path}{rest}")
        self._url = url
        self._secret = _secret_bytes(secret)
        self._timeout = check_timeout(timeout)

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        body = orjson.dumps(dict(payload))
        timestamp = str(int(time.time()))
        headers = {ALERT_ID: alert_id, TIMESTAMP: timestamp, SIGNATURE: signature(self._secret, timestamp, body)}
        post(self._url, body, headers, channel=self.name, timeout=self._timeout)


ALERT_ID = "X-Heedful-Alert-Id"
TIMESTAMP = "X-Heedful-Timestamp"
SIGNATURE = "X-Heedful-Signature"

_SECONDS = regex("[0-9]{1,12}")


def _secret_bytes(secret: str | bytes) -> bytes:
    encoded = secret.encode() if isinstance(secret, str) else secret
    if not isinstance(encoded, bytes) or not encoded.strip():
        raise Invalid("secret must be a non-empty string or bytes", field="secret")
    return encoded


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """The `X-Heedful-Signature` for this body."""
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
    expected = signature(_secret_bytes(secret), timestamp, body).encode()
    found = lowercase.get(SIGNATURE.lower(), "").encode(errors="replace")
    if not hmac.compare_digest(expected, found) or not _SECONDS.fullmatch(timestamp):
        remedy = "Compare the secrets, and pass the body as it arrived, byte for byte"
        raise Forbidden("the alert's signature is missing or wrong", field=SIGNATURE, remedy=remedy)
    age = (time.time() if now is None else now) - int(timestamp)
    if abs(age) > tolerance_seconds:
        message = f"the alert's timestamp is {abs(age):.0f} s off, the limit is {tolerance_seconds} s"
        remedy = "Set both clocks right, or refuse it as a replay"
        raise Forbidden(message, field=TIMESTAMP, value=timestamp, remedy=remedy)
    payload: dict[str, Any] = orjson.loads(body)
    return payload


MAX_COMMENT = 1_500  # A block holds 3,000 characters, and some count twice.


class Slack(_Named):
    """POSTs a readable message to an incoming webhook. Its address is a secret, and shown nowhere."""

    def __init__(self, url: str, *, name: str | None = None, timeout: float = 10.0) -> None:
        check_url(url)
        self.name = check_name(name, f"slack:{fingerprint(url)}")
        self._url = url
        self._timeout = check_timeout(timeout)

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        post(self._url, orjson.dumps(slack_message(payload)), {}, channel=self.name, timeout=self._timeout)


def slack_message(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The message for an alert: a text for notifications, and blocks for the channel."""
    headline = escaped(alert_headline(payload), 1_000)
    comment = alert_comment(payload)
    facts = " · ".join(f"{label} {escaped(value, 300)}" for label, value in alert_details(payload))
    sections = [f"*{headline}*", *([escaped(comment, MAX_COMMENT)] if comment else [])]
    blocks: list[dict[str, Any]] = [{"type": "section", "text": _text(section)} for section in sections]
    if facts:
        blocks.append({"type": "context", "elements": [_text(facts)]})
    short = escaped(one_line(comment, 200), 400)
    return {"text": f"{headline}: {short}" if short else headline, "blocks": blocks}


def escaped(text: str, limit: int) -> str:
    """The text as it has to be written for Slack, cut to a length but not within a character.

    >>> escaped("a < b & c", 100)
    'a &lt; b &amp; c'
    >>> escaped("<!channel>", 8)
    '&lt;!ch…'
    """
    parts = [escape(character, quote=False) for character in text]
    if sum(map(len, parts)) <= limit:
        return "".join(parts)
    count = length = 0
    while length + len(parts[count]) < limit:
        length += len(parts[count])
        count += 1
    return "".join(parts[:count]) + "…"


def _text(text: str) -> dict[str, Any]:
    # Verbatim, so that names in a comment call nobody.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


_ARN = regex(r"arn:[\w-]+:sns:(?P<region>[\w-]+):\d+:(?P<topic>[\w.-]+)")
TIMEOUT = 10.0


class Sns(_Named):
    """Publishes the payload as JSON, and in words to subscribers by e-mail; needs the extra `sns`.

    Credentials are found the way boto3 finds them, unless a `client` is given.
    """

    def __init__(self, topic_arn: str, *, name: str | None = None, client: Any = None) -> None:
        match = _ARN.fullmatch(topic_arn) if isinstance(topic_arn, str) else None
        if match is None:
            raise Invalid.got("topic_arn", "must look like arn:aws:sns:region:account:topic", topic_arn)
        if client is None and importlib.util.find_spec("boto3") is None:
            raise extra_missing("sns", "boto3 is not installed")
        self.name = check_name(name, f"sns:{topic_arn}")
        self._topic_arn = topic_arn
        self._region = match["region"]
        self._ordered = match["topic"].endswith(".fifo")
        self._injected_client = client
        self._made: tuple[int, Any] | None = None

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        texts = {"default": orjson.dumps(dict(payload)).decode(), "email": alert_text(payload)}
        message: dict[str, Any] = {
            "TopicArn": self._topic_arn,
            # SNS takes ASCII, and fewer than 100 characters.
            "Subject": alert_headline(payload).encode("ascii", "replace").decode()[:99],
            "Message": orjson.dumps(texts).decode(),
            "MessageStructure": "json",
            "MessageAttributes": {"alert_id": {"DataType": "String", "StringValue": alert_id}},
        }
        if self._ordered:
            message |= {"MessageGroupId": "heedful", "MessageDeduplicationId": alert_id}
        try:
            self._client().publish(**message)
        except Exception as error:  # A client that was given may raise anything, and boto3's errors may be elsewhere.
            raise Unavailable(f"{self.name} rejected the message ({_sns_problem(error)})") from error

    def _client(self) -> Any:
        if self._injected_client is not None:
            return self._injected_client
        # A forked child must not use its parent's connections.
        if self._made is None or self._made[0] != os.getpid():
            import boto3
            from botocore.config import Config

            # One attempt: the outbox tries again.
            config = Config(connect_timeout=TIMEOUT, read_timeout=TIMEOUT, retries={"total_max_attempts": 1})
            self._made = (os.getpid(), boto3.session.Session().client("sns", region_name=self._region, config=config))
        return self._made[1]


def _sns_problem(error: Exception) -> str:
    answer = getattr(error, "response", None)
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
    return type(error).__name__ if code is None else f"{type(error).__name__}: {code}"


logger = logging.getLogger("heedful.notifications")


class Email(_Named):
    """Sends a plain text through an SMTP server; `port` is 587 with STARTTLS and 25 without.

    An alert counts as delivered when the server took it for at least one recipient: sending it again would reach
    only those who have it.
    """

    def __init__(
        self,
        host: str,
        *,
        sender: str,
        recipients: Sequence[str],
        port: int | None = None,
        username: str | None = None,
        password: str | None = None,
        starttls: bool = True,
        name: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        if not isinstance(host, str) or not host.strip() or not host.isprintable():
            raise Invalid.got("host", "must be the name of a mail server", host)
        if (username is None) != (password is None):
            raise Invalid("username and password go together", field="username", remedy="Pass both, or none")
        self._host = host
        self._port = port if port is not None else 587 if starttls else 25
        self._sender = _address("sender", sender)
        addresses = [recipients] if isinstance(recipients, str) else list(recipients)
        if not addresses:
            raise Invalid("recipients must name at least one address", field="recipients", value=recipients)
        self._recipients = tuple(_address("recipients", address) for address in addresses)
        self._login = None if username is None or password is None else (username, password)
        self._starttls = starttls
        self._timeout = check_timeout(timeout)
        self.name = check_name(name, "email:" + ",".join(recipient.addr_spec for recipient in self._recipients))

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        message = self.message(alert_id, payload)
        try:
            refused = self._deliver(message)
        except (smtplib.SMTPException, OSError) as error:
            raise Unavailable(f"{self._host} rejected the mail ({_smtp_problem(error)})") from error
        if refused:
            logger.warning("%s: %d of %d recipients were refused", self.name, len(refused), len(self._recipients))

    def message(self, alert_id: str, payload: Mapping[str, Any]) -> EmailMessage:
        """The mail for an alert. Its Message-ID is the same whenever it is sent again."""
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = self._recipients
        # Text of this look would be decoded, and could hold a line break again.
        message["Subject"] = alert_headline(payload).replace("=?", "= ?")
        message["Message-ID"] = f"<{alert_id}@{self._sender.domain}>"
        message["Date"] = formatdate(usegmt=True)
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(alert_text(payload))
        page = alert_page(payload)
        if page is not None:
            message.add_alternative(page, subtype="html")
        return message

    def _deliver(self, message: EmailMessage) -> Mapping[str, Any]:
        smtp = smtplib.SMTP(self._host, self._port, timeout=self._timeout)
        try:
            if self._starttls:
                smtp.starttls(context=ssl.create_default_context())
            if self._login is not None:
                smtp.login(*self._login)
            refused = smtp.send_message(message)
            # The mail was taken; a server that fails to say goodbye must not have it sent again.
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
            return refused
        finally:
            smtp.close()


def _address(field: str, value: str) -> Address:
    problem = Invalid.got(field, "must be a mail address", value)
    if not isinstance(value, str) or not value.isprintable():
        raise problem
    display_name, plain = parseaddr(value)
    try:
        address = Address(display_name=display_name, addr_spec=plain)
    except (ValueError, IndexError, MessageError) as error:
        raise problem from error
    if not address.username or not address.domain:
        raise problem
    return address


def _smtp_problem(error: Exception) -> str:
    kind = type(error).__name__
    if isinstance(error, smtplib.SMTPAuthenticationError):
        # Servers have been seen to repeat what they were sent.
        return f"{kind}: {error.smtp_code}"
    if isinstance(error, smtplib.SMTPResponseException):
        reply = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return f"{kind}: {error.smtp_code} {one_line(reply, 100)}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"{kind}: {len(error.recipients)}"
    return f"{kind}: {one_line(str(error), 100)}"


BY_MAIL, BY_WEBHOOK = "digest by e-mail", "digest by webhook"
REMEDY = "Use smtp://user:password@host:587?from=heedful@example.com&to=team@example.com"


class UnsignedWebhook:
    """POSTs the payload as JSON, to a receiver that takes it from anybody."""

    name = BY_WEBHOOK

    def __init__(self, url: str) -> None:
        check_url(url)
        self._url = url

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        post(self._url, orjson.dumps(dict(payload)), {ALERT_ID: alert_id}, channel=self.name, timeout=TIMEOUT)


def digest_channels(email: str | None, webhook: str | None, secret: str | None) -> tuple[Channel, ...]:
    """A mail server with its recipients, an address that takes JSON, both or none.

    They have names of their own, so that what is on its way goes to the new address when a setting changes.
    """
    channels: list[Channel] = [] if email is None else [_email(email)]
    if webhook is not None:
        try:
            signed = None if secret is None else Webhook(webhook, secret=secret, name=BY_WEBHOOK)
            channels.append(signed or UnsignedWebhook(webhook))
        except Invalid as error:
            raise Invalid(error.message, field="digest_webhook", remedy=error.remedy) from None
    return tuple(channels)


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
    recipients = [name.strip() for listed in options.get("to", []) for name in listed.split(",") if name.strip()]
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
