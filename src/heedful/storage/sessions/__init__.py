"""Sessions, what was said in them, and what was said of them."""

from heedful.storage.sessions.base import SessionStore, Transaction
from heedful.storage.sessions.sql import SqlSessionStore

__all__ = ["SessionStore", "SqlSessionStore", "Transaction"]
