"""Text to vector."""

from heedful.providers.embedding.choose import configured_embedder, embedder_from
from heedful.providers.embedding.contract import Calibration, Embedder, Vectors

__all__ = ["Calibration", "Embedder", "Vectors", "configured_embedder", "embedder_from"]
