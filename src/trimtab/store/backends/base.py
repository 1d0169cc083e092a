"""What a store asks of a database, and which one an address is of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from trimtab.store.backends.sqlite import InMemory, SqliteDatabase


class Database(Protocol):
    """What a store asks of SQLite and PostgreSQL."""

    where: str
    words: ClassVar[dict[str, str]]

    @property
    def lost(self) -> bool:
        """Whether the connection is gone, and with it the lock."""
        ...

    def execute(self, sql: str, *values: object) -> list[Any]:
        """The rows that a statement gives."""
        ...

    def change(self, sql: str, *values: object) -> int:
        """How many rows a statement changed."""
        ...

    def transaction(self) -> Any:
        """A context: all that is done in it, or nothing."""
        ...

    def take_turns(self) -> None:
        """Within a transaction: let one writer in at a time, until it ends."""
        ...

    def tables(self) -> set[str]:
        """The names of the tables that are there."""
        ...

    def settle(self) -> None:
        """What was written is in the file itself, not only in its log."""
        ...

    def verify(self) -> None:
        """After a commit, and before what depends on one: raise if what was written is not in what is there now."""
        ...

    def backup(self, path: Path) -> None:
        """A copy of the whole in one file."""
        ...

    def check(self) -> list[str]:
        """What is wrong with it."""
        ...

    def lock(self, study: int, name: str) -> bool:
        """Take a study for this process; False if another has it."""
        ...

    def reconnect(self) -> None:
        """A new connection in place of one that is lost."""
        ...

    def close(self) -> None:
        """Let go of it, and of the lock."""
        ...

    def among(self, column: str, values: Sequence[object]) -> tuple[str, Sequence[object]]:
        """The condition that a column has one of these values, and what fills its marks."""
        ...

    def move(self, rows: Sequence[tuple[Any, ...]]) -> set[int]:
        """Studies' rows and events, where nobody holds or changed them; the ids of those that were stored."""
        ...

    def taken(self, study: int, name: str) -> bool:
        """Whether a process holds a study now."""
        ...


def opened(where: str, mode: str, thorough: bool) -> Database:
    """A path of a SQLite file, a URL, or ":memory:"."""
    scheme = where.partition("://")[0] if "://" in where else "sqlite"
    if where == ":memory:":
        return InMemory()
    if scheme == "sqlite":
        return SqliteDatabase(where, mode, thorough=thorough)
    if scheme.partition("+")[0] in ("postgresql", "postgres"):
        from trimtab.store.backends.postgres import PostgresDatabase

        return PostgresDatabase(where.replace(scheme, "postgresql", 1), mode, thorough=thorough)
    if not scheme:
        raise ValueError("the store's URL cannot be read: write a path, or postgresql://user@host/database")
    raise ValueError(f"the store {scheme} is not supported: use sqlite or postgresql")
