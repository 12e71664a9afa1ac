"""What a Python caller may pass, made into what the wire can carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import Invalid
from heedful.executions.example_files import read
from heedful.executions.feedback import UNCHANGED
from heedful.memory import documents
from heedful.model import Document, FileError, Hit, Signal, Target

Arguments = dict[str, Any]


def adapted(name: str, given: Arguments) -> tuple[str, Arguments, list[FileError]]:
    """The operation that does it, its arguments, and the files that could not be read."""
    errors: list[FileError] = []
    given = {key: value for key, value in given.items() if value is not UNCHANGED}
    if name == "remember":
        given["texts"], errors = _read(given["texts"])
    elif name == "golden_examples.import_file":
        given["examples"] = [_example(each) for each in read(Path(given.pop("path")))]
        name = "golden_examples.import_examples"
    for key, adapt in _ADAPTED.get(name, {}).items():
        if key in given:
            given[key] = adapt(key, given[key])
    return name, given, errors


def _read(texts: documents.Given) -> tuple[list[str | Document] | Any, list[FileError]]:
    """Texts and documents; files and folders are read here, where they are."""
    if not isinstance(texts, str | Path | Document | list | tuple):
        return texts, []
    found: list[str | Document] = []
    errors: list[FileError] = []
    for item in documents.listed(texts):
        if isinstance(item, Path):
            opened, refused = documents.opened(item)
            found += opened
            errors += refused
        else:
            found.append(item)
    return (texts if isinstance(texts, str) else found), errors


def _example(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an example needs of a record; the file may have other columns."""
    return {key: record[key] for key in ("question", "sql_query") if key in record}


def _ids(field: str, given: Any) -> list[Any]:
    many = [given] if isinstance(given, str | Hit) else list(given)
    return [each.fact_id if isinstance(each, Hit) else each for each in many]


def _listed(field: str, given: Any) -> list[Any]:
    """One or many, as a list."""
    if isinstance(given, Signal | Target | Mapping | str):
        return [given]
    if not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list, got {given!r}", field=field, value=given)
    return list(given)


def _all(field: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list, got {given!r}", field=field, value=given)
    return [_message(each) for each in given]


def _message(item: Any) -> Any:
    """A message without its id: where it is added, it gets another."""
    return item.model_dump(exclude={"message_id"}) if hasattr(item, "message_id") else item


_ADAPTED: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "signal": {"signals": _listed},
    "signal_recall": {"used": _ids, "helpful": _ids, "not_helpful": _ids},
    "sessions.add_messages": {"messages": _all},
    "sessions.delete_metadata": {"keys": _listed},
    "keys.create_token": {"targets": _listed},
    "golden_examples.import_examples": {"examples": _all},
}
