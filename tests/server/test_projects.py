"""Projects of a worker: many may come and go, and none is closed while it is used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from server import running

from heedful import Heedful
from heedful.errors import Invalid, NotFound
from heedful.store import Store
from heedful.testing import WordEmbedder


@pytest.mark.slow
def test_none_is_closed_while_it_is_used(path: Path) -> None:
    found = Store(path, embedding=WordEmbedder(), max_open_projects=2)

    def use(number: int) -> str:
        name = f"p{number % 7}"
        with found.using(name) as project:
            engine = Heedful(project)
            engine.remember(f"Fact {number} of {name}.")
            with found.using(f"p{(number + 1) % 7}") as other:
                Heedful(other).datasets()
            return engine.recall(f"Fact {number} of {name}").hits[0].text

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(70))) == [f"Fact {each} of p{each % 7}." for each in range(70)]
    assert len(found._open) <= 2
    assert found._users == {}
    assert sorted(found.projects()) == [f"p{each}" for each in range(7)]
    found.close()


def test_a_name_that_cant_be_leaves_nothing_behind(path: Path) -> None:
    found = Store(path, embedding=WordEmbedder())
    for name in ("", " ", "x" * 201, "a\0b"):
        with pytest.raises(Invalid), found.using(name):
            pass
    assert found._users == {}
    assert found._open == {}
    found.close()


def test_a_mistyped_project_is_not_an_empty_one(path: Path) -> None:
    with running(path) as server:
        with server.connect("helpdesk") as memory:
            memory.remember("Ada founded Acme.")
        with server.connect("helpdesc") as memory:
            for call in (lambda: memory.recall("Ada"), memory.datasets, lambda: memory.set_policy("adaptive")):
                with pytest.raises(NotFound, match="Did you mean 'helpdesk'") as caught:
                    call()
                assert caught.value.field == "project"
        with server.connect() as memory:
            assert memory.recall("Ada").hits == []
        assert server.state.store.projects() == ["helpdesk"]
