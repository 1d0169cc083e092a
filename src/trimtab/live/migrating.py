"""The tables of a store are made, or brought up to date, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.live import schema
from trimtab.live.database import Database
from trimtab.live.errors import NoStore, StoreError


def set_up(db: Database, mode: str) -> None:
    """Tables of this version; refused where that cannot be, or may not be in this mode."""
    version = version_of(db)
    _refuse(db.where, version, mode)
    if version == schema.VERSION:
        return
    with db.transaction():
        db.take_turns()
        version = version_of(db)
        if version == 0:
            _all(db, schema.TABLES)
            db.execute("INSERT INTO trimtab_meta (version) VALUES (?)", schema.VERSION)
        for number in range(version + 1, schema.VERSION + 1) if version else ():
            _all(db, schema.MIGRATIONS[number])
            db.execute("UPDATE trimtab_meta SET version = ?", number)


def version_of(db: Database) -> Any:
    """Of the tables that are there; 0 if there are none."""
    if "trimtab_meta" not in db.tables():
        return 0
    rows = db.execute("SELECT version FROM trimtab_meta")
    return rows[0][0] if rows else 0


def _all(db: Database, statements: Sequence[str]) -> None:
    """In the words of this database, which may have none for some."""
    for statement in statements:
        if words := statement.format(**db.words):
            db.execute(words)


def _refuse(where: str, version: object, mode: str) -> None:
    known = schema.VERSION
    if version == 0 and mode != "create":
        raise NoStore(
            f"{where} holds no study: give the path of the store (in a shell: --store), or knobs to create one"
        )
    if not isinstance(version, int) or version > known:
        raise StoreError(f"{where} has version {version}, but this trimtab reads up to {known}: upgrade trimtab")
    if version and any(number not in schema.MIGRATIONS for number in range(version + 1, known + 1)):
        raise StoreError(
            f"{where} has version {version}, from before the first release: choose another file, with"
            " start where the system is now"
        )
    if 0 < version < known and mode == "read":
        raise StoreError(f"{where} has version {version}, but this trimtab needs {known}: open it once for writing")
