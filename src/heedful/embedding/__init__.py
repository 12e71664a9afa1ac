"""Text to vector."""

from heedful.embedding.base import Calibration, Embedder, Vectors
from heedful.embedding.choose import choose, configured

__all__ = ["Calibration", "Embedder", "Vectors", "choose", "configured"]
