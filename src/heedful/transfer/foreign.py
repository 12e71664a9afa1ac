"""Files of other systems, imported through the calls that everybody uses: into a store, or over HTTP into a server.

The rows are read from JSON, lines of JSON, or archives of them. `heedful.compat.<system>.importer` says what the rows
of a system mean: rows in, records out.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Literal, get_args

from heedful import files
from heedful.api import AnyHeedful
from heedful.api.parameters import Progress
from heedful.errors import Conflict, HeedfulError, Invalid, NotFound, Unavailable, quoted
from heedful.ledger.votes import ANYONE
from heedful.model import DEFAULT_DATASET, Document, Metadata, Signal, SignalType
from heedful.model.base import Model
from heedful.model.limits import MAX_FILE, MAX_QUERY
from heedful.storage.rows import batches, to_model

System = Literal["mem0", "cognee", "hindsight", "langfuse"]
SYSTEMS: tuple[System, ...] = get_args(System)

BATCH_SIZE = 200
"""Facts that are sent in one call."""

MAX_ERRORS = 10_000
"""Lines that can't be taken, before the whole file is refused."""


class LineError(Model):
    """A line of a file that was not imported."""

    file: str | None
    """The file inside the archive, if the file is one."""
    line: int
    """The line on which the row begins."""
    field: str | None
    """The field that is wrong, if it is one."""
    message: str
    """The problem, in words."""


class Imported(Model):
    """The contents of a file of another system, and the result of the import."""

    system: str
    """Which system wrote the file."""
    dataset: str
    """Where its facts are now."""
    dry_run: bool
    """Whether the file was only read."""
    sources: int
    """How many memories or documents it has."""
    added: int
    """How many facts are new."""
    known: int
    """How many facts were there already."""
    signals: int
    """How many opinions about facts it has."""
    answers: int
    """How many questions with their answers it has."""
    ratings: int
    """How many opinions about answers it has."""
    waiting: int
    """How many of those wait for their answer, which is in no file yet."""
    skipped: dict[str, int]
    """The number of records that Heedful has no place for, by kind."""
    errors: list[LineError]
    """The lines that were refused."""


@dataclass(frozen=True, slots=True)
class SourceTexts:
    """Facts of one source; imported again, they replace the earlier ones of that source."""

    document: Document
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FactOpinion:
    """An opinion about the facts of a source."""

    source: str
    signal_type: SignalType
    key: str
    """The same each time the file is read."""
    query: str | None = None
    """The question it was said about; without one, it is about the fact itself."""
    confidence: float = 1.0
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """A question and its answer, in a session."""

    external_id: str
    session_id: str
    question: str
    answer: str
    context: str | None = None
    about: Metadata = field(default_factory=dict)
    """Metadata of the session."""


@dataclass(frozen=True, slots=True)
class ImportedRating:
    """A rating of an answer."""

    external_id: str
    rating: Any
    comment: str | None = None
    author: str | None = None
    scale: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row of a kind that is not imported."""

    what: str


Record = SourceTexts | FactOpinion | ImportedAnswer | ImportedRating | SkippedRow


def one_text(source: str, text: str, metadata: Metadata, expires_at: datetime | None = None) -> SourceTexts:
    return SourceTexts(Document(source=source, texts=[text], metadata=[metadata]), expires_at=expires_at)


def import_from(
    memory: AnyHeedful,
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
    work.counts.update(type(record) for _, record in records)
    if not dry_run:
        work.write(records, progress)
    return to_model(
        Imported,
        work,
        system=system,
        dataset=dataset,
        dry_run=dry_run,
        sources=work.counts[SourceTexts],
        signals=work.counts[FactOpinion],
        answers=work.counts[ImportedAnswer],
        ratings=work.counts[ImportedRating],
        skipped=dict(sorted(work.skipped.items())),
    )


class _Import:
    def __init__(self, memory: AnyHeedful, dataset: str, scale: Sequence[float]) -> None:
        self._memory = memory
        self._dataset = dataset
        self._scale = scale
        self.counts: Counter[type[Record]] = Counter()
        self.added = self.known = self.waiting = 0
        self.skipped: Counter[str] = Counter()
        self.errors: list[LineError] = []

    def read(self, system: System, path: Path) -> list[tuple[Row, Record]]:
        """The records of a file, each after those that it is about."""
        # Loaded by its name: the systems are built on this package, and not the other way round.
        read, now = import_module(f"heedful.compat.{system}.importer").records, datetime.now(UTC)
        result: list[tuple[Row, Record]] = []
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
                records = list(read(row, now, path))
            except Invalid as error:
                self.errors.append(row.error(error.field, error.message))
                continue
            except RecursionError:
                self.errors.append(row.error(None, "is nested too deep"))
                continue
            self.skipped.update(record.what for record in records if isinstance(record, SkippedRow))
            result += [(row, record) for record in records if not isinstance(record, SkippedRow)]
        order = [SourceTexts, FactOpinion, ImportedAnswer, ImportedRating]
        return sorted(result, key=lambda item: order.index(type(item[1])))

    def write(self, records: Sequence[tuple[Row, Record]], progress: Progress | None) -> None:
        done = 0
        for kind, group in groupby(records, key=lambda item: type(item[1])):
            for batch in batches(list(group), BATCH_SIZE if kind is SourceTexts else 1):
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
                for item in batch:
                    self._store([item])
                return
            row, record = batch[0]
            self.counts[type(record)] -= 1
            self.errors.append(row.error(error.field, str(error)))

    def _send(self, records: Sequence[Record]) -> None:
        texts = [record for record in records if isinstance(record, SourceTexts)]
        for expires_at in {record.expires_at for record in texts}:
            documents: list[Document] = [record.document for record in texts if record.expires_at == expires_at]
            result = self._memory.remember(documents, dataset=self._dataset, expires_at=expires_at)
            self.added += result.added
            self.known += result.known
        for record in records:
            if isinstance(record, FactOpinion):
                self._signal(record)
            elif isinstance(record, ImportedAnswer):
                self._answer(record)
            elif isinstance(record, ImportedRating):
                self._rate(record)

    def _signal(self, opinion: FactOpinion) -> None:
        facts = self._memory.facts(dataset=self._dataset, source=opinion.source).items
        if not facts:
            message = f"is about {opinion.source}, which was not imported into {quoted(self._dataset)}"
            raise Invalid(message, field="fact_id")
        signals = [
            Signal(
                fact_id=fact.fact_id,
                signal_type=opinion.signal_type,
                query=opinion.query or fact.text[:MAX_QUERY],
                confidence=opinion.confidence,
                context=opinion.comment,
                idempotency_key=f"{opinion.key}/{index}"[-200:],
            )
            for index, fact in enumerate(facts)
        ]
        self._memory.signal(signals, dataset=self._dataset)

    def _answer(self, answer: ImportedAnswer) -> None:
        sessions, session = self._memory.sessions, answer.session_id
        if answer.about:
            sessions.create(session, metadata=answer.about)
        sessions.add_entry(
            session, answer.question, answer.answer, context=answer.context, external_id=answer.external_id
        )

    def _rate(self, rating: ImportedRating) -> None:
        is_number = isinstance(rating.rating, int | float) and not isinstance(rating.rating, bool)
        scale = rating.scale or self._scale if is_number else None
        author = rating.author or ANYONE
        if not self._memory.sessions.rate(
            rating.external_id, rating.rating, comment=rating.comment, scale=scale, author=author
        ):
            self.waiting += 1


ROW_FILES = (".json", ".jsonl")
"""The files of an archive that are read."""

LISTS = ("results", "memories", "items", "data", "nodes")
"""Names under which pages of other systems have their rows."""

MAX_RATIO = 50
"""The multiple of its size that an archive may unpack to; JSON is packed to a tenth or so."""

MIN_UNPACKED = 10_000_000
"""Bytes that any archive may unpack to."""

MAX_MEMBERS = 10_000
"""Files in an archive."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+")
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


class Fields(dict[str, Any]):
    """The fields of a row, read by their kind; the first one that can't be read is refused by name."""

    def text(self, name: str, place: str = "") -> str:
        """A text that must be there; `place` says where the fields are in their row."""
        value = self.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if value is None:
            raise Invalid(f"has no {place}{name}", field=f"{place}{name}")
        raise wrong(place + name, value, "a text that is not empty")

    def optional(self, name: str) -> str | None:
        """A text that may be missing or empty."""
        return None if self.get(name) in (None, "") else self.text(name)

    def mapping(self, name: str) -> Metadata:
        """An object, empty if it is missing."""
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            raise wrong(name, value, "an object")
        return value or {}

    def picked(self, *names: str) -> Metadata:
        """Those of these fields that have a value."""
        return {name: self[name] for name in names if self.get(name) not in (None, "", [], {})}

    def time(self, name: str) -> datetime | None:
        """A time, in UTC if it names no zone."""
        text = self.optional(name)
        if text is None:
            return None
        try:
            parsed = datetime.fromisoformat(text)
        except ValueError:
            raise wrong(name, text, "a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def wrong(field: str, value: Any, expected: str) -> Invalid:
    """The error for a value of another kind than expected."""
    return Invalid(f"has {field} {quoted(value, 60)}, which is not {expected}", field=field, value=value)


@dataclass(frozen=True, slots=True)
class Row:
    """One object of a file."""

    value: Fields
    line: int
    file: str | None = None
    """The file in the archive, if it is one."""

    def error(self, field: str | None, message: str) -> LineError:
        # A whole export may be one line: then only the id says which row it is.
        row_id = self.value.get("id")
        named = f" (id {row_id})" if isinstance(row_id, str) and field != "id" else ""
        return LineError(file=self.file, line=self.line, field=field, message=message + named)


def read_rows(path: Path) -> Iterator[Row | LineError]:
    """The rows of a file, in order; in the place of one that can't be read is the error."""
    if not path.is_file():
        raise NotFound(f"there is no file {path}", field="file", value=str(path), remedy="Check its name")
    try:
        if zipfile.is_zipfile(path):
            members = _unzipped(path)
        elif _is_tar(path):
            members = _untarred(path)
        else:
            yield from _rows(files.read(path, MAX_FILE), None)
            return
        for name, data in sorted(members):
            yield from _rows(data, name)
    except HeedfulError:
        raise
    except (
        *(OSError, EOFError, RuntimeError, ValueError, zlib.error, lzma.LZMAError),
        *(zipfile.BadZipFile, tarfile.TarError),
    ) as error:
        raise Unavailable(f"{path} can't be read ({error})", code="file_unreadable") from error


class _Unpacking:
    """Reads what an archive has inside, to its limit."""

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        self._path, self._file = path, file
        self._most = min(MAX_FILE, max(MIN_UNPACKED, MAX_RATIO * path.stat().st_size))
        self._size = 0

    def read(self, size: int) -> bytes:
        """The next bytes of the file."""
        assert self._file is not None
        return self._counted(self._file.read(size))

    def whole(self, file: IO[bytes]) -> bytes:
        """All of a file in the archive."""
        return b"".join(iter(lambda: self._counted(file.read(1 << 20)), b""))

    def check_members(self, count: int) -> None:
        if count > MAX_MEMBERS:
            raise self._refused(f"has {count} files or more", MAX_MEMBERS)

    def _counted(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > self._most:
            raise self._refused(f"of {self._path.stat().st_size} bytes unpacks to {self._size} or more", self._most)
        return data

    def _refused(self, what: str, most: int) -> Invalid:
        return files.too_large(self._path, what, most, "If you trust it, unpack it, and import its files one by one")


def _unzipped(path: Path) -> Iterator[tuple[str, bytes]]:
    unpacking = _Unpacking(path)
    with zipfile.ZipFile(path) as archive:
        unpacking.check_members(len(archive.infolist()))
        for name in archive.namelist():
            if name.endswith(ROW_FILES):
                with archive.open(name) as file:
                    yield name, unpacking.whole(file)


def _is_tar(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(265)
    return start.startswith(tuple(_OPENERS)) or start[257:262] == b"ustar"


def _untarred(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as packed:
        start = packed.read(6)
        packed.seek(0)
        opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
        # Counted twice: what is unpacked, headers included, and files, which may have holes.
        source, unpacking = _Unpacking(path, packed if opener is None else opener(packed)), _Unpacking(path)
        with tarfile.open(fileobj=source, mode="r|") as archive:  # type: ignore[call-overload]
            for count, member in enumerate(archive, start=1):
                unpacking.check_members(count)
                if member.isfile() and member.name.endswith(ROW_FILES):
                    file = archive.extractfile(member)
                    assert file is not None
                    yield member.name, unpacking.whole(file)


def _rows(data: bytes, file: str | None) -> Iterator[Row | LineError]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{file or 'the file'} is not UTF-8 ({error.reason})", code="undecodable", field="file") from None
    # Whether each line is a document, and not a part of one.
    lines = [line.strip() for line in io.StringIO(text[:100_000]) if line.strip()][:2]
    has_lines = len(lines) > 1 and all(line.startswith("{") for line in lines) and lines[0] != "{"
    for line, value in _in_lines(text) if has_lines else _in_document(text):
        if isinstance(value, dict):
            yield Row(Fields(value), line, file)
        else:
            message = str(value) if isinstance(value, ValueError) else "is not a JSON object"
            yield LineError(file=file, line=line, field=None, message=message)


def _in_lines(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(io.StringIO(text), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, _not_json(error)


def _in_document(text: str) -> Iterator[tuple[int, Any]]:
    """The rows of one document: of its list, of the list that it has by a known name, or itself."""
    try:
        start = _skip(text, 0)
        if text[start : start + 1] == "{":
            yield from _in_object(text, start)
        elif text[start : start + 1] == "[":
            yield from _in_list(text, start)
        else:
            json.loads(text)
            yield 1, None
    except (ValueError, RecursionError) as error:
        yield getattr(error, "lineno", 1), _not_json(error)


def _not_json(error: Exception) -> ValueError:
    """The fault of a text, without advice about Python."""
    if isinstance(error, json.JSONDecodeError):
        return ValueError(f"is not JSON ({error.msg})")
    is_deep = isinstance(error, RecursionError)
    return ValueError("is nested too deep" if is_deep else "has a number with too many digits")


def _in_object(text: str, start: int) -> Iterator[tuple[int, Any]]:
    whole, _ = _DECODER.raw_decode(text, start)
    name = next((name for name in LISTS if isinstance(whole.get(name), list)), None)
    if name is None:
        yield _line(text, start), whole
        return
    position = _skip(text, start + 1)
    while text[position] != "}":
        key, position = _DECODER.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)
        if key == name:
            yield from _in_list(text, position)
            return
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position)
        position = _skip(text, position + 1) if text[position] == "," else position


def _in_list(text: str, start: int) -> Iterator[tuple[int, Any]]:
    line, counted = _line(text, start), start
    position = _skip(text, start + 1)
    while text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, position = _DECODER.raw_decode(text, position)
        yield line, value
        position = _skip(text, position)
        if text[position : position + 1] not in (",", "]"):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _skip(text, position + 1) if text[position] == "," else position


def _skip(text: str, position: int) -> int:
    """The place of the next character that is no space."""
    spaces = _SPACE.match(text, position)
    return position if spaces is None else spaces.end()


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
