"""A store in a SQLite file: WAL with synchronous=FULL, a lock file beside it, and an eye on the file itself."""

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

from trimtab.store.backends.sqlite_file import OVERWRITTEN, FileIdentity, number
from trimtab.store.backends.sqlite_lock import is_locked, locked, stands
from trimtab.store.errors import Damaged, Moved, NoStore, StoreError, Taken, from_sqlite
from trimtab.store.tables import INSERT_EVENT

PATIENCE = 10.0  # seconds that SQLite itself waits for a lock
LONGEST = 1_000_000  # seconds that it can be told to: it counts milliseconds in 32 bits
CHECKPOINT = 60.0  # seconds after which the log is written back into the file, so that a plain copy is a recent one

MOVE = (
    "UPDATE trimtab_studies SET seq = ?, status = ?, checksum = ?, failures = ?, advised = ?, told = ?,"
    " state = ? WHERE id = ? AND uid = ? AND seq = ? AND holder IS NULL AND archived IS NULL"
)


class SqliteDatabase:
    """One connection to a file. Mode "create" makes it where there is none, "write" does not, "read" only reads."""

    words: ClassVar[dict[str, str]] = {
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT",  # none is given to another row after it was erased
        "blob": "BLOB",
        "real": "REAL",
        "clustered": "WITHOUT ROWID",
        "roomy": "",
    }
    lost = False  # a file cannot be; see `verify`

    def __init__(self, where: str, mode: str, *, thorough: bool = False) -> None:
        self._path, self._patience = _place(where)
        self.where = str(self._path)
        self._lock_file: IO[str] | None = None
        self._watch = FileIdentity(self._path)
        self._moved: str | None = None  # what was done to the file, once that is known
        self._checkpointed = time.monotonic()
        if not self._path.exists() or self._path.stat().st_size == 0:
            if mode != "create":
                raise NoStore(
                    f"store {self._path} does not exist: give its path (in a shell: --store), or knobs to create one"
                )
            if not self._path.parent.is_dir():
                raise StoreError(f"{self._path.parent} is not a folder: create it first, or choose another store")
        else:
            self._look_first(thorough)
        with self._clearly():
            self._db = self._reader() if mode == "read" else self._writer(mode)

    def execute(self, sql: str, *values: object) -> list[Any]:
        """The rows that a statement gives."""
        with self._clearly():
            return self._db.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> int:
        """How many rows a statement changed."""
        with self._clearly():
            return self._db.execute(sql, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and on the disk afterwards."""
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
        """A transaction here has the file for itself."""

    def tables(self) -> set[str]:
        """The names of all tables."""
        return {name for (name,) in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def settle(self) -> None:
        """Write the log back into the file: the file alone, copied, is then the whole store."""
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def verify(self) -> None:
        """Is what is read and written still what is at the path? Now and then, write the log back."""
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
        """A copy of the whole store in one file, also while somebody writes."""
        with self._clearly():
            _make(path)
            copy = sqlite3.connect(path)
            try:
                self._db.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # read, it stays one file
            finally:
                copy.close()

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        return [line for (line,) in self.execute("PRAGMA integrity_check(20)") if line != "ok"]

    def among(self, column: str, values: Sequence[object]) -> tuple[str, Sequence[object]]:
        """The condition that a column has one of these values, and what fills its marks."""
        return f"{column} IN ({', '.join('?' * len(values)) or 'NULL'})", values

    def move(self, rows: Sequence[tuple[Any, ...]]) -> set[int]:
        """Studies' rows and events, where nobody holds or changed them; gives the ids of those that were stored."""
        if not self._db.in_transaction:
            with self.transaction():
                return self.move(rows)
        stored = set()
        for uid, status, sealed, failures, advised, told, state, study, seq, *event in rows:
            if self.change(MOVE, seq, status, sealed, failures, advised, told, state, study, uid, seq - 1):
                self.execute(INSERT_EVENT, study, seq, *event)
                stored.add(study)
        return stored

    def taken(self, _: int, name: str) -> bool:
        """Whether a process holds a study now."""
        return is_locked(f"{self._path}.{name}.lock")

    def lock(self, _: int, name: str) -> bool:
        """Become the only holder of a study, if nobody is; ends with the process."""
        if self._lock_file is None:
            self._lock_file = locked(f"{self._path}.{name}.lock")
        return self._lock_file is not None

    def _keep_lock(self) -> None:
        """Take it again where somebody removed its file, before anything is written."""
        if self._lock_file is None or stands(self._lock_file):
            return
        path = self._lock_file.name
        again = locked(path)
        if again is None:
            raise Taken(f"{path} was removed, and another process uses the study now: stop one of the two")
        self._lock_file.close()
        self._lock_file = again

    def reconnect(self) -> None:
        """A file is not lost and found."""

    def close(self) -> None:
        """Let go of the file and of the lock."""
        self._db.close()
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def _look_first(self, thorough: bool) -> None:
        """Refuse what is no store of ours, without a byte written to it."""
        with self._clearly():
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
        """For anybody who may read the file, also where they may not write beside it."""
        try:
            return self._connect("mode=ro")
        except sqlite3.OperationalError as error:
            forbidden = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not forbidden or Path(f"{self._path}-wal").exists():
                raise
            return self._connect("mode=ro&immutable=1")  # nobody writes: there is no log

    def _writer(self, mode: str) -> sqlite3.Connection:
        if mode == "create":
            _make(self._path)
        db = self._connect("mode=rwc" if mode == "create" else "mode=rw")
        if mode == "create":
            number(db)
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
        db.text_factory = _text
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise from_sqlite(self.where, error) from None
        except UnicodeDecodeError:  # the message of SQLite itself, which cites what it cannot read
            raise Damaged(f"{self.where} is damaged (its tables cannot be read): restore it from a backup") from None


class InMemory(SqliteDatabase):
    """A database without a file, for one who needs the studies no longer than they run."""

    where = ":memory:"

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=64)
        self._lock_file = None

    def lock(self, _: int, name: str) -> bool:
        """Nobody else has it."""
        return True

    def settle(self) -> None:
        """There is no file."""

    def verify(self) -> None:
        """Nobody can take it away."""


def _make(path: Path) -> None:
    """An empty file that is for its owner alone, if there is none: SQLite gives its log the same mode."""
    with suppress(OSError):  # what SQLite says of it says more
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _text(data: bytes) -> str:
    """As it was written, or, where it is damaged, a text that fits no checksum: one row alone is then the worse."""
    return data.decode(errors="replace")


def _place(where: str) -> tuple[Path, float]:
    """The file, and the seconds to wait for a lock (`sqlite:///file?timeout=0.1`)."""
    text, patience = where, PATIENCE
    if "://" in where:
        parts = urlsplit(where)
        text = unquote(parts.path)[1:]
        patience = _seconds(parse_qs(parts.query).get("timeout", [str(PATIENCE)])[0])
    if not Path(text).name:
        raise ValueError(f"{where} does not name a file: a study that must survive needs one, for example trimtab.db")
    return Path(os.path.realpath(text)), patience  # one lock, whatever the way to the file


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= LONGEST:
        raise ValueError(f"the store's timeout={text} is not a duration: give seconds, 0 to {LONGEST}")
    return found
