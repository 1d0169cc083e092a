"""The lock on a study beside a store in a file: a file that one process has locked for as long as it lives."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO

from trimtab.store.backends.sqlite_file import identity
from trimtab.store.errors import StoreError

MOMENT = 0.5  # seconds for which a process that was killed may still have its lock, in a child that it just forked


def is_locked(path: str) -> bool:
    """Whether a process has it now."""
    import fcntl

    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def locked(path: str) -> IO[str] | None:
    """The file, locked until it is closed; None if another process has it."""
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
        if stands(file):  # nobody removed it in between
            return file
        file.close()


def stands(file: IO[str]) -> bool:
    """Whether the file that is locked is the one that others find: one that was removed keeps nobody out."""
    found = os.fstat(file.fileno())
    return identity(Path(file.name)) == (found.st_dev, found.st_ino)
