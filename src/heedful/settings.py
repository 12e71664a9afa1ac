"""Settings: the environment first, then `heedful.toml`, then the defaults."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from heedful.errors import Invalid
from heedful.model import DEFAULT_PROJECT, Model, Over

FILE = "heedful.toml"
PREFIX = "HEEDFUL_"

_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_FOLDER = re.compile(r"[/~].*|[A-Za-z]:[\\/].*")
_NAME = re.compile(r"(?!HEEDFUL_)[A-Z_][A-Z0-9_]*", re.IGNORECASE)


class Retention(Model):
    """How many days things are kept; 0 keeps them for ever. A worker, or `heedful upkeep`, removes what is older."""

    receipt_days: int = Field(default=365, ge=0, le=36_500)
    decision_days: int = Field(default=365, ge=0, le=36_500)
    hit_days: int = Field(default=90, ge=0, le=36_500)
    idempotency_days: int = Field(default=7, ge=0, le=36_500)
    alert_days: int = Field(default=30, ge=0, le=36_500)
    audit_days: int = Field(default=365, ge=0, le=36_500)
    job_days: int = Field(default=30, ge=0, le=36_500)
    change_lines: int = Field(default=20_000, ge=1)


class Settings(Retention):
    """What `open` uses where its caller says nothing."""

    store: str = "heedful.db"
    project: str = DEFAULT_PROJECT
    sessions: str | None = Field(default=None, repr=False)
    embedding: str = "bundled"
    embedding_api_key: str | None = Field(default=None, repr=False)
    embedding_timeout: float = Field(default=30.0, gt=0)
    receipt_share: float = Field(default=1.0, ge=0, le=1)
    language_model: str | None = None
    language_model_api_key: str | None = Field(default=None, repr=False)
    language_model_timeout: float = Field(default=60.0, gt=0)
    search_in_memory: int = Field(default=100_000, ge=0)
    query_seconds: float = Field(default=30.0, gt=0, le=86_400)
    query_rows: int = Field(default=10_000, ge=1)
    query_bytes: int = Field(default=10_000_000, ge=1, le=50_000_000)
    query_memory: int = Field(default=512, ge=128)
    query_disk: int = Field(default=1_024, ge=1)
    query_processes: int = Field(default=0, ge=0, le=1_024)
    query_processes_per_caller: int = Field(default=0, ge=0, le=1_024)
    connector_hosts: tuple[str, ...] = ()
    connector_folders: tuple[str, ...] = ()
    connector_secrets: tuple[str, ...] = ()
    digest_every: Over | None = None
    digest_email: str | None = Field(default=None, repr=False)
    digest_webhook: str | None = Field(default=None, repr=False)
    digest_webhook_secret: str | None = Field(default=None, repr=False)

    @field_validator("connector_hosts", "connector_folders", "connector_secrets", mode="before")
    @classmethod
    def _split(cls, given: Any) -> Any:
        """The environment has texts only: there, commas stand between the parts of a list."""
        return [each.strip() for each in given.split(",") if each.strip()] if isinstance(given, str) else given

    @field_validator("connector_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_fitting(each, _HOST, "is no host", "Use host, or host:port") for each in hosts)

    @field_validator("connector_folders")
    @classmethod
    def _folders(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_fitting(each, _FOLDER, "is no whole path", "Begin it with / or ~") for each in folders)

    @field_validator("connector_secrets")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        # Ours are refused when they are used, too; here it is said before somebody relies on it.
        return tuple(_fitting(each, _NAME, "is no variable for connectors", "Name another") for each in names)


def load(environment: Mapping[str, str] = os.environ, folder: Path | None = None) -> Settings:
    """The settings in force for a process that runs in `folder` (the current one)."""
    path = (folder or Path.cwd()) / FILE
    values: dict[str, Any] = {}
    if path.is_file():
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Invalid(f"{path} can't be read: {error}", field=FILE, remedy="Mend or remove it") from error
    for name in Settings.model_fields:
        given = environment.get(PREFIX + name.upper())
        if given is not None:
            values[name] = given
    return Settings(**values)


def _fitting(given: str, pattern: re.Pattern[str], wrong: str, remedy: str) -> str:
    if pattern.fullmatch(given) is None:
        raise Invalid(f"has {given!r}, which {wrong}", value=given, remedy=remedy)
    return given
