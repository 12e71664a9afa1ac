"""Pages of a recall: a cursor lists the facts that were shown, so that the next page shows others.

It needs no state on the server, and no rank: whatever is stored or said between two pages, no fact comes twice, and the
next page has the best of those that were not shown.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Collection, Sequence
from typing import Any

import orjson

from heedful.errors import Invalid

MAX_SHOWN = 1_000
"""Facts that the pages of one recall show in all."""

_DIGEST = 8


def write_cursor(question: Sequence[Any], shown: Collection[int]) -> str:
    """Where the next page begins, after the facts with these numbers; `question` is what the pages have in common."""
    packed = bytearray(_fingerprint(question))
    last = 0
    for number in sorted(shown):
        gap, last = number - last, number
        while gap >= 0x80:
            packed.append(gap & 0x7F | 0x80)
            gap >>= 7
        packed.append(gap)
    return urlsafe_b64encode(packed).rstrip(b"=").decode()


def read_cursor(question: Sequence[Any], cursor: str) -> list[int]:
    """The numbers of the facts that were shown before; a cursor of another recall is refused."""
    try:
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (Error, ValueError):
        raise _invalid(cursor) from None
    if packed[:_DIGEST] != _fingerprint(question) or (len(packed) > _DIGEST and packed[-1] >= 0x80):
        raise _invalid(cursor)
    numbers: list[int] = []
    value = shift = last = 0
    for byte in packed[_DIGEST:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            last += value
            numbers.append(last)
            value = shift = 0
        if shift > 63 or last >= 2**63 or len(numbers) > MAX_SHOWN:
            raise _invalid(cursor)
    return numbers


def _fingerprint(question: Sequence[Any]) -> bytes:
    packed = orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(packed, digest_size=_DIGEST).digest()


def _invalid(cursor: str) -> Invalid:
    return Invalid(
        "the cursor is none of this recall",
        field="cursor",
        value=cursor[:50],
        remedy="Use the next_cursor of a recall of the same query, dataset, mode and where",
    )
