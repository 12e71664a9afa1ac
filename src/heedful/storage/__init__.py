"""The ledger and the tables, on SQLAlchemy Core."""

from heedful.storage import schema_insight as schema_insight
from heedful.storage.database import Database

__all__ = ["Database"]
