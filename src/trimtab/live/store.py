"""Where studies live: SQLite by default, PostgreSQL by URL, with the same code.

One row per study holds its state; one row per event holds what happened. `record` writes both in one transaction, so
the state always is that of the last event, and what it returns from is on the disk (WAL with synchronous=FULL, or
PostgreSQL's own log). Only the holder of a study writes: a file lock beside SQLite, an advisory lock in PostgreSQL,
both of which end with their process, so that nothing has to be tidied up after a kill.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote

try:
    import sqlalchemy as sa
except ImportError as error:
    raise ImportError('live studies need SQLAlchemy: pip install "trimtab[live]"') from error

VERSION = 1
MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""version → the statements that lead to it from the one before."""
PATIENCE = 10.0  # seconds to wait for a locked database
EVERY = 100  # how often, in events, the history is thinned
ROUTINE = ("tell", "skip", "hold")
"""The kinds of events that are thinned; the others (start, undo, reset, setup, import) are kept."""

_schema = sa.MetaData()
_meta = sa.Table("trimtab_meta", _schema, sa.Column("version", sa.Integer, nullable=False))
_studies = sa.Table(
    "trimtab_studies",
    _schema,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("setup", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("diagnostics", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("proposal", sa.Text),
    sa.Column("decision", sa.Text),
    sa.Column("holder", sa.Text),
    sa.Column("created", sa.Float, nullable=False),
)
_events = sa.Table(
    "trimtab_events",
    _schema,
    sa.Column("study", sa.Integer, sa.ForeignKey("trimtab_studies.id"), primary_key=True, autoincrement=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("round", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("value", sa.Double),
    sa.Column("query", sa.Text),
    sa.Column("centre", sa.Text, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
)
_update = (
    sa.update(_studies)
    .where(_studies.c.id == sa.bindparam("of_id"), _studies.c.seq == sa.bindparam("of_seq"))
    .values(seq=sa.bindparam("to_seq"), state=sa.bindparam("to_state"), diagnostics=sa.bindparam("to_diagnostics"))
)
_insert = sa.insert(_events)


class StoreError(OSError):
    """The store cannot be read or written; the message says why and what to do. Nothing was changed."""


class NoStore(StoreError):
    """There is no store at that place yet."""


class Event(NamedTuple):
    """What happened: one line of a study's history."""

    seq: int
    round: int
    """Of the trial; for an undo, a reset and the like, the next round."""
    kind: str
    """tell, skip, hold, or start, undo, reset, setup, import."""
    value: float | None
    query: list[float] | None
    """What was set, in the units of the knobs."""
    centre: list[float]
    """The operating point afterwards, in the units of the knobs."""
    time: float
    note: str | None
    state: str
    """The tuner's state afterwards, to go back to."""


class Saved(NamedTuple):
    """A study as it is stored."""

    id: int
    name: str
    setup: dict[str, Any]
    state: str
    diagnostics: dict[str, Any]
    seq: int
    proposal: str | None
    """What waits for a person's approval: JSON of [seq, round, setting]."""
    decision: str | None
    """The person's word on it: JSON of [seq, yes or no]."""
    holder: str | None
    created: float


class Store:
    """One connection to a database with studies. It is not for several threads at once; `Study` sees to that."""

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True) -> None:
        self.url = _url(where)
        self._lock_file: IO[str] | None = None
        self._held: int | None = None
        self._lost = False
        self.lite = self.url.get_backend_name() == "sqlite"
        self.where = (self.url.database or str(where)) if self.lite else self.url.render_as_string(hide_password=True)
        if self.lite:
            self._check_file(create)
        self._engine = _engine(self.url, self.lite)
        with self._clearly():
            self._db = self._engine.connect()
            try:
                self._set_up(create)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the database and of the study that was held."""
        if self._held is not None and not self._lost:
            with suppress(StoreError), self._transaction() as db:  # only a courtesy: the lock is what counts
                db.execute(sa.update(_studies).where(_studies.c.id == self._held).values(holder=None))
        self._held = None
        self._db.close()
        self._engine.dispose()
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def names(self) -> list[str]:
        """All studies."""
        with self._transaction() as db:
            return list(db.scalars(sa.select(_studies.c.name).order_by(_studies.c.name)))

    def find(self, name: str) -> Saved | None:
        """The study of that name, if there is one."""
        with self._transaction() as db:
            row = db.execute(sa.select(_studies).where(_studies.c.name == name)).first()
        if row is None:
            return None
        try:
            return Saved(
                **{**row._asdict(), "setup": json.loads(row.setup), "diagnostics": json.loads(row.diagnostics)}
            )
        except ValueError as error:
            raise StoreError(
                f"study {name!r} in {self.where} is damaged ({error}): restore the file from a copy"
            ) from None

    def load(self, name: str) -> Saved:
        """The study of that name."""
        found = self.find(name)
        if found is None:
            others = ", ".join(self.names()) or "none yet"
            raise ValueError(f"there is no study {name!r} in {self.where}: it has {others}")
        return found

    def add(
        self,
        name: str,
        setup: dict[str, Any],
        diagnostics: dict[str, Any],
        events: Sequence[Event],
        state: str,
        created: float | None = None,
    ) -> Saved:
        """A new study, with the events it has so far."""
        row = {
            "name": name,
            "setup": json.dumps(setup),
            "state": state,
            "diagnostics": json.dumps(diagnostics),
            "seq": events[-1].seq,
            "created": time.time() if created is None else created,
        }
        with self._transaction() as db:
            id = db.execute(sa.insert(_studies), row).inserted_primary_key
            assert id is not None
            db.execute(_insert, [_row(id[0], event) for event in events])
        return self.load(name)

    def record(self, study: Saved, event: Event, diagnostics: str, keep: int, setup: Any = None) -> None:
        """Append the event, replace the state; on the disk when this returns. Older events are thinned by the way."""
        if self._lost:
            raise StoreError(f"the connection to {self.where} was lost: open the study again, nothing is lost")
        with self._transaction() as db:
            done = db.execute(
                _update,
                {
                    "of_id": study.id,
                    "of_seq": event.seq - 1,
                    "to_seq": event.seq,
                    "to_state": event.state,
                    "to_diagnostics": diagnostics,
                },
            )
            if done.rowcount != 1:
                raise StoreError(f"study {study.name!r} was changed by someone else meanwhile: open it again")
            db.execute(_insert, _row(study.id, event))
            if setup is not None:
                db.execute(sa.update(_studies).where(_studies.c.id == study.id).values(setup=json.dumps(setup)))
            if event.seq % EVERY == 0:
                _thin(db, study.id, event.seq, keep)

    def events(self, study: Saved, after: int = -1) -> Iterator[Event]:
        """The history from the oldest on."""
        chosen = sa.select(*_events.c[1:]).where(_events.c.study == study.id, _events.c.seq > after)
        with self._transaction() as db:
            for row in db.execute(chosen.order_by(_events.c.seq)):
                yield _event(row)

    def before_round(self, study: Saved, round: int) -> Event | None:
        """The newest event after which `round` was the next one, if it is still kept."""
        routine = _events.c.kind.in_(ROUTINE[:2])
        led = sa.or_(sa.and_(routine, _events.c.round == round - 1), sa.and_(~routine, _events.c.round == round))
        chosen = sa.select(*_events.c[1:]).where(_events.c.study == study.id, led)
        with self._transaction() as db:
            row = db.execute(chosen.order_by(_events.c.seq.desc()).limit(1)).first()
        return None if row is None else _event(row)

    def note(self, study: Saved, **columns: str) -> None:
        """Write down a proposal, or the decision on it, beside the state."""
        with self._transaction() as db:
            db.execute(sa.update(_studies).where(_studies.c.id == study.id).values(columns))

    def hold(self, study: Saved) -> None:
        """Become the only one who writes this study, or say who is."""
        with self._clearly():
            free = self._lock(study)
        if not free:
            holder = self.load(study.name).holder or "another process"
            raise StoreError(f"study {study.name!r} is held by {holder}: stop that first, or use another name")
        user, since = os.environ.get("USER", os.getuid()), time.strftime("%F %T")
        me = f"{user}@{socket.gethostname()}, process {os.getpid()}, since {since}"
        with self._transaction() as db:
            db.execute(sa.update(_studies).where(_studies.c.id == study.id).values(holder=me))
        self._held = study.id

    def _lock(self, study: Saved) -> bool:
        if not self.lite:
            lock = sa.text("SELECT pg_try_advisory_lock(7461, CAST(:id AS integer))")
            taken = bool(self._db.scalar(lock, {"id": study.id}))
            self._db.commit()
            return taken
        import fcntl

        file = open(f"{self.url.database}.{study.name}.lock", "a")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock_file = file
        return True

    def _check_file(self, create: bool) -> None:
        """Refuse what is no store of ours, without a byte written to it."""
        path = Path(self.url.database or "")
        if not path.name or path.name == ":memory:":
            raise ValueError(f"{self.where} is no file: a study that has to survive needs one, for example trimtab.db")
        if not path.exists() or path.stat().st_size == 0:
            if not create:
                raise NoStore(f"there is no store {path}: give its place with --store, or start a study first")
            if not path.parent.is_dir():
                raise StoreError(f"{path.parent} is not a folder: make it first, or choose another store")
            return
        engine = _engine(self.url.set(database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}), False)
        try:
            with self._clearly(), engine.connect() as db:
                whole = db.exec_driver_sql("PRAGMA quick_check(1)").scalar()
                if whole != "ok":
                    raise StoreError(f"{path} is damaged ({whole}): restore it from a copy")
                tables = sa.inspect(db).get_table_names()
                if _meta.name in tables:
                    self._refuse_newer(db.scalar(sa.select(_meta.c.version)))
                elif tables:
                    raise StoreError(f"{path} is the database of something else: choose another file for the store")
        finally:
            engine.dispose()

    def _refuse_newer(self, version: Any) -> None:
        if not isinstance(version, int) or version > VERSION:
            raise StoreError(f"{self.where} has version {version} and this trimtab knows {VERSION}: upgrade trimtab")

    def _set_up(self, create: bool) -> None:
        """Make the tables, or bring them up to date, all in one transaction."""
        version = self._version()
        if version == 0 and not create:
            raise NoStore(f"there are no studies in {self.where}: give the place of the store with --store")
        self._refuse_newer(version)
        self._db.commit()
        if version == VERSION:
            return
        with self._db.begin():
            # Python's sqlite3 begins no transaction before DDL. And two that make the tables at once take turns.
            self._db.exec_driver_sql("BEGIN IMMEDIATE" if self.lite else "SELECT pg_advisory_xact_lock(7461, 0)")
            version = self._version()
            if version == 0:
                _schema.create_all(self._db)
                self._db.execute(sa.insert(_meta), {"version": VERSION})
            for number in range(version + 1, VERSION + 1) if version else ():
                for statement in MIGRATIONS[number]:
                    self._db.exec_driver_sql(statement)
                self._db.execute(sa.update(_meta).values(version=number))

    def _version(self) -> int:
        """Of the tables that are there; 0 if there are none."""
        return (self._db.scalar(sa.select(_meta.c.version)) or 0) if sa.inspect(self._db).has_table(_meta.name) else 0

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with self._clearly(), self._db.begin():
            yield self._db

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        """Errors of the database, with their remedy."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            if error.connection_invalidated:
                self._db.rollback()
                self._lost = self._held is not None  # and the lock with it: it must not write on a new connection
            reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
            raise StoreError(f"{self.where}: {reason}: {_remedy(reason)}") from None


def _url(where: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(where)
    if "://" not in text:
        return sa.URL.create("sqlite", database=os.path.realpath(text))  # one lock, whatever the way to the file
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise ValueError("the store's URL cannot be read: write a path, or postgresql://user@host/database") from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"the store {url.drivername} is not supported: use sqlite or postgresql")
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    return url


def _engine(url: sa.URL, writable: bool) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        try:
            engine = sa.create_engine(url)
        except ImportError:
            raise ImportError('PostgreSQL needs psycopg: pip install "trimtab[postgres]"') from None
        sa.event.listen(engine, "connect", _durable_server)
        return engine
    patience = {} if "timeout" in url.query else {"timeout": PATIENCE}
    engine = sa.create_engine(url, connect_args=patience)
    if writable:
        sa.event.listen(engine, "connect", _durable_file)
    return engine


def _durable_file(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _durable_server(connection: Any, _: Any) -> None:
    connection.execute("SET synchronous_commit = on")
    connection.commit()


def _thin(db: sa.Connection, study: int, seq: int, keep: int) -> None:
    """Of the events older than `keep` every 10th stays, older than 10·keep every 100th, and so on; see docs/live.md."""
    routine = sa.and_(_events.c.study == study, _events.c.kind.in_(ROUTINE))
    age, every = keep, 10
    while age <= seq:
        passing = _events.c.seq.between(seq - age - EVERY + 1, seq - age)
        db.execute(sa.delete(_events).where(routine, passing, _events.c.seq % every != 0))
        age, every = age * 10, every * 10


def _row(study: int, event: Event) -> dict[str, Any]:
    query = None if event.query is None else json.dumps(event.query)
    return {**event._asdict(), "study": study, "query": query, "centre": json.dumps(event.centre)}


def _event(row: Any) -> Event:
    found: dict[str, Any] = row._asdict()
    query = None if found["query"] is None else json.loads(found["query"])
    return Event(**{**found, "query": query, "centre": json.loads(found["centre"])})


def _remedy(reason: str) -> str:
    for sign, remedy in {
        "is full": "free some space and start again, nothing that was acknowledged is lost",
        "No space left": "free some space and start again, nothing that was acknowledged is lost",
        "disk I/O": "look at the disk (full, a quota, a fault?) and start again, nothing that was acknowledged is lost",
        "readonly": "give write permission on the file and its folder",
        "unable to open": "give read and write permission on the file and its folder",
        "locked": "another program has the database locked for long: end it, or wait, and start again",
        "not a database": "this file is something else, or damaged: choose another store, or restore it from a copy",
        "malformed": "the file is damaged: restore it from a copy",
        "nique": "another process made this study at the same moment: start again",
        "onnection": "is the server running, and the address right? Start again when it is back, nothing is lost",
    }.items():
        if sign in reason:
            return remedy
    return "put this right and start again, nothing that was acknowledged is lost"
