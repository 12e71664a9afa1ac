"""Vectors and words: derived from storage, disposable, rebuilt from it."""

from heedful.search.database_index import DatabaseIndex
from heedful.search.dataset import DatasetIndex

Searcher = DatasetIndex | DatabaseIndex
"""The index of a dataset, in memory or in the database."""

__all__ = ["DatabaseIndex", "DatasetIndex", "Searcher"]
