"""The digest: what it says, and that it arrives once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP
from click.testing import CliRunner

from heedful import Heedful, Invalid, Unavailable
from heedful.clock import DAY, to_stored
from heedful.interfaces.cli.main import cli
from heedful.jobs.queue import Task
from heedful.jobs.worker import Worker, last_full_period
from heedful.notifications import Slack, verify
from heedful.notifications.channels import digest_channels, slack_message
from heedful.store import Store
from heedful.testing import ManualClock, WordEmbedder

pytestmark = pytest.mark.slow

SECRET = "a very secret secret"
HOSTILE = "<b>Too slow</b> & wrong"


class Desk:
    """A mail server and a web server that keep what they are sent."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.answer = 200

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append((list(envelope.rcpt_tos), mail))
        return "250 taken"


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def mail_url(desk: Desk) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(10)

    server = run(loop.create_server(lambda: SMTP(desk, loop=loop), "127.0.0.1", 0))

    async def stop() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    port = server.sockets[0].getsockname()[1]
    yield f"smtp://127.0.0.1:{port}?from=bot@x.org&to=ann+digest@x.org&to=bob@x.org&starttls=no"
    run(stop())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def hook_url(desk: Desk) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            desk.posts.append((dict(self.headers), body))
            self.send_response(desk.answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/digest"
    server.shutdown()
    server.server_close()
    thread.join()


def rate(store: Heedful, *ratings: str, comment: str | None = None) -> None:
    store.sessions.create("monday")
    for rating in ratings:
        store.sessions.add_session_feedback("monday", {"rating": rating, "comment": comment})


@pytest.fixture
def two_weeks(either: Heedful, clock: ManualClock) -> Heedful:
    """Three of four are content in one week, and one of four in the next."""
    either.remember("A kettle can be sent back within thirty days.")
    rate(either, "up", "up", "up", "down")
    clock.advance(days=7)
    rate(either, "up", "down", "down", "down", comment=HOSTILE)
    clock.advance(hours=1)
    return either


@pytest.mark.nightly
def test_a_digest_compares_with_the_time_before(two_weeks: Heedful) -> None:
    found = two_weeks.insight.digest()
    assert (found.now.up, found.now.down, found.before.up, found.before.down) == (1, 3, 3, 1)
    assert found.headline == "default: 25% satisfied in 7 days, 50 points less than before"
    assert found.until - found.since == timedelta(days=7)
    assert found.text.startswith(found.headline)
    assert "1 up, 3 down, 0 neutral; 25.0% satisfied (95% interval 4.6% to 69.9%)" in found.text
    assert "Before: 3 up, 1 down, 0 neutral; 75.0% satisfied" in found.text


def test_the_points_are_those_of_the_figures_below(store: Heedful, clock: ManualClock) -> None:
    rate(store, *["up"] * 8, *["down"] * 5)
    clock.advance(days=7)
    rate(store, *["up"] * 27, *["down"] * 5)
    digest = store.insight.digest()
    assert "84.4% satisfied" in digest.text
    assert "61.5% satisfied" in digest.text
    assert " to now (UTC): " in digest.text
    assert digest.headline == "default: 84% satisfied in 7 days, 23 points more than before"


def test_a_digest_counts_the_items_that_are_open_now(either: Heedful) -> None:
    found = either.recall("How long?", session_id="monday")
    assert found.qa_id is not None
    either.sessions.add_feedback("monday", found.qa_id, "too long", 1)
    assert either.insight.digest().open_items == len(either.review.list().items) == 1
    either.sessions.delete_feedback("monday", found.qa_id)
    assert either.insight.digest().open_items == len(either.review.list().items) == 0


def test_a_digest_tells_what_negative_comments_are_about(store: Heedful) -> None:
    for comment in ("The parcel came too late", "My parcel was late", "The parcel is late again", "A late parcel"):
        rate(store, "down", comment=comment)
    found = store.insight.digest()
    assert found.themes
    assert found.themes[0].name in found.text
    assert found.themes[0].examples[0] in found.text


def test_a_digest_of_nothing_says_so(either: Heedful) -> None:
    found = either.insight.digest()
    assert found.headline == "default: nobody said anything in 7 days"
    assert (found.now.satisfaction, found.open_items, found.notes, found.themes) == (None, 0, [], [])


def test_a_digest_is_about_the_time_that_was_asked_for(store: Heedful, clock: ManualClock) -> None:
    rate(store, "up")
    clock.advance(days=2)
    rate(store, "down")
    day = store.insight.digest(since=clock(), until=clock() + timedelta(days=1))
    assert (day.now.up, day.now.down) == (0, 1)
    assert "in a day" in day.headline
    with pytest.raises(Invalid, match="not over yet"):
        store.insight.digest(since=clock() + timedelta(days=1))
    with pytest.raises(Invalid, match="before until"):
        store.insight.digest(since=clock(), until=clock() - timedelta(days=1))


@pytest.fixture
def opened(
    path: Path,
    two_weeks: Heedful,
    clock: ManualClock,
    mail_url: str,
    hook_url: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Store]:
    """The store of the two weeks as a worker opens it, some days into the third."""
    monkeypatch.setenv("HEEDFUL_DIGEST_EVERY", "week")
    monkeypatch.setenv("HEEDFUL_DIGEST_EMAIL", mail_url)
    monkeypatch.setenv("HEEDFUL_DIGEST_WEBHOOK", hook_url)
    monkeypatch.setenv("HEEDFUL_DIGEST_WEBHOOK_SECRET", SECRET)
    in_mongodb = "mongodb" in request.node.name
    clock.advance(days=5)
    opened = Store(
        path,
        clock=clock,
        embedding=WordEmbedder(),
        sessions=request.getfixturevalue("mongodb_url") if in_mongodb else None,
    )
    yield opened
    opened.close()


def drain(opened: Store) -> None:
    Worker(opened.queue, opened.run_job, opened.now, digest_every=opened.config.digest_every).drain()


@pytest.mark.nightly
def test_a_worker_sends_the_digest_of_the_last_week_once(opened: Store, desk: Desk, clock: ManualClock) -> None:
    drain(opened)
    [(recipients, mail)] = desk.mails
    assert recipients == ["ann+digest@x.org", "bob@x.org"]
    assert mail["Subject"] == "default: 25% satisfied in 7 days, 50 points less than before"
    plain, page = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert page is not None
    assert "Before: 3 up, 1 down" in plain.get_content()
    assert "<h2>default: 25% satisfied" in page.get_content()
    [(headers, body)] = desk.posts
    payload = verify(SECRET, headers, body)
    assert (payload["type"], payload["project"], payload["now"]["down"]) == ("digest", "default", 3)
    since, until = datetime.fromisoformat(payload["since"]), datetime.fromisoformat(payload["until"])
    assert (since.weekday(), until - since) == (0, timedelta(days=7))
    assert until <= clock()
    for _ in range(2):
        clock.advance(hours=2)
        drain(opened)
    assert (len(desk.mails), len(desk.posts)) == (1, 1)
    clock.advance(days=7)
    drain(opened)
    # Nobody said anything in the week that is over now.
    assert (len(desk.mails), len(desk.posts)) == (1, 1)


def test_a_project_that_is_in_a_mongodb_alone_gets_its_digest(
    path: Path,
    open_store: Callable[..., Heedful],
    mongodb_url: str,
    clock: ManualClock,
    hook_url: str,
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = open_store(path, project="chat", sessions=mongodb_url)
    rate(chat, "up", "down")
    open_store(path, project="quiet", sessions=mongodb_url).sessions.create("s")
    open_store(path, project="shop", sessions=mongodb_url).remember("A kettle can be sent back within thirty days.")
    clock.advance(days=8)
    monkeypatch.setenv("HEEDFUL_DIGEST_EVERY", "week")
    monkeypatch.setenv("HEEDFUL_DIGEST_WEBHOOK", hook_url)
    opened = Store(path, clock=clock, embedding=WordEmbedder(), sessions=mongodb_url)
    try:
        assert opened.projects() == ["shop"]
        drain(opened)
    finally:
        opened.close()
    [(_, body)] = desk.posts
    message = json.loads(body)
    assert (message["project"], message["now"]["up"], message["now"]["down"]) == ("chat", 1, 1)


def task(opened: Store) -> Task:
    since, until = last_full_period("week", opened.now())
    return Task("j", None, "digest", {"since": since, "until": until}, 1)


def ignored(done: int, total: int) -> None:
    pass


@pytest.mark.nightly
def test_two_workers_send_one_digest(opened: Store, desk: Desk) -> None:
    def work() -> None:
        # The other one may be about to deliver it.
        with suppress(Unavailable):
            opened.run_job(task(opened), ignored)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    opened.run_job(task(opened), ignored)
    assert (len(desk.mails), len(desk.posts)) == (1, 1)


def test_a_digest_that_does_not_arrive_waits_in_the_outbox_and_goes_later(
    opened: Store, two_weeks: Heedful, desk: Desk, clock: ManualClock
) -> None:
    desk.answer = 503
    with pytest.raises(Unavailable, match="did not arrive yet: default"):
        opened.run_job(task(opened), ignored)
    [waiting] = two_weeks.sessions.alerts(pending=True).items
    assert (waiting.channel, waiting.attempts) == ("digest by webhook", 1)
    assert waiting.error == "digest by webhook answered with HTTP 503"
    desk.answer = 200
    clock.advance(minutes=1)
    opened.run_job(task(opened), ignored)
    assert (len(desk.mails), len(desk.posts)) == (1, 2)
    assert two_weeks.sessions.alerts(pending=True).items == []


@pytest.mark.nightly
def test_a_digest_stays_when_its_sessions_are_deleted(opened: Store, two_weeks: Heedful, desk: Desk) -> None:
    desk.answer = 503
    with pytest.raises(Unavailable):
        opened.run_job(task(opened), ignored)
    two_weeks.sessions.delete("monday")
    assert len(two_weeks.sessions.alerts(pending=True).items) == 1


def test_after_a_failure_it_is_tried_again_within_hours(opened: Store, desk: Desk, clock: ManualClock) -> None:
    added = opened.queue.add(None, "digest", dict(task(opened).arguments))
    opened.queue.cancel(added.id)
    drain(opened)
    assert len(desk.mails) == 0, "what somebody cancelled stays so"
    clock.advance(days=7)
    drain(opened)
    [newest] = opened.queue.listed(None, None, "digest", None, 1)
    assert newest.status == "done"


def test_without_a_setting_nothing_is_sent(
    path: Path, store: Heedful, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate(store, "down")
    clock.advance(days=9)
    opened = Store(path, clock=clock, embedding=WordEmbedder())
    try:
        drain(opened)
        assert opened.queue.listed(None, None, "digest", None, 1) == []
    finally:
        opened.close()


@pytest.mark.parametrize("day", range(30))
def test_the_last_whole_week_ends_on_a_monday_that_is_over(day: int) -> None:
    now = to_stored(datetime(2026, 1, 1, tzinfo=UTC)) + day * DAY + 12_345
    since, until = last_full_period("week", now)
    assert until - since == 7 * DAY
    assert until <= now < until + 7 * DAY
    assert (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=until)).weekday() == 0


def test_a_mail_shows_what_people_wrote_as_words(store: Heedful, mail_url: str, desk: Desk) -> None:
    for number in range(4):
        rate(store, "down", comment=f"{HOSTILE} {number}")
    payload = {"type": "digest", **store.insight.digest().model_dump(mode="json")}
    [channel] = digest_channels(mail_url, None, None)
    channel.send("id-1", payload)
    page = desk.mails[0][1].get_body(("html",))
    assert page is not None
    assert "&lt;b&gt;Too slow&lt;/b&gt;" in page.get_content()
    assert "<b>" not in page.get_content()
    assert slack_message(payload)["text"].startswith("default: 0% satisfied")
    assert Slack("https://hooks.example.com/x").name


def test_a_webhook_without_a_secret_is_not_signed(hook_url: str, desk: Desk) -> None:
    [channel] = digest_channels(None, hook_url, None)
    channel.send("id-1", {"type": "digest", "headline": "h", "text": "t"})
    [(headers, body)] = desk.posts
    assert "X-Heedful-Signature" not in headers
    assert json.loads(body)["text"] == "t"


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "http://mail.example.com?from=a@x.org&to=b@x.org",
        "smtp://mail.example.com?to=b@x.org",
        "smtp://mail.example.com?from=a@x.org",
        "smtp://mail.example.com?from=a@x.org&to=nobody",
        "smtp://mail.example.com:port?from=a@x.org&to=b@x.org",
        "smtp://user@mail.example.com?from=a@x.org&to=b@x.org",
        "smtp://mail.example.com?from=a@x.org&to=b@x.org&tls=no",
        "smtp://[::1?from=a@x.org&to=b@x.org",
    ],
)
def test_a_setting_that_names_no_mail_server_is_refused_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DIGEST_EMAIL", url)
    with pytest.raises(Invalid) as refused:
        Store(":memory:", embedding=WordEmbedder())
    assert refused.value.field == "digest_email"


def test_other_settings_that_are_wrong_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DIGEST_EVERY", "hour")
    with pytest.raises(Invalid, match="digest_every"):
        Store(":memory:", embedding=WordEmbedder())
    monkeypatch.setenv("HEEDFUL_DIGEST_EVERY", "day")
    monkeypatch.setenv("HEEDFUL_DIGEST_WEBHOOK", "example.com")
    with pytest.raises(Invalid) as refused:
        Store(":memory:", embedding=WordEmbedder())
    assert refused.value.field == "digest_webhook"


@pytest.fixture
def run(path: Path) -> Callable[..., Any]:
    def call(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--store", str(path), "--embedding", "fast", "digest", *arguments])

    return call


def test_the_command_prints_the_digest(store: Heedful, run: Callable[..., Any]) -> None:
    rate(store, "up")
    span = ("--since", "2025-12-30", "--until", "2026-01-06")
    done = run(*span)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("default: 100% satisfied in 7 days\n")
    assert json.loads(run(*span, "--json").stdout)["now"]["up"] == 1
    assert isinstance(run(*span, "--send").exception, Invalid)


@pytest.mark.nightly
def test_the_command_sends_the_digest_as_often_as_it_is_told(
    store: Heedful, run: Callable[..., Any], hook_url: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate(store, "up")
    span = ("--since", "2025-12-30", "--until", "2026-01-06", "--send")
    monkeypatch.setenv("HEEDFUL_DIGEST_WEBHOOK", hook_url)
    for _ in range(2):
        assert run(*span).stdout == "digest by webhook: delivered\n"
    assert len(desk.posts) == 2
    assert run("--since", "2020-01-01", "--until", "2020-01-08", "--send").stdout.startswith(
        "no feedback in this period"
    )
    desk.answer = 500
    assert "waits in the outbox (digest by webhook answered with HTTP 500)" in run(*span).stdout
