"""Settings: the environment first, then `heedful.toml`, then the defaults.

A folder may be somebody else's. What its file says about addresses, trust and deletion counts only for a store that
belongs to the folder; a file that `HEEDFUL_CONFIG` names counts for every store.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from heedful.errors import Invalid, quoted
from heedful.model import DEFAULT_PROJECT, AuthorName, Model, Over

FILE = "heedful.toml"
MAX_BYTES = 1_000_000
PREFIX = "HEEDFUL_"
CONFIG = "HEEDFUL_CONFIG"
"""Names a file of settings, in place of the one in the current folder."""

API_KEY = "HEEDFUL_API_KEY"
"""The key with which a server is called."""

_KEYS = {
    "embedding": "embedding_api_key",
    "language_model": "language_model_api_key",
    "upstream": "upstream_api_key",
}
"""Settings that may hold an address, and the key that is sent there."""

logger = logging.getLogger("heedful")

_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_FOLDER = re.compile(r"[/~].*|[A-Za-z]:[\\/].*")
_NAME = re.compile(r"(?!HEEDFUL_)[A-Z_][A-Z0-9_]*", re.IGNORECASE)
_ALLOWED = {
    "connector_hosts": (_HOST, "is no host", "Use host, or host:port"),
    "connector_folders": (_FOLDER, "is no whole path", "Begin it with / or ~"),
    # Ours are refused when they are used, too; here it is said before somebody relies on it.
    "connector_secrets": (_NAME, "is no variable for connectors", "Name another"),
}


def _parts(value: Any) -> Any:
    """The environment has texts only: there, the parts of a list are separated by commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


_Names = Annotated[tuple[str, ...], BeforeValidator(_parts)]


class Retention(Model):
    """How many days things are kept; 0 keeps them for ever. A worker, or `heedful maintain`, removes what is older."""

    receipt_days: int = Field(default=365, ge=0, le=36_500)
    decision_days: int = Field(default=365, ge=0, le=36_500)
    hit_days: int = Field(default=90, ge=0, le=36_500)
    idempotency_days: int = Field(default=7, ge=0, le=36_500)
    waiting_days: int = Field(default=1, ge=0, le=36_500)
    alert_days: int = Field(default=30, ge=0, le=36_500)
    audit_days: int = Field(default=365, ge=0, le=36_500)
    job_days: int = Field(default=30, ge=0, le=36_500)
    change_lines: int = Field(default=20_000, ge=1)


class Settings(Retention):
    """The values that `open` uses where its caller says nothing."""

    store: str = "heedful.db"
    project: str = DEFAULT_PROJECT
    sessions: str | None = Field(default=None, repr=False)
    embedding: str = "bundled"
    embedding_api_key: str | None = Field(default=None, repr=False)
    embedding_timeout: float = Field(default=30.0, gt=0)
    receipt_share: float = Field(default=1.0, ge=0, le=1)
    authors_to_teach: int = Field(default=2, ge=1)
    authors_to_veto: int = Field(default=1, ge=1)
    foreign_author: AuthorName | None = None
    visitor_daily_bytes: int = Field(default=50_000_000, ge=0)
    auto_improve: bool = True
    language_model: str | None = None
    language_model_api_key: str | None = Field(default=None, repr=False)
    language_model_timeout: float = Field(default=60.0, gt=0)
    upstream: str | None = None
    upstream_api_key: str | None = Field(default=None, repr=False)
    search_in_memory: int = Field(default=100_000, ge=0)
    query_seconds: float = Field(default=30.0, gt=0, le=86_400)
    query_rows: int = Field(default=10_000, ge=1)
    query_bytes: int = Field(default=10_000_000, ge=1, le=50_000_000)
    query_memory: int = Field(default=512, ge=128)
    query_disk: int = Field(default=1_024, ge=1)
    query_processes: int = Field(default=0, ge=0, le=1_024)
    trusted_proxies: list[str] = Field(default_factory=list)
    api_docs: bool = True
    mcp: bool = True
    query_processes_per_caller: int = Field(default=0, ge=0, le=1_024)
    query_wait: float = Field(default=5.0, ge=0, le=600)
    connector_hosts: _Names = ()
    connector_folders: _Names = ()
    connector_secrets: _Names = ()
    revert_worse_policy: bool = False
    digest_every: Over | None = None
    digest_email: str | None = Field(default=None, repr=False)
    digest_webhook: str | None = Field(default=None, repr=False)
    digest_webhook_secret: str | None = Field(default=None, repr=False)

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _proxies(cls, value: Any) -> Any:
        """Addresses and networks; in the environment, separated by commas."""
        named = _parts(value)
        for address in named if isinstance(named, list) else ():
            try:
                ip_network(address, strict=False)
            except ValueError:
                message, remedy = f"has {quoted(address)}, which is not an address", "Use 10.0.0.7 or 10.0.0.0/24"
                raise Invalid(message, value=address, remedy=remedy) from None
        return named

    @field_validator("connector_hosts", "connector_folders", "connector_secrets")
    @classmethod
    def _allowed(cls, values: tuple[str, ...], field: ValidationInfo) -> tuple[str, ...]:
        pattern, wrong, remedy = _ALLOWED[str(field.field_name)]
        for value in values:
            if pattern.fullmatch(value) is None:
                raise Invalid(f"has {quoted(value)}, which {wrong}", value=value, remedy=remedy)
        return values


GUARDED = frozenset(
    {
        *Retention.model_fields,
        *("sessions", "embedding_api_key", "language_model", "language_model_api_key", "upstream", "upstream_api_key"),
        *("digest_email", "digest_webhook", "digest_webhook_secret", "trusted_proxies"),
        *("connector_hosts", "connector_folders", "connector_secrets"),
        *("authors_to_teach", "authors_to_veto", "foreign_author", "receipt_share", "revert_worse_policy"),
        "visitor_daily_bytes",
    }
)
"""Settings that say where data is sent, whom to trust, or what is deleted; so does `embedding` if it is an address."""

_for_agents = False


@contextmanager
def for_agents() -> Iterator[None]:
    """A block in which no file of a folder decides any of these: editors start `heedful mcp` in whatever was opened."""
    global _for_agents
    before, _for_agents = _for_agents, True
    try:
        yield
    finally:
        _for_agents = before


def load(
    environment: Mapping[str, str] = os.environ, folder: Path | None = None, *, store: str | Path | None = None
) -> Settings:
    """The settings in force for a process that runs in `folder` (the current one) and opens `store` (the one that the
    settings name)."""
    file = _file(environment, folder)
    values = _in_file(file)
    if not environment.get(CONFIG):
        _leave_out_guarded(values, file, environment.get(PREFIX + "STORE") if store is None else str(store))
        for name, key in _KEYS.items():
            _check_pair(values, name, PREFIX + key.upper(), environment)
    for name in Settings.model_fields:
        value = environment.get(PREFIX + name.upper())
        if value is not None:
            values[name] = value
    return Settings(**values)


def check_server_key(environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> None:
    """Fails if the key of the environment would go to a server that only a folder's file names."""
    if not environment.get(CONFIG):
        _check_pair(_in_file(_file(environment, folder)), "store", API_KEY, environment)


def _file(environment: Mapping[str, str], folder: Path | None) -> Path:
    named = environment.get(CONFIG)
    if not named:
        return (folder or Path.cwd()) / FILE
    path = Path(named).expanduser()
    if not path.is_file():
        raise Invalid(
            f"{CONFIG} names {named}, which is not a file", field=CONFIG, value=named, remedy="Correct it, or unset it"
        )
    return path


def _leave_out_guarded(values: dict[str, Any], file: Path, named: str | None) -> None:
    """Removes what a folder's file may not decide for the store that is `named` elsewhere, or else by the file."""
    store = str(values.get("store", Settings.model_fields["store"].default)) if named is None else named
    if _for_agents and named is None and _is_address(store):
        message = f"{file} sets store to an address, and agents take no address from the folder they are started in"
        remedy = f"If you trust the file, set {CONFIG}={file}, or name the store: {PREFIX}STORE"
        raise Invalid(message, code="store_not_for_file", field="store", value=file.name, remedy=remedy)
    left_out = [] if _belongs(store, file.parent) and not _for_agents else _guarded(values)
    for name in left_out:
        del values[name]
    if left_out:
        _warn(file, ", ".join(left_out))


def _guarded(values: Mapping[str, Any]) -> list[str]:
    """The names of settings that a folder's file may not decide for a store elsewhere."""
    return [name for name in values if name in GUARDED or (name == "embedding" and _is_address(str(values[name])))]


def _belongs(store: str, folder: Path) -> bool:
    """Whether a store is a folder's own, that is, a file in it; a database may let anybody on its machine in."""
    scheme, separator, rest = store.partition("://")
    if not separator:
        return store != ":memory:" and _is_inside(store, folder)
    if scheme.lower().startswith("sqlite"):
        return "?" not in rest and not rest.startswith("/file:") and _is_inside(rest[1:], folder)
    # A server has settings of its own: none of these is used here.
    return scheme.lower() in ("http", "https")


def _is_inside(path: str, folder: Path) -> bool:
    # Links are followed: one that lies in the folder may lead elsewhere.
    return bool(path) and Path(path).expanduser().resolve().is_relative_to(folder.resolve())


def _is_address(value: str) -> bool:
    return "://" in value and not value.lower().startswith("sqlite")


@cache
def _warn(file: Path, names: str) -> None:
    """Says once what was left out; without logging, it is a line on standard error."""
    logger.warning(
        "ignored %s in %s: the file may set these only for a store in the same folder, and never for an agent. "
        "If you trust the file, set %s=%s, or set them in the environment",
        *(names, file, CONFIG, file),
    )


def _in_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path} can't be read: {error}", field=FILE, remedy="Fix or remove it") from error


def _check_pair(in_file: Mapping[str, Any], name: str, key: str, environment: Mapping[str, str]) -> None:
    """A folder may be somebody else's: its file must not choose where a secret of the environment is sent."""
    variable = PREFIX + name.upper()
    address = str(in_file.get(name, ""))
    if variable in environment or not environment.get(key) or not address.lower().startswith(("http://", "https://")):
        return
    raise Invalid(
        f"{FILE} in this folder sets the address in {name}, and {key} is in the environment: a file may not choose "
        "where your key is sent",
        code="key_not_for_file",
        field=name,
        remedy=f"If you trust the address, set it yourself: {variable}={address}",
    )


@dataclass(frozen=True, slots=True)
class Trust:
    """How many authors must agree; the program is one of them, and visitors are none."""

    authors_to_teach: int = 2
    """To create a fact from a correction, or from an answer."""
    authors_to_veto: int = 1
    """To keep SQL from being used again."""
