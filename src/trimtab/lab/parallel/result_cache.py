"""Cache of finished cells: a local or shared folder, or an object store.

A cell is named by a hash of its configuration (including the seed), the source of the package, and the versions of
NumPy, SciPy and Numba. Writes are atomic and equal cells give equal bytes, so any number of runs can share a cache.
Cells with methods or problems registered outside the package are not cached, since changes to these go unnoticed.
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
from trimtab.util.files import writing

COMPUTES = ("numpy", "scipy", "numba")


class Result(Protocol):
    """A result that can be saved."""

    def save(self, path: Path) -> None:
        """Write one or more files whose names begin with `path`."""
        ...


R = TypeVar("R", bound=Result)


@cache
def code_version() -> str:
    """A hash of the package's source and of the versions of its numerical libraries."""
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
    """The name of a cell in the cache; "" if it must not be cached."""
    plainly = asdict(cell) if is_dataclass(cell) and not isinstance(cell, type) else cell
    makers = list(_makers(plainly))
    if not all(map(_own, makers)):
        return ""
    fixed = [(maker.args, maker.keywords) for maker in makers if isinstance(maker, partial)]
    text = json.dumps([plainly, fixed], sort_keys=True, allow_nan=False, default=_plainly)
    return hashlib.sha256(f"{code_version()}:{text}".encode()).hexdigest()[:32]


def _makers(value: object) -> Iterator[Callable[..., object]]:
    """The constructors of all methods and problems named in a configuration."""
    if isinstance(value, str):
        yield from (names[value] for names in (methods, registry) if value in names)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        yield from _makers(part)


def _own(maker: Callable[..., object]) -> bool:
    """Whether a constructor is defined in this package."""
    written = maker.func if isinstance(maker, partial) else maker
    return getattr(written, "__module__", "").startswith("trimtab.")


def _plainly(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else repr(value)


class ResultStore(Protocol):
    """Storage for results."""

    def prepare(self) -> None:
        """Make the place, before the work begins."""
        ...

    def save(self, name: str, result: Result) -> None:
        """Store a result."""
        ...

    def load(self, name: str, load: Callable[[Path], R]) -> R:
        """Read a result, by the function `load` on its path; raise OSError if there is none."""
        ...


class Folder:
    """Results in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def prepare(self) -> None:
        """Make the folder."""
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, result: Result) -> None:
        """Call the result's own `save`, which writes atomically."""
        result.save(self.root / name)

    def load(self, name: str, load: Callable[[Path], R]) -> R:
        """Load from the folder."""
        return load(self.root / name)


class Bucket:
    """Results in an object store given by an fsspec URL, each a zip file in one object."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise ImportError(f"{url} needs fsspec: {pip_install('cluster')}") from error
        self.files, self.root = url_to_fs(url, use_listings_cache=False)

    def prepare(self) -> None:
        """Make the folder, where the store has folders."""
        self.files.makedirs(self.root, exist_ok=True)

    def save(self, name: str, result: Result) -> None:
        """Upload in one request, so that readers never see a partial result."""
        buffer = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w") as archive:
            result.save(Path(folder) / name)
            for file in sorted(Path(folder).iterdir()):
                archive.writestr(
                    zipfile.ZipInfo(file.name), file.read_bytes()
                )  # without a time stamp: equal bytes for equal cells
        self.files.pipe_file(f"{self.root}/{name}.zip", buffer.getvalue())

    def load(self, name: str, load: Callable[[Path], R]) -> R:
        """Unpack into a temporary folder and load from there."""
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(io.BytesIO(self.files.cat_file(f"{self.root}/{name}.zip"))) as archive:
                archive.extractall(folder)
            return load(Path(folder) / name)


def store_at(place: str | Path | None) -> ResultStore | None:
    """The store `cells` in a folder (a path, or file://…) or at an fsspec URL (s3://…, memory://…)."""
    if place is None:
        return None
    scheme = urlsplit(str(place)).scheme if "://" in str(place) else ""
    if scheme not in ("", "file"):
        return Bucket(f"{str(place).rstrip('/')}/cells")
    return Folder(Path(unquote(urlsplit(str(place)).path) if scheme else place) / "cells")


def load_result(store: ResultStore | None, name: str, load: Callable[[Path], R]) -> R | None:
    """The cached result of this name, or None if there is no readable one."""
    if store is None or not name:
        return None
    try:
        return store.load(name, load)
    except (OSError, ValueError, TypeError, KeyError, zipfile.BadZipFile):  # missing or damaged: compute it
        return None
