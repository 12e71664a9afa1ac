"""Language models: the contract, and endpoints that speak the protocol of OpenAI."""

from heedful.providers.llm.choose import language_model_from
from heedful.providers.llm.contract import ChatMessage, Completion, LanguageModel, Usage

__all__ = ["ChatMessage", "Completion", "LanguageModel", "Usage", "language_model_from"]
