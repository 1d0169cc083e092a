"""Many studies at once, from their rows alone: what they were told before, what is told them now, what comes next.

A row holds all that a round needs (`trimtab.live.packed`), so that a lot is one query, arithmetic in lanes for all who
have a shape in common (`trimtab.live.together`), and one statement. What is not a plain round is nothing for a lot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from trimtab.crowd import Draws
from trimtab.live import schema, together
from trimtab.live.advice import advised
from trimtab.live.checksums import canonical
from trimtab.live.diagnostics import LAG
from trimtab.live.history import glance
from trimtab.live.knobs import encode
from trimtab.live.packed import FIGURES, KEY, SHAPES, Packed, Shape, pack, unpack
from trimtab.live.schema import Event, Setting
from trimtab.live.store import EVERY
from trimtab.live.study import Trial
from trimtab.types import Array, Document

TELL = "tell"
FAILURES = FIGURES.index("failures")


class Row(NamedTuple):
    """A study as its row has it."""

    id: int
    uid: str
    name: str
    created: float
    described: str
    seq: int
    paused: str | None
    shape: Shape
    seed: int
    turn: int
    numbers: Array

    @property
    def open(self) -> int:
        """The number of the open trial."""
        return self.turn + 1

    @property
    def rests(self) -> bool:
        """Whether too many rounds failed in a row for anything new."""
        most = self.shape.guard.failures
        return most is not None and self.numbers.item(self.shape.figures + FAILURES) >= most


class Told(NamedTuple):
    """A round that is to be stored."""

    row: Row
    """The study afterwards."""
    stored: tuple[Any, ...]
    """What `schema.move_row` makes of a move."""


def strangers(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Of rows whose states are of shapes that are not known here, the name of one for each shape."""
    found: dict[bytes, str] = {}
    for row in rows:
        if row[-1] is not None and SHAPES.get(key := row[-1][:KEY]) is None:
            found[key] = row[2]
    return list(found.values())


def read(row: Sequence[Any], where: str) -> Row | None:
    """A study of `SharedStore.rows` that nobody holds, if its row says enough; an error if it is damaged."""
    *columns, state = row
    id, uid, name, created, setup, seq = columns[:6]
    holder, paused, archived = columns[13:16]
    if holder is not None or archived is not None or state is None:
        return None
    piece = unpack(uid, state, seq)
    shape = None if piece is None else SHAPES.get(piece.key)
    if piece is None or shape is None:
        return None
    if not schema.is_sealed(columns):
        raise schema.unfit(name, where)
    return Row(id, uid, name, created, setup, seq, paused, shape, piece.seed, piece.turn, piece.numbers)


def takes(row: Row, value: float) -> bool:
    """Whether a value of the open trial makes a plain round: a probe, within the rails, without a snapshot."""
    shape, guard, slot = row.shape, row.shape.guard, row.shape.flat.size
    baseline = shape.every > 0 and row.numbers.item(slot) >= row.numbers.item(slot + 1)
    late = baseline or (row.seq + 1) % EVERY == 0
    return not (late or guard.approval or guard.beyond(value) or row.rests)


class Lot:
    """Studies of one shape. write: what makes JSON of a status, where there is something faster than Python's own."""

    def __init__(self, rows: Sequence[Row], write: Callable[[Document], str] = canonical) -> None:
        self.rows, self.shape, self._write = list(rows), rows[0].shape, write
        self._draws = Draws(self.shape.setup, [row.seed for row in rows])
        self._numbers = np.zeros((len(rows), max(row.numbers.size for row in rows)))
        for n, row in enumerate(rows):
            self._numbers[n, : row.numbers.size] = row.numbers  # those of whom more batches are in the books are longer

    def tell(self, values: Sequence[float], now: float) -> list[Told]:
        """The round of each; from now on the lot is as it is afterwards."""
        shape, knobs = self.shape, self.shape.terms.knobs
        rounds = self._numbers[:, 0].astype(np.int64).tolist()
        queries, self._numbers = together.tell(shape, self._draws, self._numbers, np.array(values, dtype=float))
        asked = self._settings(queries, rounds)
        centres, settings = self._centres()
        found = []
        for n, row in enumerate(self.rows):
            seq, plain = row.seq + 1, self._numbers[n, : row.numbers.size].tolist()
            query = list(asked[n].values()) if knobs.plain else encode(knobs, list(asked[n].values()))
            event = Event(seq, rounds[n], TELL, values[n], query, centres[n], now, None)
            status = self._status(plain, seq, settings[n], now)
            if not together.silent(shape, plain):
                position = shape.position(shape.reseeded(row.seed), self._numbers[n])
                if said := advised(position):
                    status["advice"] = said
            found.append(self._told(n, row, event, status))
        self.rows = [one.row for one in found]
        return found

    def _told(self, n: int, row: Row, event: Event, status: Document) -> Told:
        numbers, seq, text = self._numbers[n, : row.numbers.size], event.seq, self._write(status)
        after = Row(*row[:5], seq, *row[6:9], seq, numbers)
        urgent = schema.urgency(status)
        sealed = schema.seal(row.uid, row.name, row.created, row.described, seq, text, *urgent)
        state = pack(row.uid, Packed(row.shape.key, row.seed, seq, seq, numbers))
        stored = (row.uid, text, sealed, *urgent, state, *schema.event_row(row.id, event))
        return Told(after, stored)

    def _status(self, plain: list[float], turn: int, centre: Setting, now: float) -> Document:
        shape = self.shape
        told, skipped, failures, _, _, _, slow, fast = plain[shape.figures : shape.figures + 8]
        newest = plain[shape.values + min(int(told), LAG) - 1]
        missed, means = (int(skipped), int(failures)), (fast, slow)
        return glance(
            int(plain[0]), turn, centre, newest, means, missed, shape.setup.maximise, now, shape.saving(plain)
        )

    def ask(self) -> list[Trial]:
        """The open trial of each."""
        shape, rounds = self.shape, self._numbers[:, 0].astype(np.int64).tolist()
        settings = self._settings(together.ask(shape, self._draws, self._numbers), rounds)
        due = together.due(shape, self._numbers)
        return [
            Trial(row.open, dict(shape.start), round, "baseline") if late else Trial(row.open, setting, round)
            for row, setting, round, late in zip(self.rows, settings, rounds, due, strict=True)
        ]

    def _settings(self, queries: Array, rounds: Sequence[int]) -> list[Setting]:
        """What is set for queries, by draws that belong to the rounds."""
        knobs = self.shape.terms.knobs
        if (levels := knobs.of_many(queries)) is not None:
            return [dict(zip(knobs.names, one, strict=True)) for one in levels]
        return [
            knobs.probe(query, row.seed, round) for row, query, round in zip(self.rows, queries, rounds, strict=True)
        ]

    def _centres(self) -> tuple[list[list[float]], list[Setting]]:
        """Where each is, as an event keeps it and as the nearest setting."""
        knobs, coordinates = self.shape.terms.knobs, self._numbers[:, self.shape.centre]
        if (levels := knobs.of_many(coordinates)) is not None:
            return levels, [dict(zip(knobs.names, one, strict=True)) for one in levels]
        values = [encode(knobs, knobs.values(one)) for one in coordinates]
        return values, [knobs.setting(one) for one in coordinates]


def by_shape(rows: Sequence[Row]) -> list[list[int]]:
    """The places of those that make a lot, for each shape."""
    found: dict[bytes, list[int]] = {}
    for n, row in enumerate(rows):
        found.setdefault(row.shape.key, []).append(n)
    return list(found.values())
