"""The dashboard of the demo: it opens on its story, and its numbers are those of the reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape

import pytest
from dashboards import Dashboard
from help_desk import NOW, HelpDeskStore
from starlette.testclient import TestClient

from heedful import Heedful
from heedful.interfaces.cli.demo_commands import PROJECT, worth_a_look
from heedful.model import Variant
from heedful.simulate.shop import CORRECTION
from heedful.testing import ManualClock

TODAY = NOW.replace(hour=0)


@pytest.fixture(scope="module")
def dashboard(help_desk: Callable[[], HelpDeskStore]) -> Iterator[Dashboard]:
    made = Dashboard(help_desk().file, ManualClock(NOW))
    yield made
    made.close()


@pytest.fixture(scope="module")
def store(dashboard: Dashboard) -> Iterator[Heedful]:
    with dashboard.opened.open(PROJECT) as opened:
        yield opened


@pytest.fixture(scope="module")
def visitor(dashboard: Dashboard) -> TestClient:
    return dashboard.visitor()


def text(client: TestClient, place: str) -> str:
    """The words of a page or of a part of one."""
    answer = client.get(f"/p/{PROJECT}/{place}", headers={"x-fragment": "1"})
    assert answer.status_code == 200, answer.text
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def days(number: int, before: int = 0) -> str:
    """The query of an address for so many days, today included."""
    last = TODAY - timedelta(days=before)
    return f"since={last - timedelta(days=number - 1):%Y-%m-%d}&until={last:%Y-%m-%d}"


def figures_of(page: str) -> float:
    """Satisfaction in percent."""
    return float(page.partition("Satisfaction ")[2].partition("%")[0])


def said(page: str) -> str:
    """What the first card says."""
    return page.partition("Satisfaction ")[2].partition(";")[0]


def counts(period: Variant) -> str:
    return f"{period.up} up, {period.down} down, {period.neutral} neutral"


@pytest.mark.nightly
def test_it_opens_on_what_changed_for_the_better(visitor: TestClient) -> None:
    page = text(visitor, "overview")
    assert "the last 7 days" in page
    assert figures_of(page) > 80
    rise = re.search(r"up ([\d.]+) points", page)
    assert rise is not None
    assert float(rise[1]) > 10
    assert "may be luck" not in page
    assert "No down-votes on price" in text(visitor, "overview/changes")


def test_the_overview_says_what_the_digest_says(visitor: TestClient, store: Heedful) -> None:
    page = text(visitor, "overview")
    digest = store.insight.digest()
    assert digest.now.satisfaction is not None
    assert digest.before.satisfaction is not None
    rise = 100 * (digest.now.satisfaction - digest.before.satisfaction)
    risen = f"{digest.now.satisfaction:.1%} up {rise:.1f} points from {digest.before.satisfaction:.1%}"
    assert said(page) == f"{risen} {counts(digest.now)}"
    headline = f"{digest.now.satisfaction:.0%} satisfied in 7 days, {rise:.0f} points more than before"
    assert digest.headline == f"demo: {headline}"
    before = text(visitor, f"overview?{days(7, before=7)}")
    assert counts(digest.before) in before
    themes = text(visitor, "overview/themes")
    assert all(theme.name in themes and theme.examples[0] in themes for theme in digest.themes)
    changes = text(visitor, "overview/changes")
    assert [note.text for note in digest.notes if note.text not in changes] == []
    assert changes.count("The arithmetic") == len(digest.notes)


def test_the_printed_pages_tell_the_story(visitor: TestClient, store: Heedful) -> None:
    overview, complaint, team = worth_a_look(store)
    assert overview == ("overview", store.insight.digest().headline.removeprefix("demo: "))
    page = text(visitor, complaint[0])
    assert "resolved" in page
    assert "Mara" in page
    assert CORRECTION in page
    assert figures_of(text(visitor, team[0])) > 80
    assert figures_of(text(visitor, f"{team[0]}&{days(7, before=7)}")) > 80


def test_all_time_counts_the_same_ratings_on_all_pages(visitor: TestClient, store: Heedful) -> None:
    everything = "since=&until="
    rated = [each for each in store.insight.satisfaction("target_type").variants if each.value != "fact"]
    up, down, neutral = (sum(getattr(each, kind) for each in rated) for kind in ("up", "down", "neutral"))
    assert f"{up} up, {down} down, {neutral} neutral;" in text(visitor, f"overview?{everything}")
    experiments = text(visitor, "experiments")
    for each in store.insight.satisfaction("variant").variants:
        assert f"{each.value} {each.sessions} {each.up} {each.down} {each.satisfaction:.0%}" in experiments


def test_the_overview_counts_what_the_review_queue_lists(visitor: TestClient, store: Heedful) -> None:
    opened = store.insight.digest().open_items
    assert len(store.review.list(limit=1000).items) == opened
    closed = {status: len(store.review.list(status=status, limit=1000).items) for status in ("resolved", "dismissed")}
    waiting = text(visitor, "overview/waiting")
    assert f"{opened} open, {closed['resolved']} resolved, {closed['dismissed']} dismissed" in waiting
    assert f"Review {opened} items" in waiting
    tabs = f"Open {opened} Resolved {closed['resolved']} Dismissed {closed['dismissed']}"
    assert tabs in text(visitor, "review")


def test_the_overview_counts_answers_as_the_reports_do(visitor: TestClient, store: Heedful) -> None:
    page = text(visitor, "overview")
    start = TODAY - timedelta(days=6)
    coverage = store.insight.coverage(since=start)
    for each in (coverage.answers, coverage.executions, coverage.recalls):
        assert f"{each.kind.capitalize()} {each.share or 0:.0%} {each.rated} of {each.shown} (" in page
    assert f"Answers rated {coverage.answers.share:.0%} {coverage.answers.rated} of {coverage.answers.shown}" in page
    (line,) = store.insight.trend(since=start).lines
    up, down, neutral = (sum(getattr(point, kind) for point in line.points) for kind in ("up", "down", "neutral"))
    assert f"{up} up, {down} down, {neutral} neutral;" in page


@pytest.mark.parametrize("dataset", ["help", "handbook"])
def test_usefulness_says_what_the_stats_say(visitor: TestClient, store: Heedful, dataset: str) -> None:
    stats = store.usefulness_stats(dataset)
    assert stats.facts_with_signals <= stats.total_facts == store.get_dataset(dataset).facts
    part = text(visitor, f"facts/usefulness?dataset={dataset}")
    mean = f"mean {stats.average_overall_usefulness:.2f}"
    counted = f"{stats.facts_with_signals} of {stats.total_facts} facts with signals; {mean}"
    assert counted in part
    assert " ".join(f"{label} {count}" for label, count in stats.distribution.items()) in part


def test_the_first_item_to_review_was_not_asked_without_feedback(store: Heedful) -> None:
    first = store.review.list(limit=1).items[0]
    assert store.review.get(first.item_id).usefulness_weight != 0


def test_ratings_of_executions_are_in_no_dataset(visitor: TestClient) -> None:
    page = text(visitor, "overview?by=dataset")
    assert "SQL, sessions" in page
    assert " none " not in page


def test_a_learnt_fact_sets_its_question_apart(visitor: TestClient, store: Heedful) -> None:
    question, answer = "How long do gift cards last?", "They last for three years."
    (learnt,) = store.remember(f"{question}\n{answer}", dataset="help").fact_ids
    assert f"{question} · {answer}" in text(visitor, "facts?dataset=help")
    store.forget(learnt)
