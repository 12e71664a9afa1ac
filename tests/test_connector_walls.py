"""A store is no connector: what runs on it would see every project."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful import Forbidden, Heedful


@pytest.mark.parametrize("form", ["sqlite:///{path}", "sqlite:///file:{path}?mode=ro&uri=true"])
def test_a_store_is_no_connector(store: Heedful, path: Path, form: str) -> None:
    with pytest.raises(Forbidden, match="is a Heedful store") as caught:
        store.connectors.create("own", form.format(path=path))
    assert caught.value.code == "store_as_connector"
    assert store.connectors.list() == []


def test_neither_under_another_name(store: Heedful, path: Path, tmp_path: Path) -> None:
    link = tmp_path / "innocent.sqlite"
    link.symlink_to(path)
    with pytest.raises(Forbidden, match="is a Heedful store"):
        store.connectors.create("own", f"sqlite:///{link}")


def test_nor_once_it_has_become_one(store: Heedful, path: Path, tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "shop.sqlite"
    with sqlite3.connect(file) as shop:
        shop.execute("CREATE TABLE orders (id INTEGER)")
    connector = store.connectors.create("shop", f"sqlite:///{file}")
    file.unlink()
    file.symlink_to(path)
    with pytest.raises(Forbidden, match="is a Heedful store"):
        store.executions.execute_query("SELECT name FROM projects", connector_id=connector.connector_id)
