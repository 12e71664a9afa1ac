"""Charts as SVG: what they say, and that nothing breaks them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from heedful.interfaces.charts import (
    Bar,
    Interval,
    Marker,
    Point,
    Series,
    bar_chart,
    date_ticks,
    histogram,
    interval_chart,
    line_chart,
    ticks,
)

HOSTILE = "<script>alert(\"1\")</script> & 'x'"
START = date(2026, 11, 1)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def days(*values: float | None) -> list[Point]:
    return [Point(START + timedelta(days=place), value) for place, value in enumerate(values)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 400])
@pytest.mark.parametrize("standalone", [False, True])
def test_any_number_of_points_makes_a_picture_of_the_same_size(count: int, standalone: bool) -> None:
    points = [Point(START + timedelta(days=place), 0.5, 0.4, 0.6, 10) for place in range(count)]
    picture = parsed(line_chart([Series("all", points)], title="Satisfaction", standalone=standalone))
    assert picture.attrib["viewBox"] == "0 0 720 280"
    assert picture.attrib["role"] == "img"
    assert "nan" not in ElementTree.tostring(picture, encoding="unicode").lower()


def test_a_gap_in_the_data_is_a_gap_in_the_line() -> None:
    picture = line_chart([Series("all", days(0.1, 0.2, None, 0.4, 0.5))], title="t")
    assert picture.count("<polyline") == 2


def test_a_point_says_its_day_its_value_its_interval_and_how_many_were_counted() -> None:
    point = Point(date(2026, 11, 3), 0.82, 0.7, 0.9, 1234)
    picture = line_chart([Series("all", [*days(0.5), point])], title="t", percent=True)
    assert "<title>3 Nov: 82% (70% to 90%), n = 1,234</title>" in picture


def test_two_lines_have_a_legend_and_differ_in_more_than_colour() -> None:
    picture = line_chart([Series("helped", days(1, 2)), Series("hurt", days(2, 1))], title="t", standalone=True)
    assert ">helped</text>" in picture
    assert ">hurt</text>" in picture
    assert ".hd-s1{stroke:#52606d;stroke-dasharray" in picture


def test_events_stand_on_the_line_where_they_happened() -> None:
    at = datetime(2026, 11, 2, 12, tzinfo=UTC)
    marker = Marker(at, "helpful, by ada", y=0.65, kind="up")
    picture = line_chart([Series("score", days(0.5, 0.6, 0.7))], title="t", markers=[marker])
    assert "helpful, by ada</title>" in picture
    assert 'class="hd-up"' in picture


@pytest.mark.parametrize(
    "draw",
    [
        lambda: line_chart(
            [Series(HOSTILE, days(1, 2)), Series("b", days(1))],
            title=HOSTILE,
            desc=HOSTILE,
            markers=[Marker(START, HOSTILE), Marker(START, HOSTILE, y=1)],
        ),
        lambda: bar_chart([Bar(HOSTILE, 3, note=HOSTILE)], title=HOSTILE, desc=HOSTILE),
        lambda: interval_chart([Interval(HOSTILE, 0.5, 0.4, 0.6, 3)], title=HOSTILE, desc=HOSTILE),
    ],
)
def test_no_text_gets_out_of_its_place(draw: Callable[[], str]) -> None:
    picture = draw()
    assert "<script" not in picture
    assert picture.count('"') % 2 == 0
    parsed(picture)


def test_a_file_brings_its_colours_and_a_page_brings_them_itself() -> None:
    alone = bar_chart([Bar("a", 1)], title="t", standalone=True)
    inside = bar_chart([Bar("a", 1)], title="t")
    assert 'xmlns="http://www.w3.org/2000/svg"' in alone
    assert "<style>" in alone
    assert "<style" not in inside
    assert "style=" not in inside


@pytest.mark.parametrize("bars", [[], [Bar("a", 0)], [Bar("a", 0.3), Bar("b", 7)], [Bar(str(n), n) for n in range(60)]])
def test_bars_stay_inside_their_frame(bars: list[Bar]) -> None:
    picture = parsed(bar_chart(bars, title="t"))
    tops = [float(each.attrib["y"]) for each in picture.iter("rect")]
    assert all(16 - 0.01 <= top <= 204.01 for top in tops)


def test_a_histogram_has_a_bar_for_each_bin() -> None:
    assert histogram({"0.0-0.1": 3, "0.1-0.2": 0}, title="t").count("<rect") == 2


@pytest.mark.parametrize(
    "rows", [[], [Interval("A", None)], [Interval("A", 0.9, 0.8, 1.0), Interval("B", 0.0, 0, 0.2)]]
)
def test_variants_with_and_without_ratings_are_drawn(rows: list[Interval]) -> None:
    parsed(interval_chart(rows, title="t"))


def test_a_variant_without_ratings_says_so() -> None:
    assert "no ratings yet" in interval_chart([Interval("A", None)], title="t")


@pytest.mark.parametrize("high", [0.003, 0.9, 1, 3, 99, 12_345])
def test_numbers_on_an_axis_are_few_and_round(high: float) -> None:
    found = ticks(0, high)
    assert 2 <= len(found) <= 7
    assert found[0] == 0
    assert found[-1] <= high


@pytest.mark.parametrize("span", [0.1, 1, 3, 14, 90, 400, 4000])
def test_dates_on_an_axis_are_few(span: float) -> None:
    assert 1 <= len(date_ticks(1.79e9, 1.79e9 + span * 86_400)) <= 7


def test_a_long_name_of_a_row_is_cut_and_told_whole_on_pointing() -> None:
    label = "a variant with a long & windy name"
    drawn = interval_chart([Interval(label, 0.5), Interval("short", 0.5)], title="t")
    assert f">{label[:10]}" in drawn.replace("&amp;", "&")
    assert "…</text>" in drawn
    assert "<title>a variant with a long &amp; windy name</title>" in drawn
    assert ">short</text>" in drawn
