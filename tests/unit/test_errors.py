from __future__ import annotations

import ast
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import heedful
from heedful import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Signal, Unavailable
from heedful.errors import MAX_MESSAGE, MAX_QUOTED, quoted

GOOD: dict[str, Any] = {"fact_id": "f", "signal_type": "used", "query": "q"}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (NotFound, "not_found"),
        (Invalid, "invalid"),
        (Conflict, "conflict"),
        (Forbidden, "forbidden"),
        (Unavailable, "unavailable"),
    ],
)
def test_each_error_has_a_code_and_one_parent(kind: type[HeedfulError], code: str) -> None:
    assert issubclass(kind, HeedfulError)
    assert kind("no").code == code


def test_an_invalid_value_is_a_value_error() -> None:
    assert issubclass(Invalid, ValueError)


def test_the_message_ends_with_what_to_do() -> None:
    error = Unavailable("the store is full", code="disk_full", remedy="Free some space")
    assert str(error) == "the store is full. Free some space"
    assert (error.message, error.remedy, error.code) == ("the store is full", "Free some space", "disk_full")


def test_an_error_survives_a_process_boundary() -> None:
    error = Invalid("top_k must be 1", field="top_k", value=0, remedy="Use 1")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is Invalid
    assert str(back) == str(error)
    assert (back.field, back.value, back.remedy, back.code) == ("top_k", 0, "Use 1", "invalid")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fact_id", ""),
        ("fact_id", "  "),
        ("signal_type", "liked"),
        ("query", ""),
        ("query", " \n"),
        ("confidence", 1.01),
        ("confidence", -0.01),
        ("confidence", float("nan")),
        ("confidence", float("inf")),
        ("confidence", "sure"),
        ("at", "yesterday"),
    ],
)
def test_a_field_that_can_not_be_accepted_is_named_with_its_value(field: str, value: object) -> None:
    with pytest.raises(Invalid) as caught:
        Signal(**{**GOOD, field: value})
    assert caught.value.field == field
    assert field in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("field", ["fact_id", "signal_type", "query"])
def test_a_field_that_is_missing_is_named_with_a_remedy(field: str) -> None:
    good = {name: value for name, value in GOOD.items() if name != field}
    with pytest.raises(Invalid, match=f"{field} is required") as caught:
        Signal(**good)
    assert caught.value.remedy == f"Pass {field}=…"


def test_a_field_that_nobody_knows_is_named() -> None:
    with pytest.raises(Invalid, match="confidance"):
        Signal(**{**GOOD, "confidance": 0.5})


def test_a_long_value_is_shortened() -> None:
    with pytest.raises(Invalid) as caught:
        Signal(**{**GOOD, "signal_type": "x" * 10_000})
    assert len(str(caught.value)) < 400


def test_a_model_can_not_be_changed() -> None:
    signal = Signal(fact_id="f", signal_type="used", query="q")
    with pytest.raises(ValueError, match="frozen"):
        signal.confidence = 0.1


def test_a_field_that_is_unknown_is_named_with_its_place() -> None:
    with pytest.raises(Invalid) as caught:
        Signal(**GOOD, **{"z-z": 1})  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.message) == ("z-z", "z-z is not a field of it")
    assert caught.value.remedy == "Check its name, or leave it out"


class TestQuoted:
    """A value in a message."""

    @pytest.mark.parametrize(
        "value",
        [
            "",
            "it's",
            b"x",
            0,
            -1.5,
            True,
            None,
            [],
            [1, "a", [None]],
            (),
            (1,),
            (1, 2),
            {},
            {"a": {"b": [1]}},
            set(),
            {1},
        ],
    )
    def test_a_short_value_is_written_as_python_writes_it(self, value: object) -> None:
        assert quoted(value) == repr(value)

    @pytest.mark.parametrize(
        "value",
        [
            "x" * 5_000_000,
            b"x" * 5_000_000,
            [1.2345678901234567e-300] * 200_000,
            [["x" * 100_000] * 100] * 100,
            {f"{number}" * 1_000: number for number in range(1_000)},
            set(range(100_000)),
            10**200_000,
            -(10**200_000),
            [[10**200_000] * 1_000],
        ],
        ids=["text", "bytes", "floats", "lists", "mapping", "set", "integer", "negative", "integers"],
    )
    def test_a_large_value_takes_little_work(self, value: object) -> None:
        tracemalloc.start()
        try:
            text = quoted(value)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(text) <= MAX_QUOTED
        # Writing all of it would take megabytes.
        assert most < 20_000

    @given(
        st.recursive(
            st.none() | st.integers() | st.floats() | st.text(max_size=300),
            lambda inner: st.lists(inner, max_size=50) | st.dictionaries(st.text(max_size=50), inner, max_size=50),
        ),
        st.integers(20, MAX_QUOTED),
    )
    @pytest.mark.slow
    def test_no_value_takes_more_than_its_limit(self, value: object, limit: int) -> None:
        assert len(quoted(value, limit)) <= limit
        # As often as it is shown, and not as often as it is there.
        assert len(quoted([value] * 1_000, limit)) <= limit

    @given(st.integers(0, 30), st.integers(1, 10_000))
    def test_members_are_looked_at_as_far_as_they_are_shown(self, depth: int, count: int) -> None:
        looked: list[object] = []

        class Member:
            def __repr__(self) -> str:
                looked.append(self)
                return "a member"

        value: list[Any] = [Member()] * count
        for _ in range(depth):
            value = [value] * count
        quoted(value)
        assert len(looked) <= MAX_QUOTED

    def test_depth_has_no_end(self) -> None:
        value: list[Any] = []
        for _ in range(100_000):
            value = [value]
        assert len(quoted(value)) <= MAX_QUOTED
        value.append(value)
        assert quoted(value)


@pytest.mark.nightly
def test_no_refusal_writes_a_value_in_full() -> None:
    """A value that is refused may be of any size: messages quote it by `quoted`."""
    found = []
    for file in Path(heedful.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id in ("Invalid", "damaged")
            ):
                parts = [each for each in ast.walk(call) if isinstance(each, ast.FormattedValue)]
                found += [f"{file}:{part.lineno}" for part in parts if part.conversion == ord("r")]
    assert not found


@pytest.mark.parametrize("name", ["x" * 100_000, "x-" * 50_000])
def test_the_name_of_an_unknown_field_is_shortened(name: str) -> None:
    with pytest.raises(Invalid, match=name[:10]) as caught:
        Signal(**GOOD, **{name: 1})  # type: ignore[arg-type]
    assert len(caught.value.message) == MAX_MESSAGE
    assert len(str(caught.value.field)) == MAX_QUOTED
