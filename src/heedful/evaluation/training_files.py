"""Files of training data, wherever their lines come from: lines of JSON, and beside them a card that says how they were
made."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import orjson

from heedful.api import checks
from heedful.api.parameters import Output
from heedful.errors import Conflict, Invalid
from heedful.files import check, write_atomically
from heedful.model import TrainingData, TrainingExport
from heedful.version import __version__

FIELDS = {
    "kto": "`prompt`, `completion` (messages) and `label`: whether most people call the answer right",
    "dpo": "`prompt`, `chosen` and `rejected` (messages): two answers to one need, or a correction and its answer",
    "sft": "`messages`: a question, and an answer that most people call right, or the correction of a wrong one",
    "triplets": "`query`, `positive` (a fact that helped), `negatives` (facts that did not), and `unrated` (shown in "
    "the same result, without a rating)",
    "text2sql": "`question`, `schema`, proven `sql` with its `parameters` (JSON), and `dialect`",
    "evals": "`input`, `reference` (an answer that most people call right, or empty) and the `facts` expected",
}

REASONS = {
    "erased": "the question or the rating of an erased person",
    "forgotten": "made from a fact that was forgotten",
    "outdated": "rated well, and made from a fact that was superseded or has expired since",
    "tied": "as many votes for it as against it",
    "unpaired": "nothing that was rated otherwise to compare it with",
    "personal_data": "e-mail addresses, telephone or account numbers that no current fact has",
    "no_fact_corrected": "a comment that corrects no fact of the answer",
    "for_somebody": "SQL for an audience, or for a question in the first person",
    "schema_changed": "SQL that was proven on another schema",
}


def line_of(item: Mapping[str, Any]) -> bytes:
    """A line of a file."""
    return orjson.dumps(item, option=orjson.OPT_APPEND_NEWLINE)


def card(data: TrainingData, made_from: Mapping[str, str]) -> str:
    """How training data were made, in Markdown; the same for the same ledger."""
    sides = ", ".join(f"{count} {name}" for name, count in data.splits.items())
    out = [f"| {count} | {REASONS[reason]} |" for reason, count in sorted(data.left_out.items())]
    return "\n".join(
        [
            f"# Training data: {data.format}",
            "",
            f"{data.lines} lines about {data.needs} needs ({sides}), made by Heedful {__version__} from ratings.",
            "",
            f"Each line has {FIELDS[data.format]}.",
            "Every line also has `agreement` (the share of the authors who say so), `votes` (how many authors voted), "
            "`need` and `split`: phrasings of one need have the same `need`, and are on one side.",
            "",
            "| made from | |",
            "| --- | --- |",
            *(f"| {name} | {value} |" for name, value in made_from.items()),
            f"| sha256 of all lines | {data.sha256} |",
            "",
            "Each author has one vote about the same words, the last that was not retracted, and the larger side "
            "decides. Answers that rest on superseded, expired or forgotten facts are not taught as right, and nothing "
            "of erased people is in it.",
            "",
            *(["| left out | because it is |", "| --- | --- |", *out, ""] if out else []),
        ]
    )


class TrainingFile:
    """Training data that are being written to a file."""

    def __init__(self, path: Output, output: Any, card_output: Any) -> None:
        self._path = path
        self._output = output
        self._card = card_output
        self._hash = hashlib.sha256()

    def add(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._hash.update(line)
            self._output.write(line)

    def end(self, data: TrainingData) -> TrainingExport:
        """Writes the card; fails unless the file has what it should have."""
        if self._hash.hexdigest() != data.sha256:
            raise changed(None)
        is_file = isinstance(self._path, str | Path)
        if is_file:
            self._card.write(data.card.encode())
        path = str(self._path) if is_file else None
        return TrainingExport(path=path, card_path=None if path is None else card_path(path), data=data)


def card_path(path: str) -> str:
    return f"{path}.md"


def changed(cursor: str | None) -> Conflict:
    """The error for pages that don't belong together."""
    message = "ratings have changed since the first page"
    remedy = "Begin again without a cursor; with until set to a time in the past, new ratings don't count"
    return Conflict(message, code="training_data_changed", field="cursor", value=cursor, remedy=remedy)


@contextmanager
def training_file(path: Output, overwrite: bool) -> Generator[TrainingFile, None, None]:
    """A file to add lines to, which is complete and in its place at the end, with its card; else neither is there."""
    checks.flag("overwrite", overwrite)
    with ExitStack() as stack:
        if isinstance(path, str | Path):
            check(Path(path), overwrite=overwrite)
            card_output = stack.enter_context(write_atomically(Path(card_path(str(path))), overwrite=overwrite))
            output = stack.enter_context(write_atomically(Path(path), overwrite=overwrite))
        elif callable(getattr(path, "write", None)):
            card_output, output = None, cast(Any, path)
        else:
            raise Invalid.got("path", "must name a file", path)
        yield TrainingFile(path, output, card_output)
