"""The interface of a database, and the choice of one by address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from trimtab.store.backends.sqlite import InMemory, SqliteDatabase


class Database(Protocol):
    """Connection to SQLite or PostgreSQL, as the store needs it."""

    where: str
    words: ClassVar[dict[str, str]]

    @property
    def lost(self) -> bool:
        """Whether the connection is gone, and with it the lock."""
        ...

    def execute(self, sql: str, *values: object) -> list[Any]:
        """Run a statement and return its rows."""
        ...

    def change(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""
        ...

    def transaction(self) -> Any:
        """Return a context manager that commits all changes made within it, or none."""
        ...

    def take_turns(self) -> None:
        """Take the schema lock until the transaction ends."""
        ...

    def tables(self) -> set[str]:
        """Return the names of the existing tables."""
        ...

    def settle(self) -> None:
        """Checkpoint: write the log back into the file."""
        ...

    def verify(self) -> None:
        """Raise `Moved` if the database file was deleted or replaced, so that earlier commits are not in it."""
        ...

    def backup(self, path: Path) -> None:
        """Copy the whole database into one file."""
        ...

    def check(self) -> list[str]:
        """Return the problems found in the database."""
        ...

    def lock(self, study: int, name: str) -> bool:
        """Lock a study for this process; False if another process holds it."""
        ...

    def reconnect(self) -> None:
        """Replace a lost connection."""
        ...

    def close(self) -> None:
        """Close the connection and release the lock."""
        ...

    def among(self, column: str, values: Sequence[object]) -> tuple[str, Sequence[object]]:
        """Return the condition that a column has one of these values, and its parameters."""
        ...

    def move(self, rows: Sequence[tuple[Any, ...]]) -> set[int]:
        """Store rows and events of studies that are not held or changed; return the ids of those stored."""
        ...

    def taken(self, study: int, name: str) -> bool:
        """Whether a process holds a study now."""
        ...


def open_database(where: str, mode: str, thorough: bool) -> Database:
    """Open the path of a SQLite file, a URL, or ":memory:"."""
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
