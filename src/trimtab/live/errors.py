"""What can go wrong with a store, told apart by what the driver says it is, and what to do about it.

`Unavailable` passes by itself (a lock, a restart, a full disk): whoever can wait tries again. All others do not.
"""

from __future__ import annotations

import sqlite3
from typing import Any

SAFE = "nothing that was acknowledged is lost"


class StoreError(OSError):
    """The store cannot be read or written; the message says why and what to do. Nothing was changed."""


class NoStore(StoreError):
    """There is no store at that place yet."""


class Damaged(StoreError):
    """What is stored is not what was written."""


class Taken(StoreError):
    """Somebody else holds the study, or has changed it."""


class Moved(StoreError):
    """The file that is written to is no longer the one at its path."""


class Unavailable(StoreError):
    """The store cannot be reached now: the same call may succeed later."""


_LITE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (Unavailable, "another program has the database locked: end it, or wait"),
    sqlite3.SQLITE_LOCKED: (Unavailable, "another program has the database locked: end it, or wait"),
    sqlite3.SQLITE_FULL: (Unavailable, f"free some space, {SAFE}"),
    sqlite3.SQLITE_IOERR: (Unavailable, f"look at the disk (full, a quota, a fault?), {SAFE}"),
    sqlite3.SQLITE_READONLY: (StoreError, "give write permission on the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "give read and write permission on the file and its folder"),
    sqlite3.SQLITE_PERM: (StoreError, "give read and write permission on the file and its folder"),
    sqlite3.SQLITE_NOTADB: (
        Damaged,
        "this file is something else, or damaged: choose another store, or restore it from a copy",
    ),
    sqlite3.SQLITE_CORRUPT: (Damaged, "the file is damaged: restore it from a copy"),
    sqlite3.SQLITE_CONSTRAINT: (Taken, "another process wrote at the same moment: start again"),
}
_SERVER: dict[str, tuple[type[StoreError], str]] = {
    "08": (Unavailable, f"is the server running, and the address right? {SAFE}"),
    "57": (Unavailable, f"the server shuts down, or took too long: wait for it, {SAFE}"),
    "53": (Unavailable, f"the server is full (disk, memory, connections): make room, {SAFE}"),
    "40": (Unavailable, f"somebody else wrote at the same moment: try again, {SAFE}"),
    "55": (Unavailable, "something else has the tables locked: end it, or wait"),
    "25": (Unavailable, f"the server takes no writes now (a stand-by?): wait for it, {SAFE}"),
    "58": (Unavailable, f"look at the server's disk, {SAFE}"),
    "28": (StoreError, "is the user or the password wrong?"),
    "3D": (StoreError, "make the database first: createdb"),
    "42": (StoreError, "give the user the right to make and write tables"),
    "23": (Taken, "another process wrote at the same moment: start again"),
    "XX": (Damaged, "look into the log of the server"),
}
"""By the class of the SQLSTATE, its first two characters."""


def from_sqlite(where: str, error: sqlite3.Error) -> StoreError:
    """An error of SQLite, by its result code."""
    code = getattr(error, "sqlite_errorcode", None)
    kind, remedy = _LITE.get((code or 0) & 0xFF, (StoreError, f"put this right and start again, {SAFE}"))
    return kind(f"{where}: {_line(error)}: {remedy}")


def from_server(where: str, error: Any) -> StoreError:
    """An error of PostgreSQL, by its SQLSTATE; without one it is the connection's."""
    state = error.sqlstate or "08000"
    kind, remedy = _SERVER.get(state[:2], (StoreError, f"put this right and start again, {SAFE}"))
    return kind(f"{where}: {_line(error)}: {remedy}")


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
