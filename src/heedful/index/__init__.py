"""Vectors and words: derived from storage, disposable, rebuilt from it."""

from heedful.index.dataset import DatasetIndex

__all__ = ["DatasetIndex"]
