"""Vectors as columns: half floats in SQLite, `halfvec` of pgvector in PostgreSQL, and bytes for all callers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Dialect, LargeBinary
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

_HEAD = struct.Struct(">hh")
"""pgvector's header: the number of dimensions, and an unused field."""


class Packed(bytes):
    """A packed vector on its way to PostgreSQL; the connection sends it as pgvector reads it."""

    def sent(self) -> bytes:
        """The header, then the numbers in network byte order."""
        return _HEAD.pack(len(self) // 2, 0) + np.frombuffer(self, "<f2").astype(">f2").tobytes()


def received(sent: bytes) -> bytes:
    """The packed vector in pgvector's binary format."""
    return np.frombuffer(sent, ">f2", offset=_HEAD.size).astype("<f2").tobytes()


def unpack_sent(sent: bytes, dimensions: int) -> NDArray[np.float32]:
    """Vectors in pgvector's binary format, one behind the other, as rows of floats."""
    numbers = np.frombuffer(sent, ">f2").reshape(-1, _HEAD.size // 2 + dimensions)
    return numbers[:, _HEAD.size // 2 :].astype(np.float32)


class HalfVector(TypeDecorator[bytes]):
    """A packed vector of any number of dimensions."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(_Halfvec() if dialect.name == "postgresql" else LargeBinary())

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return Packed(value) if value is not None and dialect.name == "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        return received(value) if value is not None and dialect.name == "postgresql" else value

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        sent = _Sent(column)
        sent.type = self
        return sent


class _Halfvec(UserDefinedType[bytes]):
    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec"


class _Sent(FunctionElement[bytes]):
    """A vector read in binary form, not as text."""

    inherit_cache = True


@compiles(_Sent)
def _compile_plain(element: _Sent, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(_Sent, "postgresql")
def _in_binary(element: _Sent, compiler: SQLCompiler, **options: Any) -> str:
    return f"halfvec_send({compiler.process(element.clauses, **options)})"
