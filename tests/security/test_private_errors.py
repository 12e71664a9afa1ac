"""An error of the database shows nothing of what people wrote: neither to the caller nor in the log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from odd_inputs import LONG
from server import running
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

import heedful
from heedful import Invalid
from heedful.model.limits import MAX_CHOICES, MAX_CONDITIONS
from heedful.testing import WordEmbedder

PATIENT = "Jane-Roe-born-1980"


def test_an_error_of_the_database_shows_no_value(any_store: str) -> None:
    with (
        heedful.open(any_store, embedding=WordEmbedder(), worker=False) as store,
        store._workspace.database.read() as connection,
        pytest.raises(SQLAlchemyError) as caught,
    ):
        connection.execute(text("SELECT no_such_function(:name)"), {"name": PATIENT})
    assert PATIENT not in str(caught.value)


@pytest.mark.parametrize("value", [f"{PATIENT}\0", PATIENT + LONG], ids=["nul", "long"])
def test_a_value_that_the_database_refuses_is_blamed_and_not_shown(empty_database: str, value: str) -> None:
    with (
        heedful.open(empty_database, embedding=WordEmbedder(), worker=False) as store,
        store._workspace.database.write() as connection,
    ):
        connection.execute(text("CREATE TEMPORARY TABLE patient (name text PRIMARY KEY)"))
        with pytest.raises(Invalid) as caught:
            connection.execute(text("INSERT INTO patient VALUES (:name)"), {"name": value})
    assert (caught.value.code, PATIENT in str(caught.value)) == ("unstorable", False)


@pytest.mark.parametrize(
    "where",
    [
        {"patient": PATIENT, **{f"k{number}": {"!=": 1} for number in range(MAX_CONDITIONS)}},
        {"patient": [PATIENT, *range(MAX_CHOICES)]},
        {"patient": {"in": [PATIENT] * 5, "!=": PATIENT, ">": "a\0"}},
    ],
    ids=["conditions", "choices", "nul"],
)
def test_a_filter_that_is_refused_is_not_in_the_log(
    any_store: str, where: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with running(any_store) as server, server.connect() as there, caplog.at_level(logging.DEBUG, "heedful"):
        there.remember("Shipping takes 3 days.")
        for call in (lambda: there.recall("days", where=where), lambda: there.facts(where=where)):
            with pytest.raises(Invalid, match="where") as caught:
                call()
            assert PATIENT not in str(caught.value)
    assert PATIENT not in caplog.text


@pytest.mark.slow
def test_doctor_says_only_to_the_operator_where_the_store_is(any_store: str, mongodb_url: str) -> None:
    with running(any_store, sessions=mongodb_url) as server, server.connect() as operator:
        name = server.state.store.database.name
        sessions_name = operator.doctor()[-2].detail.removesuffix(": ok")
        assert sessions_name.startswith("mongodb://")
        assert operator.doctor()[0].detail == f"{name}: ok"
        file = Path(name)
        if file.exists():
            file.chmod(0o644)
        with server.connect(key=operator.keys.create("team", scopes=["admin"]).api_key) as team:
            checks = {check.name: check for check in team.doctor()}
        assert checks["store"].detail == checks["sessions"].detail == "ok"
        assert checks["files"].ok is not file.exists()
        assert not [each for each in checks.values() if name in each.detail or sessions_name in each.detail]
        if file.exists():
            assert str(file.parent) not in str(checks)


@pytest.mark.slow
def test_doctor_says_only_to_the_operator_which_sessions_are_unreachable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = "mongodb://127.0.0.1:9/sessions?serverSelectionTimeoutMS=100"
    with running(tmp_path / "store.db", sessions=url) as server, server.connect() as operator:
        key = operator.keys.create("team", scopes=["admin"]).api_key
        assert "127.0.0.1:9" in operator.doctor()[-1].detail
        with server.connect(key=key) as team:
            check = team.doctor()[-1]
        assert (check.name, check.ok) == ("sessions", False)
        assert "127.0.0.1" not in check.detail
        assert "127.0.0.1:9" in caplog.text
