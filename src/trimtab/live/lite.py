"""A store in a SQLite file: WAL with synchronous=FULL, a lock file beside it, and an eye on the file itself."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from trimtab.live.errors import Damaged, Moved, NoStore, StoreError, from_sqlite
from trimtab.live.schema import INSERT_EVENT

PATIENCE = 10.0  # seconds that SQLite itself waits for a lock
MOMENT = 0.5  # seconds for which a process that was killed may still have its lock, in a child that it just forked
CHECKPOINT = 60.0  # seconds after which the log is written back into the file, so that a plain copy is a recent one

MOVE = (
    "UPDATE trimtab_studies SET seq = ?, status = ?, checksum = ?, failures = ?, advised = ?, told = ?,"
    " state = ? WHERE id = ? AND seq = ? AND holder IS NULL AND archived IS NULL"
)


class Lite:
    """One connection to a file. Mode "create" makes it where there is none, "write" does not, "read" only reads."""

    words: ClassVar[dict[str, str]] = {
        "id": "INTEGER PRIMARY KEY",
        "blob": "BLOB",
        "real": "REAL",
        "clustered": "WITHOUT ROWID",
        "failures": "json_extract(status, '$.failures')",
        "time": "json_extract(status, '$.time')",
        "roomy": "",
        "unchecked": "",
    }
    lost = False  # a file cannot be; see `verify`

    def __init__(self, where: str, mode: str, *, thorough: bool = False) -> None:
        self._path, self._patience = _place(where)
        self.where = str(self._path)
        self._lock_file: IO[str] | None = None
        self._files: list[tuple[int, int] | None] = []
        self._checkpointed = time.monotonic()
        if not self._path.exists() or self._path.stat().st_size == 0:
            if mode != "create":
                raise NoStore(f"there is no store {self._path}: give its place with --store, or start a study first")
            if not self._path.parent.is_dir():
                raise StoreError(f"{self._path.parent} is not a folder: make it first, or choose another store")
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
        """After a commit: is what was written to still what is at the path? Now and then, write the log back."""
        files = [_identity(self._path), _identity(Path(f"{self._path}-wal"))]
        if len(self._files) == 1 and files[1] is not None:
            self._files = [*self._files, files[1]]
        if files != self._files:
            raise Moved(
                f"{self.where} was deleted or replaced while it was in use; what was written just now is not in the"
                f" file that is there: {self._rescue()}"
            )
        if time.monotonic() - self._checkpointed > CHECKPOINT:
            self.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._checkpointed = time.monotonic()

    def _rescue(self) -> str:
        path = self._path.with_name(f"{self._path.name}.rescued-{time.strftime('%Y%m%d-%H%M%S')}")
        try:
            self.backup(path)
        except (StoreError, OSError):
            return "restore it from a copy (trimtab backup makes one)"
        return f"the whole store as it was is in {path}; look at what is there now, then move one of them to its place"

    def backup(self, path: Path) -> None:
        """A copy of the whole store in one file, also while somebody writes."""
        with self._clearly():
            copy = sqlite3.connect(path)
            try:
                self._db.backup(copy)
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
        for status, sealed, failures, advised, told, state, study, seq, *event in rows:
            if self.change(MOVE, seq, status, sealed, failures, advised, told, state, study, seq - 1):
                self.execute(INSERT_EVENT, study, seq, *event)
                stored.add(study)
        return stored

    def taken(self, _: int, name: str) -> bool:
        """Whether a process holds a study now."""
        import fcntl

        try:
            with open(f"{self._path}.{name}.lock") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def lock(self, _: int, name: str) -> bool:
        """Become the only holder of a study, if nobody is; ends with the process."""
        import fcntl

        if self._lock_file is not None:
            return True
        path, end = f"{self._path}.{name}.lock", time.monotonic() + MOMENT
        while True:
            try:
                file = open(path, "a")  # noqa: SIM115
            except OSError as error:
                raise StoreError(f"{path}: {error.strerror}: give write permission on the folder") from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                if time.monotonic() > end:
                    return False
                time.sleep(0.02)
                continue
            if _identity(Path(path)) == _key(os.fstat(file.fileno())):  # nobody removed it in between
                self._lock_file = file
                return True
            file.close()

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
                    raise Damaged(f"{self._path} is damaged ({whole}): restore it from a copy")
                tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            finally:
                db.close()
        if tables and "trimtab_meta" not in tables:
            raise StoreError(f"{self._path} is the database of something else: choose another file for the store")

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
        db = self._connect("mode=rwc" if mode == "create" else "mode=rw")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        before = _identity(self._path)
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if before is None or _identity(self._path) != before:
            raise Moved(f"{self._path} was deleted or replaced just now: start again")
        self._files = [before]
        return db

    def _connect(self, options: str) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._path))}?{options}"
        db = sqlite3.connect(
            uri, uri=True, timeout=self._patience, isolation_level=None, check_same_thread=False, cached_statements=64
        )
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


class InMemory(Lite):
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


def _place(where: str) -> tuple[Path, float]:
    """The file, and the seconds to wait for a lock (`sqlite:///file?timeout=0.1`)."""
    text, patience = where, PATIENCE
    if "://" in where:
        parts = urlsplit(where)
        text = unquote(parts.path)[1:]
        patience = float(parse_qs(parts.query).get("timeout", [PATIENCE])[0])
    if not Path(text).name:
        raise ValueError(f"{where} is no file: a study that has to survive needs one, for example trimtab.db")
    return Path(os.path.realpath(text)), patience  # one lock, whatever the way to the file


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        return _key(os.stat(path))
    except FileNotFoundError:
        return None


def _key(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
