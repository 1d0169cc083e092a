"""Create the tables of a store, or migrate them to this version, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.store import tables
from trimtab.store.backends.base import Database
from trimtab.store.errors import BEGIN, Damaged, NoStore, StoreError, Unavailable
from trimtab.store.tables import EVENT_COLUMNS, SNAPSHOT_COLUMNS, STUDY_COLUMNS


def set_up(db: Database, mode: str) -> None:
    """Create or migrate the tables, or raise if that is impossible or not allowed in this mode."""
    version = version_of(db)
    _refuse(db.where, version, mode)
    if version == tables.VERSION:
        return
    with db.transaction():
        db.take_turns()
        version = version_of(db)
        if version == 0:
            _execute_all(db, tables.TABLES)
            db.execute("INSERT INTO trimtab_meta (version) VALUES (?)", tables.VERSION)
        elif version != tables.VERSION:  # no other process has migrated it meanwhile
            _refuse(db.where, version, mode)
            _migrate(db, version)


def version_of(db: Database) -> Any:
    """Return the version of the tables: 0 if there are no tables, None if no version is stored."""
    if "trimtab_meta" not in db.tables():
        return 0
    rows = db.execute("SELECT version FROM trimtab_meta")
    return rows[0][0] if rows else None


def _migrate(db: Database, version: int) -> None:
    """Run the migrations and read everything back; any error rolls the transaction back."""
    for number in range(version + 1, tables.VERSION + 1):
        _execute_all(db, tables.MIGRATIONS[number])
    db.execute("UPDATE trimtab_meta SET version = ?", tables.VERSION)
    try:
        _read_through(db)
    except Unavailable:
        raise
    except (ValueError, LookupError, TypeError, StoreError) as error:
        raise StoreError(
            f"{db.where} stays at version {version}, because it cannot be read as one of version {tables.VERSION}"
            f" ({error}): keep using the trimtab that wrote it"
        ) from None


def _read_through(db: Database) -> None:
    """Read every row and restore the latest state of every study."""
    from trimtab.spec.knob_encoding import read_knobs
    from trimtab.study.position import read_snapshot  # imported here: rarely needed

    for row in db.execute(f"SELECT {STUDY_COLUMNS} FROM trimtab_studies ORDER BY name"):
        study = tables.read_study(row, db.where)
        for event in db.execute(f"SELECT {EVENT_COLUMNS} FROM trimtab_events WHERE study = ?", study.id):
            tables.read_event(event, db.where)
        ordered = f"SELECT {SNAPSHOT_COLUMNS} FROM trimtab_snapshots WHERE study = ? ORDER BY seq"
        snapshots = [tables.read_snapshot(one, db.where) for one in db.execute(ordered, study.id)]
        if not snapshots:
            raise Damaged(f"study {study.name!r} has no state")
        read_knobs(study.setup)
        read_snapshot(snapshots[-1], f"study {study.name!r}", verified=False)


def _execute_all(db: Database, statements: Sequence[str]) -> None:
    """Run the statements that this dialect has, with its type names filled in."""
    for statement in statements:
        if words := statement.format(**db.words):
            db.execute(words)


def _refuse(where: str, version: object, mode: str) -> None:
    known = tables.VERSION
    if version == 0 and mode != "create":
        raise NoStore(f"{where} holds no study: give the path of the store {BEGIN}")
    if not isinstance(version, int) or version < 0:
        raise Damaged(f"{where} is damaged (its version is {version!r}): restore it from a backup")
    if version > known:
        raise StoreError(f"{where} has version {version}, but this trimtab reads up to {known}: upgrade trimtab")
    if version and any(number not in tables.MIGRATIONS for number in range(version + 1, known + 1)):
        raise StoreError(
            f"{where} has version {version}, but this trimtab reads versions from {_oldest()} on: write its studies to"
            " files with the trimtab that made it (trimtab export), and import them into a new store"
        )
    if 0 < version < known and mode == "read":
        raise StoreError(f"{where} has version {version}, but this trimtab needs {known}: open it once for writing")


def _oldest() -> int:
    """Return the first version that can be migrated."""
    version = tables.VERSION
    while version in tables.MIGRATIONS:
        version -= 1
    return version
