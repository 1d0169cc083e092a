"""The knobs of a study are those of `trimtab.knobs`: how they are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from trimtab.knobs import SHARE, Knob, Knobs, Level, Setting
from trimtab.types import Document

__all__ = ["Knob", "Knobs", "Level", "Setting", "decode", "described", "encode", "level", "read_knobs"]


def described(knobs: Knobs) -> Document:
    """What a store keeps of them."""
    ranges = {"ranges": {name: list(pair) for name, pair in knobs.ranges.items()}} if knobs.ranges else {}
    return {"knobs": knobs.to_list(), "radius": knobs.radius, **ranges}


def read_knobs(setup: Document) -> Knobs:
    """What `described` gave."""
    return _read(json.dumps([setup["knobs"], setup.get("radius", SHARE), setup.get("ranges", {})]))


@lru_cache(1000)
def _read(text: str) -> Knobs:
    """Most studies of a store, and all states of a study, have the same knobs."""
    given, radius, ranges = json.loads(text)
    knobs = Knobs.of(given, radius)
    return Knobs(knobs.all, knobs.radius, {name: (low, high) for name, (low, high) in ranges.items()})


def level(knob: Knob, value: Level) -> float:
    """A value as a number: of a choice, the number of the possibility, from 0 on."""
    if knob.choices is None:
        return float(value)
    return float(knob.place(value).index(1.0)) if knob.size else 0.0


def encode(knobs: Knobs, values: Sequence[object]) -> list[float]:
    """Values as an event keeps them."""
    return [level(knob, value) for knob, value in zip(knobs.all, values, strict=True)]


def decode(knobs: Knobs, numbers: Sequence[float], *, whole: bool) -> list[object]:
    """What `encode` gave; `whole` where these were set, so that those of integers and switches are none in between."""
    return [_value(knob, number, whole) for knob, number in zip(knobs.all, numbers, strict=True)]


def _value(knob: Knob, number: float, whole: bool) -> Level:
    if knob.choices is not None:
        return knob.choices[int(number)]
    kind = {"integer": int, "bool": bool}.get(knob.type, float)
    return kind(number) if whole else number
