"""Encrypting the URLs of all connectors of a store with another key."""

from __future__ import annotations

from heedful.errors import HeedfulError, Unavailable
from heedful.executions import secrets
from heedful.storage import Database
from heedful.storage.executions import connectors


def reseal(database: Database) -> int:
    """Encrypts the URLs that are encrypted with the first key of HEEDFUL_SECRET_KEY; returns how many, all or none."""
    keys = secrets.keys_from()
    if not keys:
        raise Unavailable(
            "there is no key to encrypt connectors' URLs with",
            code="secret_key_missing",
            remedy=f"Set {secrets.KEY_VARIABLE} to the new key and the old ones, separated by commas",
        )
    with database.write() as connection:
        sealed = [row for row in connectors.every(connection) if secrets.is_sealed(row.url)]
        for row in sealed:
            try:
                url = secrets.resealed(row.url, keys)
            except HeedfulError as error:
                raise type(error)(
                    f"connector {row.name!r}: {error.message}", code=error.code, field=error.field, remedy=error.remedy
                ) from error
            connectors.change(connection, row.id, url=url)
    return len(sealed)
