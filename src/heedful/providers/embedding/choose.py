"""Chooses the embedder that a setting names."""

from __future__ import annotations

from pathlib import Path

from heedful.errors import Invalid, quoted
from heedful.providers.embedding.contract import Embedder
from heedful.providers.embedding.fast import FastEmbedder
from heedful.providers.embedding.onnx import bundled, from_folder
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
            raise Invalid(
                f"embedding {quoted(spec)} names no model",
                field="embedding",
                value=spec,
                remedy='Write it after a #, like "http://localhost:11434/v1#nomic-embed-text"',
            )
        # Loading an HTTP client takes time that other models don't need.
        from heedful.providers.embedding.endpoint import EndpointEmbedder

        return EndpointEmbedder(url, model, api_key=api_key, timeout=timeout)
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return from_folder(folder)
    raise Invalid(
        f"embedding {quoted(spec)} is neither a known model nor a folder",
        field="embedding",
        value=spec,
        remedy='Use "bundled", "fast", a folder with tokenizer.json and an .onnx file, or "URL#model"',
    )
