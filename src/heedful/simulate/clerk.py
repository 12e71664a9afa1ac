"""A language model that quotes: it answers with the best of its evidence, and knows some SQL by heart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random

from heedful.providers.llm.contract import ChatMessage, Completion, OnToken, Usage

CONCISE = "clerk-mini"
TALKATIVE = "clerk-large"

NOTHING_KNOWN = "I found nothing about that."

_EVIDENCE = re.compile(r'^\[(\d+)\] (".*")$', re.MULTILINE)


class Clerk:
    """Answers under the `name` it has at the moment: one model quotes a fact, the other often adds a second."""

    def __init__(self, random: Random, sql: Mapping[str, str]) -> None:
        """`sql` has the SQL for each question that it can be asked about data."""
        self.name = CONCISE
        self._random = random
        self._sql = sql

    def complete(self, messages: Sequence[ChatMessage], *, on_token: OnToken | None = None) -> Completion:
        asked = messages[-1].content
        if asked.startswith("Evidence:"):
            text = self._quoted(asked)
        elif (question := asked.rpartition("\n\nQuestion: ")[2]) in self._sql:
            text = f"```sql\n{self._sql[question]}\n```"
        else:
            text = "[]"
        if on_token is not None:
            on_token(text)
        read = sum(len(message.content) for message in messages)
        return Completion(text, Usage(read // 4, len(text) // 4))

    def _quoted(self, asked: str) -> str:
        facts = [(number, _fact_text(json.loads(text))) for number, text in _EVIDENCE.findall(asked)]
        if not facts:
            return NOTHING_KNOWN
        wordy = self.name == TALKATIVE and self._random.random() < 0.3
        # A sentence that was quoted once is not said twice.
        told = {said: number for number, said in reversed(facts[: 2 if wordy else 1])}
        return " ".join(f"{said} [{number}]" for said, number in reversed(told.items()))


def _fact_text(fact: str) -> str:
    """What a fact says; one that was learnt from an answer has the question in its first line."""
    return fact.rpartition("\n")[2]
