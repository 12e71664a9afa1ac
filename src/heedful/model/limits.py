"""The limits of what callers may send, in one place."""

from __future__ import annotations

from datetime import UTC, datetime

from heedful.clock import MINUTE, to_stored

MAX_TEXT = 5_000_000
MAX_QUERY = 10_000
MAX_NAME = 200
MAX_SOURCE = 2_000
"""Bytes of a source as UTF-8: what an index of PostgreSQL holds, which takes 2,704 for each row."""

MAX_SEGMENT = 3 * MAX_SOURCE
"""Bytes between two slashes of an address: the longest source, each byte of it escaped."""

MAX_PATH = 16_384
"""Bytes of an address before its query."""

MAX_KEY = 200
"""Characters of a key of metadata, with those around it and the dots between them."""

MAX_INTEGER = 2**63 - 1
MAX_WHERE = 16_384
"""Bytes of a filter as JSON: three times as many fit into an address."""

MAX_CONDITIONS = 100
MAX_CHOICES = 1_000
"""Values that one condition of a filter lists."""

MAX_TOP_K = 1_000
MAX_SIGNALS = 5_000
"""Signals of one call, which are written together: other writers wait for about half a second."""

MAX_WEIGHTS = 100
"""Weights that one replay tries: each orders all rated recalls again."""

MAX_WAITING_JOBS = 1_000
"""Background jobs of a project that wait at the same time."""

MAX_METADATA = 65_536
MAX_METADATA_VALUES = 1_000
"""Values in the metadata of a fact, however deep; each is a row that filters read."""

MAX_COPIED_METADATA = 10_000_000
"""Bytes of metadata that one call stores again for further texts and pieces, with 50 more for each value."""

MAX_PAGE = 1_000
MAX_DEPTH = 100
MAX_TIME = to_stored(datetime.max.replace(tzinfo=UTC))
"""The last time that can be stored; the first is 1970."""

MAX_AHEAD = 5 * MINUTE
"""Microseconds that the clock of a caller may be fast."""

MAX_ROLE = 50
MAX_CONTENT = 1_000_000
MAX_COMMENT = 10_000
MAX_MESSAGES = 10_000

MAX_SQL = 100_000
MAX_FEEDBACK = 10_000
MAX_FEEDBACK_BODY = 131_072
"""Bytes of a request with one opinion: a comment and the metadata beside it at their limits, as UTF-8."""

MAX_VISITOR_DETAILS = 4_096
"""Bytes of what a token sends besides a comment."""

MAX_FILE = 500_000_000
"""Bytes of a file that is read as a whole, and of what an archive unpacks to."""

MAX_LINE = 100_000_000
"""Bytes of a line of an exported project."""

MAX_READ_BODY = 1_500_000
"""Bytes of a request that only reads: an answer at its limit, even if it is escaped."""

MAX_VALUES = 200_000
"""Values in the JSON of one request: members of objects, and items of lists."""

MAX_FEW_VALUES = 40_000
"""The same, of a request with one opinion or one that only reads; metadata at its limit has fewer."""

MAX_MEMBERS = 20_000
"""Members of one object in it; metadata at its limit has fewer."""

MAX_LIST = 10_000
MAX_SKIP = 1_000_000_000
MAX_AGE_DAYS = 36_500

MAX_RATE = 1_000_000
MAX_SECONDS = 86_400
MAX_GRACE = 604_800
MAX_TARGETS = 100
