"""The report: one file that needs nothing else, and says nothing that it shouldn't."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from server import running

from heedful import Conflict, Heedful, Invalid, NotFound
from heedful.interfaces.cli.main import cli
from heedful.interfaces.reports import write_report
from heedful.testing import ManualClock

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert('x')</script><img src=http://evil.example/x.png onerror=alert(1)> & \"so on\""
VOID = {"meta", "img", "br", "hr", "input", "link"}


class Page(HTMLParser):
    """The elements of a page, and what stands in them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def rated(store: Heedful, clock: ManualClock, days: int = 6) -> Heedful:
    """A project with opinions on some days, by two variants."""
    store.remember(["A kettle can be sent back within thirty days.", "A lamp can be sent back within ten days."])
    for number in range(days):
        clock.advance(days=1)
        session = f"s{number}"
        store.sessions.create(session, metadata={"variant": "ab"[number % 2]})
        result = store.recall("May I send a kettle back?", session_id=session)
        assert result.qa_id is not None
        store.signal_recall(result.recall_id, helpful=[result.hits[0]])
        store.sessions.add_feedback(session, result.qa_id, HOSTILE if number % 2 else None, 1 if number % 2 else 5)
    return store


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.nightly
def test_a_report_is_one_file_that_loads_nothing(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    made = write_report(rated(store, clock), tmp_path / "report.html", by="metadata.variant")
    assert (made.path, made.charts) == (tmp_path / "report.html", [])
    page = read(made.path)
    assert page.open == []
    assert not {"script", "link", "iframe", "img", "object", "use", "image"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not {"src", "href", "srcset", "onload", "onerror", "onclick"} & set(attributes), tag
    styles = re.findall(r"<style>(.*?)</style>", made.path.read_text(encoding="utf-8"), re.DOTALL)
    assert not re.search(r"url\(|@import|https?:", "".join(styles))
    assert "prefers-color-scheme: dark" in styles[0]
    assert "@media print" in styles[0]


@pytest.mark.nightly
def test_a_report_says_what_insight_says(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    rated(store, clock)
    made = write_report(store, tmp_path / "report.html", by="metadata.variant")
    text = read(made.path).text
    total = store.insight.trend().total
    assert made.opinions == total.up + total.down + total.neutral
    assert f"{total.satisfaction:.1%} satisfied" in text
    report = store.insight.satisfaction("metadata.variant")
    assert report.stopping is not None
    assert report.stopping.reason in text
    for title in ("Over time", "By variant", "By dataset", "What negative comments are about", "How much was rated"):
        assert title in text
    assert "A kettle can be sent back within thirty days." in text


@pytest.mark.nightly
def test_a_report_names_its_project_and_the_days_that_have_opinions(
    open_store: Callable[..., Heedful], clock: ManualClock, tmp_path: Path
) -> None:
    first = clock() + timedelta(days=1)
    store = rated(open_store(project="shop & <b>co</b>"), clock, days=3)
    last = clock()
    clock.advance(days=20)
    page = read(write_report(store, tmp_path / "report.html").path)
    assert page.text.count("What people said: shop & <b>co</b>") == 2
    assert f"from {first:%Y-%m-%d} to {last:%Y-%m-%d} (UTC)" in page.text
    since = read(write_report(store, tmp_path / "since.html", since=first).path)
    assert f"from {first:%Y-%m-%d %H:%M} until " in since.text


@pytest.mark.nightly
def test_the_days_are_told_of_a_long_time_that_goes_by_weeks(
    store: Heedful, clock: ManualClock, tmp_path: Path
) -> None:
    first = clock() + timedelta(days=1)
    rated(store, clock, days=1)
    clock.advance(days=120)
    store.sessions.add_session_feedback("s0", {"rating": "up"})
    text = read(write_report(store, tmp_path / "report.html").path).text
    assert "Satisfaction by week" in text
    assert f"from {first:%Y-%m-%d} to {clock():%Y-%m-%d} (UTC)" in text


@pytest.mark.nightly
def test_numbers_stay_in_one_line_and_comments_do_not(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    made = write_report(rated(store, clock), tmp_path / "report.html")
    markup = made.path.read_text(encoding="utf-8")
    assert "td, thead th { white-space: nowrap; overflow-wrap: normal; }" in markup
    assert re.search(r'<td class="words">[^<]*alert', markup)


@pytest.mark.nightly
def test_every_chart_has_its_numbers_in_a_table(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    made = write_report(rated(store, clock), tmp_path / "report.html", charts=tmp_path / "charts")
    markup = made.path.read_text(encoding="utf-8")
    match = re.findall(r"<figure>(.*?)</figure>", markup, re.DOTALL)
    assert len(match) == len(made.charts) > 3
    for each in match:
        assert "<svg" in each
        assert re.search(r"<tbody>\s*<tr><th scope=\"row\">", each)


@pytest.mark.nightly
def test_charts_are_files_that_stand_alone(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "charts"
    made = write_report(rated(store, clock), tmp_path / "report.html", by="metadata.variant", charts=folder)
    assert sorted(each.name for each in made.charts) == sorted(each.name for each in folder.iterdir())
    assert {"trend.svg", "by-variant.svg", "coverage.svg"} <= {each.name for each in made.charts}
    for each in made.charts:
        assert ElementTree.parse(each).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_hostile_comment_is_only_words(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    made = write_report(rated(store, clock), tmp_path / "report.html", charts=tmp_path)
    assert " ".join(HOSTILE.split()) in read(made.path).text
    assert "<script" not in made.path.read_text(encoding="utf-8")


def test_hostile_names_are_only_words_in_charts_and_files(
    open_store: Callable[..., Heedful], clock: ManualClock, tmp_path: Path
) -> None:
    store = rated(open_store(), clock, days=1)
    store.sessions.create("x", metadata={"a/b <script>": "</svg><script>"})
    store.sessions.add_session_feedback("x", {"rating": "up"})
    made = write_report(store, tmp_path / "report.html", by="metadata.a/b <script>", charts=tmp_path / "charts")
    assert "by-a-b--script-.svg" in {each.name for each in made.charts}
    assert "<script" not in made.path.read_text(encoding="utf-8")
    for each in made.charts:
        assert ElementTree.parse(each).getroot().find(".//{*}script") is None


def test_a_project_without_feedback_is_told_what_to_do(either: Heedful, tmp_path: Path) -> None:
    made = write_report(either, tmp_path / "report.html", charts=tmp_path / "charts")
    assert made.opinions == 0
    text = read(made.path).text
    assert "Nobody said anything yet" in text
    assert "heedful sessions add-feedback" in text
    assert "ask for more time" not in text
    for each in made.charts:
        ElementTree.parse(each)


def test_a_time_without_feedback_says_that_there_may_be_more(
    store: Heedful, clock: ManualClock, tmp_path: Path
) -> None:
    rated(store, clock)
    made = write_report(store, tmp_path / "report.html", since=clock() + timedelta(days=1))
    assert made.opinions == 0
    assert "Or ask for more time" in read(made.path).text


@pytest.mark.nightly
def test_a_report_is_about_the_time_that_was_asked_for(store: Heedful, clock: ManualClock, tmp_path: Path) -> None:
    rated(store, clock)
    some = write_report(store, tmp_path / "some.html", since=clock() - timedelta(days=2, hours=1))
    everything = write_report(store, tmp_path / "all.html")
    assert 0 < some.opinions < everything.opinions


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"by": "metadata.nothing"}, Invalid),
        ({"dataset": "nowhere"}, NotFound),
        ({"since": datetime(2027, 1, 1, tzinfo=UTC), "until": datetime(2026, 1, 1, tzinfo=UTC)}, Invalid),
        ({"since": "yesterday"}, Invalid),
    ],
)
def test_what_can_t_be_reported_leaves_no_file(
    store: Heedful, clock: ManualClock, tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    rated(store, clock, days=2)
    with pytest.raises(error):
        write_report(store, tmp_path / "report.html", **options)
    assert not list(tmp_path.glob("*report*"))


def test_a_report_is_not_replaced_unless_that_is_asked_for(store: Heedful, tmp_path: Path) -> None:
    write_report(store, tmp_path / "report.html")
    with pytest.raises(Conflict):
        write_report(store, tmp_path / "report.html")
    write_report(store, tmp_path / "report.html", overwrite=True)


@pytest.mark.nightly
def test_the_command_writes_the_report_and_its_charts(store: Heedful, path: Path, tmp_path: Path) -> None:
    store.sessions.create("monday", metadata={"variant": "a"})
    store.sessions.add_session_feedback("monday", {"rating": "up"})

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--store", str(path), "--embedding", "fast", "report", *arguments])

    done = run("--by", "metadata.variant", "--charts", "charts")
    assert done.exit_code == 0, (done.output, done.exception)
    assert re.fullmatch(r"1 opinion in report.html, and \d charts in charts\n", done.stdout)
    assert Path("report.html").is_file()
    assert isinstance(run().exception, Conflict)
    assert run("report.html", "--force", "--since", "2026-01-01").exit_code == 0


@pytest.mark.nightly
def test_a_report_on_a_server_says_the_same(tmp_path: Path) -> None:
    with running(tmp_path / "served.db") as server, server.connect() as client:
        client.sessions.create("monday", metadata={"variant": "a"})
        client.sessions.add_session_feedback("monday", {"rating": "up"})
        path = write_report(client, tmp_path / "there.html", by="metadata.variant")
        here = write_report(
            Heedful(server.state.store.project("default")), tmp_path / "here.html", by="metadata.variant"
        )
    opinions = [re.sub(r"\d\d:\d\d", "", read(made.path).text) for made in (path, here)]
    assert path.opinions == 1
    assert opinions[0] == opinions[1]
