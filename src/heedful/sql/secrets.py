"""The secrets in connectors' URLs: referenced in the environment, or encrypted at rest; never shown.

`encode_url` is what may be stored of a URL, `decode_url` gives the URL to connect with, `masked_url` is for display.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from heedful.errors import Forbidden, HeedfulError, Invalid, Unavailable

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

KEY_VARIABLE = "HEEDFUL_SECRET_KEY"
MASK = "***"

_ENCRYPTED = "encrypted:"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_OPTION = re.compile(r"pass|pwd|secret|token|credential|odbc_connect|(^|_)key$", re.IGNORECASE)


def encode_url(url: str, keys: Sequence[str] = ()) -> str:
    """The URL to store: as it is if its secrets are references, else encrypted with the first key."""
    if is_encrypted(url):
        raise _malformed("it is encrypted already")
    if not has_plain_secret(url):
        return url
    if not keys:
        raise Invalid(
            "this URL holds a password, and there is no key to encrypt it with",
            code="secret_plain",
            field="url",
            remedy=f"Write it as ${{VARIABLE}} and set that variable, or set {KEY_VARIABLE}",
        )
    return _ENCRYPTED + _cipher(keys).encrypt(url.encode()).decode()


def decode_url(stored: str, keys: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> str:
    """The URL to connect with. It contains secrets: don't show, log or store it."""
    return resolve_references(decrypt_url(stored, keys), None, environment)


def resolve_references(
    url: str, allowed: Collection[str] | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Replaces the references in a URL by their values; with `allowed`, only those variables may be referenced."""
    address, values = parse_url(url), os.environ if environment is None else environment

    def filled(part: str | None) -> str | None:
        if part is None:
            return None
        if "${" in _REFERENCE.sub("", part):
            raise _malformed("a reference is not of the form ${NAME}")
        return _REFERENCE.sub(lambda match: _value(match[1], allowed, values), part)

    changed = address.set(username=filled(address.username), password=filled(address.password))
    return changed.render_as_string(hide_password=False)


def reencrypt_url(stored: str, keys: Sequence[str]) -> str:
    """Re-encrypts a URL with the first key; one that isn't encrypted stays as it is."""
    return encode_url(decrypt_url(stored, keys), keys) if is_encrypted(stored) else stored


def is_encrypted(stored: str) -> bool:
    """Whether a URL is encrypted."""
    return stored.startswith(_ENCRYPTED)


def masked_url(stored: str, keys: Sequence[str] = ()) -> str:
    """The URL without its secrets; references stay, since they only name variables."""
    if is_encrypted(stored):
        if not keys:
            return "(encrypted)"
        stored = decrypt_url(stored, keys)
    try:
        url = parse_url(stored)
    except HeedfulError:
        return "(no readable URL)"
    query = {
        name: value if _only_references(value) or not _SECRET_OPTION.search(name) else MASK
        for name, value in url.query.items()
    }
    return _shown_references(url.set(query=query))


def has_plain_secret(url: str) -> bool:
    """Whether the URL itself contains a password or another secret."""
    address = parse_url(url)
    secrets = [address.password, *(value for name, value in address.query.items() if _SECRET_OPTION.search(name))]
    return any(value and not _only_references(value) for value in secrets)


def keys_from(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The keys in HEEDFUL_SECRET_KEY, separated by commas: the first encrypts, all decrypt."""
    text = (os.environ if environment is None else environment).get(KEY_VARIABLE, "")
    return tuple(key.strip() for key in text.split(",") if key.strip())


def new_key() -> str:
    """A new key for HEEDFUL_SECRET_KEY."""
    try:
        from cryptography.fernet import Fernet
    except ImportError:
        raise _extra_missing() from None
    return Fernet.generate_key().decode()


def parse_url(url: str) -> URL:
    """Parses a URL; an error quotes none of it, since any part may be the password."""
    if "${" in _without_user(url):
        raise Invalid(
            "a reference is only allowed in the user and the password of the connector's URL",
            code="secret_reference",
            field="url",
            remedy="Write host, database and options out, e.g. postgresql://me:${PASSWORD}@host/database",
        )
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise _malformed("it is not of the form dialect://user:password@host/database") from None
    if "@" in (address.host or "") or (address.host and "@" in (address.database or "")):
        raise _malformed("its user name or password has a bare / or @")
    return address


def decrypt_url(stored: str, keys: Sequence[str]) -> str:
    """The URL as it was passed in, with its references."""
    if not is_encrypted(stored):
        return stored
    if not keys:
        raise Unavailable(
            "the connector's URL is encrypted, and there is no key",
            code="secret_key_missing",
            remedy=f"Set {KEY_VARIABLE} to the key it was encrypted with",
        )
    cipher = _cipher(keys)
    from cryptography.fernet import InvalidToken

    try:
        return cipher.decrypt(stored.removeprefix(_ENCRYPTED).encode()).decode()
    except InvalidToken:
        raise Unavailable(
            "the connector's URL can't be decrypted with these keys",
            code="secret_key_wrong",
            remedy=f"Add the key it was encrypted with to {KEY_VARIABLE}, or create the connector again",
        ) from None


def _without_user(url: str) -> str:
    """The URL without user and password."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    end = re.search(r"[/?]", rest)
    user_end = rest.rfind("@", 0, end.start() if end else len(rest))
    return scheme + rest[user_end + 1 :]


def _value(name: str, allowed: Collection[str] | None, environment: Mapping[str, str]) -> str:
    # A URL is sent to another machine: Heedful's own secrets must not be in it.
    if name.upper().startswith("HEEDFUL_"):
        raise Invalid(
            f"a connector may not use the variable {name}",
            code="secret_reference",
            field="url",
            value=name,
            remedy="Use a variable whose name does not start with HEEDFUL_",
        )
    if allowed is not None and name not in allowed:
        raise Forbidden(
            f"connectors of this server may not use the variable {name}",
            code="secret_unlisted",
            field="url",
            value=name,
            remedy="Have the operator add it to connector_secrets (HEEDFUL_CONNECTOR_SECRETS)",
        )
    if name not in environment:
        raise Unavailable(
            f"the variable {name}, which the connector's URL refers to, is not set",
            code="secret_missing",
            field="url",
            value=name,
            remedy=f"Set {name} where Heedful runs",
        )
    return environment[name]


def _cipher(keys: Sequence[str]) -> MultiFernet:
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError:
        raise _extra_missing() from None
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        raise Invalid(
            f"a key in {KEY_VARIABLE} is not 32 bytes in URL-safe base64",
            code="secret_key_invalid",
            field=KEY_VARIABLE,
            remedy="Make one with: python -c 'from heedful.sql.secrets import new_key; print(new_key())'",
        ) from None


def _only_references(value: str | tuple[str, ...]) -> bool:
    return isinstance(value, str) and not _REFERENCE.sub("", value)


def _shown_references(url: URL) -> str:
    text = url.render_as_string(hide_password=not _only_references(url.password or ""))
    return text.replace("%24%7B", "${").replace("%7D", "}").replace("%2A%2A%2A", MASK)


def _malformed(reason: str) -> Invalid:
    return Invalid(
        f"the connector's URL can't be used: {reason}",
        code="url_unreadable",
        field="url",
        remedy="Use a SQLAlchemy URL with percent-encoded user and password, e.g. postgresql://me:${PASSWORD}@host/database",
    )


def _extra_missing() -> Unavailable:
    return Unavailable(
        "encrypting URLs needs the package cryptography",
        code="extra_missing",
        remedy='Run: pip install "heedful[secrets]"',
    )
