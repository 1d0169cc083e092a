"""Encoding of knobs and their values for the store; the knobs are those of `trimtab.knobs`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from trimtab.knobs import SHARE, Knob, Knobs, Level, Setting
from trimtab.types import Document

__all__ = ["Knob", "Knobs", "Level", "Setting", "decode", "described", "encode", "level", "read_knobs"]


def described(knobs: Knobs) -> Document:
    """Return the knobs as a document for the store."""
    ranges = {"ranges": {name: list(pair) for name, pair in knobs.ranges.items()}} if knobs.ranges else {}
    return {"knobs": knobs.to_list(), "radius": knobs.radius, **ranges}


def read_knobs(setup: Document) -> Knobs:
    """Read the output of `described`."""
    return _read(json.dumps([setup["knobs"], setup.get("radius", SHARE), setup.get("ranges", {})]))


@lru_cache(1000)
def _read(text: str) -> Knobs:
    """Cached, because most studies of a store and all states of a study have the same knobs."""
    given, radius, ranges = json.loads(text)
    knobs = Knobs.of(given, radius)
    return Knobs(knobs.all, knobs.radius, {name: (low, high) for name, (low, high) in ranges.items()})


def level(knob: Knob, value: Level) -> float:
    """Return a value as a number; for a choice, its index from 0."""
    if knob.choices is None:
        return float(value)
    return float(knob.place(value).index(1.0)) if knob.size else 0.0


def encode(knobs: Knobs, values: Sequence[object]) -> list[float]:
    """Return values as the numbers that an event stores."""
    return [level(knob, value) for knob, value in zip(knobs.all, values, strict=True)]


def decode(knobs: Knobs, numbers: Sequence[float], *, whole: bool) -> list[object]:
    """Decode the output of `encode`; whole: the values were applied, so integers and switches are exact."""
    return [_value(knob, number, whole) for knob, number in zip(knobs.all, numbers, strict=True)]


def _value(knob: Knob, number: float, whole: bool) -> Level:
    if knob.choices is not None:
        return knob.choices[int(number)]
    kind = {"integer": int, "bool": bool}.get(knob.type, float)
    return kind(number) if whole else number
