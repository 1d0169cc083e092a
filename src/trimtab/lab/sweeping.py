"""Many cells, each a pure function of its configuration, over all cores or a cluster, each computed once.

A cell's key is a hash of its configuration (seed included) and of the package's code. A finished cell is written at
once and not computed again; an interrupted sweep keeps what is finished. Work is spread by joblib, whose backends
are the distributed engine: "loky" (processes on this machine), "dask", "ray".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from trimtab.lab.record import Record
from trimtab.types import Document

Cell = Document
"""The configuration of a piece of work; a dataclass does as well."""
Report = Callable[[int, float], None]


class Result(Protocol):
    """What can be kept."""

    def save(self, path: Path) -> None:
        """Write it under this path, with suffixes of its own."""
        ...


class Closing(Protocol):
    """What has to be ended: a cluster that was started here."""

    def close(self) -> None:
        """End it."""
        ...


C = TypeVar("C")
R = TypeVar("R", bound=Result)

BACKENDS = {"loky": "joblib", "dask": "dask[distributed]", "ray": "ray"}


@cache
def code_version() -> str:
    """A hash of the package's source: results of other code are not mistaken for this one's."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def key(cell: object) -> str:
    """The name under which a cell's result is kept."""
    plainly = asdict(cell) if is_dataclass(cell) and not isinstance(cell, type) else cell
    text = json.dumps(plainly, sort_keys=True, allow_nan=False, default=_plainly)
    return hashlib.sha256(f"{code_version()}:{text}".encode()).hexdigest()[:32]


def _plainly(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def sweep(
    compute: Callable[..., R],
    cells: Sequence[C],
    *,
    jobs: int = 1,
    backend: str = "loky",
    folder: str | Path | None = None,
    report: Report | None = None,
    load: Callable[[Path], R] = Record.load,  # type: ignore[assignment]
) -> list[R | None]:
    """compute(cell) for every cell; None for those that an interruption (Ctrl-C) left undone.

    folder: where finished cells are kept; None keeps nothing. report(n, share): cell n is done to this share.
    load: reads what the `save(path)` of a result wrote.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} is unknown: choose from {', '.join(BACKENDS)}")
    results = [_kept(cell, folder, load) for cell in cells]
    missing = [n for n, result in enumerate(results) if result is None]
    for n, result in enumerate(results):
        if result is not None and report:
            report(n, 1.0)

    def done(n: int, record: R) -> None:
        results[n] = record
        if folder is not None:
            record.save(Path(folder) / "cells" / key(cells[n]))
        if report:
            report(n, 1.0)

    try:
        if jobs == 1 and backend == "loky":
            for n in missing:
                done(n, compute(cells[n], **({"progress": _share(report, n)} if report else {})))
        else:
            for n, record in _spread(compute, cells, missing, jobs, backend):
                done(n, record)
    except KeyboardInterrupt:
        pass
    return results


def _share(report: Report, n: int) -> Callable[[float], None]:
    return lambda share: report(n, min(share, 0.999))


def _kept(cell: C, folder: str | Path | None, load: Callable[[Path], R]) -> R | None:
    if folder is None:
        return None
    try:
        return load(Path(folder) / "cells" / key(cell))
    except (OSError, ValueError, TypeError, KeyError):  # not there, or half written: compute it
        return None


def _numbered(compute: Callable[..., R], n: int, cell: C) -> tuple[int, R]:
    return n, compute(cell)


def _spread(
    compute: Callable[..., R], cells: Sequence[C], missing: list[int], jobs: int, backend: str
) -> Iterator[tuple[int, R]]:
    """Pairs (n, record), as they are finished."""
    try:
        from joblib import Parallel, delayed, parallel_config
    except ImportError as error:
        raise ImportError('sweeps need joblib: pip install "trimtab[lab]"') from error
    options = {"n_jobs": jobs}
    if backend == "loky":
        options["inner_max_num_threads"] = max(1, (os.cpu_count() or 1) // max(1, jobs if jobs > 0 else 10**6))
    client: Closing | None = None
    try:
        if backend == "dask":
            import distributed

            make_client: Callable[..., Closing] = distributed.Client
            try:
                distributed.get_client()
            except ValueError:  # no cluster yet: one on this machine
                client = make_client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        elif backend == "ray":
            from ray.util.joblib import register_ray

            register_ray()
    except ImportError as error:
        raise ImportError(f"backend={backend!r} needs: pip install '{BACKENDS[backend]}'") from error
    try:
        with parallel_config(backend=backend, **options):
            work = (delayed(_numbered)(compute, n, cells[n]) for n in missing)
            yield from Parallel(return_as="generator_unordered" if backend == "loky" else "list")(work)
    finally:
        if client is not None:
            client.close()
