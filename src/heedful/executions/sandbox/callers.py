"""Whose queries these are: the server says so for each request, so that one key can't take all processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_caller: ContextVar[str | None] = ContextVar("heedful_caller", default=None)


@contextmanager
def calling(name: str) -> Iterator[None]:
    """What runs in this block, in this thread, is done for the caller of this name."""
    token = _caller.set(name)
    try:
        yield
    finally:
        _caller.reset(token)


def caller() -> str | None:
    """The caller that this thread works for; None in a program that opened the store itself."""
    return _caller.get()
