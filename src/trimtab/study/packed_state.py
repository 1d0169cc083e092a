"""A study's state as one binary value for its row: 8-byte floats, without the configuration that studies share.

    key (16 bytes), seed, seq, turn, the numbers of the state, of the diagnostics and of the savings, checksum

Everything that is constant from round to round (method, domain, knobs, guard, baseline) is a `Shape`, which studies
with the same configuration share. The key is a hash of it and of the names of all numbers. A process that has not
cached the shape of a key reads the study's last snapshot, and caches it then. The value is valid for one `seq`; if the
row has another, it is stale.
"""

from __future__ import annotations

import hashlib
import math
import struct
import threading
from collections import OrderedDict
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from trimtab import storage
from trimtab.monitor.anytime import AnytimeSums
from trimtab.monitor.baseline import Baseline
from trimtab.monitor.diagnostics import LAG, Diagnostics
from trimtab.monitor.fixed_horizon import FixedHorizonSums
from trimtab.monitor.savings import Ledger
from trimtab.setup import Setup
from trimtab.state import Key
from trimtab.study.flat_state import Flat
from trimtab.study.position import Position
from trimtab.types import Array
from trimtab.util.checksums import canonical

FORMAT = 1
KEY = 16  # bytes
LITTLE = np.dtype("<f8")
HEAD = struct.Struct(f"<{KEY}sQqq")
FIGURES = ("told", "skipped", "failures", "at_edge", "near", "far", "slow", "fast", "moved", "capped", "long")
COUNTS = FIGURES[:4]
VECTORS = ("heading", "edges", "beyond", "beyond_square")
SUMS = (
    *("reference_value", "reference_slot", "told", "paid", "places", "length", "stretches"),
    *("baseline_rounds", "probed", "probing", "last", "changes", "change_sum", "change_square", "batches"),
)
"""The last is the number of batches, which follow as three numbers each; before them are the anytime sums."""
ANYTIME = len(AnytimeSums().to_numbers())
MOST = 1000  # cached shapes


class Packed(NamedTuple):
    """A packed state, decoded: the key of its shape, and the numbers."""

    key: bytes
    seed: int
    seq: int
    turn: int
    """The last event that changed the state."""
    numbers: Array


class Shape:
    """Configuration that studies share, and the layout of their numbers."""

    def __init__(self, key: bytes, position: Position, flat: Flat) -> None:
        self.key, self.terms, self.flat = key, position.terms, flat
        self.setup = position.setup
        self.every, self.reference, self.share = position.baseline.plan
        self.distance = flat.size + 2  # after slot and due
        self.figures = self.distance + (position.baseline.distance is not None)
        self.values = self.figures + len(FIGURES)
        self.vectors = self.values + LAG
        self.anytime = self.vectors + len(VECTORS) * self.setup.dim
        self.sums = self.anytime + ANYTIME

    def numbers(self, position: Position) -> Array | None:
        """Return the numbers of a position of this shape; None if it cannot be packed."""
        running, (anytime, fixed), dim = position.diagnostics, position.ledger, self.setup.dim
        if len(running.values) != min(running.told, LAG):
            return None
        vectors = [list(getattr(running, name) or (0.0,) * dim) for name in VECTORS]
        plain = [
            *(position.baseline.slot, position.baseline.due),
            *([] if position.baseline.distance is None else [position.baseline.distance]),
            *(getattr(running, name) for name in FIGURES),
            *(*running.values, *(0.0,) * (LAG - len(running.values))),
            *(x for vector in vectors for x in vector),
            *anytime.to_numbers(),
            *(math.nan if (x := getattr(fixed, name)) is None else x for name in SUMS[:-1]),
            *(len(fixed.batches), *fixed.rest),
            *(x for batch in fixed.batches for x in batch),
        ]
        return np.array([*self.flat.write(position.state), *plain], dtype=float)

    def position(self, seed: int, numbers: Array) -> Position:
        """Rebuild a position from its seed and its numbers."""
        plain = numbers.tolist()
        slot, due, *distance = (int(x) for x in plain[self.flat.size : self.figures])
        return Position(
            self.setup,
            self.flat.read(numbers[: self.flat.size])._replace(key=Key(seed)),
            self.diagnostics(plain),
            self.terms,
            Baseline(self.every, self.reference, slot, due, self.share, *distance),
            self.ledger(plain),
        )

    def diagnostics(self, plain: list[float]) -> Diagnostics:
        """Return the diagnostics among the numbers."""
        found = dict(zip(FIGURES, plain[self.figures : self.values], strict=True))
        found |= {name: int(found[name]) for name in COUNTS}
        told, dim = int(found["told"]), self.setup.dim
        vectors = {
            name: tuple(plain[self.vectors + n * dim : self.vectors + (n + 1) * dim]) if told else ()
            for n, name in enumerate(VECTORS)
        }
        values = tuple(plain[self.values : self.values + min(told, LAG)])
        return Diagnostics(**found, values=values, **vectors)  # type: ignore[arg-type]

    def ledger(self, plain: list[float]) -> Ledger:
        """Return the sums of the saving among the numbers."""
        value, slot, told, paid, places, length, stretches, rounds, probed, probing, *rest = plain[self.sums :]
        last, changes, change_sum, change_square, count, *rest = rest
        batches = tuple((rest[n], rest[n + 1], rest[n + 2]) for n in range(3, 3 + 3 * int(count), 3))
        fixed = FixedHorizonSums(
            None if math.isnan(value) else value,
            *(int(slot), int(told), paid, places, batches, int(length)),
            (rest[0], rest[1], rest[2]),
            *(int(stretches), int(rounds), int(probed), probing),
            *(None if math.isnan(last) else last, int(changes), change_sum, change_square),
        )
        return Ledger(AnytimeSums.from_numbers(plain[self.anytime : self.sums]), fixed)


class Shapes:
    """Cache of the shapes that this process has seen."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Shape] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Shape | None:
        """Return the shape with this key, if cached."""
        return self._known.get(key)

    def of(self, position: Position) -> Shape | None:
        """Return the shape of a position; None if its state cannot be packed.

        That is with limits, several open trials, or a state with a matrix.
        """
        setup = position.setup
        if position.limits.all or position.asked or position.state.open or not _fits(setup):
            return None
        flat = Flat(position.state)
        if not flat.is_row:
            return None
        names = [flat.names, FIGURES, VECTORS, ANYTIME, SUMS]
        described = {**storage.described(setup), "lane": 0, "copies": 1}  # as rows of earlier versions have it
        every, reference, share = position.baseline.plan
        adaptive = [] if share is None else [share]
        about = [FORMAT, described, position.terms.to_dict(), every, reference, *adaptive, names]
        key = hashlib.blake2b(canonical(about).encode(), digest_size=KEY).digest()
        with self._lock:
            if key not in self._known:
                self._known[key] = Shape(key, position, flat)
                if len(self._known) > MOST:
                    self._known.popitem(last=False)
            return self._known[key]


def _fits(setup: Setup) -> bool:
    """Whether states of this setup can be packed: one number per round, and one open trial."""
    return setup.queries * setup.told == 1 and setup.keeps_one and setup.bounds is None and setup.lanes is None


SHAPES = Shapes()
"""Shared by all stores, since a shape is configuration only."""


def pack(uid: str, packed: Packed) -> bytes:
    """Encode as bytes, with a checksum that is keyed by the study's uid."""
    head = HEAD.pack(packed.key, packed.seed, packed.seq, packed.turn)
    data = head + packed.numbers.astype(LITTLE, copy=False).tobytes()
    return data + _digest(uid, data)


def unpack(uid: str, data: bytes, seq: int) -> Packed | None:
    """Decode the output of `pack`; None if it is damaged, or not of this event."""
    if len(data) < HEAD.size + 8 or _digest(uid, data[:-8]) != data[-8:]:
        return None
    key, seed, at, turn = HEAD.unpack_from(data)
    if at != seq:
        return None
    return Packed(key, seed, at, turn, np.frombuffer(data, LITTLE, offset=HEAD.size)[:-1])


def packed(shape: Shape | None, uid: str, position: Position, seq: int, turn: int) -> bytes | None:
    """Return the packed state after an event, for the study's row; None if it cannot be packed."""
    numbers = None if shape is None else shape.numbers(position)
    if shape is None or numbers is None:
        return None
    return pack(uid, Packed(shape.key, position.state.key.seed, seq, turn, numbers))


def _digest(uid: str, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8, key=uid.encode()[:64]).digest()


assert {*FIGURES, *VECTORS, "values"} == {field.name for field in fields(Diagnostics)}
