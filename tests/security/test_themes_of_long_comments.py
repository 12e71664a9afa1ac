"""Themes of many long comments: what is embedded and compared has a limit, and is embedded once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from server import Running, running

from heedful import Heedful
from heedful.insight import comments
from heedful.insight.comments import MAX_COMMENTS, Comment, Comments
from heedful.model import Themes
from heedful.providers.embedding import Vectors
from heedful.testing import WordEmbedder
from heedful.text import themes
from heedful.text.themes import MAX_CHARACTERS, MAX_TERMS

pytestmark = pytest.mark.slow


class CountingEmbedder(WordEmbedder):
    """Notes the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return super().embed(texts)


def random_chinese(random: Random, length: int) -> str:
    return "".join(chr(random.randrange(0x4E00, 0x9000)) for _ in range(length))


def complain(store: Any, texts: Sequence[str]) -> None:
    store.sessions.create("s")
    for number, text in enumerate(texts):
        store.sessions.add_session_feedback("s", {"rating": "down", "comment": text}, author=str(number))


def test_comments_are_embedded_once_and_only_in_part(open_store: Callable[..., Heedful]) -> None:
    embedder = CountingEmbedder()
    store = open_store(embedding=embedder)
    complain(store, [f"The refund of order {number} is late. " + "x" * 9_000 for number in range(20)])
    embedder.texts.clear()
    first = store.insight.themes()
    assert first.comments == len(embedder.texts) == 20
    assert max(map(len, embedder.texts)) <= MAX_CHARACTERS
    store.insight.notes()
    store.insight.digest()
    assert store.insight.themes() == first
    assert len(embedder.texts) == 20
    complain_again = {"rating": "down", "comment": "The refund is late, still"}
    store.sessions.add_session_feedback("s", complain_again, author="new")
    assert store.insight.themes().comments == 21
    assert embedder.texts[20:] == ["The refund is late, still"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "store.db") as found:
        yield found


def test_calls_over_http_share_the_vectors(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[str] = []
    embed = WordEmbedder.embed

    def noted(embedder: WordEmbedder, texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        return embed(embedder, texts)

    with server.connect() as client:
        complain(client, [f"The refund of order {number} is late" for number in range(10)])
        monkeypatch.setattr(WordEmbedder, "embed", noted)
        results: list[Themes] = []
        calls = [threading.Thread(target=lambda: results.append(client.insight.themes())) for _ in range(4)]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        assert [each.comments for each in results] == [10] * 4
        client.insight.digest()
    assert len(embedded) == 10


def test_the_cache_of_vectors_is_bounded_in_bytes(
    open_store: Callable[..., Heedful], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comments, "CACHE_SIZE", 40_000)
    project = open_store()._project
    kept = Comments(project.workspace, project.sessions.store)
    for start in range(0, 2_000, 500):
        assert kept.groups([Comment(str(at), f"late refund {at}", at) for at in range(start, start + 500)])
    vectors = list(kept._vectors.values())
    assert 0 < sum(vector.nbytes for vector in vectors) <= 40_000
    # None is part of a larger array, which it would keep in memory.
    assert all(vector.base is None for vector in vectors)


@pytest.mark.parametrize("length", [MAX_CHARACTERS, 10_000])
def test_the_table_of_terms_is_bounded(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    random = Random(1)
    # Each pair of characters is in two comments, so that none can be left out as rare.
    texts = [
        first + text for text in (random_chinese(random, length) for _ in range(MAX_COMMENTS // 2)) for first in "甲乙"
    ]
    cells: list[int] = []
    zeros = np.zeros

    def noted(shape: Any, *args: Any, **options: Any) -> Any:
        made = zeros(shape, *args, **options)
        cells.append(made.size)
        return made

    vectors = WordEmbedder().embed([str(number) for number in range(len(texts))])
    monkeypatch.setattr(np, "zeros", noted)
    themes.themes(texts, vectors)
    assert 0 < max(cells) <= MAX_COMMENTS * MAX_TERMS


def test_blanks_do_not_hide_what_a_comment_says() -> None:
    assert themes.considered(" " * 5_000 + "late  refund") == "late refund"
    assert len(themes.considered("ab " * 5_000)) <= MAX_CHARACTERS
