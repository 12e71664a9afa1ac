"""The embedder and the language model that settings name."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.errors import Invalid, quoted
from heedful.providers.embedding import Embedder, FastEmbedder, bundled, from_folder
from heedful.providers.llm import LanguageModel
from heedful.settings import Settings


def configured_embedder(settings: Settings, embedding: str | Embedder | None) -> Embedder:
    """The named embedder, or that of the settings."""
    if embedding is not None and not isinstance(embedding, str):
        return embedding
    return embedder_from(
        embedding or settings.embedding, api_key=settings.embedding_api_key, timeout=settings.embedding_timeout
    )


def embedder_from(spec: str, *, api_key: str | None = None, timeout: float = 30.0) -> Embedder:
    """`bundled`, `fast`, a folder with an ONNX model, or `https://host/v1#model-name`."""
    if spec == "bundled":
        return bundled()
    if spec == "fast":
        return FastEmbedder()
    if spec.startswith(("http://", "https://")):
        url, _, model = spec.partition("#")
        if not model:
            remedy = 'Write it after a #, like "http://localhost:11434/v1#nomic-embed-text"'
            raise Invalid(f"embedding {quoted(spec)} names no model", field="embedding", value=spec, remedy=remedy)
        # Loading an HTTP client takes time that other models don't need.
        from heedful.providers.endpoints import EndpointEmbedder

        return EndpointEmbedder(url, model, api_key=api_key, timeout=timeout)
    folder = os.path.expanduser(spec)
    # No path at all may be too long for one.
    if os.path.isdir(folder):
        return from_folder(Path(folder))
    message = f"embedding {quoted(spec)} is neither a known model nor a folder"
    remedy = 'Use "bundled", "fast", a folder with tokenizer.json and an .onnx file, or "URL#model"'
    raise Invalid(message, field="embedding", value=spec, remedy=remedy)


def language_model_from(address: str | None, api_key: str | None = None, timeout: float = 60.0) -> LanguageModel | None:
    """The model at `https://host/v1#model-name`; None where none is given."""
    if address is None or not address.strip():
        return None
    url, _, model = address.strip().partition("#")
    if not model or not url.startswith(("http://", "https://")):
        message = f"language_model {'is not a URL' if model else 'names no model'}"
        remedy = 'Write it as URL#model, like "http://localhost:11434/v1#llama3.2"'
        raise Invalid(message, field="language_model", remedy=remedy)
    # Loading an HTTP client takes time that a store without a language model doesn't need.
    from heedful.providers.endpoints import EndpointModel

    return EndpointModel(url, model, api_key=api_key, timeout=timeout)
