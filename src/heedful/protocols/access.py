"""`.keys`: who may call a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from heedful.model import FeedbackToken, Key, NewKey, Scope, SigningRotation, Target

DEFAULT_SCOPES: tuple[Scope, ...] = ("read", "write", "feedback")

# Inside the class, `list` is a method.
KeyList = list[Key]


class KeysProtocol(Protocol):
    """The keys of one project. A key's secret is shown once; the store keeps only its hash."""

    def create(self, name: str, *, scopes: Sequence[Scope] = DEFAULT_SCOPES, rate_limit: int | None = None) -> NewKey:
        """Makes a key. `scopes` are some of read, write, feedback and admin, which includes the others.

        `rate_limit` is how many calls a second it may make; what the server allows, if left out.
        """

    def list(self) -> KeyList:
        """All keys of the project, oldest first, also those that were revoked."""

    def revoke(self, key_id: str) -> Key:
        """Makes a key useless, within a second on servers that run."""

    def create_token(
        self,
        targets: Target | Mapping[str, Any] | Sequence[Target | Mapping[str, Any]],
        *,
        author: str | None = None,
        subject: str | None = None,
        expires_in: int = 600,
    ) -> FeedbackToken:
        """Signs a token with which a browser may rate the things named, for `expires_in` seconds, and nothing else.

        The feedback is by `author`, somebody you can name. Without one it is by a visitor: it
        is counted and reviewed, but teaches no fact, moves no rank and blocks no SQL. `subject` tells such visitors
        apart, by the id of their visit for example, of which a hash is kept; those without one have one vote together.
        """

    def rotate_signing(self, *, grace: int = 0) -> SigningRotation:
        """Makes a new secret to sign tokens and logins with, for the whole store.

        What was signed with the old one ends at once, or after `grace` seconds.
        """
