from __future__ import annotations

from pathlib import Path

import pytest

from heedful import Invalid
from heedful.settings import load


def test_the_defaults_need_nothing(tmp_path: Path) -> None:
    found = load({}, tmp_path)
    assert (found.store, found.project, found.embedding) == ("heedful.db", "default", "bundled")
    assert found.embedding_api_key is None
    assert found.embedding_timeout == 30.0


def test_a_file_comes_before_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "heedful.toml").write_text('store = "mine.db"\nembedding_timeout = 5\n')
    found = load({}, tmp_path)
    assert (found.store, found.embedding_timeout, found.project) == ("mine.db", 5.0, "default")


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "heedful.toml").write_text('store = "mine.db"\nproject = "mine"\n')
    found = load({"HEEDFUL_STORE": "other.db", "HEEDFUL_EMBEDDING_TIMEOUT": "2.5", "STORE": "no.db"}, tmp_path)
    assert (found.store, found.project, found.embedding_timeout) == ("other.db", "mine", 2.5)


def test_the_current_folder_is_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "heedful.toml").write_text('project = "here"\n')
    monkeypatch.chdir(tmp_path)
    assert load({}).project == "here"


@pytest.mark.parametrize("content", [b"store = ", b"\xff\xfe", b"store = 'a'\nstore = 'b'"])
def test_a_file_that_can_not_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "heedful.toml").write_bytes(content)
    with pytest.raises(Invalid, match=r"heedful\.toml can't be read") as caught:
        load({}, tmp_path)
    assert caught.value.remedy


def test_an_unknown_setting_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "heedful.toml").write_text('stroe = "typo.db"\n')
    with pytest.raises(Invalid, match="stroe"):
        load({}, tmp_path)


@pytest.mark.parametrize("name", ["embedding_timeout", "language_model_timeout"])
@pytest.mark.parametrize("value", ["soon", "0", "-1"])
def test_a_timeout_that_is_none_is_refused_by_name_and_value(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(Invalid, match=name) as caught:
        load({f"HEEDFUL_{name.upper()}": value}, tmp_path)
    assert caught.value.value == value


@pytest.mark.parametrize("name", ["embedding_api_key", "language_model_api_key"])
def test_a_key_is_not_shown(tmp_path: Path, name: str) -> None:
    found = load({f"HEEDFUL_{name.upper()}": "hunter2"}, tmp_path)
    assert getattr(found, name) == "hunter2"
    assert "hunter2" not in repr(found)


def test_lists_are_lists_in_the_file_and_have_commas_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "heedful.toml").write_text('connector_hosts = ["db.example.com", "[::1]:5433"]\n')
    found = load(
        {"HEEDFUL_CONNECTOR_FOLDERS": "/data, ~/shared,", "HEEDFUL_CONNECTOR_SECRETS": "CRM_PASSWORD"}, tmp_path
    )
    assert found.connector_hosts == ("db.example.com", "[::1]:5433")
    assert found.connector_folders == ("/data", "~/shared")
    assert found.connector_secrets == ("CRM_PASSWORD",)
    for name, wrong in (
        ("hosts", "https://host/x"),
        ("hosts", "host:port"),
        ("hosts", "*"),
        ("folders", "data"),
        ("secrets", "heedful_admin_key"),
        ("secrets", "${CRM}"),
    ):
        with pytest.raises(Invalid, match=f"connector_{name}"):
            load({f"HEEDFUL_CONNECTOR_{name.upper()}": wrong}, tmp_path)


def test_there_is_no_language_model_unless_one_is_named(tmp_path: Path) -> None:
    assert load({}, tmp_path).language_model is None
    assert load({}, tmp_path).language_model_timeout == 60.0
    settings = load({"HEEDFUL_LANGUAGE_MODEL": "http://127.0.0.1:9/v1#words"}, tmp_path)
    assert settings.language_model == "http://127.0.0.1:9/v1#words"
