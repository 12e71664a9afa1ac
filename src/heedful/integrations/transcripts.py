"""Transcripts of Claude Code: what was said and done since the last prompt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

MAX_READ = 4_000_000
"""Bytes at the end of a transcript that are looked at; a session may have many times as much."""

MAX_EVIDENCE = 200_000
"""Characters of what was done in which facts are looked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of Claude's."""

    text: str
    """What it wrote."""
    evidence: str
    """The same, and what it passed to tools: a fact may be used in a command and not in words."""


def last_answer(path: Path, final: str = "") -> Answer:
    """The answer to the last prompt in a transcript; `final` is its end, which may not be written there yet."""
    texts: list[str] = []
    inputs: list[str] = []
    for message in _since_prompt(path):
        for block in message:
            if block.get("type") == "text":
                texts.append(str(block.get("text", "")))
            elif block.get("type") == "tool_use":
                inputs += _strings(block.get("input"))
    if final and final not in texts:
        texts.append(final)
    text = "\n\n".join(part.strip() for part in texts if part.strip())
    return Answer(text, "\n".join([text, *inputs])[:MAX_EVIDENCE])


def _since_prompt(path: Path) -> list[list[dict[str, Any]]]:
    """The contents of what the assistant said since the last prompt, in order."""
    found: list[list[dict[str, Any]]] = []
    for line in reversed(_last_lines(path)):
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        message = entry.get("message") if isinstance(entry, dict) else None
        if not isinstance(message, dict) or entry.get("isSidechain") or entry.get("isMeta"):
            continue
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        if entry.get("type") == "assistant":
            found.append(blocks)
        elif entry.get("type") == "user" and any(block.get("type") == "text" for block in blocks):
            break
    return found[::-1]


def _last_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_READ))
            return file.read(MAX_READ).splitlines()
    except OSError:
        return []


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
