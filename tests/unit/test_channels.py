"""The channels, against servers on this machine that speak HTTP, SMTP and enough of SNS."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from hypothesis import given
from hypothesis import strategies as st

from heedful import Forbidden, Invalid, Unavailable
from heedful.notifications import Channel, Email, Slack, Sns, Webhook, verify
from heedful.notifications.channels import alert_headline, escaped, slack_message

SECRET = "a very secret secret"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:alerts"

# For 127.0.0.1 in these tests alone.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUcjVJlGvWiCAabWBiXHYJvBKJJ6kwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTA1NDIxN1oYDzIxMjYxMDIy
MDU0MjE3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQFruPicm88fJUDfJqf2Z64SN9jSsQ7v3DdnKbZlMe/2z8wWi/Ccww8
+jAPaEHKbW7sLp2nthYalOqVdevpoItXo28wbTAdBgNVHQ4EFgQUWINxUyOBhPqK
Y5m1V1OYUlCOLnUwHwYDVR0jBBgwFoAUWINxUyOBhPqKY5m1V1OYUlCOLnUwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgALNgK/GX1rTdBG5nNcilW7CQ1ozY7TZtMbUsxgfNgtgCIDZ4
o5n76Pw0EZ25VTtubLcdgluI0jPXrAXcg+TwAg6j
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZm09UtVG9V6r2sLh
kasq8sk7pRUUvILaBHz5/nZMkeGhRANCAAQFruPicm88fJUDfJqf2Z64SN9jSsQ7
v3DdnKbZlMe/2z8wWi/Ccww8+jAPaEHKbW7sLp2nthYalOqVdevpoItX
-----END PRIVATE KEY-----
"""

PUBLISHED = b"""<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult>
<MessageId>567910cd-659e-55d4-8ccb-5aaf14679dc0</MessageId></PublishResult>
<ResponseMetadata><RequestId>d74b8436-ae13-5ab4-a9ff-ce54dfea72a0</RequestId></ResponseMetadata></PublishResponse>"""

DENIED = b"""<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type>
<Code>AuthorizationError</Code><Message>key AKIA123 may not</Message></Error>
<RequestId>r1</RequestId></ErrorResponse>"""


def alert(session_id: str = "s1", **feedback: Any) -> dict[str, Any]:
    said = {
        "id": "f1",
        "target_type": "session",
        "target_id": session_id,
        "rating": "down",
        "score": None,
        "comment": "Too slow",
        "author": "ann",
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    return {"type": "feedback", "project": "default", "session_id": session_id, "feedback": {**said, **feedback}}


class Received:
    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body


class Server:
    """Keeps what it was sent, and answers with `answers` in turn, then with 200."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.hanging = False
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.received.append(Received(self.path, dict(self.headers), body))
                if outer.hanging:
                    outer.released.wait(10)
                    return
                code, headers, content = outer.answers.pop(0) if outer.answers else (200, {}, b"ok")
                self.send_response(code)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


def posting(kind: str, url: str, **options: Any) -> Webhook | Slack:
    return Webhook(url, secret=SECRET, **options) if kind == "webhook" else Slack(url, **options)


both = pytest.mark.parametrize("kind", ["webhook", "slack"])


def test_a_webhook_gets_signed_json(server: Server) -> None:
    before = int(time.time())
    Webhook(f"{server.url}/hook?a=1", secret=SECRET).send("id-1", alert(comment="zu spät"))
    (got,) = server.received
    assert got.path == "/hook?a=1"
    assert json.loads(got.body) == alert(comment="zu spät")
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["X-Heedful-Alert-Id"] == "id-1"
    stamp = got.headers["X-Heedful-Timestamp"]
    assert before <= int(stamp) <= time.time()
    expected = hmac.new(SECRET.encode(), stamp.encode() + b"." + got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Heedful-Signature"] == f"v1={expected}"


def test_every_attempt_has_the_same_id_and_body(server: Server) -> None:
    server.answers = [(500, {}, b"")]
    channel = Webhook(server.url, secret=SECRET)
    with pytest.raises(Unavailable):
        channel.send("id-1", alert())
    channel.send("id-1", alert())
    first, second = server.received
    assert first.body == second.body
    assert first.headers["X-Heedful-Alert-Id"] == second.headers["X-Heedful-Alert-Id"] == "id-1"


def test_a_receiver_can_verify_what_came(server: Server) -> None:
    Webhook(server.url, secret=SECRET).send("id-1", alert())
    (got,) = server.received
    assert verify(SECRET, got.headers, got.body) == alert()
    lowered = {name.lower(): value for name, value in got.headers.items()}
    assert verify(SECRET.encode(), lowered, got.body) == alert()


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("secret", "another"),
        ("body", b'{"type": "forged"}'),
        ("X-Heedful-Timestamp", "1"),
        ("X-Heedful-Timestamp", "soon"),
        ("X-Heedful-Timestamp", None),
        ("X-Heedful-Signature", "v1="),
        ("X-Heedful-Signature", "v1=" + "0" * 64),
        ("X-Heedful-Signature", "vé\udc80"),
        ("X-Heedful-Signature", None),
    ],
)
def test_what_is_not_genuine_is_forbidden(server: Server, change: str, value: Any) -> None:
    Webhook(server.url, secret=SECRET).send("id-1", alert())
    (got,) = server.received
    headers = {name: text for name, text in {**got.headers, change: value}.items() if text is not None}
    headers.pop("secret", None)
    headers.pop("body", None)
    with pytest.raises(Forbidden, match="signature"):
        verify(value if change == "secret" else SECRET, headers, value if change == "body" else got.body)


@pytest.mark.parametrize(("later", "accepted"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)])
def test_what_is_too_old_or_from_the_future_is_forbidden(server: Server, later: int, accepted: bool) -> None:
    Webhook(server.url, secret=SECRET).send("id-1", alert())
    (got,) = server.received
    now = int(got.headers["X-Heedful-Timestamp"]) + later
    if accepted:
        assert verify(SECRET, got.headers, got.body, now=now)
    else:
        with pytest.raises(Forbidden, match="301 s off"):
            verify(SECRET, got.headers, got.body, now=now)


@both
@pytest.mark.parametrize("code", [301, 302, 307, 400, 404, 429, 500, 503])
def test_anything_but_success_is_an_error_and_no_redirect_is_followed(server: Server, kind: str, code: int) -> None:
    server.answers = [(code, {"Location": f"{server.url}/elsewhere"}, b"/services/T0/secret is wrong")]
    with pytest.raises(Unavailable, match=f"HTTP {code}") as caught:
        posting(kind, f"{server.url}/here").send("id-1", alert())
    assert len(server.received) == 1
    assert "secret" not in str(caught.value)


@both
@pytest.mark.parametrize("code", [200, 201, 202, 204])
def test_every_success_will_do(server: Server, kind: str, code: int) -> None:
    server.answers = [(code, {}, b"")]
    posting(kind, server.url).send("id-1", alert())
    assert len(server.received) == 1


@both
def test_a_receiver_that_hangs_is_given_up(server: Server, kind: str) -> None:
    server.hanging = True
    with pytest.raises(Unavailable, match="ReadTimeout"):
        posting(kind, server.url, timeout=0.05).send("id-1", alert())


@both
def test_a_receiver_that_is_not_there_is_unavailable(kind: str) -> None:
    stopped = Server()
    stopped.stop()
    with pytest.raises(Unavailable, match="ConnectError"):
        posting(kind, stopped.url).send("id-1", alert())


@both
def test_neither_a_proxy_nor_a_password_is_taken_from_the_environment(
    server: Server, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ann password pw")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    posting(kind, server.url).send("id-1", alert())
    assert "Authorization" not in server.received[0].headers


@both
@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "http://",
        "http://a b/",
        "http://a/\n",
        "http://a:99999/",
        "http://[::1",
        7,
    ],
)
def test_a_bad_address_is_refused_and_not_repeated(kind: str, url: Any) -> None:
    with pytest.raises(Invalid) as caught:
        posting(kind, url)
    assert (caught.value.field, caught.value.value) == ("url", None)


@both
def test_a_password_in_the_address_is_refused(kind: str) -> None:
    with pytest.raises(Invalid, match="password") as caught:
        posting(kind, "https://ann:hunter2@example.org/")
    assert "hunter2" not in str(caught.value)


@both
@pytest.mark.parametrize("timeout", [0, -1, 31, float("nan"), float("inf"), "5", True, None])
def test_a_timeout_has_limits(kind: str, timeout: Any) -> None:
    with pytest.raises(Invalid, match="timeout"):
        posting(kind, "https://example.org", timeout=timeout)


@pytest.mark.parametrize("secret", ["", " ", b"", None, 5])
def test_a_webhook_needs_a_secret(secret: Any) -> None:
    with pytest.raises(Invalid, match="secret"):
        Webhook("https://example.org", secret=secret)


def test_names_are_stable_tell_channels_apart_and_hold_no_secret() -> None:
    first, second = "https://hooks.slack.com/services/T0/B0/aaaa", "https://hooks.slack.com/services/T0/B0/bbbb"
    assert Slack(first).name == Slack(first).name != Slack(second).name
    assert Webhook("https://example.org:8443/a/b", secret=SECRET).name == "webhook:example.org:8443/a/b"
    one = Webhook("https://example.org/a?token=aaaa", secret=SECRET)
    other = Webhook("https://example.org/a?token=bbbb", secret=SECRET)
    assert one.name != other.name
    assert Sns(TOPIC).name == f"sns:{TOPIC}"
    mail = Email("mail", sender="a@x.org", recipients=["b@x.org"], username="u", password="hunter2")
    assert mail.name == "email:b@x.org"
    channels: list[Channel] = [Slack(first), one, mail, Sns(TOPIC)]
    for channel in channels:
        assert repr(channel) == f"{type(channel).__name__}({channel.name!r})"
        for secret in ("aaaa", SECRET, "hunter2"):
            assert secret not in repr(channel)


def test_long_names_are_shortened_and_stay_apart() -> None:
    one, other = (Webhook(f"https://example.org/{'a' * 300}{end}", secret=SECRET).name for end in "xy")
    assert len(one) == len(other) == 200
    assert one != other


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 5])
def test_a_name_that_can_not_be_kept_is_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="name"):
        Slack("https://example.org", name=name)
    assert Slack("https://example.org", name="desk").name == "desk"


def test_slack_gets_one_readable_message(server: Server) -> None:
    Slack(f"{server.url}/services/T0").send("id-1", alert("s <1>", comment="a < b & <!channel>\nsecond line"))
    (got,) = server.received
    body = json.loads(got.body)
    assert set(body) == {"text", "blocks"}
    head = 'Feedback "down" on session s &lt;1&gt;'
    assert body["text"] == f"{head}: a &lt; b &amp; &lt;!channel&gt; second line"
    texts = [block["text"]["text"] for block in body["blocks"][:2]]
    assert texts == [f"*{head}*", "a &lt; b &amp; &lt;!channel&gt;\nsecond line"]
    (facts,) = body["blocks"][2]["elements"]
    assert "session s &lt;1&gt; · author ann" in facts["text"]


def test_feedback_without_words_has_no_empty_block() -> None:
    made = slack_message(alert(comment=None, author=None, rating=None))
    assert made["text"] == 'Feedback "neutral" on session s1'
    assert [block["type"] for block in made["blocks"]] == ["section", "context"]


LONG = ["&" * 10_000, "a\n" * 5_000, "<@U1>" * 2_000, "\U0001f44e" * 10_000]


@given(st.text(max_size=200), st.text() | st.sampled_from(LONG))
@pytest.mark.slow
def test_a_slack_message_keeps_its_limits_and_calls_nobody(session_id: str, comment: str) -> None:
    for block in slack_message(alert(session_id, comment=comment))["blocks"]:
        for text in [block["text"]] if "text" in block else block["elements"]:
            assert 0 < len(text["text"].encode("utf-16-le", "surrogatepass")) // 2 <= 3_000
            assert "<" not in text["text"]


@given(st.text(alphabet="a&<>"), st.integers(1, 40))
def test_a_cut_text_is_a_beginning_of_the_whole(text: str, limit: int) -> None:
    shown = escaped(text, limit)
    assert len(shown) <= limit
    plain = shown.removesuffix("…").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert text.startswith(plain)
    assert shown.endswith("…") or plain == text


class Mailbox:
    """A mail server that keeps what it takes."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.refused: set[str] = set()
        self.logins: list[tuple[bytes, bytes]] = []
        self.answer = "250 taken"
        self.goodbye = True

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        if address in self.refused:
            return "550 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append((list(envelope.rcpt_tos), mail))
        return self.answer

    async def handle_QUIT(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if not self.goodbye:
            server.transport.abort()
        return "221 bye"

    def login(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"hunter2", handled=False)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def smtp(mailbox: Mailbox) -> Iterator[Callable[..., int]]:
    """Starts a mail server and tells its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers: list[asyncio.Server] = []

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(10)

    async def stop() -> None:
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def starting(**options: Any) -> int:
        servers.append(run(loop.create_server(lambda: SMTP(mailbox, loop=loop, **options), "127.0.0.1", 0)))
        port: int = servers[-1].sockets[0].getsockname()[1]
        return port

    yield starting
    run(stop())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def mail_to(port: int, *recipients: str, **options: Any) -> Email:
    settings = {"starttls": False, "timeout": 5.0, **options}
    return Email(
        "127.0.0.1", port=port, sender="Heedful <bot@x.org>", recipients=recipients or ["ann@x.org"], **settings
    )


def test_a_mail_says_what_happened(smtp: Callable[..., int], mailbox: Mailbox) -> None:
    payload = alert("s1", target_type="entry", target_id="q7", score=2, comment="Wrong:\n.\nübel")
    mail_to(smtp(), "ann@x.org", "Bob <bob@x.org>").send("id-1", payload)
    ((to, mail),) = mailbox.mails
    assert to == ["ann@x.org", "bob@x.org"]
    assert mail["From"] == "Heedful <bot@x.org>"
    assert mail["To"] == "ann@x.org, Bob <bob@x.org>"
    assert mail["Subject"] == 'Feedback "down" (2 of 5) on an answer in session s1'
    assert mail["Message-ID"] == "<id-1@x.org>"
    assert mail["Auto-Submitted"] == "auto-generated"
    text = mail.get_content()
    assert "Wrong:\n.\nübel\n" in text.replace("\r\n", "\n")
    for line in ("project: default", "session: s1", "answer: q7", "author: ann", "feedback: f1"):
        assert line in text


def test_every_attempt_has_the_same_message_id(smtp: Callable[..., int], mailbox: Mailbox) -> None:
    mailbox.answer = "451 later"
    channel = mail_to(smtp())
    with pytest.raises(Unavailable, match="451 later"):
        channel.send("id-1", alert())
    mailbox.answer = "250 taken"
    channel.send("id-1", alert())
    first, second = (mail["Message-ID"] for _, mail in mailbox.mails)
    assert first == second


ATTACKS = [
    "x\r\nBcc: eve@evil.org",
    "x\n\nbody",
    "=?utf-8?q?x=0D=0ABcc:_eve=40evil.org?=",
    "x\x0bBcc: e",
    "x\u2028Bcc: e",
]


@pytest.mark.parametrize("session_id", ATTACKS)
def test_no_header_can_be_smuggled_in_on_the_wire(smtp: Callable[..., int], mailbox: Mailbox, session_id: str) -> None:
    mail_to(smtp()).send("id-1", alert(session_id, comment=session_id, rating=session_id))
    ((to, mail),) = mailbox.mails
    assert to == ["ann@x.org"]
    assert mail["Bcc"] is None
    assert "Feedback" in mail["Subject"]


@given(st.text(max_size=200) | st.sampled_from(ATTACKS), st.text() | st.sampled_from(ATTACKS))
def test_whatever_is_said_a_mail_has_the_same_headers(session_id: str, comment: str) -> None:
    made = mail_to(25).message("id-1", alert(session_id, comment=comment))
    read = message_from_bytes(made.as_bytes(), policy=policy.default)
    assert read.keys() == [
        *("From", "To", "Subject", "Message-ID", "Date", "Auto-Submitted"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
    ]
    assert read["To"] == "ann@x.org"
    assert read["Subject"].replace(" ", "") == alert_headline(alert(session_id)).replace("=?", "= ?").replace(" ", "")


def test_a_mail_that_one_of_several_got_is_delivered(
    smtp: Callable[..., int], mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    mailbox.refused = {"gone@x.org"}
    channel = mail_to(smtp(), "ann@x.org", "gone@x.org")
    channel.send("id-1", alert())
    assert [to for to, _ in mailbox.mails] == [["ann@x.org"]]
    assert "1 of 2 recipients were refused" in caplog.text


def test_a_mail_that_nobody_got_is_an_error(smtp: Callable[..., int], mailbox: Mailbox) -> None:
    mailbox.refused = {"ann@x.org"}
    with pytest.raises(Unavailable, match="SMTPRecipientsRefused"):
        mail_to(smtp()).send("id-1", alert())


def test_a_server_that_hangs_up_instead_of_saying_goodbye_has_the_mail(
    smtp: Callable[..., int], mailbox: Mailbox
) -> None:
    mailbox.goodbye = False
    mail_to(smtp()).send("id-1", alert())
    assert len(mailbox.mails) == 1


def test_a_mail_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(Unavailable, match="ConnectionRefusedError"):
            mail_to(probe.getsockname()[1]).send("id-1", alert())


def test_a_mail_server_that_hangs_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(Unavailable, match="timed out"):
            mail_to(silent.getsockname()[1], timeout=0.05).send("id-1", alert())


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    file = tmp_path / "certificate.pem"
    file.write_text(CERTIFICATE)
    return file


@pytest.fixture
def secured(certificate: Path, smtp: Callable[..., int], mailbox: Mailbox) -> int:
    """The port of a server that wants STARTTLS and a password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return smtp(tls_context=context, require_starttls=True, authenticator=mailbox.login, auth_required=True)


def test_mail_is_sent_encrypted_and_with_a_password(
    secured: int, mailbox: Mailbox, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    mail_to(secured, starttls=True, username="bot", password="hunter2").send("id-1", alert())
    assert mailbox.logins == [(b"bot", b"hunter2")]
    assert len(mailbox.mails) == 1


def test_a_wrong_password_is_an_error_that_does_not_tell_it(
    secured: int, mailbox: Mailbox, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(Unavailable, match="SMTPAuthenticationError: 535") as caught:
        mail_to(secured, starttls=True, username="bot", password="s3cret").send("id-1", alert())
    assert "s3cret" not in str(caught.value)
    assert mailbox.mails == []


def test_a_certificate_that_nobody_vouches_for_gets_no_password(secured: int, mailbox: Mailbox) -> None:
    with pytest.raises(Unavailable, match="SSLCertVerificationError"):
        mail_to(secured, starttls=True, username="bot", password="hunter2").send("id-1", alert())
    assert mailbox.logins == []


def test_a_server_without_encryption_gets_neither_password_nor_mail(smtp: Callable[..., int], mailbox: Mailbox) -> None:
    with pytest.raises(Unavailable, match="SMTPNotSupportedError"):
        mail_to(smtp(), starttls=True, username="bot", password="hunter2").send("id-1", alert())
    assert (mailbox.mails, mailbox.logins) == ([], [])


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("host", {"host": ""}),
        ("host", {"host": "a\nb"}),
        ("sender", {"sender": "nobody"}),
        ("sender", {"sender": "a@x.org\nBcc: e@evil.org"}),
        ("sender", {"sender": ""}),
        ("sender", {"sender": None}),
        ("recipients", {"recipients": []}),
        ("recipients", {"recipients": ["a@x.org", "b"]}),
        ("recipients", {"recipients": ["a@x.org\r\nb@x.org"]}),
        ("username", {"username": "bot"}),
        ("username", {"password": "hunter2"}),
        ("timeout", {"timeout": 0}),
    ],
)
def test_mail_settings_that_can_not_work_are_refused(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        Email(**{"host": "mail", "sender": "a@x.org", "recipients": ["b@x.org"], **options})
    assert caught.value.field == field
    assert "hunter2" not in str(caught.value)


def test_one_recipient_may_be_given_alone() -> None:
    assert Email("mail", sender="a@x.org", recipients="b@x.org").name == "email:b@x.org"


@pytest.fixture
def aws(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server that boto3 takes for AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA123")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    return server


def published(got: Received) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(got.body.decode()).items()}


@pytest.mark.slow
def test_sns_gets_json_for_programs_and_words_for_people(aws: Server) -> None:
    aws.answers = [(200, {"Content-Type": "text/xml"}, PUBLISHED)] * 2
    channel = Sns(TOPIC)
    channel.send("id-1", alert("sé\n1", comment="Zu spät"))
    channel.send("id-2", alert())
    said = published(aws.received[0])
    assert said["Action"] == "Publish"
    assert said["TopicArn"] == TOPIC
    assert said["Subject"] == 'Feedback "down" on session s? 1'
    assert said["MessageAttributes.entry.1.Value.StringValue"] == "id-1"
    forms = json.loads(said["Message"])
    assert json.loads(forms["default"]) == alert("sé\n1", comment="Zu spät")
    assert "Zu spät" in forms["email"]
    assert "MessageDeduplicationId" not in said
    assert "/eu-west-1/sns/" in aws.received[0].headers["Authorization"]
    assert len(aws.received) == 2


def test_a_topic_that_keeps_order_drops_duplicates_by_the_alerts_id(aws: Server) -> None:
    aws.answers = [(200, {"Content-Type": "text/xml"}, PUBLISHED)]
    Sns(TOPIC + ".fifo").send("id-1", alert())
    said = published(aws.received[0])
    assert (said["MessageDeduplicationId"], said["MessageGroupId"]) == ("id-1", "heedful")


def test_sns_is_asked_once_and_its_refusal_is_named(aws: Server) -> None:
    aws.answers = [(403, {"Content-Type": "text/xml"}, DENIED), (500, {}, b""), (500, {}, b"")]
    with pytest.raises(Unavailable, match="AuthorizationError") as caught:
        Sns(TOPIC).send("id-1", alert())
    assert "AKIA123" not in str(caught.value)
    with pytest.raises(Unavailable, match="500"):
        Sns(TOPIC).send("id-1", alert())
    assert len(aws.received) == 2


def test_a_client_can_be_given(aws: Server) -> None:
    import boto3

    aws.answers = [(200, {"Content-Type": "text/xml"}, PUBLISHED)]
    keys = {"aws_access_key_id": "OTHER", "aws_secret_access_key": "x"}
    client = boto3.session.Session().client("sns", region_name="us-east-1", endpoint_url=aws.url, **keys)
    Sns(TOPIC, client=client).send("id-1", alert())
    assert "Credential=OTHER" in aws.received[0].headers["Authorization"]


@pytest.mark.parametrize("arn", ["", "alerts", "arn:aws:sqs:eu-west-1:1:q", "arn:aws:sns:eu-west-1:1:a\n", None])
def test_a_topic_has_the_shape_of_one(arn: Any) -> None:
    with pytest.raises(Invalid, match="topic_arn"):
        Sns(arn)


def test_without_boto3_the_remedy_is_told_and_the_other_channels_work() -> None:
    script = f"""
import sys
sys.modules["boto3"] = None
from heedful.notifications import Slack, Sns
Slack("https://example.org")
Sns({TOPIC!r}, client=object())
try:
    Sns({TOPIC!r})
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('Unavailable boto3 is not installed. Run: pip install "heedful[sns]", or in a clone')


def test_alerts_can_be_imported_without_loading_boto3() -> None:
    script = "import sys, heedful.notifications; print('boto3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
