"""One pool of connections for each server, however many projects have their sessions there."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from heedful.storage.mongo.address import malformed, options
from heedful.storage.mongo.collections import Document


def connect(url: str, **given: Any) -> MongoClient[Document]:
    """A pool of connections to a server, with our defaults for what nobody spoke of; the first call connects."""
    try:
        return MongoClient(url, connect=False, **options(url, given))
    except (PyMongoError, ValueError, TypeError) as error:
        # The message may quote the URL, and with it the password.
        raise malformed(f"{type(error).__name__} when reading it or the options") from None


@dataclass(slots=True)
class _Shared:
    client: MongoClient[Document]
    users: int = 0


class Clients:
    """Clients by URL; one is closed when the last of its users gives it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[str, _Shared] = {}
        self._left: list[_Shared] = []

    def borrow(self, url: str) -> MongoClient[Document]:
        """The client of a URL, to be given back."""
        with self._lock:
            shared = self._shared.get(url)
            if shared is None:
                shared = self._shared[url] = _Shared(connect(url))
            shared.users += 1
            return shared.client

    def give_back(self, url: str) -> None:
        with self._lock:
            shared = self._shared[url]
            shared.users -= 1
            if shared.users:
                return
            del self._shared[url]
        shared.client.close()

    def leave_parent(self) -> None:
        """Has a forked child begin anew; the parent's are kept, because closing them would speak on its connections."""
        self._lock = threading.Lock()
        self._left += self._shared.values()
        self._shared = {}


CLIENTS = Clients()
