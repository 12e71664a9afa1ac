"""Which tests run each time, and which of their parameters on which store."""

from __future__ import annotations

import inspect
import os
from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

import pytest

GRIDS = os.environ.get("HEEDFUL_TEST_GRIDS", "most")
"""How much of the tests and their parameters runs: `few` of them (`make test`), `most` (`make test-all`), or the
`whole`, with all parameters on every store (`make test-nightly`)."""

WHOLE = GRIDS == "whole"

EXAMPLES = 2
"""Sets of parameters that `make test` tries of one test, and `make test-all` of one that is marked as `slow`."""

STORES = ("any_store", "open_either")
"""Fixtures that open one store after the other."""


def thin(items: Iterable[pytest.Item], store: str) -> list[pytest.Item]:
    """All but what is marked as `nightly`, and most of what is refused on a server: a test of that runs with all of its
    parameters on SQLite, and with the first on other stores, since input is checked before any store is asked. `store`
    is what the tests run on that don't choose themselves."""
    left_out = {"nightly", "slow"} if GRIDS == "few" else {"nightly"}
    met = set()
    result = []
    for item in _few(each for each in items if left_out.isdisjoint(marker.name for marker in each.iter_markers())):
        servers = {store, *_chosen(item)} - {"sqlite"}
        test, _, parameters = item.nodeid.partition("[")
        if servers and parameters and _refuses(item):
            if (test, frozenset(servers)) in met:
                continue
            met.add((test, frozenset(servers)))
        result.append(item)
    return result


def _few(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Some sets of parameters of each test that is to have few: always the same, but other ones than the next has."""
    sets = defaultdict(list)
    for item in items:
        sets[item.nodeid.partition("[")[0]].append(item)
    return [
        item
        for each in sets.values()
        for item in (sorted(each, key=_shuffled)[:EXAMPLES] if _is_few(each[0]) else each)
    ]


def _is_few(item: pytest.Item) -> bool:
    return GRIDS == "few" or item.get_closest_marker("slow") is not None


def _shuffled(item: pytest.Item) -> int:
    return crc32(item.nodeid.encode())


def _chosen(item: pytest.Item) -> list[str]:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return [str(parameters[name]) for name in STORES if name in parameters]


def _refuses(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "pytest.raises(Invalid" in inspect.getsource(item.function)
