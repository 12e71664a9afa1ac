"""Results go to JSON and come back as they were."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import Invalid
from heedful.results import SAFE_INTEGER, Column, Result, decode, encode, normalize, row_size

offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**130), 2**130),
    st.floats(allow_nan=False),
    st.text(),
    st.text(st.characters()),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.one_of(st.times(), st.times(timezones=offsets), st.datetimes(), st.datetimes(timezones=offsets)).map(
        lambda moment: moment.replace(fold=0)
    ),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from(["$decimal", "\0", "a\0b", "\ud800", "😀"]),
)
keys = st.one_of(st.text(), st.sampled_from(["$decimal", "$map", "$"]), st.integers(), st.booleans(), st.dates())
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=8)


def result_of(*rows: tuple[Any, ...]) -> Result:
    width = len(rows[0]) if rows else 1
    return Result(tuple(Column("c", "any") for _ in range(width)), rows)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return type(other) is list and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return type(other) is dict and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and (one == other or one != one) and repr(one) == repr(other)


@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[values] * width), max_size=4)))
@pytest.mark.slow
def test_any_result_comes_back_from_json_as_it_was(rows: list[tuple[Any, ...]]) -> None:
    result = result_of(*rows)
    for text in (orjson.dumps(encode(result)), json.dumps(encode(result), allow_nan=False)):
        assert same([list(row) for row in decode(json.loads(text)).rows], [list(row) for row in rows])


@given(st.lists(st.tuples(scalars), max_size=5))
def test_the_size_of_rows_is_never_less_than_what_is_written(rows: list[tuple[Any, ...]]) -> None:
    written = len(orjson.dumps(encode(result_of(*rows))["rows"]))
    assert written <= sum(row_size(row) for row in rows) + len(rows) + 2


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (Decimal("1.50"), "decimal", "1.50"),
        (date(2024, 2, 29), "date", "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2, 3, 4), "datetime", "2024-02-29T01:02:03.000004"),
        (datetime(2024, 2, 29, tzinfo=UTC), "datetime", "2024-02-29T00:00:00+00:00"),
        (time(1, 2), "time", "01:02:00"),
        (timedelta(days=-1, seconds=5), "interval", "P-1DT5.000000S"),
        (b"\0\xff", "bytes", "AP8="),
        (UUID(int=7), "uuid", "00000000-0000-0000-0000-000000000007"),
        (SAFE_INTEGER + 1, "integer", "9007199254740992"),
        (-math.inf, "float", "-inf"),
        (SAFE_INTEGER, "json", SAFE_INTEGER),
        (1.5, "json", 1.5),
        ("text", "json", "text"),
        ([1, {"a": None}], "json", [1, {"a": None}]),
    ],
)
def test_a_column_of_one_kind_says_so_once(value: Any, kind: str, written: Any) -> None:
    encoded = encode(result_of((value,), (None,), (value,)))
    assert encoded["columns"][0]["kind"] == kind
    assert encoded["rows"] == [[written], [None], [written]]


def test_values_of_several_kinds_say_so_themselves() -> None:
    encoded = encode(result_of((1,), (Decimal(1),), ("1",), (b"1",)))
    assert encoded["columns"][0]["kind"] == "json"
    assert encoded["rows"] == [[1], [{"$decimal": "1"}], ["1"], [{"$bytes": "MQ=="}]]


def test_not_a_number_comes_back() -> None:
    assert math.isnan(decode(encode(result_of((math.nan,)))).rows[0][0])
    assert decode(encode(result_of((Decimal("NaN"),)))).rows[0][0].is_nan()


def test_names_types_and_what_was_cut_are_kept_and_names_may_repeat() -> None:
    result = Result((Column("a", "int4"), Column("a", "text")), ((1, "x"),), True, "rows", 0.25)
    assert decode(json.loads(json.dumps(encode(result)))) == result


def test_a_named_zone_becomes_its_offset_even_when_the_clock_is_turned_back() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (normalize(datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=fold)) for fold in (0, 1))
    assert second - first == timedelta(hours=1)
    assert decode(encode(result_of((first, second)))).rows == ((first, second),)


def test_what_is_not_known_becomes_text() -> None:
    from ipaddress import ip_address

    assert normalize(ip_address("::1")) == "::1"
    assert normalize((1, {"a": bytearray(b"x")})) == [1, {"a": b"x"}]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"columns": []},
        {"columns": [{"name": "a"}], "rows": []},
        {**encode(result_of((1,))), "rows": [[1, 2]]},
        {**encode(result_of((Decimal(1),))), "rows": [["x"]]},
        {**encode(result_of((1,))), "rows": [[{"$nothing": 1}]]},
    ],
)
def test_what_was_not_encoded_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as raised:
        decode(broken)
    assert raised.value.code == "result_unreadable"
