"""The caller, where a call came over a wire; nobody, where a program has the store open itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """Somebody whose key or token is good."""

    subject: str
    """The id of a key, or of a token's author; has no slash."""
    address: str | None = None
    """Where the call came from."""


_CURRENT: ContextVar[CallerIdentity | None] = ContextVar("heedful_calling", default=None)


def current() -> CallerIdentity | None:
    """The caller; None where nothing came over a wire."""
    return _CURRENT.get()


def subject() -> str:
    """The id of the caller; empty where nothing came over a wire."""
    caller = _CURRENT.get()
    return "" if caller is None else caller.subject


@contextmanager
def acting_as(caller: CallerIdentity) -> Iterator[None]:
    """Inside, what is done is done for this caller; in this thread or task alone."""
    token = _CURRENT.set(caller)
    try:
        yield
    finally:
        _CURRENT.reset(token)
