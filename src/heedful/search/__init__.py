"""Vectors and words: derived from storage, disposable, rebuilt from it."""

from heedful.search.dataset import DatasetIndex
from heedful.search.fusion import Found, Searcher
from heedful.search.postgresql import DatabaseIndex

__all__ = ["DatabaseIndex", "DatasetIndex", "Found", "Searcher"]
