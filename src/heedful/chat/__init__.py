"""Language models, and answers from what was recalled."""

from heedful.chat.base import ChatMessage, Completion, LanguageModel, Usage
from heedful.chat.choose import choose

__all__ = ["ChatMessage", "Completion", "LanguageModel", "Usage", "choose"]
