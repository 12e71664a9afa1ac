"""`heedful doctor --security`: what a store needs for production, each finding with its remedy."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path

from sqlalchemy import Connection, select, text

from heedful.clock import DAY
from heedful.files import readable_by_others
from heedful.model import Check
from heedful.settings import FILE, Settings
from heedful.storage import Database
from heedful.storage.rows import dialect_of
from heedful.storage.schema import connectors, keys, projects

ADMIN_KEY = "HEEDFUL_ADMIN_KEY"
SECRET_KEY = "HEEDFUL_SECRET_KEY"

MIN_KEY_LENGTH = 32  # Characters of an admin key that nobody can guess.
UNUSED_DAYS = 90  # Days after which a key that nobody used should be revoked.
MIN_PREFIX_BITS = 8  # Bits that a network of proxies has to fix, at least.
MAX_LISTED = 5  # Names that a finding lists; the others are counted.


def check_security(
    database: Database, settings: Settings, environment: Mapping[str, str], folder: Path, now: int
) -> list[Check]:
    """One line for each thing that was looked at; nothing is changed."""
    with database.read() as connection:
        return [
            *(_files(database, folder), _admin_key(environment), _settings_file(folder), _keys(connection, now)),
            *_connectors(connection, environment),
            *(_store_role(connection), _proxies(settings), _teaching(settings)),
        ]


def _files(database: Database, folder: Path) -> Check:
    paths = [] if database.folder is None else [Path(database.name), database.folder]
    sidecars = [Path(f"{database.name}{suffix}") for suffix in ("-wal", "-shm")] if paths else []
    readable = [str(path) for path in (*paths, *sidecars, folder / FILE) if readable_by_others(path)]
    return _check(
        "files",
        readable,
        "readable by their owner alone",
        f"others may read {_join_names(readable)}; run: chmod go= {' '.join(shlex.quote(path) for path in readable)}",
    )


def _settings_file(folder: Path) -> Check:
    path = folder / FILE
    writable = path.exists() and bool(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    finding = f"others may change {path}; run: chmod go= {shlex.quote(str(path))}"
    return _check("settings", writable, "changed by their owner alone", finding)


def _admin_key(environment: Mapping[str, str]) -> Check:
    key = environment.get(ADMIN_KEY)
    weak = key is not None and (len(key) < MIN_KEY_LENGTH or len(set(key)) < MIN_KEY_LENGTH // 3)
    return _check(
        "admin key",
        weak,
        "made by Heedful" if key is None else "long enough",
        f"{ADMIN_KEY} can be guessed; use {MIN_KEY_LENGTH} random characters, such as: openssl rand -hex 32",
    )


def _keys(connection: Connection, now: int) -> Check:
    before = now - UNUSED_DAYS * DAY
    rows = connection.execute(
        select(keys.c.name, projects.c.name.label("project"))
        .select_from(keys.outerjoin(projects, projects.c.id == keys.c.project_id))
        .where(
            keys.c.revoked_at.is_(None),
            keys.c.created_at < before,
            keys.c.last_used_at.is_(None) | (keys.c.last_used_at < before),
        )
        .order_by(keys.c.seq)
    )
    unused = [row.name if row.project is None else f"{row.name} of {row.project}" for row in rows]
    return _check(
        "keys",
        unused,
        f"all were used in the last {UNUSED_DAYS} days",
        f"nobody used {_join_names(unused)} for {UNUSED_DAYS} days; run: heedful keys revoke KEY_ID",
    )


def _connectors(connection: Connection, environment: Mapping[str, str]) -> list[Check]:
    owners = select(connectors, projects.c.name.label("project")).join(
        projects, projects.c.id == connectors.c.project_id
    )
    rows = {f"{row.name} of {row.project}": row for row in connection.execute(owners)}
    unconfirmed = [name for name, row in rows.items() if not row.enabled]
    privileged = [name for name, row in rows.items() if row.options.get("privileged")]
    encrypted = [name for name, row in rows.items() if row.url.startswith("encrypted:")]
    return [
        _check(
            "connectors",
            unconfirmed,
            "none is waiting for confirmation",
            f"{_join_names(unconfirmed)} came from an imported file; look at the URL, then run: "
            "heedful connectors confirm NAME, or delete it",
        ),
        _check(
            "database roles",
            privileged,
            "connectors use roles that only read",
            f"{_join_names(privileged)} may do more than read; create it again with a role that can only read",
        ),
        _check(
            "passwords of connectors",
            bool(encrypted) and SECRET_KEY not in environment,
            "references, or encrypted with an available key",
            f"{_join_names(encrypted)} can't be decrypted here; set {SECRET_KEY} where the server runs",
        ),
    ]


def _store_role(connection: Connection) -> Check:
    strong, has_roles = False, dialect_of(connection).has_row_level_security
    if has_roles:
        result = connection.execute(text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"))
        strong = bool(result.scalar())
    return _check(
        "store's user",
        strong,
        "held by row-level security" if has_roles else "the owner of the file",
        "the user of the store is a superuser or bypasses row-level security; run: "
        "ALTER ROLE … NOSUPERUSER NOBYPASSRLS",
    )


def _proxies(settings: Settings) -> Check:
    wide = [proxy for proxy in settings.trusted_proxies if ip_network(proxy, strict=False).prefixlen < MIN_PREFIX_BITS]
    return _check(
        "proxies",
        wide,
        "forwarded addresses are accepted only from named proxies" if settings.trusted_proxies else "none is trusted",
        f"{_join_names(wide)} in trusted_proxies lets strangers choose their address; name only your proxy",
    )


def _teaching(settings: Settings) -> Check:
    one_suffices = settings.authors_to_teach < 2
    return _check(
        "teaching",
        one_suffices,
        f"{settings.authors_to_teach} authors must agree",
        "one author can teach a fact alone; set authors_to_teach to 2 or more",
    )


def _join_names(names: list[str]) -> str:
    suffix = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + suffix


def _check(name: str, problem: object, fine: str, finding: str) -> Check:
    return Check(name=name, ok=not problem, detail=finding if problem else fine)
