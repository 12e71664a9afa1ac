"""The names in texts, by a language model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from heedful.providers.llm.contract import NOTICE, ChatMessage, LanguageModel, quote

MAX_NAME = 200
"""Characters of a name at most."""

TEXT = 10_000
"""Characters of a text at most."""

MAX_FAILURES = 1_000
"""Brackets of an answer that may turn out to open nothing, before the rest is left unread."""

RULES = """\
You find the names in texts: people, places, organisations, products, works, events, and technical terms.

The texts are numbered lines. {notice}

Answer with one line for each text and nothing else. A line is JSON: {"text": its number, "names": [the names in it, \
spelt as they are there]}. The list is empty where a text has none. Example: \
{"text": 7, "names": ["Marie Curie", "Paris"]}""".replace("{notice}", NOTICE)

_JSON = re.compile(r"[{\[]")


def name_entities(model: LanguageModel, texts: Sequence[str]) -> list[list[str]]:
    """The names in each text, in order, from one question to the model.

    A text for which the answer has nothing that can be read gets none. Names that don't stand in the text, in whatever
    case, are dropped: a model may make them up.
    """
    if not texts:
        return []
    plain = [" ".join(text.split()) for text in texts]
    lines = "\n".join(f"{number}. {quote(text, TEXT)}" for number, text in enumerate(plain, start=1))
    completion = model.complete([ChatMessage("system", RULES), ChatMessage("user", lines)])
    named: dict[int, list[str]] = {}
    for number, names in _rows(completion.text):
        named.setdefault(number, names)
    return [_present_names(named.get(number, []), text) for number, text in enumerate(plain, start=1)]


def _rows(answer: str) -> Iterator[tuple[int, list[str]]]:
    """What can be read of an answer: it may have words or a fence around it, be one list or object, or break off."""
    decoder = json.JSONDecoder()
    at = failures = 0
    while failures < MAX_FAILURES and (opening := _JSON.search(answer, at)) is not None:
        try:
            value, at = decoder.raw_decode(answer, opening.start())
        except (ValueError, RecursionError):
            at = opening.end()
            failures += 1
        else:
            yield from _read(value)


def _read(value: Any) -> Iterator[tuple[int, list[str]]]:
    if isinstance(value, list):
        for each in value:
            yield from _read(each)
    elif isinstance(value, dict):
        if "text" in value and "names" in value:
            pairs = [(value["text"], value["names"])]
        else:
            # Other models make one object of it: {"1": [names], "2": [names]}.
            pairs = list(value.items())
        for number, names in pairs:
            if str(number).isdecimal() and isinstance(names, list):
                yield int(number), [name for name in names if isinstance(name, str)]
            elif isinstance(names, list | dict):
                yield from _read(names)


def _present_names(names: Sequence[str], text: str) -> list[str]:
    """The names that the text has, each once."""
    low = text.casefold()
    found: dict[str, str] = {}
    for given in names:
        name = " ".join(given.split())
        if name and len(name) <= MAX_NAME and _contains_name(name.casefold(), low):
            found.setdefault(name.casefold(), name)
    return list(found.values())


def _contains_name(name: str, text: str) -> bool:
    """Whether a name stands in a text as whole words, if it is made of letters and digits at its ends."""
    before = r"(?<!\w)" if name[0].isascii() and name[0].isalnum() else ""
    behind = r"(?!\w)" if name[-1].isascii() and name[-1].isalnum() else ""
    return re.search(f"{before}{re.escape(name)}{behind}", text) is not None
