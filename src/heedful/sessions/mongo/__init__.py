"""Sessions, feedback and their ledger on MongoDB. Nothing else imports pymongo."""

from heedful.errors import extra_missing

try:
    import pymongo as _pymongo
except ImportError as error:
    raise extra_missing("mongodb", "a store on MongoDB needs the package pymongo") from error

from heedful.sessions.mongo.connection import connect
from heedful.sessions.mongo.store import MongoSessionStore, MongoTransaction

__all__ = ["MongoSessionStore", "MongoTransaction", "connect"]

del _pymongo
