from __future__ import annotations

import pickle
from typing import Any

import pytest

from heedful import Conflict, Forbidden, HeedfulError, Invalid, NotFound, Signal, Unavailable

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
