"""Files: written atomically, read with care."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from trimtab.types import Arrays, Document, Json

ELSEWHERE = "name a place where you may write"
REMEDIES = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "create its folder first, or name another place"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ELSEWHERE),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room there, or name another place"),
}


def digest(data: bytes) -> str:
    """A short fingerprint, by which a change is noticed.

    >>> digest(b"trimtab")
    '47eb20e12134681d'
    """
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def canonical(document: object) -> bytes:
    """The one way to write a document on a line."""
    return json.dumps(document, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def parse(text: str | bytes) -> Json:
    """JSON, or a ValueError: also for what is nested too deeply, and for numbers that JSON does not have."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a valid JSON number")


def cache_folder() -> Path:
    """Where what can be computed again is kept: $TRIMTAB_CACHE, or trimtab in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("TRIMTAB_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab"


def reason(error: BaseException) -> str:
    """Why it failed, without the number that the system has for it.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.txt")), reason(ValueError("no"))
    ('No such file or directory', 'no')
    """
    return (isinstance(error, OSError) and error.strerror) or str(error)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make an error within name the destination and the remedy; it stays an error of the same kind."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # it says so already
            raise
        remedy = REMEDIES.get(error.errno or 0, "name another place")
        raise _named(error, f"{os.fspath(path)} cannot be written ({error.strerror}): {remedy}") from error


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make an error within name the file; it stays an error of the same kind."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # it says so already
            raise
        raise _named(error, f"{os.fspath(path)} cannot be read ({error.strerror}): check the path") from error


def _named(error: OSError, message: str) -> OSError:
    named = type(error)(message)
    named.errno = error.errno
    return named


def check_destination(path: Path) -> None:
    """Refuse a place where no file can be written, before the work that leads to one."""
    folder = path.parent if path.parent.parts else Path.cwd()  # "." would tell a reader little
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: {folder} is not a folder: create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: {folder} is read-only: {ELSEWHERE}")


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Afterwards the file is either the old one or the new one, whatever happens meanwhile; its mode stays.

    A link stays a link. What is no file (a device, a pipe, a folder) is refused.
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
        raise ValueError(f"{path} is a device, a pipe or a folder: give the name of a file")
    return stat.S_IMODE(found)


def read_file(path: Path) -> bytes:
    """The bytes of a file; what is no file, and may have no end, is refused."""
    if writable(path) is None:
        raise FileNotFoundError(f"there is no file {path}")
    return path.read_bytes()


def pack_archive(document: Document, arrays: Arrays, *, compressed: bool = False) -> bytes:
    """A NumPy .npz with a JSON document beside the arrays."""
    import numpy as np  # here: what only reads or writes a file does not need it

    text = json.dumps(document, allow_nan=False).encode()
    buffer = io.BytesIO()
    write: Callable[..., None] = np.savez_compressed if compressed else np.savez
    write(buffer, document=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


def read_archive(path: str | os.PathLike[str], *, compressed: bool = False) -> tuple[Json, Arrays]:
    """The document and the arrays that `pack_archive` packed; what was not compressed must not inflate."""
    import zipfile  # here, as in NumPy: it brings all compressors along

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
    except Exception as error:  # whatever the zip reader stumbles over, the file is not what was written
        raise ValueError(f"{path} is not a saved file, or is damaged ({error}): restore it from a backup") from None
