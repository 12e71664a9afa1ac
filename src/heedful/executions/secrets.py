"""The secrets in connectors' URLs: referenced in the environment, or encrypted at rest; never shown.

`stored` is what may be kept of a URL, `opened` gives the URL to connect with, `shown` is for people's eyes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from heedful.errors import HeedfulError, Invalid, Unavailable

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

KEY_VARIABLE = "HEEDFUL_SECRET_KEY"
MASK = "***"

_ENCRYPTED = "encrypted:"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_OPTION = re.compile(r"pass|pwd|secret|token|credential|odbc_connect|(^|_)key$", re.IGNORECASE)


def stored(url: str, keys: Sequence[str] = ()) -> str:
    """What to keep of a URL: itself if its secrets are references, else encrypted with the first key."""
    if url.startswith(_ENCRYPTED):
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


def opened(kept: str, keys: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> str:
    """The URL to connect with. It holds secrets: it must not be shown, logged or kept."""
    return _resolved(_plain(kept, keys), os.environ if environment is None else environment)


def rotated(kept: str, keys: Sequence[str]) -> str:
    """The same, encrypted with the first of the keys; what isn't encrypted stays as it is."""
    return stored(_plain(kept, keys), keys) if kept.startswith(_ENCRYPTED) else kept


def shown(kept: str, keys: Sequence[str] = ()) -> str:
    """The URL without its secrets; references stay, since they only name variables."""
    if kept.startswith(_ENCRYPTED):
        if not keys:
            return "(encrypted)"
        kept = _plain(kept, keys)
    if _REFERENCE.fullmatch(kept):
        return kept
    try:
        url = parsed(kept)
    except HeedfulError:
        return "(no readable URL)"
    query = {
        name: value if _only_references(value) or not _SECRET_OPTION.search(name) else MASK
        for name, value in url.query.items()
    }
    return _shown_references(url.set(query=query))


def has_plain_secret(url: str) -> bool:
    """Whether a password or another secret stands in the URL itself."""
    address = parsed(url)
    given = [address.password, *(value for name, value in address.query.items() if _SECRET_OPTION.search(name))]
    return any(value and not _only_references(value) for value in given)


def keys_from(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The keys in HEEDFUL_SECRET_KEY, separated by commas: the first encrypts, all decrypt."""
    text = (os.environ if environment is None else environment).get(KEY_VARIABLE, "")
    return tuple(key.strip() for key in text.split(",") if key.strip())


def new_key() -> str:
    """A fresh key for HEEDFUL_SECRET_KEY."""
    try:
        from cryptography.fernet import Fernet
    except ImportError:
        raise _extra_missing() from None
    return Fernet.generate_key().decode()


def parsed(url: str) -> URL:
    """A URL in its parts, references and all; an error shows nothing of it, since any part may be the password."""
    # A reference may stand for a port, which has to be a number.
    port = re.search(r":(\$\{\w+\})(?=[/?]|$)", url)
    if _REFERENCE.fullmatch(url):
        return URL.create(url)
    try:
        address = make_url(url.replace(port[0], "", 1) if port and "@" not in url[port.start() :] else url)
    except (ArgumentError, ValueError):
        raise _malformed("it is not of the form dialect://user:password@host/database") from None
    if "@" in (address.host or "") or (address.host and "@" in (address.database or "")):
        raise _malformed("its user name or password has a bare / or @")
    return address


def _resolved(url: str, environment: Mapping[str, str]) -> str:
    if "${" in _REFERENCE.sub("", url):
        raise _malformed("a reference is not of the form ${NAME}")
    whole = _REFERENCE.fullmatch(url)
    if whole:
        return _value(whole[1], environment)
    start = url.find("://") + 3
    rest = re.search(r"[/?]", url[start:])
    user_end = url.rfind("@", start, start + rest.start() if rest else len(url))
    query = url.find("?", start)

    def value(found: re.Match[str]) -> str:
        text = _value(found[1], environment)
        encoded = found.start() < user_end or (query >= 0 and found.start() > query)
        return quote(text, safe="") if encoded else text

    return _REFERENCE.sub(value, url)


def _value(name: str, environment: Mapping[str, str]) -> str:
    # A URL goes to another machine: our own secrets must not travel in it.
    if name.upper().startswith("HEEDFUL_"):
        raise Invalid(
            f"a connector may not use the variable {name}",
            code="secret_reference",
            field="url",
            value=name,
            remedy="Use a variable whose name does not start with HEEDFUL_",
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


def _plain(kept: str, keys: Sequence[str]) -> str:
    if not kept.startswith(_ENCRYPTED):
        return kept
    if not keys:
        raise Unavailable(
            "the connector's URL is encrypted, and there is no key",
            code="secret_key_missing",
            remedy=f"Set {KEY_VARIABLE} to the key it was encrypted with",
        )
    cipher = _cipher(keys)
    from cryptography.fernet import InvalidToken

    try:
        return cipher.decrypt(kept.removeprefix(_ENCRYPTED).encode()).decode()
    except InvalidToken:
        raise Unavailable(
            "the connector's URL can't be decrypted with these keys",
            code="secret_key_wrong",
            remedy=f"Add the key it was encrypted with to {KEY_VARIABLE}, or store the URL anew",
        ) from None


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
            remedy="Make one with: python -c 'from heedful.executions.secrets import new_key; print(new_key())'",
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
