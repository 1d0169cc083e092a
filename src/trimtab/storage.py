"""Save setup and state, without loss, as text or as one binary file.

Text is JSON: Python writes the shortest digits that read back to the same float, and "inf", "-inf" and "nan" are
strings. The binary file is a NumPy .npz with the same JSON and large arrays beside it. Nothing is pickled. Parts are
dataclasses, written as {"type": name, field: value, …}; `trimtab.registry.parts` lists the readable ones. A checksum
covers everything: a modified file is rejected before any number in it is used.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from trimtab.core import init
from trimtab.recipes import BaseMethod
from trimtab.registry import parts
from trimtab.setup import Setup
from trimtab.state import Key, State, frozen
from trimtab.types import Array, Arrays, Document, Json, Memory
from trimtab.util.checksums import canonical, digest
from trimtab.util.files import pack_archive, parse, read_archive, reading, write_atomically
from trimtab.validation import whole

FORMAT = "trimtab.tuner"
VERSION = 3
BIGGEST = 1e300  # limit on saved numbers, above the squares of the largest values
BESIDE = 16  # larger arrays are stored beside the document
PLACES = ("centre", "anchor", "trail", "safe")  # points, which may be 0 even if they start elsewhere
DAMAGED = (KeyError, TypeError, AttributeError, OverflowError, IndexError, MemoryError)

Saved = tuple[Document, Arrays]
"""A document and the arrays stored beside it."""


class Foreign(ValueError):
    """The saved state belongs to another method, or to another version of it."""

    def __init__(self, name: str, setup: Setup) -> None:
        super().__init__(
            f"the saved {name} does not fit {setup.method}: give the method it was saved with, or if it is the same,"
            " use the trimtab that wrote it"
        )


def to_json(setup: Setup, state: State, knobs: Document | None = None, *, indent: int | None = 1) -> str:
    """Setup and state as JSON text; `knobs` is the caller's description of its knobs."""
    return json.dumps(_document(setup, state, knobs, None), indent=indent, allow_nan=False)


def from_json(text: str, *, method: BaseMethod | None = None) -> tuple[Setup, State]:
    """Restore setup and state from `to_json`; `method` replaces one that cannot be saved (a schedule)."""
    return revive(*parsed(text), method)


def parsed(text: str) -> Saved:
    """Parse the output of `to_json`, for `revive`."""
    try:
        document = parse(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the text is not JSON, so not a saved tuner ({error}): give what to_json() wrote") from None
    return document, {}


def save(path: str | os.PathLike[str], setup: Setup, state: State, knobs: Document | None = None) -> None:
    """Write one file: JSON if its name ends in .json, else an archive."""
    if Path(path).suffix == ".json":
        write_atomically(path, to_json(setup, state, knobs).encode())
    else:
        arrays: Arrays = {}
        document = _document(setup, state, knobs, arrays)
        write_atomically(path, pack_archive(document, arrays))


def load(path: str | os.PathLike[str], *, method: BaseMethod | None = None) -> tuple[Setup, State]:
    """Restore setup and state from `save`."""
    return revive(*opened(path), method)


def opened(path: str | os.PathLike[str]) -> Saved:
    """Read a file written by `save`: its document and arrays, for `revive`."""
    with reading(path), open(path, "rb") as file:
        archive = file.read(2) == b"PK"
    return read_archive(path) if archive else parsed(Path(path).read_text(errors="replace"))


def sealed(document: Document) -> Document:
    """Add the checksum of setup, state and knobs."""
    return {**document, "checksum": digest(canonical(_content(document)).encode())}


def _content(document: Document) -> list[object]:
    return [document[name] for name in ("setup", "state", "knobs") if name in document or name != "knobs"]


def _document(setup: Setup, state: State, knobs: Document | None, arrays: Arrays | None) -> Document:
    given = _described(setup, arrays)
    beside = {} if knobs is None else {"knobs": knobs}
    return sealed({"format": FORMAT, "version": VERSION, "setup": given, "state": _pack(state, arrays), **beside})


def described(setup: Setup) -> Document:
    """The arguments of a setup as JSON values."""
    return _described(setup, None)


def _described(setup: Setup, arrays: Arrays | None) -> Document:
    names = [f.name for f in fields(setup) if f.name not in ("contexts", "limits") or getattr(setup, f.name)]
    return {name: _pack(getattr(setup, name), arrays) for name in names}


def _verify(checksum: object, content: object) -> None:
    if checksum != digest(canonical(content).encode()):
        raise ValueError("the checksum does not match: the file was changed, or cut")


def _pack(value: Memory, arrays: Arrays | None) -> Json:
    if isinstance(value, np.ndarray) and value.ndim:
        if arrays is not None and value.size > BESIDE:
            name = f"array{len(arrays)}"
            arrays[name] = value
            return {"array": name, "digest": digest(np.ascontiguousarray(value).tobytes())}
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return value.tolist()
        return [_pack(v, arrays) for v in value]
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _pack(v, arrays) for name, v in zip(value._fields, value, strict=True) if v is not None}
    if isinstance(value, tuple | list):
        return [_pack(v, arrays) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        given = {f.name: _pack(getattr(value, f.name), arrays) for f in fields(value) if f.init}
        return {"type": type(value).__name__, **given}
    return {"lost": getattr(value, "__qualname__", type(value).__name__)}


def _unpack(value: Json, arrays: Arrays) -> Memory:
    if isinstance(value, list):
        return [_unpack(v, arrays) for v in value]
    if value in ("inf", "-inf", "nan"):
        return float(value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _beside(value, arrays)
    if "lost" in value:
        raise ValueError(f"{value['lost']} could not be saved: give the method again, from_json(text, method=...)")
    options = {name: _unpack(v, arrays) for name, v in value.items() if name != "type"}
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in parts:
        raise ValueError(f"{kind!r} is not registered: give the method again, or register its class (trimtab.registry)")
    positional = next((name for name in ("parts", "members") if name in options), None)
    return parts[kind](*options[positional]) if positional else parts[kind](**options)


def _beside(value: Document, arrays: Arrays) -> Array:
    array: Array = arrays[value["array"]]
    if value["digest"] != digest(np.ascontiguousarray(array).tobytes()):
        raise ValueError("the checksum does not match: the file was changed, or cut")
    return array


def revive(document: Json, arrays: Arrays, method: BaseMethod | None, *, verified: bool = False) -> tuple[Setup, State]:
    """Check a document and convert it to setup and state.

    verified: the caller has checked the content, as a store does with its own checksums. Documents of one configuration
    then share a setup.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("this is not a saved tuner: give what to_json() or save() wrote")
    if document.get("version") not in (2, VERSION):
        raise ValueError(
            f"the tuner was saved in version {document.get('version')!r} of the format,"
            f" and this trimtab reads version {VERSION}: use the trimtab that wrote it"
        )
    if method is not None and not isinstance(method, BaseMethod):
        raise TypeError(f"method={method!r} is not a Method: use for example tt.auto(radius=0.05)")
    try:
        if not verified:
            _verify(document["checksum"], _content(document))
        if document["version"] == 2:
            document = _upgraded(document)
        if verified:
            setup, fresh = _known(canonical(document["setup"]))
        else:
            setup, fresh = _setup(document["setup"], arrays, method), None
        if (found := np.shape(_unpack(document["state"]["centre"], arrays))) != setup.inner:
            raise ValueError(f"the saved centre has shape {found} instead of {setup.inner}")
        fresh = fresh or _fresh(setup)  # only now, when the shape is known to be right
        return setup, _state(setup, fresh, document["state"], arrays, verified=verified)
    except DAMAGED as error:
        raise ValueError(f"the saved tuner is damaged ({error!r}): restore it from a backup") from None


def _upgraded(document: Document) -> Document:
    """Upgrade a document of version 2, with the key in the setup and the memory in two fields of the state."""
    setup, state = dict(document["setup"]), dict(document["state"])
    key = {name: setup.pop(name) for name in Key._fields}
    memory = {name: state.pop(name) for name in ("slope", "pace")}
    return {**document, "setup": setup, "state": {**state, "key": key, "memory": memory}}


def _setup(saved: Document, arrays: Arrays, method: BaseMethod | None) -> Setup:
    options, shape = dict(saved), tuple(saved["shape"])
    if method is not None:
        options["method"] = None
    options = {name: _unpack(v, arrays) for name, v in options.items()}
    return Setup(**{**options, "method": method or options["method"], "shape": shape})


@lru_cache(256)
def _known(text: str) -> tuple[Setup, State]:
    """The setup with this description and a fresh state, shared by all studies of a configuration."""
    setup = _setup(parse(text), {}, None)
    return setup, _fresh(setup)


def shared(setup: Setup) -> Setup:
    """Return the setup that all studies of this configuration use, and with it their kernel."""
    return _known(canonical(described(setup)))[0]


def _fresh(setup: Setup) -> State:
    return init(setup, setup.outward(setup.home.project(np.full(setup.inner, 0.5))))


def _state(setup: Setup, start: State, saved: Document, arrays: Arrays, *, verified: bool = False) -> State:
    """Restore a state in the types and shapes of a fresh one; check that it is inside the domain unless `verified`."""
    open_trials, key = saved["open"], _key(saved["key"])
    start, saved = start._replace(open=()), {**saved, "key": start.key._asdict(), "open": []}
    if verified:
        looks = tuple((id, _same(start.last, look)) for id, look in open_trials)
        return frozen(_same(start, saved)._replace(key=key, open=looks))
    state = _alike("state", start, saved, arrays, setup)
    looks = tuple((_count(id), _alike("open", start.last, look, arrays, setup)) for id, look in open_trials)
    numbers = [id for id, _ in looks]
    if len(set(numbers)) < len(numbers) or any(id >= state.round for id in numbers):
        raise ValueError(f"the open trials {numbers} do not fit round {state.round}: restore the file from a backup")
    centre = state.centre
    for point in (centre, state.last.centre, *(look.centre for _, look in looks)):
        if not np.all(setup.domain.contains(point)):
            raise ValueError("the saved centre is outside the domain: the file was changed; restore it from a backup")
    if not np.all(setup.home.contains(centre)):  # `method=` may have a larger radius, hence a wider margin
        centre = setup.home.project(centre)
    return frozen(state._replace(key=key, centre=centre, open=looks))


def _key(saved: Document) -> Key:
    seed, lane = (whole(name, saved[name], 0, 2**64) for name in ("seed", "lane"))
    return Key(seed, lane, whole("copies", saved["copies"], 1, 2**20))


def _same(fresh: Memory, saved: Json) -> Memory:
    """Restore a value of the same type and shape as `fresh`, without checking the numbers."""
    if fresh is None:
        return None
    if isinstance(fresh, tuple):
        saved = _completed(fresh, saved)
        if len(saved) != len(fresh):
            raise ValueError(f"the saved {type(fresh).__name__} has other fields here: use the trimtab that wrote it")
        names: tuple[str, ...] | None = getattr(fresh, "_fields", None)
        if names is None:
            return tuple(map(_same, fresh, saved))
        return type(fresh)(*[_same(one, saved[name]) for name, one in zip(names, fresh, strict=True)])
    if type(saved) is list:
        return np.array(_unpack(saved, {}) if any(type(x) is str for x in saved) else saved, dtype=fresh.dtype)
    return saved if type(saved) is type(fresh) else type(fresh)(saved)


def _completed(fresh: tuple[Memory, ...], saved: Json) -> Json:
    """The saved fields of a NamedTuple, with the defaults of those that are newer than the file."""
    defaults = getattr(fresh, "_field_defaults", None)
    return {**defaults, **saved} if defaults and isinstance(saved, dict) else saved


def _alike(name: str, fresh: Memory, saved: Json, arrays: Arrays, setup: Setup) -> Memory:
    """Check saved numbers and convert them to the types and shapes of `fresh`.

    They must be finite unless `fresh` has NaN there, and positive if `fresh` is.
    """
    if fresh is None and saved is None:
        return None
    if isinstance(fresh, tuple):
        saved = _completed(fresh, saved)
        names: tuple[str, ...] | None = getattr(fresh, "_fields", None)
        if len(saved) != len(fresh) or (names and set(saved) != set(names)):
            raise Foreign(name, setup)
        pairs = [(f, saved[f]) for f in names] if names else [(name, v) for v in saved]
        found = [_alike(key, f, v, arrays, setup) for f, (key, v) in zip(fresh, pairs, strict=True)]
        return type(fresh)(*found) if names else tuple(found)
    if type(fresh) is np.ndarray and type(saved) is list and saved and type(saved[0]) is float:
        array = np.array(saved)
        positive = name not in PLACES and (fresh > 0).all()
        alike = array.dtype == fresh.dtype == float and array.shape == fresh.shape
        if alike and (abs(array) <= BIGGEST).all() and (not positive or (array > 0).all()):
            return array  # shortcut for most vectors
    if type(fresh) is int and not isinstance(saved, list | dict):
        return _count(saved, least=-1 if name in ("trial", "told") else 0)
    if type(fresh) is float and type(saved) is float and abs(saved) <= BIGGEST and (saved > 0 or not fresh > 0):
        return saved  # shortcut for most numbers
    array = np.array(_unpack(saved, arrays))
    per_lane = isinstance(fresh, np.ndarray) and fresh.ndim == 1 and setup.lanes is not None and array.ndim == 0
    if array.dtype.kind not in "if" or not (array.shape == np.shape(fresh) or per_lane):
        raise Foreign(name, setup)
    good = np.abs(array) <= BIGGEST
    if np.isnan(fresh).any():
        good |= np.isnan(array)
    elif np.all(np.asarray(fresh) > 0) and name not in PLACES:
        good &= array > 0
    if not good.all():
        raise ValueError(f"the saved {name} has an impossible number: restore the file from a backup")
    if per_lane:
        return array.item()
    return array.astype(fresh.dtype) if isinstance(fresh, np.ndarray) else type(fresh)(array)


def _count(number: object, least: int = 0) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number < 2**63:
        raise ValueError(f"the saved round or trial {number!r} is not a whole number: restore the file from a backup")
    return number
