"""Export of very many opinions, and their import into another store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import heedful
from bench.measure import Report, number, say, timed
from bench.scale_stores import given
from heedful.model import DEFAULT_PROJECT
from heedful.testing import WordEmbedder
from heedful.transfer.exporting import export_file
from heedful.transfer.importing import import_file

FACTS, QUERIES = 1_000, 1_000
BATCH_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class Moved:
    """Seconds that the export and the import of one store took."""

    opinions: int
    exported: float
    imported: float
    megabytes: float


def measure(pairs: Mapping[str, tuple[str | Path, str | Path]], opinions: int, home: Path) -> dict[str, Moved]:
    """By store: fills the first of each pair, exports it, and imports it into the second."""
    found = {}
    for name, (source, target) in pairs.items():
        say(f"{opinions:,} opinions on {name}")
        _fill(source, opinions)
        file = home / f"{name}.jsonl"
        exported, sent = timed(lambda source=source, file=file: export_file(source, file, project=DEFAULT_PROJECT))  # type: ignore[misc]
        imported, received = timed(
            lambda target=target, file=file: import_file(target, file, embedding=WordEmbedder())  # type: ignore[misc]
        )
        assert sent.ledger_checksum == received.ledger_checksum
        found[name] = Moved(opinions, exported.wall, imported.wall, file.stat().st_size / 1e6)
        file.unlink()
    return found


def tell(report: Report, found: Mapping[str, Moved]) -> None:
    """Adds what was measured to the report."""
    section = report.section(
        "Export and import of a project",
        "", "opinions", "MB", "exported in s", "a second", "imported in s", "a second",
    )  # fmt: skip
    for name, each in found.items():
        seconds = (each.exported, each.opinions / each.exported, each.imported, each.opinions / each.imported)
        section.rows.append([name, f"{each.opinions:,}", number(each.megabytes), *map(number, seconds)])
    report.figures["transfer"] = {name: asdict(each) for name, each in found.items()}


def _fill(where: str | Path, opinions: int) -> None:
    with heedful.open(where, embedding=WordEmbedder()) as memory:
        ids = memory.remember([f"fact {place} about {place * 7 % 113}" for place in range(FACTS)]).fact_ids
        signals = given(ids, [f"what is known about {place}?" for place in range(QUERIES)])
        for _ in range(0, opinions, BATCH_SIZE):
            memory.signal(list(islice(signals, BATCH_SIZE)))
