"""Any OpenAI-compatible embeddings endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np

from heedful.errors import Unavailable
from heedful.providers.embedding.contract import Calibration, Vectors, normalize
from heedful.ranking.similarity import PLAIN
from heedful.retrying import RETRIED, TryAgain, retry, seconds


class EndpointEmbedder:
    """POSTs batches to `{url}/embeddings`; tries again when the server is busy or out of reach."""

    calibration: Calibration = PLAIN

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 4,
        batch: int = 128,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = f"{model}@{url.rstrip('/')}"
        self._model = model
        self._attempts = attempts
        self._batch = batch
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(base_url=url.rstrip("/"), timeout=timeout, headers=headers)
        self._dimensions: int | None = None
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        with self._lock:
            if self._dimensions is None:
                self._dimensions = self._request(["dimensions"]).shape[1]
            return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        parts = [self._request(texts[start : start + self._batch]) for start in range(0, len(texts), self._batch)]
        return np.concatenate(parts)

    def _request(self, texts: Sequence[str]) -> Vectors:
        try:
            return retry(lambda: self._attempt(texts), attempts=self._attempts, sleep=self._sleep)
        except TryAgain as failure:
            raise self._unavailable(failure.problem) from failure

    def _attempt(self, texts: Sequence[str]) -> Vectors:
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            response = self._client.post("/embeddings", json=body)
        except httpx.TransportError as error:
            raise TryAgain(f"{type(error).__name__}: {error}") from error
        problem = f"HTTP {response.status_code}: {response.text[:200]}"
        if response.status_code in RETRIED:
            raise TryAgain(problem, seconds(response.headers.get("Retry-After", "")))
        if response.is_error:
            raise self._unavailable(problem)
        return self._read(response, len(texts))

    def _read(self, response: httpx.Response, expected: int) -> Vectors:
        try:
            rows: list[dict[str, Any]] = sorted(response.json()["data"], key=lambda row: row["index"])
            vectors = np.asarray([row["embedding"] for row in rows], np.float32)
            if [row["index"] for row in rows] != list(range(expected)):
                raise ValueError("the indexes don't match the texts")
        except (ValueError, KeyError, TypeError) as error:
            raise self._unavailable(f"an answer that is not a list of embeddings ({error!r})") from error
        if vectors.ndim != 2 or len(vectors) != expected or not np.isfinite(vectors).all():
            raise self._unavailable(f"{len(vectors)} embeddings for {expected} texts, or broken ones")
        return normalize(vectors)

    def _unavailable(self, problem: str) -> Unavailable:
        return Unavailable(
            f"the embedding endpoint {self.name} answered with {problem}",
            code="model_unreachable",
            remedy="Check HEEDFUL_EMBEDDING and HEEDFUL_EMBEDDING_API_KEY, and that the server runs",
        )
