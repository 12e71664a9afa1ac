"""An answer that a language model writes from what was recalled, and which facts it cites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.chat.base import ChatMessage, LanguageModel, OnToken, Usage
from heedful.chat.citations import cited, without_citations
from heedful.chat.quoting import NOTICE, quoted
from heedful.model import Hit

EVIDENCE = 24_000
"""Characters of evidence in a prompt at most; the best hits are kept."""

EARLIER = 6_000
LONGEST_EARLIER = 1_500
"""Characters of earlier turns in a prompt at most, and of one question or answer in them; the newest turns are kept."""

RULES = f"""\
You answer questions from evidence.

The evidence is a list of numbered lines, each with one text that was stored earlier, by anyone. {NOTICE}

- Answer only with what the evidence says, in one to three sentences, in the language of the question.
- Behind every sentence, cite the evidence it is from by its number: [1], or [1][3] for several.
- If the evidence does not answer the question, say so in one sentence and cite nothing."""


@dataclass(frozen=True, slots=True)
class Use:
    """A fact that an answer was made from, and its part in it."""

    fact_id: str
    share: float
    """In (0, 1]; the shares of one answer sum to 1."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and what it was made from."""

    text: str
    used: list[Use]
    """The facts cited, in the order they are cited; empty where none is."""
    model: str | None
    """The language model that wrote it; None where none did."""
    usage: Usage | None


def write(
    model: LanguageModel,
    question: str,
    hits: Sequence[Hit],
    earlier: Sequence[tuple[str, str]] = (),
    on_token: OnToken | None = None,
) -> Written:
    """The model's answer from the hits; `earlier` are the questions and answers before this one, oldest first.

    The text stays as the model wrote it, so that it is what `on_token` was given: a citation of a number that no hit
    has is left in it, and counts for nothing.
    """
    shown = _fitting(hits)
    completion = model.complete(prompt(question, shown, earlier), on_token=on_token)
    shares = cited(completion.text, len(shown))
    used = [Use(shown[number - 1].fact_id, share) for number, share in shares.items()]
    return Written(completion.text, used, model.name, completion.usage)


def prompt(question: str, hits: Sequence[Hit], earlier: Sequence[tuple[str, str]]) -> list[ChatMessage]:
    """The rules, the conversation so far, and the evidence with the question."""
    messages = [ChatMessage("system", RULES)]
    for asked, answered in _newest(earlier):
        messages += [ChatMessage("user", asked), ChatMessage("assistant", answered)]
    lines = "\n".join(f"[{number}] {quoted(hit.text, EVIDENCE)}" for number, hit in enumerate(hits, start=1))
    messages.append(ChatMessage("user", f"Evidence:\n{lines or '(there is none)'}\n\nQuestion: {question}"))
    return messages


def _fitting(hits: Sequence[Hit]) -> list[Hit]:
    kept: list[Hit] = []
    room = EVIDENCE
    for hit in hits:
        room -= len(hit.text)
        if kept and room < 0:
            break
        kept.append(hit)
    return kept


def _newest(earlier: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The newest turns that fit, oldest first, without citations of evidence that is not in this prompt."""
    kept: list[tuple[str, str]] = []
    room = EARLIER
    for asked, answered in reversed(earlier):
        turn = _short(asked), _short(without_citations(answered))
        room -= len(turn[0]) + len(turn[1])
        if room < 0:
            break
        kept.append(turn)
    return kept[::-1]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_EARLIER else f"{text[: LONGEST_EARLIER - 1]}…"
