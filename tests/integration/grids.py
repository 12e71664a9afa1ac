"""Which tests run each time, and which of their parameters on which store."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable

import pytest

WHOLE = os.environ.get("HEEDFUL_TEST_GRIDS") == "whole"
"""Whether every test runs, with all of its parameters on every store: `make test-nightly`."""

STORES = ("any_store", "open_either")
"""Fixtures that open one store after the other."""


def thin(items: Iterable[pytest.Item], store: str) -> list[pytest.Item]:
    """All but what is marked as `nightly`, and most of what is refused on a server: a test of that runs with all of its
    parameters on SQLite, and with the first on other stores, since input is checked before any store is asked. `store`
    is what the tests run on that don't choose themselves."""
    met = set()
    result = []
    for item in items:
        if item.get_closest_marker("nightly") is not None:
            continue
        servers = {store, *_chosen(item)} - {"sqlite"}
        test, _, parameters = item.nodeid.partition("[")
        if servers and parameters and _refuses(item):
            if (test, frozenset(servers)) in met:
                continue
            met.add((test, frozenset(servers)))
        result.append(item)
    return result


def _chosen(item: pytest.Item) -> list[str]:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return [str(parameters[name]) for name in STORES if name in parameters]


def _refuses(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "pytest.raises(Invalid" in inspect.getsource(item.function)
