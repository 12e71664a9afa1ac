"""No password is kept in the clear, and none is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from unittest.mock import patch

import pytest

from heedful.errors import Forbidden, HeedfulError, Invalid, Unavailable
from heedful.sql.secrets import (
    decrypt_url,
    encode_url,
    keys_from,
    masked_url,
    new_key,
    reencrypt_url,
    resolve_references,
)

PLAIN = "postgresql://me:hunter2@host:5432/sales"


def decode_url(stored: str, keys: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> str:
    """The URL to connect with; `environment` is all there is, if it is given."""
    with patch.dict(os.environ, environment or {}, clear=environment is not None):
        return resolve_references(decrypt_url(stored, keys))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:${PASSWORD}@host/sales",
        "postgresql://me@host/sales",
        "sqlite:////data/a@b.db",
        "postgresql://${USER}:${PASSWORD}@host:5432/sales?sslmode=require",
    ],
)
def test_a_url_without_secrets_is_kept_as_it_is(url: str) -> None:
    assert encode_url(url) == encode_url(url, [new_key()]) == url


@pytest.mark.parametrize(
    "url",
    [
        PLAIN,
        "postgresql://me:pre${PASSWORD}@host/sales",
        "postgresql://host/sales?password=hunter2",
        "postgresql://host/sales?sslpassword=hunter2",
        "mssql+pyodbc:///?odbc_connect=PWD%3Dhunter2",
        "snowflake://host/?private_key=hunter2",
        "duckdb:///x.db?motherduck_token=hunter2",
    ],
)
def test_a_plain_secret_is_encrypted_or_refused(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        encode_url(url)
    assert raised.value.code == "secret_plain"
    assert "HEEDFUL_SECRET_KEY" in str(raised.value)
    assert "hunter2" not in f"{raised.value!r} {raised.value.value}"
    key = new_key()
    stored = encode_url(url, [key])
    assert "hunter2" not in stored
    assert "host" not in stored
    assert "hunter2" not in masked_url(url) + masked_url(stored) + masked_url(stored, [key])
    assert decode_url(stored, [key], {"PASSWORD": "x"}) == url.replace("${PASSWORD}", "x")


def test_shown_says_where_and_not_how() -> None:
    assert masked_url(PLAIN) == "postgresql://me:***@host:5432/sales"
    assert masked_url("postgresql://me:${PASSWORD}@host/sales") == "postgresql://me:${PASSWORD}@host/sales"
    assert (
        masked_url("postgresql://host/x?password=hunter2&sslmode=require")
        == "postgresql://host/x?password=***&sslmode=require"
    )
    assert masked_url(encode_url(PLAIN, [new_key()])) == "(encrypted)"


@pytest.mark.parametrize("url", ["hunter2", "postgresql://me:hunt@er2@host/x", "://hunter2", "a b://hunter2@x"])
def test_nothing_is_shown_of_what_can_not_be_read(url: str) -> None:
    assert masked_url(url) == "(no readable URL)"
    with pytest.raises(Invalid) as raised:
        encode_url(url)
    assert raised.value.code == "url_unreadable"
    assert "er2" not in f"{raised.value!r} {raised.value.value}"


def test_references_are_resolved_where_they_stand() -> None:
    environment = {"USER": "me", "PASSWORD": "p@ss/w?rd#", "NESTED": "${PASSWORD}@elsewhere"}
    url = "postgresql://${USER}:${PASSWORD}@db.local:6000/sales?sslmode=require"
    assert decode_url(url, (), environment) == "postgresql://me:p%40ss%2Fw%3Frd%23@db.local:6000/sales?sslmode=require"
    # A value is a value: nothing in it is looked up, or taken for another part of the URL.
    assert decode_url("postgresql://me:${NESTED}@h/x", (), environment).endswith("%7BPASSWORD%7D%40elsewhere@h/x")


@pytest.mark.parametrize(
    "url",
    [
        "${URL}",
        "sqlite:////x/${PASSWORD}",
        "postgresql://me@${PASSWORD}/x",
        "postgresql://me@h:${PASSWORD}/x",
        "postgresql://me@h/${PASSWORD}",
        "postgresql://me@h/x?application_name=${PASSWORD}",
        "${PASSWORD}://h/x",
        "postgresql:///${PASSWORD}@h/x",
    ],
)
def test_references_stand_for_users_and_passwords_alone(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        decode_url(url, (), {"URL": PLAIN, "PASSWORD": "hunter2"})
    assert raised.value.code == "secret_reference"
    assert "hunter2" not in f"{raised.value!r} {raised.value.value}"
    assert masked_url(url) == "(no readable URL)"


def test_variables_that_nobody_listed_are_not_read() -> None:
    url, environment = "postgresql://${USER}:${PASSWORD}@h/x", {"USER": "me", "PASSWORD": "hunter2"}
    with patch.dict(os.environ, environment):
        assert resolve_references(url, {"USER", "PASSWORD"}) == "postgresql://me:hunter2@h/x"
    for known in (environment, {"USER": "me"}):
        with patch.dict(os.environ, known, clear=True), pytest.raises(Forbidden) as raised:
            resolve_references(url, {"USER"})
        assert (raised.value.code, raised.value.value) == ("secret_unlisted", "PASSWORD")
        assert "hunter2" not in repr(raised.value)


def test_the_environment_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALES_PASSWORD", "one")
    assert decode_url("postgresql://me:${SALES_PASSWORD}@h/x") == "postgresql://me:one@h/x"
    monkeypatch.setenv("SALES_PASSWORD", "two")
    assert decode_url("postgresql://me:${SALES_PASSWORD}@h/x") == "postgresql://me:two@h/x"


def test_a_missing_variable_is_named_and_nothing_else() -> None:
    with pytest.raises(Unavailable) as raised:
        decode_url("postgresql://${USER}:${PASSWORD}@h/x", (), {"USER": "me", "OTHER": "hunter2"})
    assert (raised.value.code, raised.value.value) == ("secret_missing", "PASSWORD")
    assert "hunter2" not in repr(raised.value)


@pytest.mark.parametrize("name", ["HEEDFUL_SECRET_KEY", "heedful_api_key"])
def test_our_own_secrets_do_not_travel_to_a_database(name: str) -> None:
    with pytest.raises(Invalid) as raised:
        decode_url(f"postgresql://x:${{{name}}}@example.com/x", (), {name: "hunter2"})
    assert raised.value.code == "secret_reference"
    assert "hunter2" not in repr(raised.value)


@pytest.mark.parametrize("url", ["postgresql://me:${@h/x", "postgresql://me:${A-B}@h/x", "postgresql://me:${1}@h/x"])
def test_a_broken_reference_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        decode_url(url, (), {"A": "x"})
    assert raised.value.code == "url_unreadable"


def test_keys_change_the_first_encrypts_and_all_decrypt() -> None:
    old, new = new_key(), new_key()
    stored = encode_url(PLAIN, [old])
    assert decode_url(stored, [new, old]) == PLAIN
    moved = reencrypt_url(stored, [new, old])
    assert decode_url(moved, [new]) == PLAIN
    with pytest.raises(Unavailable) as raised:
        decode_url(moved, [old])
    assert raised.value.code == "secret_key_wrong"
    assert reencrypt_url("sqlite:///x.db", [new]) == "sqlite:///x.db"


def test_keys_come_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_SECRET_KEY", raising=False)
    assert keys_from() == ()
    monkeypatch.setenv("HEEDFUL_SECRET_KEY", " one, two ,")
    assert keys_from() == ("one", "two")


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: decode_url(encode_url(PLAIN, [new_key()])), "secret_key_missing"),
        (lambda: encode_url(PLAIN, ["not a key"]), "secret_key_invalid"),
        (lambda: decode_url("encrypted:nonsense", [new_key()]), "secret_key_wrong"),
    ],
)
def test_keys_that_do_not_fit_say_so(call: object, code: str) -> None:
    with pytest.raises(HeedfulError) as raised:
        call()  # type: ignore[operator]
    assert raised.value.code == code


@pytest.mark.slow
def test_encrypting_without_its_package_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from heedful.sql.secrets import encode_url\n"
        "try: encode_url('postgresql://a:b@c/d', ['key'])\n"
        "except Exception as error: print(error.code, error.remedy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('extra_missing Run: pip install "heedful[secrets]", or in a clone')
