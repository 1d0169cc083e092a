"""The lock on a study in a SQLite store: a file beside it that one process keeps locked while it lives."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO

from trimtab.store.backends.sqlite_file import identity
from trimtab.store.errors import StoreError

MOMENT = 0.5  # seconds that the lock of a killed process may outlive it, in a child that it has just forked


def is_locked(path: str) -> bool:
    """Whether a process holds the lock now."""
    import fcntl

    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def acquire(path: str) -> IO[str] | None:
    """Open and lock the file until it is closed; None if another process holds the lock."""
    import fcntl

    end = time.monotonic() + MOMENT
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
                return None
            time.sleep(0.02)
            continue
        if is_current(file):  # it was not removed in between
            return file
        file.close()


def is_current(file: IO[str]) -> bool:
    """Whether the locked file is still the one at its path: a lock on a removed file excludes no one."""
    found = os.fstat(file.fileno())
    return identity(Path(file.name)) == (found.st_dev, found.st_ino)
