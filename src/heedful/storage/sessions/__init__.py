"""Sessions with their messages, entries and opinions."""

from heedful.storage.sessions.base import SessionStore, Transaction
from heedful.storage.sessions.sql import SqlSessionStore

__all__ = ["SessionStore", "SqlSessionStore", "Transaction"]
