"""The result of `heedful.connect`: every call, sent to a server; and values as JSON can carry them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from heedful.api import ALL_CALLS, AnyHeedful
from heedful.api.calls import Arguments, Call
from heedful.api.parameters import UNCHANGED, Source
from heedful.errors import Invalid, quoted
from heedful.memory import documents
from heedful.model import Document, FileError, Hit, Message, Signal, Target
from heedful.sql.example_files import read


class Sender(Protocol):
    """The connection to a server that runs calls there."""

    project: str

    def run(self, call: Call, arguments: Arguments) -> Any: ...

    def close(self) -> None: ...


class RemoteHeedful(AnyHeedful):
    """One project on a server. Threads may share it; close it when done, or use it in a `with`."""

    def __init__(self, transport: Sender, display_name: str) -> None:
        self._transport = transport
        self._display_name = display_name

    def _run(self, call: Call, arguments: Arguments) -> Any:
        return self._transport.run(call, arguments)

    def __repr__(self) -> str:
        return self._display_name

    def close(self) -> None:
        """Closes the connections to the server."""
        for finish in self._before_close:
            finish()
        self._transport.close()


def adapted(call: Call, values: Arguments) -> tuple[Call, Arguments, list[FileError]]:
    """The call that does it, its arguments, and the files that could not be read."""
    errors: list[FileError] = []
    values = {key: value for key, value in values.items() if value is not UNCHANGED}
    if call.name == "remember":
        values["texts"], errors = _read(values["texts"])
    elif call.name == "golden_examples.import_file":
        values["examples"] = list(read(Path(values.pop("path"))))
        call = ALL_CALLS["golden_examples.import_examples"]
    for key, adapt in _ADAPTED.get(call.name, {}).items():
        if key in values:
            values[key] = adapt(key, values[key])
    return call, values, errors


def _read(texts: Source) -> tuple[list[str | Document] | Any, list[FileError]]:
    """Texts and documents; files and folders are read here, where they are."""
    if not isinstance(texts, str | Path | Document | list | tuple):
        return texts, []
    sources: list[str | Document] = []
    errors: list[FileError] = []
    for item in documents.as_list(texts):
        if isinstance(item, Path):
            opened, refused = documents.read_path(item)
            sources += opened
            errors += refused
        else:
            sources.append(item)
    return (texts if isinstance(texts, str) else sources), errors


def _ids(field: str, value: Any) -> list[Any]:
    if not isinstance(value, int | Iterable):
        raise Invalid(f"{field} must be a list of facts, got {quoted(value)}", field=field, value=value)
    items = [value] if isinstance(value, str | int | Hit) else list(value)
    return [item.fact_id if isinstance(item, Hit) else item for item in items]


def _listed(field: str, value: Any) -> list[Any]:
    """One or many, as a list."""
    return [value] if isinstance(value, Signal | Target | Mapping | str) else _all(field, value)


def _one_or_none(field: str, value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _all(field: str, value: Any) -> list[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise Invalid(f"{field} must be a list, got {quoted(value)}", field=field, value=value)
    return list(value)


def _messages(field: str, value: Any) -> list[Any]:
    """Messages without their ids: where they are added, they get others."""
    return [
        item.model_dump(exclude={"message_id"}) if isinstance(item, Message) else item for item in _all(field, value)
    ]


def _examples(field: str, value: Any) -> list[Any]:
    """The fields that an example needs; the records of a file may have other columns."""
    wanted = ("question", "sql_query")
    return [
        {key: item[key] for key in wanted if key in item} if isinstance(item, Mapping) else item
        for item in _all(field, value)
    ]


_ADAPTED: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "improve": {"session_ids": _one_or_none},
    "signal": {"signals": _listed},
    "signal_recall": {
        "recall_id": lambda _, recall: getattr(recall, "recall_id", recall),
        "used": _ids,
        "helpful": _ids,
        "not_helpful": _ids,
    },
    "sessions.add_messages": {"messages": _messages},
    "sessions.delete_metadata": {"keys": _listed},
    "keys.create_token": {"targets": _listed},
    "golden_examples.import_examples": {"examples": _examples},
}
