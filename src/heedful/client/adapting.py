"""What a Python caller may pass, made into what the wire can carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import Invalid
from heedful.executions.example_files import read
from heedful.executions.feedback import UNCHANGED
from heedful.memory import documents
from heedful.model import Document, FileError, Hit, Message, Signal, Target

Arguments = dict[str, Any]


def adapted(name: str, given: Arguments) -> tuple[str, Arguments, list[FileError]]:
    """The operation that does it, its arguments, and the files that could not be read."""
    errors: list[FileError] = []
    given = {key: value for key, value in given.items() if value is not UNCHANGED}
    if name == "remember":
        given["texts"], errors = _read(given["texts"])
    elif name == "golden_examples.import_file":
        given["examples"] = list(read(Path(given.pop("path"))))
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
    if not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list of facts, got {given!r}", field=field, value=given)
    many = [given] if isinstance(given, str | Hit) else list(given)
    return [each.fact_id if isinstance(each, Hit) else each for each in many]


def _listed(field: str, given: Any) -> list[Any]:
    """One or many, as a list."""
    if isinstance(given, Signal | Target | Mapping | str):
        return [given]
    if not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list, got {given!r}", field=field, value=given)
    return list(given)


def _one_or_none(field: str, given: Any) -> Any:
    return [given] if isinstance(given, str) else given


def _all(field: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise Invalid(f"{field} must be a list, got {given!r}", field=field, value=given)
    return list(given)


def _messages(field: str, given: Any) -> list[Any]:
    """Messages without their ids: where they are added, they get others."""
    return [
        each.model_dump(exclude={"message_id"}) if isinstance(each, Message) else each for each in _all(field, given)
    ]


def _examples(field: str, given: Any) -> list[Any]:
    return [_example(each) if isinstance(each, Mapping) else each for each in _all(field, given)]


_ADAPTED: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "improve": {"session_ids": _one_or_none},
    "signal": {"signals": _listed},
    "signal_recall": {"used": _ids, "helpful": _ids, "not_helpful": _ids},
    "sessions.add_messages": {"messages": _messages},
    "sessions.delete_metadata": {"keys": _listed},
    "keys.create_token": {"targets": _listed},
    "golden_examples.import_examples": {"examples": _examples},
}
