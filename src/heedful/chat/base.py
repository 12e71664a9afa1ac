"""What every language model can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Role = Literal["system", "user", "assistant"]
OnToken = Callable[[str], None]
"""Gets each part of an answer as soon as it is there."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost, in the model's own tokens; None where the server doesn't say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered, whole."""

    text: str
    usage: Usage


class LanguageModel(Protocol):
    """Continues a conversation."""

    @property
    def name(self) -> str:
        """Model and place, as answers record it."""
        ...

    def complete(self, messages: Sequence[ChatMessage], *, on_token: OnToken | None = None) -> Completion:
        """The answer to the last message; `on_token` gets its parts in order, and together they are its text."""
        ...
