"""Files with questions and the SQL that answers them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from heedful import files
from heedful.errors import Invalid, NotFound, quoted
from heedful.model.limits import MAX_FILE


def read(path: Path) -> Iterator[Mapping[str, Any]]:
    """The records of a file with questions and SQL, not validated yet."""
    if not path.is_file():
        raise NotFound(f"no file {path}", field="path", value=str(path))
    try:
        text = files.read(path, MAX_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not UTF-8 ({error})", field="path", value=str(path)) from error
    if path.suffix.lower() == ".csv":
        try:
            yield from csv.DictReader(io.StringIO(text))
        except csv.Error as error:
            raise Invalid(f"{path} is not a table ({error})", field="path", value=str(path)) from error
    elif path.suffix.lower() == ".jsonl":
        for line_number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    message = f"{path}, line {line_number} is not JSON ({error})"
                    raise Invalid(message, field="path", value=line[:50]) from error
                if not isinstance(record, dict):
                    raise Invalid(f"{path}, line {line_number} is not a mapping", field="path", value=line[:50])
                yield record
    else:
        remedy = "Use a .csv or .jsonl file"
        raise Invalid(f"unsupported file {quoted(str(path))}", field="path", value=str(path), remedy=remedy)
