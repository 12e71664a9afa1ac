"""Traffic to look at: two weeks of a help desk, from a seed."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from help_desk import HelpDeskStore

import heedful
from heedful import Conflict, Entry, Heedful, Invalid, Session
from heedful.interfaces.cli.demo_commands import _two_weeks, fill_or_reuse
from heedful.interfaces.cli.main import cli
from heedful.model import Execution
from heedful.simulate.people import NOTHING_KNOWN, WORDINGS, Subject, remark
from heedful.simulate.shop import CORRECTION, FACTS, HANDBOOK, HELP, OLD_PAGES, OUTDATED, STAFF_WANTS, WANTS
from heedful.simulate.traffic import DAYS, PRICE_CHANGES, REVIEW, SESSIONS, Filled, fill, warehouse_file
from heedful.simulate.visits import HelpDesk, Timeline, arrivals
from heedful.testing import WordEmbedder
from heedful.text.corrections import corrected

UNTIL = datetime(2026, 3, 13, 15, 30, tzinfo=UTC)


@dataclass(frozen=True)
class TrafficData:
    """A store that was filled, and what is in it."""

    filled: Filled | HelpDeskStore
    memory: Heedful
    sessions: list[Session]
    entries: list[Entry]
    executions: list[Execution]


def look(filled: Filled | HelpDeskStore, memory: Heedful) -> TrafficData:
    sessions: list[Session] = []
    cursor = None
    while True:
        page = memory.sessions.list(cursor=cursor)
        sessions += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    entries = [entry for session in sessions for entry in memory.sessions.entries(session.session_id).items]
    return TrafficData(filled, memory, sessions, entries, memory.executions.list(limit=1000).items)


@pytest.fixture(scope="module")
def demo(help_desk: Callable[[], HelpDeskStore]) -> HelpDeskStore:
    return help_desk()


@pytest.fixture(scope="module")
def seen(demo: HelpDeskStore) -> Iterator[TrafficData]:
    with heedful.open(demo.file, project="demo", embedding=WordEmbedder(), worker=False) as memory:
        yield look(demo, memory)


def test_the_counts_are_what_the_store_has(seen: TrafficData) -> None:
    counts = seen.filled.counts
    visits = [session for session in seen.sessions if "variant" in session.metadata]
    assert len(visits) == counts["sessions"] == SESSIONS
    assert len(seen.entries) == counts["entries"]
    assert len(seen.executions) == counts["executions"]
    assert sorted(seen.memory.datasets()) == ["handbook", "help"]
    assert counts["facts"] == sum(len(facts) for facts in FACTS.values())
    assert counts["improvements"] == DAYS - 1


def test_all_kinds_of_people_come(seen: TrafficData) -> None:
    visits = [session.metadata for session in seen.sessions if "variant" in session.metadata]
    assert Counter(each["variant"] for each in visits) == {"A": SESSIONS / 2, "B": SESSIONS / 2}
    assert {each["channel"] for each in visits} == {"web", "app"}
    assert {each["tier"] for each in visits} == {"free", "plus", "business", "staff"}
    assert {entry.model for entry in seen.entries} == {"clerk-mini", "clerk-large"}


def test_answers_have_their_evidence(seen: TrafficData) -> None:
    answered = [entry for entry in seen.entries if entry.answer != NOTHING_KNOWN]
    assert len(answered) > 0.9 * len(seen.entries)
    assert all(entry.recall_id and entry.used and entry.usage for entry in answered)
    assert {entry.dataset for entry in seen.entries} == {"help", "handbook"}


def test_a_part_is_rated(seen: TrafficData) -> None:
    counts = seen.filled.counts
    assert 0.4 < counts["ratings"] / counts["entries"] < 0.6
    assert {entry.feedback_score for entry in seen.entries} >= {1, 2, 3, 4, 5}


def test_nothing_lies_outside_the_two_weeks(seen: TrafficData, demo: HelpDeskStore) -> None:
    times = [
        *(moment for session in seen.sessions for moment in (session.created_at, session.updated_at)),
        *(entry.time for entry in seen.entries),
        *(execution.created_at for execution in seen.executions),
        *(
            feedback.created_at
            for session in seen.sessions
            for feedback in seen.memory.sessions.feedbacks(session.session_id).items
        ),
        *(feedback.created_at for feedback in seen.memory.feedback.list()),
    ]
    assert min(times) >= demo.since
    assert max(times) <= demo.until
    with closing(sqlite3.connect(demo.file)) as store:
        ((first, last, recorded),) = store.execute("SELECT min(at), max(at), max(recorded_at) FROM events")
    assert first >= demo.since.timestamp() * 1e6
    assert last <= demo.until.timestamp() * 1e6
    assert recorded <= demo.until.timestamp() * 1e6


def test_the_variant_that_learns_is_better_in_truth_and_in_what_people_say(seen: TrafficData) -> None:
    def share(variant: str) -> float:
        of = {quality: seen.filled.counts[f"{quality} answers of {variant}"] for quality in ("good", "bad")}
        return of["good"] / sum(of.values())

    assert share("B") > share("A")
    result = {each.value: each for each in seen.memory.insight.satisfaction("variant").variants}
    assert result["B"].satisfaction is not None
    assert result["A"].satisfaction is not None
    assert result["B"].satisfaction > result["A"].satisfaction


def share(seen: TrafficData, start: datetime, end: datetime, dataset: str) -> float:
    """Satisfaction within a time."""
    (line,) = seen.memory.insight.trend(since=start, until=end, dataset=dataset).lines
    up, down = sum(point.up for point in line.points), sum(point.down for point in line.points)
    return up / (up + down)


def test_a_price_changes_and_people_complain_until_it_is_corrected(seen: TrafficData, demo: HelpDeskStore) -> None:
    changed, fixed = (demo.since + timedelta(days=day) for day in (PRICE_CHANGES, REVIEW))
    times = [entry.time for entry in seen.entries if "checkout" in (entry.feedback_text or "")]
    assert changed < min(times) < max(times) < fixed
    assert len(times) > 15
    texts = [hit.text for hit in seen.memory.recall("What does Plus cost?", dataset=HELP, top_k=20).hits]
    assert texts[0] == CORRECTION
    assert FACTS[HELP][OUTDATED] not in texts


def test_people_are_happier_in_the_end_and_another_team_is_as_happy_as_before(
    seen: TrafficData, demo: HelpDeskStore
) -> None:
    second = demo.since + timedelta(days=7)
    assert share(seen, second, demo.until, HELP) > share(seen, demo.since, second, HELP) + 0.2
    assert min(share(seen, demo.since, second, HANDBOOK), share(seen, second, demo.until, HANDBOOK)) > 0.8


def test_the_corrected_complaints_stay_resolved_and_some_others_wait(seen: TrafficData) -> None:
    items = {status: seen.memory.review.list(status=status, limit=1000).items for status in ("open", "resolved")}
    assert 5 < len(items["open"]) < 40
    histories = [
        [action.action for action in seen.memory.review.get(each.item_id).history] for each in items["resolved"]
    ]
    assert sum("supersede" in history for history in histories) == 1
    assert not any("reopen" in history for history in histories)


def test_no_complaint_becomes_a_fact(demo: HelpDeskStore) -> None:
    with closing(sqlite3.connect(demo.file)) as store:
        ((learnt,),) = store.execute('SELECT count(*) FROM facts WHERE metadata LIKE \'%"learnt_from":"feedback"%\'')
    assert learnt == 0


@pytest.mark.parametrize("subject", [each for each in WORDINGS if each != "praise"])
@pytest.mark.nightly
def test_remarks_that_only_complain_correct_no_fact(subject: Subject) -> None:
    facts, random = FACTS[HELP], Random(5)
    for _ in range(30):
        said = remark(subject, random)
        result = [corrected(said, list(facts.values()), want.queries[0]) for want in WANTS]
        assert set(result) == {None}, said


def test_executions_are_new_or_proven_and_rated_both_ways(seen: TrafficData) -> None:
    assert {each.origin for each in seen.executions} >= {"query", "served", "written"}
    assert {each.is_positive for each in seen.memory.feedback.list()} == {True, False}
    assert {each.origin for each in seen.memory.golden_examples.list()} >= {"given"}


def test_nobody_is_hostile(seen: TrafficData) -> None:
    written = [text for entry in seen.entries for text in (entry.question, entry.feedback_text)]
    written += [item.comment for item in seen.memory.review.list(status=None, limit=1000).items]
    written += [each.feedback for each in seen.memory.feedback.list(limit=1000)]
    texts = [text for text in written if text]
    assert [
        text for text in texts if text[0] in "=+-@<" or re.search(r"</?\w|[\u202a-\u202e\u2066-\u2069]", text)
    ] == []


def test_feedback_does_not_ruin_the_memory(seen: TrafficData) -> None:
    stats = seen.memory.usefulness_stats("help")
    assert stats.distribution["0.0-0.1"] + stats.distribution["0.1-0.2"] < 0.1 * stats.total_facts
    assert stats.average_overall_usefulness > 0.5


def test_the_store_is_sound(seen: TrafficData) -> None:
    assert all(check.ok for check in seen.memory.doctor(repair=False))


def plain(seen: TrafficData) -> list[object]:
    """All that a seed decides: no ids, and nothing that was measured."""
    return [
        seen.filled,
        [(session.metadata, session.created_at) for session in seen.sessions],
        [(entry.question, entry.answer, entry.time, entry.model) for entry in seen.entries],
        [(entry.feedback_score, entry.feedback_text) for entry in seen.entries],
        [[round(used.share, 6) for used in entry.used or ()] for entry in seen.entries],
        [(each.question, each.sql_query, each.origin, each.result, each.created_at) for each in seen.executions],
        [(each.feedback, each.author, each.created_at) for each in seen.memory.feedback.list()],
        [fact.text for fact in seen.memory.facts(dataset="help", limit=200).items],
    ]


@pytest.mark.nightly
def test_a_seed_repeats_the_traffic(tmp_path: Path) -> None:
    result = []
    for name, seed in (("one", 3), ("same", 3), ("other", 4)):
        file = tmp_path / name / "demo.db"
        file.parent.mkdir()
        filled = fill(file, sessions=14, days=2, seed=seed, until=UNTIL, embedding=WordEmbedder())
        with heedful.open(file, project="demo", embedding=WordEmbedder(), worker=False) as memory:
            result.append(plain(look(filled, memory)))
    assert result[0] == result[1]
    assert result[0] != result[2]


def test_a_project_with_facts_is_left_alone(demo: HelpDeskStore) -> None:
    with pytest.raises(Conflict, match="has facts already"):
        fill(demo.file, sessions=1, until=UNTIL, embedding=WordEmbedder())


def test_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        fill(tmp_path / "demo.db", days=0)


def test_progress_is_told(tmp_path: Path) -> None:
    messages: list[tuple[int, int]] = []
    fill(
        tmp_path / "demo.db",
        sessions=3,
        days=0.2,
        until=UNTIL,
        embedding=WordEmbedder(),
        progress=lambda done, total: messages.append((done, total)),
    )
    assert messages == [(0, 3), (1, 3), (2, 3)]


def test_a_kept_store_is_filled_once_and_used_again(tmp_path: Path) -> None:
    store = tmp_path / "kept" / "demo.db"
    first = fill_or_reuse(store, WordEmbedder(), sessions=2)
    assert fill_or_reuse(store, WordEmbedder(), sessions=2) == first


def test_filling_says_first_what_it_does_and_then_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_or_reuse(tmp_path / "demo.db", WordEmbedder(), sessions=2)
    output = capsys.readouterr()
    assert output.err.startswith(f"filling {tmp_path} with two weeks of a help desk, a minute or two…\n")
    assert re.match(r"\d+ facts remembered, 2 sessions, ", output.out)


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_stopped_while_it_is_filled_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HelpDesk, "visit", stopped)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / "kept" / "demo.db.mine"
    other.parent.mkdir()
    other.touch()
    kept = ["--keep", str(other.parent)] if keep else []
    done = CliRunner().invoke(cli, ["--embedding", "fast", "demo", "--dashboard", "--port", "0", *kept])
    assert done.exit_code == 130
    assert done.stderr.endswith("stopped; nothing is kept\n")
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [other]


def test_a_store_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    with heedful.open(tmp_path / "demo.db", project="demo", embedding=WordEmbedder()) as memory:
        memory.remember("mine")
    with pytest.raises(Conflict, match="completely filled"):
        fill_or_reuse(tmp_path / "demo.db", WordEmbedder())


def test_the_shop_is_beside_a_store_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert warehouse_file(tmp_path / "demo.db") == tmp_path / "shop.sqlite"
    assert warehouse_file(f"sqlite:///{tmp_path}/demo.db") == tmp_path / "shop.sqlite"
    assert warehouse_file("postgresql://host/name").parent.parent == temporary


def test_days_are_busier_than_nights_and_weeks_than_weekends() -> None:
    start = datetime(2026, 3, 2, tzinfo=UTC)
    moments = arrivals(start, start + timedelta(days=14), 5000, Random(1))
    assert moments == sorted(moments)
    hours = Counter(moment.hour for moment in moments)
    days = Counter(moment.weekday() for moment in moments)
    assert min(hours[10], hours[20]) > 5 * hours[3]
    assert min(days[day] for day in range(5)) > max(days[5], days[6])


def test_a_timeline_does_things_in_order_and_nothing_too_late() -> None:
    done: list[tuple[str, datetime]] = []
    timeline = Timeline(UNTIL, UNTIL + timedelta(hours=1))

    def first() -> None:
        done.append(("first", timeline()))
        timeline.after(10, lambda: done.append(("later", timeline())))
        timeline.after(100, lambda: done.append(("too late", timeline())))

    timeline.at(UNTIL + timedelta(minutes=30), lambda: done.append(("second", timeline())))
    timeline.at(UNTIL + timedelta(minutes=25), first)
    timeline.run()
    assert [name for name, _ in done] == ["first", "second", "later"]
    assert done[-1][1] == UNTIL + timedelta(minutes=35)


def test_remarks_vary() -> None:
    random = Random(1)
    for subject in WORDINGS:
        assert len({remark(subject, random) for _ in range(60)}) > 20


def test_wants_name_facts_that_there_are() -> None:
    assert {want.answer for want in WANTS} | {*OLD_PAGES, OUTDATED} <= FACTS[HELP].keys()
    assert {want.answer for want in STAFF_WANTS} <= FACTS[HANDBOOK].keys()


@pytest.mark.parametrize(("hour", "ends"), [(8, 16), (17, 17), (23, 17)])
def test_the_demo_fills_the_range_that_the_dashboard_shows_first_and_the_one_before_it(hour: int, ends: int) -> None:
    start, end = _two_weeks(datetime(2026, 11, 17, hour, 30, tzinfo=UTC))
    assert start == datetime(2026, 11, 4, tzinfo=UTC)
    assert end == datetime(2026, 11, ends, 17, tzinfo=UTC)
