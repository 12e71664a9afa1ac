"""The page of benchmarks and the README say what the records say: nobody types a figure."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

from bench import all as every
from bench import page, plan, quiet, records
from bench.quiet import Clock, Share
from bench.records import Aim, Machine, Record, Table

RECORDS = records.all_records()
BLOCKS = {file: page.BLOCK.findall(file.read_text(encoding="utf-8")) for file in (page.PAGE, page.README)}


@pytest.mark.parametrize("file", [page.PAGE, page.README], ids=lambda file: file.name)
def test_each_block_says_what_the_records_say(file: Path) -> None:
    assert page.filled(file, RECORDS) == file.read_text(encoding="utf-8"), "run python -m bench.page"


@pytest.mark.parametrize("name", ["learning.svg", "growth.svg"])
def test_the_pictures_are_drawn_from_the_records(name: str) -> None:
    drawn = page.images(RECORDS)[name]
    assert (page.IMAGES / name).read_text(encoding="utf-8") == drawn, "run python -m bench.page"


def test_each_record_is_on_the_page_once() -> None:
    shown = [name for name, _ in BLOCKS[page.PAGE] if name not in page.COMPOSED]
    left = {part.name for benchmark in plan.BENCHMARKS.values() for part in benchmark.parts}
    assert sorted(shown) == sorted({*RECORDS, *left})


def test_figures_are_in_blocks() -> None:
    by_hand = re.sub(r"```.*?```", "", page.BLOCK.sub("", page.PAGE.read_text(encoding="utf-8")), flags=re.DOTALL)
    assert re.findall(r".*\d ?(?:%|(?:µs|ms|s|minutes|MB|kB|GB|times)\b).*", by_hand) == []


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_record_says_where_it_comes_from(record: Record) -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", record.commit)
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", record.date)
    assert record.carried == (record.machine is None)
    assert all(len(row) == len(table.columns) for table in record.tables for row in table.rows)


def test_each_target_of_a_benchmark_is_in_the_makefile() -> None:
    makefile = (records.ROOT / "Makefile").read_text(encoding="utf-8")
    for benchmark in plan.BENCHMARKS.values():
        assert re.search(rf"^{benchmark.target}:.*\n\t\$\(BIN\)/python -m bench\.{benchmark.module}$", makefile, re.M)


def test_a_record_is_read_as_it_was_saved(tmp_path: Path) -> None:
    record = Record(
        "speed",
        "make bench",
        "0.1.0",
        "0" * 40,
        "2026-11-19",
        Machine("a processor, 2 cores", Share(0.31, 0.04), 0.05, 600.0),
        aims=[Aim("recall", "2 ms", "≤ 1 ms", False)],
        tables=[Table("Times", ["", "ms"], [["a | b", "2"]], ["A note."])],
        figures={"times": 2.0},
    )
    record.save(tmp_path)
    assert records.all_records(tmp_path) == {"speed": record}
    assert record.markdown() == (
        "| figure | measured | aim |  |\n"
        "| --- | --- | --- | --- |\n"
        "| recall | 2 ms | ≤ 1 ms | **not met** |\n\n"
        "**Times**\n\n"
        "|  | ms |\n| --- | --- |\n| a \\| b | 2 |\n\n"
        "A note.\n\n"
        "*Version 0.1.0, commit 00000000, 2026-11-19. By `make bench`. a processor, 2 cores. Other programs took 31% of"
        " the processors before the run and the host 4.0%; during it the host took 5.0%. It didn't become quiet within"
        " 600 s.*"
    )


def test_of_many_aims_only_those_that_were_missed_are_listed() -> None:
    aims = [Aim(f"aim {place}", "1", "≤ 2", place > 0) for place in range(records.MOST_AIMS + 1)]
    shown = Record("server", "", "0.1.0", "0" * 40, "2026-11-19", carried=True, aims=aims).markdown()
    assert "| aim 0 | 1 | ≤ 2 | **not met** |" in shown
    assert "aim 1" not in shown
    assert "The other 12 of 13 aims are met." in shown


def test_a_part_takes_its_own_tables_and_aims() -> None:
    report = {
        "title": "Reuse",
        "sections": [
            {"title": "All: 2 questions", "columns": [""], "rows": [["a"]], "notes": ["seen"]},
            {"title": "Templates", "columns": [""], "rows": [], "notes": []},
            {"title": "Other", "columns": [""], "rows": [], "notes": []},
        ],
        "bars": [
            {"name": "reused", "measured": 60.9, "limit": 60.0, "kind": "at least", "unit": "%", "met": True},
            {"name": "other", "measured": 1.0, "limit": 2.0, "kind": "at most", "unit": "", "met": True},
        ],
    }
    part = plan.Part("reuse", "*.json", tables="All", more="Templates", aims="reused")
    tables, aims = part.taken([json.loads(json.dumps(report))])
    assert [(table.title, table.more) for table in tables] == [("All: 2 questions", False), ("Templates", True)]
    assert aims == [Aim("reused", "60.9%", "≥ 60.0%", True)]


@pytest.mark.parametrize(("busy", "stolen", "is_quiet"), [(0.05, 0.01, True), (0.2, 0.0, False), (0.0, 0.05, False)])
def test_a_machine_is_quiet_when_others_take_little(busy: float, stolen: float, is_quiet: bool) -> None:
    assert Share(busy, stolen).quiet == is_quiet


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(Clock(100 * place, 10 * place, 5 * place) for place in range(10))
    monkeypatch.setattr(Clock, "read", staticmethod(lambda: next(readings)))
    seen, _ = quiet.wait(patience=0.0, seconds=0.0)
    assert (seen.busy, seen.stolen) == (0.85, 0.05)


@pytest.mark.parametrize("module", [page, records, quiet], ids=lambda module: module.__name__)
def test_the_examples_of_the_report_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_figures_belong_to_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every, "_git", lambda *arguments: " M src/heedful/engine.py")
    with pytest.raises(SystemExit, match="differ from the last one"):
        every.main(["--only", "files"])


def test_a_benchmark_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(benchmark: plan.Benchmark, *_: object) -> list[Record]:
        if benchmark.module == "speed":
            raise RuntimeError("it wrote nothing")
        table = Table("A warm call", ["call", "files"], [["recall", "1,234"]])
        return [Record("files", "make bench-files", "0.1.0", "0" * 40, "2026-11-19", tables=[table])]

    monkeypatch.setattr(every, "ROOT", tmp_path)
    monkeypatch.setattr(every, "_run", run)
    with pytest.raises(SystemExit, match="speed: it wrote nothing"):
        every.main(["--quick", "--only", "speed", "files"])
    written = (tmp_path / "bench" / "out" / "quick" / "benchmarks.md").read_text(encoding="utf-8")
    assert "| recall | 1,234 |" in written
    assert "| recall | 1,234 |" not in page.PAGE.read_text(encoding="utf-8")
