"""An eye on the file of a store: whether what is at its path is still what was opened."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

Identity = tuple[int, int]

REPLACED, OVERWRITTEN = "deleted or replaced", "written over in place"
LOOKS, MOMENT = 5, 0.05  # seconds between looks


class FileIdentity:
    """On a file and its log, from when it is opened to write.

    The file itself changes only when the log is written back into it, by whoever does that. It then has the store's
    number, as before, and as long as the schema is the same it does not get shorter (VACUUM counts as another schema).
    """

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, Path(f"{path}-wal")
        self._file = identity(path)
        self._log_file: Identity | None = None  # known once it is in use: before, whoever closes last may remove it
        self._changed: tuple[int, int] | None = None
        self._number, self._extent = 0, (0, 0)

    def harm(self) -> str | None:
        """What was done to the file, if it is not what it was; a look that fell into a change is taken again."""
        for _ in range(LOOKS):
            if (found := self._look()) is None:
                return None
            time.sleep(MOMENT)
        return found

    def _look(self) -> str | None:
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
        except sqlite3.OperationalError:  # it cannot be looked at now, which says nothing of it
            return None
        except sqlite3.DatabaseError:
            return OVERWRITTEN
        extent = schema, found.st_size
        if number != self._number != 0 or extent < self._extent:
            return OVERWRITTEN
        self._changed, self._number, self._extent = changed, number, extent
        return None

    def set_aside(self, ending: str) -> str:
        """Take the log away from a file that it is not of, into which SQLite would write it; says what was done."""
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
        """The store's number and the count of its schemas, in the file without the log.

        By SQLite, because to close a file that was opened in another way would take all its locks from this process.
        """
        db = sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro&immutable=1", uri=True)
        try:
            db.execute("PRAGMA writable_schema=ON")  # somebody may be making the file longer just now: no error
            return db.execute("PRAGMA user_version").fetchone()[0], db.execute("PRAGMA schema_version").fetchone()[0]
        finally:
            db.close()


def number(db: sqlite3.Connection) -> None:
    """Give a store that is made just now a number of its own, in the header of the file."""
    if _is_new(db):
        db.execute("BEGIN IMMEDIATE")
        if _is_new(db):  # nobody else was faster
            db.execute(f"PRAGMA user_version={1 + int.from_bytes(os.urandom(4), 'big') % (2**31 - 1)}")
        db.execute("COMMIT")


def _is_new(db: sqlite3.Connection) -> bool:
    tables, numbered = db.execute("SELECT count(*), (SELECT * FROM pragma_user_version) FROM sqlite_master").fetchone()
    return not tables and not numbered


def identity(path: Path) -> Identity | None:
    """Which file is at a path."""
    try:
        return _key(os.stat(path))
    except FileNotFoundError:
        return None


def _key(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
