"""The URLs of connectors: which databases and options they may name, and the secrets in them, which are never shown.

An option that isn't listed is refused: it could name files, run programs or switch off what keeps data apart. Secrets
are referenced in the environment, or encrypted at rest: `encode_url` gives what may be stored of a URL,
`decrypt_url` and `resolve_references` the URL to connect with, `masked_url` is for display.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from heedful.errors import Forbidden, HeedfulError, Invalid, Unavailable, extra_missing, quoted
from heedful.text.regex import regex

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

KEY_VARIABLE = "HEEDFUL_SECRET_KEY"
MASK = "***"

_ENCRYPTED = "encrypted:"
_REFERENCE = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_OPTION = regex(r"pass|pwd|secret|token|credential|odbc_connect|(^|_)key$", re.IGNORECASE)


def encode_url(url: str, keys: Sequence[str] = ()) -> str:
    """The URL to store: as it is if its secrets are references, else encrypted with the first key."""
    if is_encrypted(url):
        raise _unusable("it is encrypted already")
    if not has_plain_secret(url):
        return url
    if not keys:
        message = "this URL holds a password, and there is no key to encrypt it with"
        remedy = f"Write it as ${{VARIABLE}} and set that variable, or set {KEY_VARIABLE}"
        raise Invalid(message, code="secret_plain", field="url", remedy=remedy)
    return _ENCRYPTED + _cipher(keys).encrypt(url.encode()).decode()


def resolve_references(url: str, allowed: Collection[str] | None = None) -> str:
    """Replaces the references in a URL by their values; with `allowed`, only those variables may be referenced."""
    address = parse_url(url)

    def filled(part: str | None) -> str | None:
        if part is None:
            return None
        if "${" in _REFERENCE.sub("", part):
            raise _unusable("a reference is not of the form ${NAME}")
        return _REFERENCE.sub(lambda match: _value(match[1], allowed), part)

    changed = address.set(username=filled(address.username), password=filled(address.password))
    return changed.render_as_string(hide_password=False)


def reencrypt_url(stored: str, keys: Sequence[str]) -> str:
    """Re-encrypts a URL with the first key; one that isn't encrypted stays as it is."""
    return encode_url(decrypt_url(stored, keys), keys) if is_encrypted(stored) else stored


def is_encrypted(stored: str) -> bool:
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
    shown = url.set(query=query).render_as_string(hide_password=not _only_references(url.password or ""))
    # References are shown as they are written.
    return shown.replace("%24%7B", "${").replace("%7D", "}").replace("%2A%2A%2A", MASK)


def has_plain_secret(url: str) -> bool:
    address = parse_url(url)
    secrets = [address.password, *(value for name, value in address.query.items() if _SECRET_OPTION.search(name))]
    return any(value and not _only_references(value) for value in secrets)


def keys_from() -> tuple[str, ...]:
    """The keys in HEEDFUL_SECRET_KEY, separated by commas: the first encrypts, all decrypt."""
    keys = (key.strip() for key in os.environ.get(KEY_VARIABLE, "").split(","))
    return tuple(key for key in keys if key)


NO_CIPHER = "encrypting URLs needs the package cryptography"


def new_key() -> str:
    """A new key for HEEDFUL_SECRET_KEY."""
    try:
        from cryptography.fernet import Fernet
    except ImportError:
        raise extra_missing("secrets", NO_CIPHER) from None
    return Fernet.generate_key().decode()


def parse_url(url: str) -> URL:
    """Parses a URL; an error quotes none of it, since any part may be the password."""
    if "${" in _without_user(url):
        message = "a reference is only allowed in the user and the password of the connector's URL"
        remedy = "Write host, database and options out, e.g. postgresql://me:${PASSWORD}@host/database"
        raise Invalid(message, code="secret_reference", field="url", remedy=remedy)
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise _unusable("it is not of the form dialect://user:password@host/database") from None
    if "@" in (address.host or "") or (address.host and "@" in (address.database or "")):
        raise _unusable("its user name or password has a bare / or @")
    return address


def decrypt_url(stored: str, keys: Sequence[str]) -> str:
    """The URL as it was passed in, with its references."""
    if not is_encrypted(stored):
        return stored
    if not keys:
        message = "the connector's URL is encrypted, and there is no key"
        remedy = f"Set {KEY_VARIABLE} to the key it was encrypted with"
        raise Unavailable(message, code="secret_key_missing", remedy=remedy)
    cipher = _cipher(keys)
    from cryptography.fernet import InvalidToken

    try:
        return cipher.decrypt(stored.removeprefix(_ENCRYPTED).encode()).decode()
    except InvalidToken:
        message = "the connector's URL can't be decrypted with these keys"
        remedy = f"Add the key it was encrypted with to {KEY_VARIABLE}, or create the connector again"
        raise Unavailable(message, code="secret_key_wrong", remedy=remedy) from None


def _without_user(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    end = re.search(r"[/?]", rest)
    user_end = rest.rfind("@", 0, end.start() if end else len(rest))
    return scheme + rest[user_end + 1 :]


def _value(name: str, allowed: Collection[str] | None) -> str:
    # A URL is sent to another machine: Heedful's own secrets must not be in it.
    if name.upper().startswith("HEEDFUL_"):
        message = f"a connector may not use the variable {name}"
        remedy = "Use a variable whose name does not start with HEEDFUL_"
        raise Invalid(message, code="secret_reference", field="url", value=name, remedy=remedy)
    if allowed is not None and name not in allowed:
        message = f"connectors of this server may not use the variable {name}"
        remedy = "Have the operator add it to connector_secrets (HEEDFUL_CONNECTOR_SECRETS)"
        raise Forbidden(message, code="secret_unlisted", field="url", value=name, remedy=remedy)
    if name not in os.environ:
        message = f"the variable {name}, which the connector's URL refers to, is not set"
        remedy = f"Set {name} where Heedful runs"
        raise Unavailable(message, code="secret_missing", field="url", value=name, remedy=remedy)
    return os.environ[name]


def _cipher(keys: Sequence[str]) -> MultiFernet:
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError:
        raise extra_missing("secrets", NO_CIPHER) from None
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        message = f"a key in {KEY_VARIABLE} is not 32 bytes in URL-safe base64"
        remedy = "Make one with: python -c 'from heedful.sql.secrets import new_key; print(new_key())'"
        raise Invalid(message, code="secret_key_invalid", field=KEY_VARIABLE, remedy=remedy) from None


def _only_references(value: str | tuple[str, ...]) -> bool:
    return isinstance(value, str) and not _REFERENCE.sub("", value)


_HOST = regex(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_CONTROL = regex(r"[\x00-\x1f\x7f]")
_SECONDS = r"[1-9]|[1-5][0-9]|60"


@dataclass(frozen=True, slots=True)
class DatabaseKind:
    name: str
    drivers: tuple[str, ...]
    """The driver names that its URL may begin with."""
    port: int | None = None
    """The default port; None for a file."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The query options that its URL may have, each with a pattern for the value."""
    certificates: str | None = None
    """The option that names a file on this machine."""

    @property
    def is_file(self) -> bool:
        return self.port is None


KINDS = (
    DatabaseKind("sqlite", ("sqlite", "sqlite+pysqlite")),
    DatabaseKind("duckdb", ("duckdb",)),
    DatabaseKind(
        "postgresql",
        ("postgresql", "postgresql+psycopg"),
        5432,
        {
            "application_name": r".{1,63}",
            "channel_binding": "disable|prefer|require",
            "connect_timeout": _SECONDS,
            "sslmode": "disable|allow|prefer|require|verify-ca|verify-full",
            "sslrootcert": ".{1,1000}",
            "target_session_attrs": "any|read-write|read-only|primary|standby|prefer-standby",
        },
        "sslrootcert",
    ),
    DatabaseKind(
        "mysql",
        ("mysql", "mysql+pymysql", "mariadb", "mariadb+pymysql"),
        3306,
        {"connect_timeout": _SECONDS, "ssl_ca": ".{1,1000}", "ssl_check_hostname": "true|false"},
        "ssl_ca",
    ),
)


def check_url(address: URL) -> DatabaseKind:
    """The kind of a connector's URL, after checking it; an error names the rule and the option, never a value."""
    kind = next((kind for kind in KINDS if address.drivername in kind.drivers), None)
    if kind is None:
        supported = ", ".join(kind.drivers[0] for kind in KINDS)
        message = f"no connector supports {quoted(address.drivername[:50])}"
        remedy = f"Begin the URL with one of: {supported}"
        raise Invalid(message, code="connector_kind", field="url", value=address.drivername[:50], remedy=remedy)
    _check_parts(address, kind)
    for name, value in address.query.items():
        pattern = kind.options.get(name)
        if pattern is None:
            allowed = ", ".join(kind.options) or "none at all"
            raise _option(f"a connector to {kind.name} may not have the option {name[:50]!r}", f"Allowed are {allowed}")
        if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
            raise _option(f"the option {name} has a value that a connector may not have", f"It must match {pattern}")
    return kind


def _check_parts(address: URL, kind: DatabaseKind) -> None:
    parts = [address.username, address.password, address.host, address.database, *address.query]
    # A driver may read a NUL as the end of the string.
    if any(_CONTROL.search(part) for part in (*parts, *map(str, address.query.values())) if part):
        raise _unusable("it holds control characters", "Leave them out")
    if kind.is_file:
        if address.host or address.username or address.password or address.port:
            raise _unusable(f"{kind.name} is a file, without host and user", f"Use {kind.name}:///path/to/file")
        return
    if address.host and _HOST.fullmatch(address.host) is None:
        raise _unusable("its host is not a name or an address", "Name one host")
    if address.port is not None and not 0 < address.port < 65_536:
        raise _unusable("its port is not valid", "Use a port from 1 to 65535")


def _option(message: str, remedy: str) -> Invalid:
    return Invalid(message, code="connector_option", field="url", remedy=remedy)


_FORM = "Use a SQLAlchemy URL with percent-encoded user and password, e.g. postgresql://me:${PASSWORD}@host/database"


def _unusable(reason: str, remedy: str = _FORM) -> Invalid:
    return Invalid(f"the connector's URL can't be used: {reason}", code="url_unreadable", field="url", remedy=remedy)
