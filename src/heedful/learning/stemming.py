"""English words reduced to their stems, the same in every process and thread."""

from __future__ import annotations

import threading
from functools import lru_cache

# By its own class: the package's factory would take another implementation where one happens to be installed, and a
# saved index must find the stems it was made with.
from snowballstemmer.english_stemmer import EnglishStemmer

_stemmer = EnglishStemmer()
_stemming = threading.Lock()


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """The stem of a word in lower case.

    >>> stem("resets"), stem("resetting")
    ('reset', 'reset')
    """
    # The stemmer keeps the word it works on in itself.
    with _stemming:
        return str(_stemmer.stemWord(word))
