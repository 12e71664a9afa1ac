"""From a word in the settings to a language model."""

from __future__ import annotations

from heedful.chat.base import LanguageModel
from heedful.chat.endpoint import EndpointModel
from heedful.errors import Invalid


def choose(given: str | None, api_key: str | None = None, timeout: float = 60.0) -> LanguageModel | None:
    """The model at `https://host/v1#model-name`; None where none is given."""
    if given is None or not given.strip():
        return None
    url, _, model = given.strip().partition("#")
    if not model or not url.startswith(("http://", "https://")):
        raise Invalid(
            f"language_model {'is no URL' if model else 'names no model'}",
            field="language_model",
            remedy='Write it as URL#model, like "http://localhost:11434/v1#llama3.2"',
        )
    return EndpointModel(url, model, api_key=api_key, timeout=timeout)
