"""Texts and files, split into the pieces that are remembered together."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import orjson

from heedful import files
from heedful.api import checks
from heedful.api.parameters import Source
from heedful.errors import HeedfulError, Invalid, NotFound, extra_missing
from heedful.model import Document, FileError, Metadata, limits
from heedful.text.regex import regex

TEXT_SUFFIXES = (".txt", ".md")
SUFFIXES = (*TEXT_SUFFIXES, ".jsonl", ".csv", ".pdf")

MAX_COLUMNS = 1_000  # Columns of a table: each row has all of them, however short its line is.
MAX_PAGE_CONTENT = 10_000_000  # Bytes that describe one page of a PDF file.

REMEDY_PDF = "Save its text, or split it into several files"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces with their metadata; those of a document replace what its source had before."""

    pieces: list[tuple[Piece, Metadata]]
    source: str | None
    replaces: bool = False
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The texts that could be read, and the documents that could not."""

    pieces: list[Pieces] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)


def read(texts: Source, metadata: Metadata | Sequence[Metadata] | None, source: str | None) -> Reading:
    """Checks and splits all that was given: a `str` is a text, a `Path` is a file or folder."""
    if not isinstance(texts, str | Path | Document | Sequence):
        raise Invalid.got("texts", "must be a text, a Path or a list of them", texts)
    items = as_list(texts)
    common = _metadata_of(items, metadata)
    if source is not None:
        checks.source(source)
        if any(isinstance(item, Path | Document) for item in items):
            raise Invalid("source can't be combined with a file: its path is its source", field="source", value=source)
    reading = Reading()
    copies = _Copies()
    for place, (item, about) in enumerate(zip(items, common, strict=True)):
        if isinstance(item, Path):
            documents, errors = read_path(item)
            reading.errors.extend(errors)
            for document in documents:
                _split_document(document, about, reading)
        elif isinstance(item, Document):
            _split_document(item, about, reading, copies)
        else:
            whole = checks.text("texts" if isinstance(texts, str) else f"texts[{place}]", item)
            parts = split(whole)
            copies.add(about, len(parts))
            reading.pieces.append(Pieces([(piece, about) for piece in parts], source))
    return reading


class _Copies:
    """Counts what is stored again of the metadata of one call, and refuses too much of it."""

    def __init__(self) -> None:
        self._copied = 0
        self._sent: dict[int, tuple[int, Metadata]] = {}
        """Mappings with their sizes, by identity: the first use of each was sent, further ones are copies."""

    def add(self, common: Metadata, pieces: int, own: Metadata | None = None) -> None:
        """Counts the pieces of one text, with the metadata that it shares with others, and its own."""
        for metadata in filter(None, (common, own)):
            first = id(metadata) not in self._sent
            if first:
                self._sent[id(metadata)] = checks.metadata_size(metadata), metadata
            self._copied += self._sent[id(metadata)][0] * (pieces - first)
        if self._copied > limits.MAX_COPIED_METADATA:
            raise Invalid(
                f"metadata is stored with each piece of each text, which would take {self._copied} bytes or more, "
                f"the limit is {limits.MAX_COPIED_METADATA}",
                field="metadata",
                value=self._copied,
                remedy="Shorten the metadata, or send fewer or shorter texts in each call",
            )


def pieces(source: str | None, replaces: bool, texts: Sequence[tuple[str, Metadata]]) -> Pieces:
    """Texts with their metadata, checked and split; with `replaces`, in place of the earlier facts of their source."""
    if source is not None:
        checks.source(source)
    checked = [(split(checks.text("texts", text)), checks.metadata("metadata", about)) for text, about in texts]
    parts = [(piece, about) for pieces_of_text, about in checked for piece in pieces_of_text]
    return Pieces(parts, source, replaces=replaces and source is not None)


def unit(file: Path) -> str | None:
    """The part of a file of text that becomes a fact: a line or a paragraph; None for other files."""
    try:
        is_text = file.suffix.lower() in TEXT_SUFFIXES
        return ("line" if is_list(_decoded(file)) else "paragraph") if is_text else None
    except (HeedfulError, OSError):
        return None


def as_list(texts: Source) -> list[str | Path | Document]:
    """The texts as a list; fails if all of them are files, and none exists."""
    items = [texts] if isinstance(texts, str | Path | Document) else list(texts)
    missing = [str(item) for item in items if isinstance(item, Path) and not os.path.exists(item)]
    if missing and len(missing) == len(items):
        remedy = "Check the name and the folder that the program runs in"
        raise NotFound(f"no such file: {', '.join(missing)}", field="texts", value=missing, remedy=remedy)
    return items


def read_path(path: Path) -> tuple[list[Document], list[FileError]]:
    """The documents in a file, or in all files of a folder; and the files that can't be read."""
    documents: list[Document] = []
    errors: list[FileError] = []
    for file in _files(path, errors, frozenset()):
        try:
            records = list(_records(file))
            source = checks.source(file.as_posix())
            texts = [checks.text("text", text) for text, _ in records]
            documents.append(Document(source=source, texts=texts, metadata=[own for _, own in records]))
        except (HeedfulError, OSError, csv.Error) as error:
            errors.append(_refused(file.as_posix(), error))
    return documents, errors


def _split_document(document: Document, about: Metadata, reading: Reading, copies: _Copies | None = None) -> None:
    try:
        own = _metadata_of(document.texts, document.metadata)
        is_text = Path(document.source).suffix.lower() in TEXT_SUFFIXES
        texts = [(split_file if is_text else split)(checks.text("text", text)) for text in document.texts]
    except Invalid as error:
        reading.errors.append(_refused(document.source, error))
        return
    pieces: list[tuple[Piece, Metadata]] = []
    for parts, own_metadata in zip(texts, own, strict=True):
        if copies is not None:
            copies.add(about, len(parts), own_metadata)
        merged = about | own_metadata
        pieces += [(piece, merged) for piece in parts]
    reading.pieces.append(Pieces(pieces, document.source, replaces=True))


def _refused(source: str, error: Exception) -> FileError:
    code = error.code if isinstance(error, HeedfulError) else "unreadable"
    return FileError(source=source.encode(errors="replace").decode(), code=code, message=str(error))


def _metadata_of(
    items: Sequence[str | Path | Document], metadata: Metadata | Sequence[Metadata] | None
) -> list[Metadata]:
    if metadata is None:
        return [{}] * len(items)
    if isinstance(metadata, Sequence) and not isinstance(metadata, str):
        if len(metadata) != len(items):
            message = f"metadata has {len(metadata)} items for {len(items)} texts"
            remedy = "Give one mapping for all, or one for each text"
            raise Invalid(message, field="metadata", value=len(metadata), remedy=remedy)
        return [checks.fact_metadata(f"metadata[{index}]", own) for index, own in enumerate(metadata)]
    return [checks.fact_metadata("metadata", metadata)] * len(items)


def _files(path: Path, errors: list[FileError], inside: frozenset[Path]) -> Iterator[Path]:
    """The file itself, or all in a folder but the hidden ones, in the order of their names.

    `inside` are the folders it is in: a link back to one of them is not followed.
    """
    if not path.is_dir():
        yield path
        return
    if path.resolve() in inside:
        return
    try:
        children = sorted(path.iterdir())
    except OSError as error:
        errors.append(_refused(path.as_posix(), error))
        return
    for child in children:
        if not child.name.startswith("."):
            yield from _files(child, errors, inside | {path.resolve()})


def _records(file: Path) -> Iterator[tuple[str, Metadata]]:
    if not file.exists():
        raise NotFound(f"{file} does not exist", field="file", value=str(file))
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        message = f"{file.name} is an unsupported file type"
        raise Invalid(message, code="unsupported", field="file", value=file.suffix, remedy=f"Use {' '.join(SUFFIXES)}")
    if suffix == ".pdf":
        yield _pdf(file), {}
    elif suffix == ".jsonl":
        yield from _jsonl(_decoded(file))
    elif suffix == ".csv":
        # The limit is the whole process's: it is put back when the file is read.
        usual = csv.field_size_limit(limits.MAX_TEXT)
        try:
            yield from _csv(_decoded(file))
        finally:
            csv.field_size_limit(usual)
    else:
        yield _decoded(file, 4 * limits.MAX_TEXT), {}


def _decoded(file: Path, most: int = limits.MAX_FILE) -> str:
    content = files.read(file, most)
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"{file.name} is not UTF-8 text (byte {error.start})"
        remedy = "Convert it to UTF-8"
        raise Invalid(message, code="undecodable", field="file", value=file.name, remedy=remedy) from error
    if "\0" in text:
        raise Invalid(f"{file.name} is a binary file", code="undecodable", field="file", value=file.name)
    return text


def _jsonl(content: str) -> Iterator[tuple[str, Metadata]]:
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise Invalid(f"line {number} is not JSON ({error})", field=f"line {number}", value=line[:80]) from error
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            remedy = 'Write {"text": "…", "metadata": {…}} on each line'
            raise Invalid(f'line {number} has no "text"', field=f"line {number}", value=line[:80], remedy=remedy)
        own = record.get("metadata", {key: value for key, value in record.items() if key != "text"})
        yield record["text"], checks.fact_metadata(f"line {number} metadata", own)


def _csv(content: str) -> Iterator[tuple[str, Metadata]]:
    rows = csv.DictReader(io.StringIO(content, newline=""))
    columns = rows.fieldnames or []
    if "text" not in columns:
        remedy = f"Rename one of its columns ({', '.join(columns)})"
        raise Invalid("the file has no column text", field="text", value=rows.fieldnames, remedy=remedy)
    if len(columns) > MAX_COLUMNS:
        remedy = "Leave out those that are not needed"
        raise Invalid(f"the file has {len(columns)} columns, the limit is {MAX_COLUMNS}", field="file", remedy=remedy)
    for row in rows:
        own = {key: value for key, value in row.items() if key not in ("text", None) and value not in ("", None)}
        if row["text"] and row["text"].strip():
            yield row["text"], checks.fact_metadata("columns", own)


def _pdf(file: Path) -> str:
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise extra_missing("pdf", "reading PDF files needs an extra") from error
    content = io.BytesIO(files.read(file, limits.MAX_FILE))
    texts: list[str] = []
    length = 0
    try:
        for number, page in enumerate(PdfReader(content).pages, start=1):
            described = page.get_contents()
            if described is not None and (size := len(described.get_data())) > MAX_PAGE_CONTENT:
                raise files.too_large(file, f"describes page {number} in {size} bytes", MAX_PAGE_CONTENT, REMEDY_PDF)
            texts.append(page.extract_text())
            length += len(texts[-1])
            if length > limits.MAX_TEXT:
                raise files.too_large(file, f"has {length} characters or more", limits.MAX_TEXT, REMEDY_PDF)
    except HeedfulError:
        raise
    except Exception as error:
        # The library may raise anything for a file that is damaged, or made to do harm.
        raise Invalid(f"{file.name} is not a readable PDF ({error})", code="undecodable", field="file") from error
    # Fonts without a table of characters give NUL and lone surrogates; a mark says that something was there.
    return re.sub("[\0\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", "\n\n".join(texts))


MIN_WIDTH = 40  # Characters of a line; nobody breaks paragraphs at fewer.
MAX_PIECE = 1000  # Characters of a piece at most; what the bundled model reads at once.

_HEADING = regex(r"(?m)^(?=#{1,6} )")
_PARAGRAPH = regex(r"(?<=\n)\s*\n")
_SENTENCE = regex(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+|\n+")
_SPACE = regex(r"\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text and its position."""

    text: str
    start: int
    stop: int


def split(text: str, longest: int = MAX_PIECE) -> list[Piece]:
    """The pieces of a text, in order, none longer than `longest`; a short text is one piece.

    >>> [piece.text for piece in split("# A\\nOne. Two.\\n# B\\nThree.", longest=12)]
    ['# A\\nOne.', 'Two.', '# B\\nThree.']
    """
    if len(text.strip()) <= longest:
        return _trim(text, [(0, len(text))])
    spans = []
    for section in _cut(text, (0, len(text)), _HEADING):
        spans += _pack(text, section, [_PARAGRAPH, _SENTENCE, _SPACE], longest)
    return _trim(text, spans)


_LINE = regex(r"\n")
_WORD = regex(r"\w")
# Headings go with what is below them, tables and quotes with what is above, and code is not cut.
_BLOCK = regex(r"(?ms)^```.*?(?:^```|\Z)|(?P<heading>^(?:#{1,6} [^\n]*+(?:\s++|\Z))++)|(?P<blank>\n(?:[^\S\n]*+\n)++)")


def split_file(text: str) -> list[Piece]:
    """The facts in the text of a file: its lines if it is a list, and otherwise its paragraphs; long ones are split.

    >>> [piece.text for piece in split_file("Ada is the CEO.\\nBo sings.")]
    ['Ada is the CEO.', 'Bo sings.']
    >>> [piece.text for piece in split_file("# Staff\\n\\nAda is the\\nCEO.\\n\\nBo sings.")]
    ['# Staff\\n\\nAda is the\\nCEO.', 'Bo sings.']
    """
    if is_list(text):
        spans = _cut(text, (0, len(text)), _LINE)
    else:
        cuts: list[int] = []
        for match in _BLOCK.finditer(text):
            start, stop = match.span()
            if match["heading"]:
                cuts.append(start)
            elif match["blank"] and text[start - 1 : start] != ":" and text[stop : stop + 1] not in tuple(" \t>|`"):
                cuts.append(stop)
        spans = list(pairwise(sorted({0, *cuts, len(text)})))
    parts = [part for span in spans for part in _pack(text, span, [_PARAGRAPH, _SENTENCE, _SPACE], MAX_PIECE)]
    return [piece for piece in _trim(text, parts) if _WORD.search(piece.text)]


def is_list(text: str) -> bool:
    """Whether each line of a text can be understood by itself: none is blank, and none goes on in the next one."""
    lines = text.strip().splitlines()
    if len(lines) < 2 or any(not line.strip() or line[0] in " \t#>|`" for line in lines):
        return False
    small = sum(line[0].islower() for line in lines)
    if 0 < small < len(lines) or any(line.rstrip().endswith((",", ";", ":", "-")) for line in lines):
        return False
    width = max(map(len, lines))
    is_full = all(len(line) + len(follower.split()[0]) >= width for line, follower in pairwise(lines))
    return width < MIN_WIDTH or not is_full or all(line.rstrip()[-1] in ".!?…。！？" for line in lines)


Span = tuple[int, int]


def _pack(text: str, span: Span, boundaries: list[re.Pattern[str]], longest: int) -> list[Span]:
    """Spans no longer than `longest`, cut at the coarsest boundary that allows it, and filled up."""
    if span[1] - span[0] <= longest:
        return [span]
    if not boundaries:
        return [(start, min(start + longest, span[1])) for start in range(span[0], span[1], longest)]
    parts = [
        smaller for part in _cut(text, span, boundaries[0]) for smaller in _pack(text, part, boundaries[1:], longest)
    ]
    filled = [parts[0]]
    for start, stop in parts[1:]:
        if stop - filled[-1][0] <= longest:
            filled[-1] = (filled[-1][0], stop)
        else:
            filled.append((start, stop))
    return filled


def _cut(text: str, span: Span, boundary: re.Pattern[str]) -> list[Span]:
    cuts = [match.end() for match in boundary.finditer(text, *span)]
    return list(pairwise(sorted({span[0], *cuts, span[1]})))


def _trim(text: str, spans: list[Span]) -> list[Piece]:
    pieces = []
    for start, stop in spans:
        body = text[start:stop]
        if inner := body.strip():
            first = start + len(body) - len(body.lstrip())
            pieces.append(Piece(inner, first, first + len(inner)))
    return pieces
