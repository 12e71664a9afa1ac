"""mongodb_session_manager's calls for metadata and feedback, on Heedful's sessions in MongoDB.

`from heedful.compat.mongodb_session_manager import create_mongodb_session_manager` and go on. A manager works on one
session, which is made if it is new.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heedful.api import checks
from heedful.clock import system_clock, to_stored
from heedful.compat.foreign_api import every
from heedful.engine import sessions_of
from heedful.errors import Unavailable
from heedful.model import DEFAULT_PROJECT, Feedback, Metadata
from heedful.sessions.hooks import Hook, create_combined_hook
from heedful.sessions.space import SessionSpace
from heedful.store import session_space

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = [
    "MongoDBSessionManager",
    "MongoDBSessionManagerFactory",
    "close_global_factory",
    "create_combined_hook",
    "create_mongodb_session_manager",
    "get_global_factory",
    "initialize_global_factory",
]

DATABASE = "heedful"


class MongoDBSessionManager:
    """One session in a MongoDB. Options of the pool go to pymongo; a `client` that is given is shared.

    Sessions of one `collection_name` are apart from those of another, and of none: it is the project they are in.
    """

    def __init__(
        self,
        session_id: str,
        connection_string: str = "mongodb://localhost:27017/",
        database_name: str = DATABASE,
        collection_name: str | None = None,
        *,
        client: MongoClient[dict[str, Any]] | None = None,
        feedbackHook: Hook | None = None,  # noqa: N803 - its name there
        metadataHook: Hook | None = None,  # noqa: N803
        **options: Any,
    ) -> None:
        # Here, because Strands' session managers are wanted without the extra, too.
        from heedful.sessions.mongo import MongoSessionStore

        project = _project(collection_name)
        store = MongoSessionStore(connection_string, project, client=client, database=database_name, **options)
        self._closes = True
        try:
            self._begin(session_id, session_space(store, project, _now, None, feedbackHook, metadataHook))
        except BaseException:
            store.close()
            raise

    @classmethod
    def _sharing(cls, session_id: str, space: SessionSpace) -> MongoDBSessionManager:
        """A manager on a store that somebody else closes."""
        manager = cls.__new__(cls)
        manager._begin(session_id, space)
        manager._closes = False
        return manager

    def _begin(self, session_id: str, space: SessionSpace) -> None:
        self.session_id = checks.name("session_id", session_id)
        self._space = space
        self.sessions = sessions_of(space)
        self.sessions.create(session_id)

    def add_feedback(self, feedback: Mapping[str, Any]) -> str | None:
        """Keeps `{"rating": "up" | "down" | None, "comment": "…"}` and returns its id; None if a hook kept it back."""
        stored = self.sessions.add_session_feedback(self.session_id, feedback)
        return None if stored is None else stored.feedback_id

    def get_feedbacks(self) -> list[dict[str, Any]]:
        """All feedback of the session, oldest first."""
        return [document(feedback) for feedback in every(self.sessions.feedbacks, self.session_id)]

    def get_metadata(self) -> Metadata:
        """The metadata of the session."""
        return self.sessions.get_metadata(self.session_id)

    def update_metadata(self, metadata: Metadata) -> Metadata:
        """Merges metadata by key; a dotted key reaches inside."""
        return self.sessions.update_metadata(self.session_id, metadata)

    def delete_metadata(self, metadata_keys: Sequence[str]) -> Metadata:
        """Removes keys."""
        return self.sessions.delete_metadata(self.session_id, metadata_keys)

    def close(self) -> None:
        """Closes the connection to the server; what is shared stays open."""
        if self._closes:
            self._space.dispatcher.close()
            self._space.store.close()


def create_mongodb_session_manager(
    session_id: str,
    connection_string: str = "mongodb://localhost:27017/",
    database_name: str = DATABASE,
    collection_name: str | None = None,
    **options: Any,
) -> MongoDBSessionManager:
    """A manager for one session with a connection of its own."""
    return MongoDBSessionManager(session_id, connection_string, database_name, collection_name, **options)


class MongoDBSessionManagerFactory:
    """Managers that share one pool of connections."""

    def __init__(
        self,
        connection_string: str = "mongodb://localhost:27017/",
        database_name: str = DATABASE,
        collection_name: str | None = None,
        *,
        client: MongoClient[dict[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        from heedful.sessions.mongo import MongoSessionStore, connect

        project = _project(collection_name)
        self._owned = client is None
        self._client = connect(connection_string, **options) if client is None else client
        store = MongoSessionStore(connection_string, project, client=self._client, database=database_name)
        # One dispatcher for all, so that its threads are as many as there are channels, and not as there are managers.
        self._space = session_space(store, project, _now, None, None, None)

    def create_session_manager(
        self,
        session_id: str,
        *,
        feedbackHook: Hook | None = None,  # noqa: N803
        metadataHook: Hook | None = None,  # noqa: N803
    ) -> MongoDBSessionManager:
        """A manager for one session."""
        shared = self._space
        space = session_space(
            shared.store, shared.project, shared.now, None, feedbackHook, metadataHook, dispatcher=shared.dispatcher
        )
        return MongoDBSessionManager._sharing(session_id, space)

    def close(self) -> None:
        """Closes the pool, after a last round over alerts that are due."""
        self._space.dispatcher.close()
        self._space.store.close()
        if self._owned:
            self._client.close()


_LOCK = threading.Lock()
_FACTORY: list[MongoDBSessionManagerFactory] = []


def initialize_global_factory(
    connection_string: str = "mongodb://localhost:27017/",
    database_name: str = DATABASE,
    collection_name: str | None = None,
    **options: Any,
) -> MongoDBSessionManagerFactory:
    """Makes the factory that `get_global_factory` returns; an earlier one is closed."""
    made = MongoDBSessionManagerFactory(connection_string, database_name, collection_name, **options)
    _replace_factory(made)
    return made


def get_global_factory() -> MongoDBSessionManagerFactory:
    """The factory of this process."""
    with _LOCK:
        if not _FACTORY:
            remedy = "Call initialize_global_factory(connection_string, database_name) when the program starts"
            raise Unavailable("there is no global factory", code="no_global_factory", remedy=remedy)
        return _FACTORY[0]


def close_global_factory() -> None:
    """Closes the factory of this process, if there is one."""
    _replace_factory()


def _replace_factory(*factories: MongoDBSessionManagerFactory) -> None:
    with _LOCK:
        earlier, _FACTORY[:] = _FACTORY[:], factories
    for factory in earlier:
        factory.close()


def document(feedback: Feedback) -> dict[str, Any]:
    """Feedback of a session as this system stores it."""
    return feedback.extra | {
        "id": feedback.feedback_id,
        "rating": feedback.rating,
        "comment": feedback.comment,
        "created_at": feedback.created_at,
    }


def _project(collection_name: str | None) -> str:
    return DEFAULT_PROJECT if collection_name is None else checks.name("collection_name", collection_name)


def _now() -> int:
    return to_stored(system_clock())
