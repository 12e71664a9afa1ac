"""The same vectors and queries in other stores: chromadb and lancedb, as they come."""

from __future__ import annotations

import hashlib
import importlib
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import say, versions
from bench.vectors import Vectors

TOP = 10


@dataclass(frozen=True, slots=True)
class Peer:
    """A store that finds the nearest rows of a query vector."""

    name: str
    """The product."""
    setting: str
    """How it is set up."""
    search: Callable[[Vectors], list[int]]


def peers(texts: Sequence[str], vectors: Vectors, folder: Path) -> list[Peer]:
    """All that are installed, filled with texts and vectors; what was filled in an earlier run is used again."""
    result: list[Peer] = []
    for opened in (_chroma, _lance):
        try:
            result += opened(texts, vectors, folder)
        except ImportError as error:
            say(f'{error.name} is not installed and is left out: pip install "heedful[bench]"')
    return result


def _home(product: str, vectors: Vectors, folder: Path) -> tuple[Path, bool]:
    """A folder for a product with these vectors, and whether it is filled already."""
    stamp = hashlib.blake2b(vectors.tobytes(), digest_size=6).hexdigest()
    home = folder / f"peer-{product}-{versions()[product]}-{stamp}"
    filled = (home / "filled").is_file()
    if not filled:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        say(f"filling {product} with {len(vectors):,} vectors (kept for the next run)")
    return home, filled


def _filled(home: Path, start: float) -> None:
    (home / "filled").write_text(f"{time.perf_counter() - start:.1f} s\n", encoding="utf-8")


def _chroma(texts: Sequence[str], vectors: Vectors, folder: Path) -> list[Peer]:
    """A persistent client and a collection with the default HNSW index, by cosine.

    It is asked for row numbers alone, and as its users ask, who get texts and distances as well.
    """
    import chromadb
    from chromadb.config import Settings

    logging.getLogger("chromadb").setLevel(logging.ERROR)
    home, filled = _home("chromadb", vectors, folder)
    client = chromadb.PersistentClient(str(home / "store"), settings=Settings(anonymized_telemetry=False))
    collection: Any = client.get_or_create_collection("facts", metadata={"hnsw:space": "cosine"})
    if not filled:
        start = time.perf_counter()
        step = min(5000, client.get_max_batch_size())
        for first in range(0, len(vectors), step):
            rows = range(first, min(first + step, len(vectors)))
            some = slice(rows.start, rows.stop)
            collection.add(ids=[str(row) for row in rows], embeddings=vectors[some], documents=list(texts[some]))
        _filled(home, start)

    def searching(**options: Any) -> Callable[[Vectors], list[int]]:
        def search(query: Vectors) -> list[int]:
            found = collection.query(query_embeddings=[query], n_results=TOP, **options)
            return [int(row) for row in found["ids"][0]]

        return search

    return [
        Peer("chromadb", "HNSW, ids alone", searching(include=[])),
        Peer("chromadb", "HNSW, with texts", searching()),
    ]


def _lance(_: Sequence[str], vectors: Vectors, folder: Path) -> list[Peer]:
    """A table as it is by default (every vector is compared), and one with the default index, IVF_PQ."""
    import lancedb
    from lancedb.index import IvfPq

    pyarrow: Any = importlib.import_module("pyarrow")  # Comes with lancedb.

    home, filled = _home("lancedb", vectors, folder)
    connection: Any = lancedb.connect(str(home / "store"))
    if not filled:
        start = time.perf_counter()
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
        content = pyarrow.table({"row": pyarrow.array(np.arange(len(vectors))), "vector": column})
        connection.create_table("plain", content)
        connection.create_table("indexed", content).create_index("vector", config=IvfPq(distance_type="cosine"))
        _filled(home, start)

    def searching(table: Any) -> Callable[[Vectors], list[int]]:
        def search(query: Vectors) -> list[int]:
            limits = table.search(query).distance_type("cosine").select(["row", "_distance"]).limit(TOP)
            rows: list[int] = limits.to_arrow()["row"].to_pylist()
            return rows

        return search

    return [
        Peer("lancedb", "no index", searching(connection.open_table("plain"))),
        Peer("lancedb", "IVF_PQ", searching(connection.open_table("indexed"))),
    ]
