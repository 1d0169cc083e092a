"""Atomic writing and safe reading of files."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from trimtab.types import Arrays, Document, Json

ELSEWHERE = "use a path where you can write"
REMEDIES = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "create its folder first, or use another path"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ELSEWHERE),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space, or use another path"),
}


def parse(text: str | bytes) -> Json:
    """Parse JSON; ValueError also for too deep nesting, and for NaN and infinities."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a valid JSON number")


def cache_folder() -> Path:
    """Return the cache directory: $TRIMTAB_CACHE, or trimtab in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("TRIMTAB_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab"


def reason(error: BaseException) -> str:
    """Return the message of an error, without the errno of an OSError.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.txt")), reason(ValueError("no"))
    ('No such file or directory', 'no')
    """
    return (isinstance(error, OSError) and error.strerror) or str(error)


def writing(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Add the destination and the remedy to any OSError raised within; its type stays the same."""
    return _naming(path, "written", REMEDIES, "use another path")


def reading(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    """Add the path to any OSError raised within; its type stays the same."""
    return _naming(path, "read", {}, "check the path")


@contextmanager
def _naming(path: str | os.PathLike[str], done: str, remedies: dict[int, str], otherwise: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # it has a complete message already
            raise
        remedy = remedies.get(error.errno or 0, otherwise)
        named = type(error)(f"{os.fspath(path)} cannot be {done} ({error.strerror}): {remedy}")
        named.errno = error.errno
        raise named from error


def check_destination(path: Path) -> None:
    """Refuse an unwritable destination before the work that leads to the file."""
    folder = path.parent if path.parent.parts else Path.cwd()  # more informative than "."
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: {folder} is not a folder: create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: {folder} is read-only: {ELSEWHERE}")


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file atomically, keeping its mode and following links.

    Anything but a regular file (a device, a pipe, a folder) is refused.
    """
    with writing(path):
        _write_atomically(Path(os.path.realpath(path)), data)


def _write_atomically(path: Path, data: bytes) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder: create it first, or save elsewhere")
    mode = writable(path)
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
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
    if os.name == "posix":  # the new directory entry must survive a power failure too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def writable(path: Path) -> int | None:
    """Return the mode of a regular file; None if the path does not exist; ValueError if it is not a regular file."""
    try:
        found = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise ValueError(f"{path} is a device, a pipe or a folder: give the name of a file")
    return stat.S_IMODE(found)


def read_file(path: Path) -> bytes:
    """Read a regular file; anything else is refused, since it may never end."""
    if writable(path) is None:
        raise FileNotFoundError(f"there is no file {path}")
    return path.read_bytes()


def pack_archive(document: Document, arrays: Arrays, *, compressed: bool = False) -> bytes:
    """Pack a JSON document and arrays into a NumPy .npz."""
    import numpy as np  # imported here: reading and writing files does not need it

    text = json.dumps(document, allow_nan=False).encode()
    buffer = io.BytesIO()
    write: Callable[..., None] = np.savez_compressed if compressed else np.savez
    write(buffer, document=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


def read_archive(path: str | os.PathLike[str], *, compressed: bool = False) -> tuple[Json, Arrays]:
    """Read the output of `pack_archive`; refuse a compressed file unless `compressed`."""
    import zipfile  # imported here, as in NumPy: it imports all compressors

    import numpy as np

    with reading(path):
        data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if not compressed and size > len(data):
                raise ValueError(f"its {len(data)} bytes would inflate to {size}")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return parse(arrays.pop("document").tobytes()), arrays
    except Exception as error:  # the zip reader raises many types on damaged files
        raise ValueError(f"{path} is not a saved file, or is damaged ({error}): restore it from a backup") from None
