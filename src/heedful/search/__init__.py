"""Vectors and words: derived from storage, disposable, rebuilt from it."""

from heedful.search.dataset import DatasetIndex
from heedful.search.postgresql import DatabaseIndex
from heedful.search.searcher import Found, Searcher

__all__ = ["DatabaseIndex", "DatasetIndex", "Found", "Searcher"]
