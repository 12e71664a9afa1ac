"""LoCoMo: long conversations, with questions whose evidence is named turn by turn.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (2024).
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "locomo_dev.json.gz"

CATEGORIES = {1: "multi-hop", 2: "time", 3: "open domain", 4: "single-hop"}
"""The kinds of question that have an answer in the conversation; the fifth has none."""

_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says at a time, with the picture they share, if any."""

    id: str
    session: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its category, the turns that answer it, and the answer."""

    text: str
    category: int
    evidence: frozenset[str]
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """All turns in order, and the questions about them."""

    id: str
    turns: list[Turn]
    questions: list[Question]


def read(file: Path) -> list[Conversation]:
    """The conversations of a file. Questions without any known evidence turn are left out."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        return [_conversation(item) for item in json.load(stream)]


def _conversation(item: dict[str, Any]) -> Conversation:
    spoken = item["conversation"]
    numbers = sorted(int(match[1]) for key in spoken if (match := _SESSION.fullmatch(key)))
    turns = [_turn(turn, f"session_{number}") for number in numbers for turn in spoken[f"session_{number}"] or []]
    known = {turn.id for turn in turns}
    questions = []
    for asked in item["qa"]:
        # Several turn ids may stand in one text.
        named = {turn_id for text in asked.get("evidence", []) for turn_id in _TURN_ID.findall(text)}
        if asked["category"] in CATEGORIES and named & known:
            evidence = frozenset(named & known)
            questions.append(Question(asked["question"], asked["category"], evidence, str(asked["answer"])))
    return Conversation(item["sample_id"], turns, questions)


def _turn(turn: dict[str, Any], session: str) -> Turn:
    text = f"{turn['speaker']}: {turn['text']}"
    if turn.get("blip_caption"):
        text += f" [shares {turn['blip_caption']}]"
    return Turn(turn["dia_id"], session, text)
