"""Columns of many rows as arrays of PostgreSQL, in its binary form: written at once, where psycopg does each number."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from psycopg import adapters
from psycopg.adapt import Dumper
from psycopg.pq import Format

HEAD = struct.Struct("!5i")  # dimensions, whether any is null, the type of one, how many there are, the first's number
NULL = struct.pack("!i", -1)


class Column(bytes):
    """One column, as the server reads it."""

    element: ClassVar[int]
    array: ClassVar[int]
    """The server's numbers of the types."""
    number: ClassVar[struct.Struct | None] = None
    """How one is written, if it is a number: with its size before it."""

    @classmethod
    def of(cls, values: Sequence[Any]) -> Self:
        """Of values, some of which may be None."""
        if cls.number is not None:
            size, write = cls.number.size - 4, cls.number.pack
            parts = [NULL if value is None else write(size, value) for value in values]
        else:
            parts = []
            for value in values:
                data = value.encode() if type(value) is str else value
                parts += [NULL] if data is None else [len(data).to_bytes(4, "big"), data]
        return cls(HEAD.pack(1, int(None in values), cls.element, len(values), 1) + b"".join(parts))


class Ints(Column):
    """INTEGER."""

    element, array, number = 23, 1007, struct.Struct("!ii")


class Longs(Column):
    """BIGINT."""

    element, array, number = 20, 1016, struct.Struct("!iq")


class Floats(Column):
    """DOUBLE PRECISION."""

    element, array, number = 701, 1022, struct.Struct("!id")


class Texts(Column):
    """TEXT."""

    element, array = 25, 1009


class Blobs(Column):
    """BYTEA."""

    element, array = 17, 1001


def _register(kind: type[Column]) -> None:
    class Written(Dumper):
        format = Format.BINARY
        oid = kind.array

        def dump(self, obj: Any) -> bytes:
            """It is so already."""
            return bytes(obj)

    adapters.register_dumper(kind, Written)


for _kind in (Ints, Longs, Floats, Texts, Blobs):
    _register(_kind)
