"""Language models: the contract, and endpoints that speak the protocol of OpenAI."""

from heedful.providers.llm.contract import ChatMessage, Completion, LanguageModel, Usage
from heedful.providers.llm.endpoint import language_model_from

__all__ = ["ChatMessage", "Completion", "LanguageModel", "Usage", "language_model_from"]
