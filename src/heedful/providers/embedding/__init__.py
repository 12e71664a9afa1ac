"""Text to vector."""

from heedful.providers.embedding.choose import configured_embedder, embedder_from
from heedful.providers.embedding.contract import Calibration, Embedder, Vectors
from heedful.providers.embedding.recent import RecentVectors

__all__ = ["Calibration", "Embedder", "RecentVectors", "Vectors", "configured_embedder", "embedder_from"]
