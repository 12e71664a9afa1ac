"""A nightly digest: what people said in the last day, what to fix first, and whether the store is sound. For cron:

    0 6 * * *  python /srv/nightly_digest.py /srv/memory.db

It needs no extra and no key. It is mailed if SMTP_HOST, DIGEST_FROM and DIGEST_TO are set, and printed otherwise.
`heedful serve` can mail a digest by itself (docs/howto/reports.md); copy this to write your own.
"""

from __future__ import annotations

import os
import smtplib
import sys
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

import heedful


def model(digest: str) -> str:
    """Stands in for a language model that rewrites the digest, by returning it unchanged. Call yours here."""
    return digest


def write(memory: heedful.Heedful, until: datetime) -> EmailMessage:
    """The mail about the 24 hours before `until`."""
    since = until - timedelta(days=1)
    memory.improve()  # Learns from ratings that no worker has seen yet.
    digest = memory.insight.digest(since=since, until=until)
    answers = memory.insight.coverage(since=since, until=until).answers
    lines = [digest.text, f"Answers rated: {answers.rated} of {answers.shown}"]
    for number, item in enumerate(memory.review.list(limit=5).items):
        lines += [] if number else ["", "To fix first:"]
        said = f', "{item.comment}"' if item.comment else ""
        lines.append(f"- {item.question or item.target_type}: {item.opinions} negative{said}")
    lines += [f"Needs attention: {check.name}: {check.detail}" for check in memory.doctor() if not check.ok]
    mail = EmailMessage()
    mail["Subject"] = digest.headline
    mail.set_content(model("\n".join(lines)))
    return mail


def send(mail: EmailMessage) -> None:
    """By mail if a server is named, or else to the terminal."""
    host = os.environ.get("SMTP_HOST")
    if host is None:
        print(mail.get_content())  # Its first line is the subject.
        return
    mail["From"], mail["To"] = os.environ["DIGEST_FROM"], os.environ["DIGEST_TO"]
    with smtplib.SMTP(host) as server:
        server.send_message(mail)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("Usage: python nightly_digest.py STORE, the file of a store that exists")
    with heedful.open(sys.argv[1]) as opened:
        send(write(opened, datetime.now(UTC)))
