"""Files of other systems, imported through the calls that everybody uses: into a store, or over HTTP into a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Protocol

from heedful.errors import Conflict, Invalid, quoted
from heedful.model import DEFAULT_DATASET, Document, Signal
from heedful.model.limits import MAX_QUERY
from heedful.protocols import HeedfulProtocol, SessionsProtocol
from heedful.protocols.engine import Progress
from heedful.ranking.signals import ANYONE
from heedful.transfer.foreign.formats import SYSTEMS, System, reader
from heedful.transfer.foreign.records import Answer, Opinion, Rating, Record, Skipped, Texts
from heedful.transfer.foreign.rows import Row, read_rows
from heedful.transfer.results import Imported, LineError

__all__ = ["SYSTEMS", "System", "import_from"]

BATCH_SIZE = 200
"""Facts that are sent in one call."""

MAX_ERRORS = 10_000
"""Lines that can't be taken, before the whole file is refused."""


class Target(HeedfulProtocol, Protocol):
    """What `heedful.open` and `heedful.connect` return."""

    @property
    def sessions(self) -> SessionsProtocol:
        """Its sessions."""


def import_from(
    memory: Target,
    system: System,
    file: str | Path,
    *,
    dataset: str = DEFAULT_DATASET,
    scale: Sequence[float] = (0, 1),
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Imports what mem0, cognee, Hindsight or Langfuse exported: facts, answers, and what people said of both.

    The same file again changes nothing, and a newer one replaces what the facts of the older one said. A line that
    can't be taken is in `errors`, and the others are imported. With `dry_run`, the file is read and nothing is written.
    """
    if system not in SYSTEMS:
        raise Invalid(
            f"unknown system {quoted(system)}", field="system", value=system, remedy=f"Use {', '.join(SYSTEMS)}"
        )
    work = _Import(memory, dataset, scale)
    records = work.read(system, Path(file))
    work.counts.update(_noun(record) for _, record in records)
    if not dry_run:
        work.write(records, progress)
    return work.result(system, dry_run)


def _noun(record: Record) -> str:
    return type(record).__name__


class _Import:
    def __init__(self, memory: Target, dataset: str, scale: Sequence[float]) -> None:
        self._memory = memory
        self._dataset = dataset
        self._scale = scale
        self.counts: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.errors: list[LineError] = []

    def read(self, system: System, path: Path) -> list[tuple[Row, Record]]:
        """What the file says, in an order in which each record comes after what it is about."""
        read, now = reader(system, path), datetime.now(UTC)
        found: list[tuple[Row, Record]] = []
        for row in read_rows(path):
            if len(self.errors) > MAX_ERRORS:
                raise Invalid(
                    f"{path} has more than {MAX_ERRORS} lines that are not {system}'s, such as line "
                    f"{self.errors[0].line}: {self.errors[0].message[:200]}",
                    field="file",
                    value=str(path),
                    remedy="Check that --from names the system which wrote it; nothing was imported",
                )
            if isinstance(row, LineError):
                self.errors.append(row)
                continue
            try:
                records = list(read(row, now))
            except Invalid as error:
                self.errors.append(row.error(error.field, error.message))
                continue
            except RecursionError:
                self.errors.append(row.error(None, "is nested too deep"))
                continue
            self.skipped.update(record.what for record in records if isinstance(record, Skipped))
            found += [(row, record) for record in records if not isinstance(record, Skipped)]
        order = {Texts: 0, Opinion: 1, Answer: 2, Rating: 3}
        return sorted(found, key=lambda each: order[type(each[1])])

    def write(self, records: Sequence[tuple[Row, Record]], progress: Progress | None) -> None:
        done = 0
        for kind, group in groupby(records, key=lambda each: type(each[1])):
            each_kind = list(group)
            size = BATCH_SIZE if kind is Texts else 1
            for start in range(0, len(each_kind), size):
                batch = each_kind[start : start + size]
                self._store(batch)
                done += len(batch)
                if progress is not None:
                    progress(done, len(records))

    def _store(self, batch: Sequence[tuple[Row, Record]]) -> None:
        """Stores what can be stored of a batch; one that is refused as a whole is tried line by line."""
        try:
            self._send([record for _, record in batch])
        except (Invalid, Conflict) as error:
            if len(batch) > 1:
                for each in batch:
                    self._store([each])
                return
            row, record = batch[0]
            self.counts[_noun(record)] -= 1
            self.errors.append(row.error(error.field, str(error)))

    def _send(self, records: Sequence[Record]) -> None:
        texts = [record for record in records if isinstance(record, Texts)]
        for expires_at in {each.expires_at for each in texts}:
            documents: list[Document] = [each.document for each in texts if each.expires_at == expires_at]
            result = self._memory.remember(documents, dataset=self._dataset, expires_at=expires_at)
            self.counts["added"] += result.added
            self.counts["known"] += result.known
        for record in records:
            if isinstance(record, Opinion):
                self._signal(record)
            elif isinstance(record, Answer):
                self._answer(record)
            elif isinstance(record, Rating):
                self._rate(record)

    def _signal(self, opinion: Opinion) -> None:
        facts = self._memory.facts(dataset=self._dataset, source=opinion.source).items
        if not facts:
            raise Invalid(
                f"is about {opinion.source}, which was not imported into {quoted(self._dataset)}", field="fact_id"
            )
        self._memory.signal(
            [
                Signal(
                    fact_id=fact.fact_id,
                    signal_type=opinion.signal_type,
                    query=opinion.query or fact.text[:MAX_QUERY],
                    confidence=opinion.confidence,
                    context=opinion.comment,
                    idempotency_key=f"{opinion.key}/{index}"[-200:],
                )
                for index, fact in enumerate(facts)
            ],
            dataset=self._dataset,
        )

    def _answer(self, answer: Answer) -> None:
        sessions = self._memory.sessions
        if answer.about:
            sessions.create(answer.session_id, metadata=answer.about)
        sessions.add_entry(
            answer.session_id,
            answer.question,
            answer.answer,
            context=answer.context,
            external_id=answer.external_id,
        )

    def _rate(self, rating: Rating) -> None:
        scale = rating.scale or self._scale
        is_number = isinstance(rating.rating, int | float) and not isinstance(rating.rating, bool)
        stored = self._memory.sessions.rate(
            rating.external_id,
            rating.rating,
            comment=rating.comment,
            scale=scale if is_number else None,
            author=rating.author or ANYONE,
        )
        if not stored:
            self.counts["waiting"] += 1

    def result(self, system: System, dry_run: bool) -> Imported:
        return Imported(
            system=system,
            dataset=self._dataset,
            dry_run=dry_run,
            sources=self.counts["Texts"],
            added=self.counts["added"],
            known=self.counts["known"],
            signals=self.counts["Opinion"],
            answers=self.counts["Answer"],
            ratings=self.counts["Rating"],
            waiting=self.counts["waiting"],
            skipped=dict(sorted(self.skipped.items())),
            errors=self.errors,
        )
