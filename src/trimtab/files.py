"""Files written so that nobody ever finds half of one, and nothing else than a file is written over."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Afterwards the file is either the old one or the new one, whatever happens meanwhile; its mode stays.

    A link stays a link. What is no file (a device, a pipe, a folder) is refused.
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder: make it first, or save elsewhere")
    mode = writable(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(temporary, flags, 0o666 if mode is None else 0o600), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name, too, must survive a power cut
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def writable(path: Path) -> int | None:
    """The mode of the file that is there; None if there is nothing; an error if it is no file."""
    try:
        found = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise ValueError(f"{path} is no file but a device, a pipe or a folder: give the name of a file")
    return stat.S_IMODE(found)


def read_file(path: Path) -> bytes:
    """The bytes of a file; what is no file, and may have no end, is refused."""
    if writable(path) is None:
        raise FileNotFoundError(f"there is no file {path}")
    return path.read_bytes()
