"""Detect that the database file was deleted, replaced or overwritten while it is open."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

Identity = tuple[int, int]

REPLACED, OVERWRITTEN = "deleted or replaced", "written over in place"
CHECKS, MOMENT = 5, 0.05  # seconds between checks


class FileIdentity:
    """Identity of a file and its log, from the moment it is opened for writing.

    The file itself changes only at a checkpoint, by any process. Its header then still has the store's number, and it
    does not get shorter while the schema is the same (VACUUM increments the schema version).
    """

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, Path(f"{path}-wal")
        self._file = identity(path)
        self._log_file: Identity | None = None  # known once in use: before, any last connection may remove it
        self._changed: tuple[int, int] | None = None
        self._number, self._extent = 0, (0, 0)

    def harm(self) -> str | None:
        """Return what was done to the file, or None; checked again in case a checkpoint was under way."""
        for _ in range(CHECKS):
            if (found := self._check()) is None:
                return None
            time.sleep(MOMENT)
        return found

    def _check(self) -> str | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return REPLACED
        log = identity(self._log)
        self._log_file = self._log_file or log
        if (_key(found), log) != (self._file, self._log_file):
            return REPLACED
        changed = found.st_mtime_ns, found.st_size
        if changed == self._changed:
            return None
        try:
            number, schema = self._header()  # after the size: VACUUM writes the header first
        except sqlite3.OperationalError:  # not readable now: no evidence
            return None
        except sqlite3.DatabaseError:
            return OVERWRITTEN
        extent = schema, found.st_size
        if number != self._number != 0 or extent < self._extent:
            return OVERWRITTEN
        self._changed, self._number, self._extent = changed, number, extent
        return None

    def set_aside(self, ending: str) -> str:
        """Rename the log, which SQLite would otherwise replay into the wrong file; return a note for the message."""
        if self._log_file is None or identity(self._log) != self._log_file:
            return ""
        aside = f"{self._log}.{ending}"
        try:
            os.rename(self._log, aside)
            Path(f"{self._path}-shm").unlink(missing_ok=True)
        except OSError as error:
            return f"; {self._log} could not be moved ({error.strerror}): move it before any program opens {self._path}"
        return f"; its log is now {aside}"

    def _header(self) -> tuple[int, int]:
        """Return the store's number and schema version, in the file without the log.

        Read through SQLite: closing a file that was opened in any other way would drop this process's POSIX locks.
        """
        db = sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro&immutable=1", uri=True)
        try:
            db.execute("PRAGMA writable_schema=ON")  # no error while another process extends the file
            return db.execute("PRAGMA user_version").fetchone()[0], db.execute("PRAGMA schema_version").fetchone()[0]
        finally:
            db.close()


def assign_number(db: sqlite3.Connection) -> None:
    """Write a random number into the header of a new store, to recognise it by."""
    if _is_new(db):
        db.execute("BEGIN IMMEDIATE")
        if _is_new(db):  # no other process has done it meanwhile
            db.execute(f"PRAGMA user_version={1 + int.from_bytes(os.urandom(4), 'big') % (2**31 - 1)}")
        db.execute("COMMIT")


def _is_new(db: sqlite3.Connection) -> bool:
    tables, numbered = db.execute("SELECT count(*), (SELECT * FROM pragma_user_version) FROM sqlite_master").fetchone()
    return not tables and not numbered


def identity(path: Path) -> Identity | None:
    """Return the device and inode of the file at a path; None if there is none."""
    try:
        return _key(os.stat(path))
    except FileNotFoundError:
        return None


def _key(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
