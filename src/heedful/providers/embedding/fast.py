"""The fast model: static word vectors, about fifty times faster and less exact."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import Unavailable
from heedful.providers.embedding.contract import Vectors, normalize
from heedful.providers.embedding.onnx import digest
from heedful.ranking.similarity import WORDLLAMA

DIMENSIONS = 256
WEIGHTS = "weights/l2_supercat_256.safetensors"


class FastEmbedder:
    """WordLlama's 256 dimensions, from the files in its package."""

    dimensions = DIMENSIONS
    calibration = WORDLLAMA

    def __init__(self) -> None:
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise Unavailable(
                "the fast tier is not installed",
                code="model_missing",
                remedy='Run: pip install "heedful[fast]"',
            )
        self._folder = Path(spec.origin).parent
        self.name = f"wordllama-l2-supercat-256@{digest(self._folder / WEIGHTS)[:12]}"
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        with self._loading:
            model = self._model
        return normalize(np.nan_to_num(np.asarray(model.embed(list(texts)), np.float32)))

    @cached_property
    def _model(self) -> Any:
        from wordllama import WordLlama

        return WordLlama.load(cache_dir=self._folder, dim=DIMENSIONS, disable_download=True)
