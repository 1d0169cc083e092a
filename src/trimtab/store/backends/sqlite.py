"""SQLite as a store: WAL with synchronous=FULL, a lock file per study, and a check that the file is still in place."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from trimtab.store.backends.sqlite_file import OVERWRITTEN, FileIdentity, assign_number
from trimtab.store.backends.sqlite_lock import acquire, is_current, is_locked
from trimtab.store.errors import BEGIN, Damaged, Moved, NoStore, StoreError, Taken, from_sqlite
from trimtab.store.tables import INSERT_EVENT

PATIENCE = 10.0  # seconds that SQLite waits for a lock
LONGEST = 1_000_000  # seconds: SQLite counts milliseconds in 32 bits
CHECKPOINT = 60.0  # seconds between checkpoints, so that a plain copy of the file is recent

MOVE = (
    "UPDATE trimtab_studies SET seq = ?, status = ?, checksum = ?, failures = ?, advised = ?, told = ?,"
    " state = ? WHERE id = ? AND uid = ? AND seq = ? AND holder IS NULL AND archived IS NULL"
)


class SqliteDatabase:
    """One connection to a file. Mode "create" creates it if necessary, "write" does not, "read" only reads."""

    words: ClassVar[dict[str, str]] = {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT",  # an id is not reused after its row was deleted
        "blob": "BLOB",
        "real": "REAL",
        "clustered": "WITHOUT ROWID",
        "roomy": "",
    }
    lost = False  # a file cannot be disconnected; see `verify`

    def __init__(self, where: str, mode: str, *, thorough: bool = False) -> None:
        self._path, self._patience = _parse(where)
        self.where = str(self._path)
        self._lock_file: IO[str] | None = None
        self._watch = FileIdentity(self._path)
        self._moved: str | None = None  # the message of `Moved`, once the file was deleted or replaced
        self._checkpointed = time.monotonic()
        if self._path.is_dir():
            raise StoreError(f"{self._path} is a folder: give the file of a store, such as {self._path / 'trimtab.db'}")
        if not self._path.exists() or self._path.stat().st_size == 0:
            if mode != "create":
                raise NoStore(f"store {self._path} does not exist: give its path {BEGIN}")
            if not self._path.parent.is_dir():
                raise StoreError(f"{self._path.parent} is not a folder: create it first, or choose another store")
        else:
            self._check_existing(thorough)
        with self._translated_errors():
            self._db = self._reader() if mode == "read" else self._writer(mode)

    def execute(self, sql: str, *values: object) -> list[Any]:
        """Run a statement and return its rows."""
        with self._translated_errors():
            return self._db.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> int:
        """Run a statement and return the number of rows that it changed."""
        with self._translated_errors():
            return self._db.execute(sql, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes or none; durable on return."""
        self.execute("BEGIN IMMEDIATE")
        try:
            self._keep_lock()
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self.execute("ROLLBACK")
            raise

    def take_turns(self) -> None:
        """Do nothing: a transaction locks the whole file."""

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        return {name for (name,) in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def settle(self) -> None:
        """Checkpoint: write the log back, so that a copy of the file alone is complete."""
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def verify(self) -> None:
        """Raise `Moved` if the file was deleted, replaced or overwritten; checkpoint now and then."""
        harm = None if self._moved else self._watch.harm()
        if harm is not None:
            self._moved = (
                f"{self.where} was {harm} while in use, and the present file lacks the latest writes:"
                f" {self._rescue(harm)}, and restart the programs that use it"
            )
        if self._moved is not None:
            raise Moved(self._moved)
        if time.monotonic() - self._checkpointed > CHECKPOINT:
            self.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._checkpointed = time.monotonic()

    def _rescue(self, harm: str) -> str:
        ending = f"rescued-{time.strftime('%Y%m%d-%H%M%S')}"
        path = self._path.with_name(f"{self._path.name}.{ending}")
        kept = f"the complete former store is in {path}; compare it with the present file, then keep one of them"
        if harm == OVERWRITTEN:
            kept = (
                f"what could still be read is in {path}; verify that (trimtab check --store {path}), then put"
                " it, or a backup, in its place"
            )
        try:
            self.backup(path)
        except (StoreError, OSError):
            kept = "restore it from a backup (trimtab backup makes one)"
        return kept + self._watch.set_aside(ending)

    def backup(self, path: Path) -> None:
        """Copy the whole store into one file, even while it is being written."""
        with self._translated_errors():
            _create_private(path)
            copy = sqlite3.connect(path)
            try:
                self._db.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # so that no log appears beside the copy
            finally:
                copy.close()

    def check(self) -> list[str]:
        """Return the problems that SQLite finds in the file."""
        return [line for (line,) in self.execute("PRAGMA integrity_check(20)") if line != "ok"]

    def among(self, column: str, values: Sequence[object]) -> tuple[str, Sequence[object]]:
        """Return the condition that a column has one of these values, and its parameters."""
        return f"{column} IN ({', '.join('?' * len(values)) or 'NULL'})", values

    def move(self, rows: Sequence[tuple[Any, ...]]) -> set[int]:
        """Store rows and events of studies that are not held or changed; return the ids of those stored."""
        if not self._db.in_transaction:
            with self.transaction():
                return self.move(rows)
        stored = set()
        for uid, status, checksum, failures, advised, told, state, study, seq, *event in rows:
            if self.change(MOVE, seq, status, checksum, failures, advised, told, state, study, uid, seq - 1):
                self.execute(INSERT_EVENT, study, seq, *event)
                stored.add(study)
        return stored

    def taken(self, _: int, name: str) -> bool:
        """Whether a process holds a study now."""
        return is_locked(f"{self._path}.{name}.lock")

    def lock(self, _: int, name: str) -> bool:
        """Lock a study until the process ends; False if another process holds it."""
        if self._lock_file is None:
            self._lock_file = acquire(f"{self._path}.{name}.lock")
        return self._lock_file is not None

    def _keep_lock(self) -> None:
        """Take the lock again if its file was removed, before anything is written."""
        if self._lock_file is None or is_current(self._lock_file):
            return
        path = self._lock_file.name
        again = acquire(path)
        if again is None:
            raise Taken(f"{path} was removed, and another process uses the study now: stop one of the two")
        self._lock_file.close()
        self._lock_file = again

    def reconnect(self) -> None:
        """Do nothing: a file has no connection to lose."""

    def close(self) -> None:
        """Close the file and release the lock."""
        self._db.close()
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def _check_existing(self, thorough: bool) -> None:
        """Refuse a file that is damaged or not a store, without writing to it."""
        with self._translated_errors():
            db = self._reader()
            try:
                whole = db.execute("PRAGMA quick_check(1)").fetchone()[0] if thorough else "ok"
                if whole != "ok":
                    raise Damaged(f"{self._path} is damaged ({whole}): restore it from a backup")
                tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            finally:
                db.close()
        if tables and "trimtab_meta" not in tables:
            raise StoreError(f"{self._path} is not a store of trimtab: choose another file for the store")

    def _reader(self) -> sqlite3.Connection:
        """Connect read-only, even if the folder is not writable."""
        try:
            return self._connect("mode=ro")
        except sqlite3.OperationalError as error:
            forbidden = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not forbidden or Path(f"{self._path}-wal").exists():
                raise
            return self._connect("mode=ro&immutable=1")  # no log, so no writer

    def _writer(self, mode: str) -> sqlite3.Connection:
        if mode == "create":
            _create_private(self._path)
        db = self._connect("mode=rwc" if mode == "create" else "mode=rw")
        if mode == "create":
            assign_number(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        self._watch = FileIdentity(self._path)
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self._watch.harm() is not None:
            raise Moved(f"{self._path} was deleted or replaced just now: retry")
        return db

    def _connect(self, options: str) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._path))}?{options}"
        db = sqlite3.connect(
            uri, uri=True, timeout=self._patience, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        db.text_factory = _decode
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise from_sqlite(self.where, error) from None
        except UnicodeDecodeError:  # SQLite's message quotes bytes that are not UTF-8
            raise Damaged(f"{self.where} is damaged (its tables cannot be read): restore it from a backup") from None


class InMemory(SqliteDatabase):
    """A database in memory, gone when its process ends."""

    where = ":memory:"

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=64)
        self._lock_file = None

    def lock(self, _: int, name: str) -> bool:
        """Return True: no other process has access."""
        return True

    def settle(self) -> None:
        """Do nothing: there is no file."""

    def verify(self) -> None:
        """Do nothing: there is no file that could be replaced."""


def _create_private(path: Path) -> None:
    """Create an empty file with mode 0600, if there is none; SQLite gives its log the same mode."""
    with suppress(OSError):  # SQLite's error is more specific
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _decode(data: bytes) -> str:
    """Decode text. Invalid bytes are replaced and fail the row's checksum, so that other rows stay readable."""
    return data.decode(errors="replace")


def _parse(where: str) -> tuple[Path, float]:
    """Return the path, and the seconds to wait for a lock (`sqlite:///file?timeout=0.1`)."""
    text, patience = where, PATIENCE
    if "://" in where:
        parts = urlsplit(where)
        text = unquote(parts.path)[1:]
        patience = _seconds(parse_qs(parts.query).get("timeout", [str(PATIENCE)])[0])
    if not Path(text).name:
        raise ValueError(f"{where} does not name a file: a study that must survive needs one, for example trimtab.db")
    return Path(os.path.realpath(text)), patience  # resolved, so that all links share one lock


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= LONGEST:
        raise ValueError(f"the store's timeout={text} is not a duration: give seconds, 0 to {LONGEST}")
    return found
