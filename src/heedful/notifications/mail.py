"""Alerts by e-mail."""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr
from typing import Any

from heedful.errors import Invalid, Unavailable, quoted
from heedful.notifications import channels, wording

logger = logging.getLogger("heedful.notifications")


class Email:
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
            raise Invalid(f"host must be the name of a mail server, got {quoted(host)}", field="host", value=host)
        if (username is None) != (password is None):
            raise Invalid("username and password go together", field="username", remedy="Pass both, or none")
        self._host = host
        self._port = port if port is not None else 587 if starttls else 25
        self._sender = _address("sender", sender)
        self._recipients = _addresses(recipients)
        self._login = None if username is None or password is None else (username, password)
        self._starttls = starttls
        self._timeout = channels.check_timeout(timeout)
        self.name = channels.check_name(name, "email:" + ",".join(each.addr_spec for each in self._recipients))

    def __repr__(self) -> str:
        return f"Email({self.name!r})"

    def send(self, alert_id: str, payload: Mapping[str, Any]) -> None:
        message = self.message(alert_id, payload)
        try:
            refused = self._deliver(message)
        except (smtplib.SMTPException, OSError) as error:
            raise Unavailable(f"{self._host} rejected the mail ({_reason(error)})") from error
        if refused:
            logger.warning("%s: %d of %d recipients were refused", self.name, len(refused), len(self._recipients))

    def message(self, alert_id: str, payload: Mapping[str, Any]) -> EmailMessage:
        """The mail for an alert. Its Message-ID is the same whenever it is sent again."""
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = self._recipients
        # Text of this look would be decoded, and could hold a line break again.
        message["Subject"] = wording.headline(payload).replace("=?", "= ?")
        message["Message-ID"] = f"<{alert_id}@{self._sender.domain}>"
        message["Date"] = formatdate(usegmt=True)
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(wording.text(payload))
        page = wording.html(payload)
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


def _addresses(values: Sequence[str]) -> tuple[Address, ...]:
    addresses = [values] if isinstance(values, str) else list(values)
    if not addresses:
        raise Invalid("recipients must name at least one address", field="recipients", value=values)
    return tuple(_address("recipients", each) for each in addresses)


def _address(field: str, value: str) -> Address:
    problem = Invalid(f"{field} must be a mail address, got {quoted(value)}", field=field, value=value)
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


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    if isinstance(error, smtplib.SMTPAuthenticationError):
        # Servers have been seen to repeat what they were sent.
        return f"{kind}: {error.smtp_code}"
    if isinstance(error, smtplib.SMTPResponseException):
        reply = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return f"{kind}: {error.smtp_code} {wording.one_line(reply, 100)}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"{kind}: {len(error.recipients)}"
    return f"{kind}: {wording.one_line(str(error), 100)}"
