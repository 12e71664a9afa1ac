"""Text to vector: the contract, the models that run here, and the choice among them."""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from heedful.errors import Unavailable, extra_missing
from heedful.text.same_question import MINILM, PLAIN, WORDLLAMA, Calibration
from heedful.threads import in_parallel

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors; the same text gives the same vector."""

    @property
    def name(self) -> str:
        """Stored with every vector: embedders of the same name give the same vectors."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def calibration(self) -> Calibration:
        """How this model's cosines map to "the same question"."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order."""
        ...


def normalize(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit


KEPT = 1_000
"""Vectors that are kept, of texts that were embedded by themselves."""


class RecentVectors:
    """Another embedder, asked once for texts that come again. Only their hashes are held, not the texts."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.calibration = embedder.calibration
        self._kept: LRUCache[bytes, Vectors] = LRUCache(KEPT)
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1:
            return self._embedder.embed(texts)
        key = hashlib.blake2b(texts[0].encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            vectors = self._kept.get(key)
        if vectors is None:
            vectors = self._embedder.embed(texts)
            with self._lock:
                self._kept[key] = vectors
        return vectors.copy()


BATCH_SIZE = 8

CARRIER = "heedful-minilm"
"""The package with the files of the bundled model; `packages/heedful-minilm` builds it."""


class OnnxEmbedder:
    """Mean-pooled token states of an ONNX sentence model; files are loaded at the first use."""

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        name: str,
        dimensions: int,
        max_tokens: int = 256,
        calibration: Calibration = PLAIN,
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.calibration = calibration
        self._model = model
        self._tokenizer_file = tokenizer
        self._max_tokens = max_tokens
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        with self._loading:
            tokenizer, session = self._tokenizer, self._session
        encoded = tokenizer.encode_batch(list(texts))
        # Texts of similar length share a batch, to save padding.
        order = sorted(range(len(texts)), key=lambda index: len(encoded[index].ids))
        batches = [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]
        vectors = np.empty((len(texts), self.dimensions), np.float32)

        def run(batch: list[int]) -> None:
            vectors[batch] = self._pooled(session, [encoded[index].ids for index in batch])

        in_parallel(run, batches)
        return vectors

    def width(self) -> int:
        """How many dimensions the model's output has; loads the files."""
        with self._loading:
            width = self._session.get_outputs()[0].shape[-1] if self._tokenizer else None
        if not isinstance(width, int):
            message = f"the model {self._model} does not state the dimensions of its output"
            raise Unavailable(message, code="model_unusable", remedy="Export it with a fixed hidden size")
        return width

    def _unusable(self, file: Path, error: Exception) -> Unavailable:
        return Unavailable(
            f"the model file {file} can't be used ({error})", code="model_unusable", remedy="Export it again"
        )

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._tokenizer_file))
        except Exception as error:  # The library has no narrower class.
            raise self._unusable(self._tokenizer_file, error) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # One thread per call: a query is too short to split, and batches run in parallel.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            return onnxruntime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # The library's classes are private.
            raise self._unusable(self._model, error) from error

    def _pooled(self, session: Any, ids: list[list[int]]) -> Vectors:
        width = max(len(row) for row in ids)
        tokens = np.zeros((len(ids), width), np.int64)
        mask = np.zeros((len(ids), width), np.int64)
        for index, row in enumerate(ids):
            tokens[index, : len(row)] = row
            mask[index, : len(row)] = 1
        inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        input_names = {model_input.name for model_input in session.get_inputs()}
        output = session.run(None, {name: value for name, value in inputs.items() if name in input_names})[0]
        if output.ndim == 3:
            weights = mask[..., None].astype(np.float32)
            output = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        return normalize(output)


def bundled() -> OnnxEmbedder:
    """all-MiniLM-L6-v2 in 8-bit integers: 384 dimensions, English, on any CPU, offline."""
    model_hash = "21bb475fbf968fa6c724c1bf13bc765d329a2cffc79ec2ea649d7d0dfcc69a50"
    tokenizer_hash = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    return OnnxEmbedder(
        verified(CARRIER, "heedful_minilm/model.onnx", model_hash),
        verified(CARRIER, "heedful_minilm/tokenizer.json", tokenizer_hash),
        name=f"all-MiniLM-L6-v2-int8@{model_hash[:12]}",
        dimensions=384,
        calibration=MINILM,
    )


def from_folder(folder: Path) -> OnnxEmbedder:
    """Any ONNX sentence model: the folder holds `tokenizer.json` and one `.onnx` file."""
    tokenizer = folder / "tokenizer.json"
    models = sorted(folder.glob("*.onnx")) or sorted(folder.glob("onnx/*.onnx"))
    if not tokenizer.is_file() or not models:
        missing = "tokenizer.json" if models else "a .onnx file"
        remedy = "Export the model to ONNX with its tokenizer.json beside it"
        raise Unavailable(f"the model folder {folder} has no {missing}", code="model_missing", remedy=remedy)
    model = next((path for path in models if path.name == "model.onnx"), models[0])
    stamp = hashlib.sha256((digest(model) + digest(tokenizer)).encode()).hexdigest()[:12]
    embedder = OnnxEmbedder(model, tokenizer, name=f"{folder.name}@{stamp}", dimensions=0)
    embedder.dimensions = embedder.width()
    return embedder


@cache
def verified(package: str, suffix: str, sha256: str) -> Path:
    """The file of an installed package that ends in `suffix`, if its checksum is the pinned one.

    The package is a carrier of data: none of its code is imported.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        message = f"the package {package}, which carries the embedding model, is not installed"
        remedy = f"Run: pip install {package}, or in a clone of the repository: pip install ./packages/{package}"
        raise Unavailable(message, code="model_missing", remedy=remedy) from None
    path = next((Path(str(file.locate())) for file in files if file.as_posix().endswith(suffix)), None)
    if path is None or not path.is_file():
        message = f"the package {package} has no file {suffix}"
        raise Unavailable(message, code="model_missing", remedy=f"Run: pip install --force-reinstall {package}")
    actual = digest(path)
    if actual != sha256:
        raise Unavailable(
            f"{path} is not the file this version was tested with (SHA-256 {actual[:12]}…, expected {sha256[:12]}…)",
            code="model_changed",
            remedy=f"Run: pip install --force-reinstall heedful {package}",
        )
    return path


def digest(path: Path) -> str:
    """The SHA-256 checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


WEIGHTS = "weights/l2_supercat_256.safetensors"


class FastEmbedder:
    """WordLlama's 256 dimensions, from the files in its package."""

    dimensions = 256
    calibration = WORDLLAMA

    def __init__(self) -> None:
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise extra_missing("fast", "the fast tier is not installed", "model_missing")
        self._folder = Path(spec.origin).parent
        self.name = f"wordllama-l2-supercat-256@{digest(self._folder / WEIGHTS)[:12]}"
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        with self._loading:
            model = self._model
        return normalize(np.nan_to_num(np.asarray(model.embed(list(texts)), np.float32)))

    @cached_property
    def _model(self) -> Any:
        from wordllama import WordLlama

        return WordLlama.load(cache_dir=self._folder, dim=self.dimensions, disable_download=True)
