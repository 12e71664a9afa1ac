"""Vectors and words: derived from storage, disposable, rebuilt from it."""

from heedful.index.dataset import DatasetIndex
from heedful.index.inside import DatabaseIndex
from heedful.index.searcher import Found, Searcher

__all__ = ["DatabaseIndex", "DatasetIndex", "Found", "Searcher"]
