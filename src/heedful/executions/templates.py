"""SQL without its values: what two statements have in common that differ in nothing else."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from heedful.dialects import parse, write

_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=4096)
def template(sql: str, dialect: str) -> bytes:
    """A short sum that is the same for SQL which differs in values, layout or letter case of keywords only.

    >>> template("select a from t where b = 1", "sqlite") == template("SELECT a FROM t WHERE b=2", "sqlite")
    True
    """
    try:
        parsed = parse(sql, dialect)[0]
        for value in list(parsed.find_all(exp.Literal, exp.Placeholder, exp.Parameter)):
            whole = value.parent if isinstance(value.parent, exp.Neg) else value
            whole.replace(exp.Placeholder())
        canonical = write(parsed, dialect, normalize=True)
    except (SqlglotError, RecursionError):
        # It ran, so the database understands it; then its own words are what it can be compared by.
        canonical = _SPACE.sub(" ", sql).strip()
    return hashlib.blake2b(canonical.encode(), digest_size=16).digest()


def question_digest(question: str) -> bytes:
    """A short sum that is the same for a question in another layout or letter case."""
    return hashlib.blake2b(
        _SPACE.sub(" ", question).strip().rstrip("?!. ").casefold().encode(), digest_size=16
    ).digest()
