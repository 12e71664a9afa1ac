"""`heedful doctor --security`: each thing that stands between a store or server and production is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from server import running

import heedful
from heedful.access.hardening import check_security
from heedful.clock import to_stored
from heedful.errors import Unavailable
from heedful.interfaces.client.hardening import check_server
from heedful.settings import Settings
from heedful.storage import open_store
from heedful.testing import ManualClock, WordEmbedder


def findings(path: Path | str, clock: ManualClock, environment: dict[str, str] | None = None, **given: Any) -> set[str]:
    database = open_store(path)
    try:
        found = check_security(database, Settings(**given), environment or {}, Path.cwd(), to_stored(clock()))
    finally:
        database.close()
    return {check.name for check in found if not check.ok}


def test_a_new_store_has_none(path: Path, clock: ManualClock) -> None:
    heedful.open(path, embedding=WordEmbedder(), clock=clock).close()
    assert findings(path, clock) == set()


def test_files_that_others_may_read_are_found(path: Path, clock: ManualClock) -> None:
    heedful.open(path, embedding=WordEmbedder(), clock=clock).close()
    path.chmod(0o644)
    assert findings(path, clock) == {"files"}


def test_keys_that_nobody_uses_are_found(path: Path, clock: ManualClock) -> None:
    with heedful.open(path, embedding=WordEmbedder(), clock=clock) as store:
        store.keys.create("old")
        clock.advance(days=91)
        assert findings(path, clock) == {"keys"}
        store.keys.revoke(store.keys.list()[0].key_id)
    assert findings(path, clock) == set()


@pytest.mark.parametrize(
    ("key", "weak"),
    [("a" * 40, True), ("short-admin-key-1234", True), ("0f9e2d7c4b6a81355ad3c7e1908b64f2", False)],
)
def test_an_admin_key_that_can_be_guessed_is_found(path: Path, clock: ManualClock, key: str, weak: bool) -> None:
    heedful.open(path, embedding=WordEmbedder(), clock=clock).close()
    assert findings(path, clock, {"HEEDFUL_ADMIN_KEY": key}) == ({"admin key"} if weak else set())


def test_one_author_who_teaches_alone_is_found(path: Path, clock: ManualClock) -> None:
    heedful.open(path, embedding=WordEmbedder(), clock=clock).close()
    assert findings(path, clock, authors_to_teach=1) == {"teaching"}


def test_proxies_that_could_be_anybody_are_found(path: Path, clock: ManualClock) -> None:
    heedful.open(path, embedding=WordEmbedder(), clock=clock).close()
    assert findings(path, clock, trusted_proxies=["10.0.0.7", "10.0.0.0/24"]) == set()
    assert findings(path, clock, trusted_proxies=["0.0.0.0/0"]) == {"proxies"}


@pytest.mark.slow
def test_a_store_whose_user_sees_past_row_level_security_is_found(postgresql_url: str, clock: ManualClock) -> None:
    heedful.open(postgresql_url, embedding=WordEmbedder(), clock=clock).close()
    assert findings(postgresql_url, clock) <= {"store's user"}


@pytest.mark.slow
def test_a_server_is_tried_as_a_stranger_would(path: Path) -> None:
    with running(path, worker=False) as server, server.connect() as admin:
        key = admin.keys.create("app", scopes=["read"]).api_key
        assert [check.name for check in check_server(server.url, key) if not check.ok] == []
        assert [check.name for check in check_server(server.url, server.key) if not check.ok] == ["key"]
    with running(path, worker=False, cors_origins=["*"]) as server:
        assert [check.name for check in check_server(server.url, None) if not check.ok] == ["origins"]


def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(Unavailable, match="can't be reached"):
        check_server("http://127.0.0.1:9", None)
