"""Setup and state as text or as one binary file, exactly.

Text is JSON (Python writes the shortest digits that read back to the same float; numbers JSON lacks are the strings
"inf", "-inf", "nan"). The binary file is a NumPy .npz: the same JSON, with large arrays beside it. No pickles.
Configuration objects are dataclasses, written as {"type": name, field: value, …}; `known` says which can be read.
"""

from __future__ import annotations

import io
import json
import math
import os
import secrets
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trimtab import directions, domains, estimators, steps
from trimtab.core import LARGEST, Setup, State, ask, init
from trimtab.methods import Method

FORMAT = "trimtab.tuner"
VERSION = 1
SETUP = ("method", "shape", "domain", "bounds", "seed", "lane", "copies", "maximise", "max_pending")

known: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        Method,
        *(directions.Gaussian, directions.Sphere, directions.Rademacher, directions.Paired),
        *(directions.Orthogonal, directions.Echoed, estimators.Covariance, estimators.Plane, steps.Adaptive),
        *(estimators.OnePoint, estimators.Residual, estimators.HighPass, estimators.Still),
        *(estimators.TwoPoint, estimators.ModifiedTwoPoint),
        *(steps.Constant, steps.Power, steps.Normalised),
        *(domains.Everywhere, domains.Box, domains.Ball, domains.Simplex, domains.Halfspace),
        *(domains.Polytope, domains.Product, domains.Intersection),
    )
}


def to_json(setup: Setup, state: State) -> str:
    """Setup and state as text."""
    return json.dumps(_document(setup, state, None), indent=1, allow_nan=False)


def from_json(text: str, *, method: Method | None = None) -> tuple[Setup, State]:
    """What `to_json` wrote."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"this is not a saved tuner, nor any JSON ({error}): give the text that to_json() wrote"
        ) from None
    return _read(document, {}, method)


def state_to_json(state: State) -> str:
    """The state alone, on one line: for whoever keeps the setup elsewhere and writes often."""
    return json.dumps({name: _pack(value, None) for name, value in state._asdict().items()}, allow_nan=False)


def state_from_json(setup: Setup, text: str) -> State:
    """What `state_to_json` wrote."""
    try:
        return _state(setup, json.loads(text), {})
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the saved state is damaged ({error}): restore it from a copy") from None


def save(path: str | os.PathLike[str], setup: Setup, state: State) -> None:
    """Write one file: JSON if its name says so, else an archive."""
    if Path(path).suffix == ".json":
        write_atomically(path, to_json(setup, state).encode())
    else:
        arrays: dict[str, Any] = {}
        document = _document(setup, state, arrays)
        write_atomically(path, pack_archive(document, arrays))


def pack_archive(document: dict[str, Any], arrays: dict[str, Any], *, compressed: bool = False) -> bytes:
    """A NumPy .npz with a JSON document beside the arrays."""
    text = json.dumps(document, allow_nan=False).encode()
    buffer = io.BytesIO()
    write = np.savez_compressed if compressed else np.savez
    write(buffer, document=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


def read_archive(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The document and the arrays that `pack_archive` packed."""
    data = io.BytesIO(Path(path).read_bytes())
    try:
        with np.load(data, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return json.loads(arrays.pop("document").tobytes()), arrays
    except Exception as error:  # whatever the zip reader stumbles over, the file is not what was written
        raise ValueError(f"{path} is not a saved file, or is damaged ({error}): restore it from a copy") from None


def cache_folder() -> Path:
    """Where what can be computed again is kept: $TRIMTAB_CACHE, or trimtab in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("TRIMTAB_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab"


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Afterwards the file is either the old one or the new one, whatever happens meanwhile."""
    path = Path(os.path.realpath(path))  # a link stays a link
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder: make it first, or save elsewhere")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
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


def load(path: str | os.PathLike[str], *, method: Method | None = None) -> tuple[Setup, State]:
    """What `save` wrote."""
    with open(path, "rb") as file:
        archive = file.read(2) == b"PK"
    if not archive:
        return from_json(Path(path).read_text(errors="replace"), method=method)
    return _read(*read_archive(path), method)


def _document(setup: Setup, state: State, arrays: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "setup": {name: _pack(getattr(setup, name), arrays) for name in SETUP},
        "state": {name: _pack(value, arrays) for name, value in state._asdict().items()},
    }


def _pack(value: Any, arrays: dict[str, Any] | None) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        if arrays is not None and value.size > 16:
            name = f"array{len(arrays)}"
            arrays[name] = value
            return {"array": name}
        if value.dtype.kind == "f" and np.isfinite(value).all():
            return value.tolist()
        return [_pack(v, arrays) for v in value]
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_pack(v, arrays) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "type": type(value).__name__,
            **{f.name: _pack(getattr(value, f.name), arrays) for f in fields(value) if f.init},
        }
    return {"lost": getattr(value, "__qualname__", type(value).__name__)}


def _unpack(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(v, arrays) for v in value]
    if value in ("inf", "-inf", "nan"):
        return float(value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "lost" in value:
        raise ValueError(f"{value['lost']} could not be saved: give the method again, from_json(text, method=...)")
    options = {name: _unpack(v, arrays) for name, v in value.items() if name != "type"}
    kind = value.get("type")
    if kind not in known:
        raise ValueError(
            f"{kind!r} is not known here: give the method again, or add the class to trimtab.storage.known"
        )
    positional = next((name for name in ("parts", "members") if name in options), None)
    return known[kind](*options[positional]) if positional else known[kind](**options)


def _read(document: Any, arrays: dict[str, Any], method: Method | None) -> tuple[Setup, State]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("this is not a saved tuner: give what to_json() or save() wrote")
    if document.get("version") != VERSION:
        raise ValueError(
            f"the tuner was saved in version {document.get('version')!r} of the format,"
            f" and this trimtab reads version {VERSION}: use the trimtab that wrote it"
        )
    if method is not None and not isinstance(method, Method):
        raise TypeError(f"method={method!r} is not a Method: use for example tt.residual(radius=0.05, step=3e-3)")
    try:
        options = dict(document["setup"])
        if method is not None:
            options["method"] = None
        options = {name: _unpack(v, arrays) for name, v in options.items()}
        setup = Setup(**{**options, "method": method or options["method"], "shape": tuple(options["shape"])})
        return setup, _state(setup, document["state"], arrays)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the saved tuner is damaged ({error!r}): restore it from a copy") from None


def _state(setup: Setup, saved: dict[str, Any], arrays: dict[str, Any]) -> State:
    """The saved state, in the types and shapes of a fresh one."""
    blank = init(setup, setup.outward(setup.home.project(np.full(setup.shape, 0.5))))
    part = {name: _unpack(v, arrays) for name, v in saved.items()}
    centre = np.array(part["centre"], dtype=float)
    if centre.shape != setup.shape or not np.isfinite(centre).all():
        raise ValueError(f"the saved centre has shape {centre.shape} instead of {setup.shape}, or is not finite")
    if not np.all(setup.domain.contains(centre)):
        raise ValueError("the saved centre is outside the domain: the file was changed; restore it from a copy")
    if not np.all(setup.home.contains(centre)):  # a method with a larger radius keeps farther from the edge
        centre = setup.home.project(centre)
    centre.flags.writeable = False
    round, pending = _count(part["round"]), tuple(_count(p) for p in part["pending"])
    if len(set(pending)) < len(pending) or any(p >= round for p in pending):
        raise ValueError(f"the saved pending trials {pending} do not fit round {round}: restore the file from a copy")
    heard = part.get("echo", [])
    value = 0.0 if setup.lanes is None else np.zeros(setup.lanes)
    echo = _alike("echo", (ask(setup, blank), value) if heard else (), heard, setup)
    if echo and not np.all(setup.domain.contains(echo[0])):
        raise ValueError("the saved query is outside the domain: the file was changed; restore it from a copy")
    return State(
        round=round,
        centre=centre,
        memory=_alike("memory", blank.memory, part["memory"], setup),
        gain=_alike("gain", blank.gain, part["gain"], setup),
        last=_alike("last", (blank.last,), [part["last"]], setup)[0],
        skipped=_alike("skipped", (blank.skipped,), [part["skipped"]], setup)[0],
        pending=pending,
        course=_alike("course", blank.course, part.get("course", []), setup),
        echo=echo,
    )


def _alike(name: str, fresh: tuple[Any, ...], saved: Any, setup: Setup) -> tuple[Any, ...]:
    """The saved numbers in the types and shapes of fresh ones."""
    try:
        arrays = [np.array(value, dtype=float) for value in saved]
    except ValueError:
        arrays = []
    fits = len(arrays) == len(fresh) and all(a.shape == np.shape(f) for a, f in zip(arrays, fresh, strict=False))
    largest = {"memory": 2 * LARGEST, "course": LARGEST, "echo": LARGEST}.get(name, 100 * LARGEST**2)
    if name == "memory" and hasattr(setup.method.estimator, "learn"):
        largest = 100 * LARGEST**2  # squares and slopes, too
    if not fits or any(np.any(np.abs(a) > largest) for a in arrays):
        raise ValueError(f"the saved {name} does not fit {setup.method}: give the method that it was saved with")
    if name not in ("memory", "course", "echo") and not all(np.all(a >= (-1 if name == "last" else 0)) for a in arrays):
        raise ValueError(f"the saved {name} is negative or not a number: restore the file from a copy")
    return tuple(
        a.astype(f.dtype) if isinstance(f, np.ndarray) else type(f)(a) for a, f in zip(arrays, fresh, strict=True)
    )


def _count(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**63:
        raise ValueError(f"the saved round or trial {number!r} is not a whole number: restore the file from a copy")
    return number
