"""Runs the migrations on an open transaction."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, with no file of its own."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent))
    settings.attributes["connection"] = connection
    return settings


def upgrade(connection: Connection) -> None:
    """Brings the store to the present version, all or nothing."""
    command.upgrade(config(connection), "head")
