"""Names of studies for the completion of a shell: from a file alone, at once, and never with an error."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import typer

MOST = 200  # names
PATIENCE = 0.2  # seconds to wait for whoever writes: a person holds the tab key


def studies(context: typer.Context, incomplete: str) -> list[str]:
    """The studies of the store that is named on the line, or by TRIMTAB_STORE; none of a server, which may hang."""
    store = context.params.get("store") or os.environ.get("TRIMTAB_STORE") or "trimtab.db"
    import sqlite3  # only here: every command would load it

    try:
        if "://" in store or not Path(store).is_file():
            return []
        address = f"file:{quote(os.path.abspath(store))}?mode=ro"
        found = sqlite3.connect(address, uri=True, timeout=PATIENCE)
        try:
            words = "SELECT name FROM trimtab_studies WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT ?"
            return [name for (name,) in found.execute(words, (len(incomplete), incomplete, MOST))]
        finally:
            found.close()
    except (sqlite3.Error, OSError, ValueError):
        return []
