"""Shell completion of study names: fast, from SQLite files only, and without errors."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import typer

MAX_NAMES = 200
TIMEOUT = 0.2  # seconds to wait for a writer: the user is holding the tab key


def studies(context: typer.Context, incomplete: str) -> list[str]:
    """Complete from the store given as an option or by TRIMTAB_STORE; a server could hang, so it is not queried."""
    store = context.params.get("store") or os.environ.get("TRIMTAB_STORE") or "trimtab.db"
    import sqlite3  # here, because every command imports this module

    try:
        if "://" in store or not Path(store).is_file():
            return []
        address = f"file:{quote(os.path.abspath(store))}?mode=ro"
        database = sqlite3.connect(address, uri=True, timeout=TIMEOUT)
        try:
            query = "SELECT name FROM trimtab_studies WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
            return [name for (name,) in database.execute(query, (len(incomplete), incomplete, MAX_NAMES))]
        finally:
            database.close()
    except (sqlite3.Error, OSError, ValueError):
        return []
