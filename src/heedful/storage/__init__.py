"""The ledger and the tables, on SQLAlchemy Core."""

from heedful.storage.database import Database
from heedful.storage.opening import open_store

__all__ = ["Database", "open_store"]
