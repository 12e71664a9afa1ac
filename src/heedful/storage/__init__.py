"""The ledger and the tables, on SQLAlchemy Core."""

from heedful.storage.database import Database

__all__ = ["Database"]
