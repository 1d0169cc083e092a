"""Where finished cells are kept: a folder, of this machine or shared, or an object store.

A cell's name is a hash of its configuration (seed included), of the package's code and of the versions of NumPy, SciPy
and Numba. What is written appears whole or not at all, and equal cells give equal bytes, so that any number of runs may
share one place. A method or problem that was registered from outside the package may change unseen: it is not kept.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from trimtab.problems import registry
from trimtab.recipes import methods
from trimtab.util.extras import pip_install
from trimtab.util.files import write_atomically, writing

COMPUTES = ("numpy", "scipy", "numba")


class Result(Protocol):
    """What can be kept."""

    def save(self, path: Path) -> None:
        """Write it under this path, with suffixes of its own."""
        ...


R = TypeVar("R", bound=Result)


@cache
def code_version() -> str:
    """A hash of the package's source and of what it computes with: results of other code are not mistaken for its."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for name in COMPUTES:
        with suppress(metadata.PackageNotFoundError):  # SciPy and Numba are optional
            digest.update(f"{name} {metadata.version(name)}".encode())
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def key(cell: object) -> str:
    """The name under which a cell's result is kept; "" if it is not to be kept."""
    plainly = asdict(cell) if is_dataclass(cell) and not isinstance(cell, type) else cell
    makers = list(_makers(plainly))
    if not all(map(_own, makers)):
        return ""
    fixed = [(maker.args, maker.keywords) for maker in makers if isinstance(maker, partial)]
    text = json.dumps([plainly, fixed], sort_keys=True, allow_nan=False, default=_plainly)
    return hashlib.sha256(f"{code_version()}:{text}".encode()).hexdigest()[:32]


def _makers(value: object) -> Iterator[Callable[..., object]]:
    """What makes the methods and problems that are named in it."""
    if isinstance(value, str):
        yield from (names[value] for names in (methods, registry) if value in names)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from _makers(part)


def _own(maker: Callable[..., object]) -> bool:
    """Whether it is of this package."""
    written = maker.func if isinstance(maker, partial) else maker
    return getattr(written, "__module__", "").startswith("trimtab.")


def _plainly(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else repr(value)


class ResultStore(Protocol):
    """A place for results, and for the small files that say who is at which."""

    def save(self, name: str, result: Result) -> None:
        """Keep a result."""
        ...

    def load(self, name: str, load: Callable[[Path], R]) -> R:
        """The result of this name, as `load` reads what its `save` wrote; an OSError if there is none."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """A new file; FileExistsError if there is one."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """A file, new or not."""
        ...

    def read(self, name: str) -> bytes:
        """What is in it; FileNotFoundError if there is none."""
        ...

    def remove(self, name: str) -> None:
        """Away with it, if it is there."""
        ...


class Folder:
    """A folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, name: str, result: Result) -> None:
        """By the result's own means, which write atomically."""
        result.save(self.root / name)

    def load(self, name: str, load: Callable[[Path], R]) -> R:
        """Straight from the folder."""
        return load(self.root / name)

    def create(self, name: str, data: bytes) -> None:
        """Exclusive, on shared file systems too."""
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / name).open("xb") as file:
            file.write(data)

    def write(self, name: str, data: bytes) -> None:
        """Atomically."""
        write_atomically(self.root / name, data)

    def read(self, name: str) -> bytes:
        """All of it."""
        return (self.root / name).read_bytes()

    def remove(self, name: str) -> None:
        """Unlink it."""
        (self.root / name).unlink(missing_ok=True)


class Bucket:
    """An object store, by its fsspec URL: one object, a zip, for each result."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise ImportError(f"{url} needs fsspec: {pip_install('cluster')}") from error
        self.files, self.root = url_to_fs(url, use_listings_cache=False)
        self.files.makedirs(self.root, exist_ok=True)

    def save(self, name: str, result: Result) -> None:
        """Put in one go, so that nobody sees a half."""
        buffer = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w") as archive:
            result.save(Path(folder) / name)
            for file in sorted(Path(folder).iterdir()):
                archive.writestr(
                    zipfile.ZipInfo(file.name), file.read_bytes()
                )  # dated 1980: equal bytes for equal cells
        self.write(f"{name}.zip", buffer.getvalue())

    def load(self, name: str, load: Callable[[Path], R]) -> R:
        """By way of a folder of this machine."""
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(io.BytesIO(self.read(f"{name}.zip"))) as archive:
                archive.extractall(folder)
            return load(Path(folder) / name)

    def create(self, name: str, data: bytes) -> None:
        """Exclusive where the store can do so; elsewhere two may believe they were first, which costs work alone."""
        self.files.pipe_file(f"{self.root}/{name}", data, mode="create")

    def write(self, name: str, data: bytes) -> None:
        """Put it."""
        self.files.pipe_file(f"{self.root}/{name}", data)

    def read(self, name: str) -> bytes:
        """Get it."""
        return bytes(self.files.cat_file(f"{self.root}/{name}"))

    def remove(self, name: str) -> None:
        """Delete it."""
        with suppress(FileNotFoundError):
            self.files.rm_file(f"{self.root}/{name}")


def shelf_at(place: str | Path | None) -> ResultStore | None:
    """The shelf `cells` in a folder (a path, or file://…) or at a URL that fsspec knows (s3://…, memory://…)."""
    if place is None:
        return None
    scheme = urlsplit(str(place)).scheme if "://" in str(place) else ""
    if scheme not in ("", "file"):
        return Bucket(f"{str(place).rstrip('/')}/cells")
    return Folder(Path(unquote(urlsplit(str(place)).path) if scheme else place) / "cells")


def load_result(shelf: ResultStore | None, name: str, load: Callable[[Path], R]) -> R | None:
    """The result of this name, if there is one that can be read."""
    if shelf is None or not name:
        return None
    try:
        return shelf.load(name, load)
    except (OSError, ValueError, TypeError, KeyError, zipfile.BadZipFile):  # not there, or damaged: compute it
        return None
