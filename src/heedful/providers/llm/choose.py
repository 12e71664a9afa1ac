"""Chooses the language model that a setting names."""

from __future__ import annotations

from heedful.errors import Invalid
from heedful.providers.llm.contract import LanguageModel


def language_model_from(address: str | None, api_key: str | None = None, timeout: float = 60.0) -> LanguageModel | None:
    """The model at `https://host/v1#model-name`; None where none is given."""
    if address is None or not address.strip():
        return None
    url, _, model = address.strip().partition("#")
    if not model or not url.startswith(("http://", "https://")):
        raise Invalid(
            f"language_model {'is not a URL' if model else 'names no model'}",
            field="language_model",
            remedy='Write it as URL#model, like "http://localhost:11434/v1#llama3.2"',
        )
    # Loading an HTTP client takes time that a store without a language model doesn't need.
    from heedful.providers.llm.endpoint import EndpointModel

    return EndpointModel(url, model, api_key=api_key, timeout=timeout)
