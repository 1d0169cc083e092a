"""Knobs, a cost and rounds of a study, for tests that are not about these."""

import math

from trimtab.live import Study

ONE_KNOB = [{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}]
KNOBS = [
    {"name": "gain", "low": 0, "high": 10, "start": 2},
    {"name": "size", "low": 1, "high": 256, "start": 8, "type": "integer", "scale": "log"},
]


def cost(knobs):
    """Cost of a setting of `KNOBS`: 0 at gain 6 and size 64."""
    return (knobs["gain"] - 6) ** 2 + math.log(knobs["size"] / 64) ** 2


def run(study, rounds, cost=cost):
    """The trials of this many rounds, in which each trial is told its cost."""
    trials = []
    for _ in range(rounds):
        trials.append(study.ask())
        study.tell(trials[-1], cost(trials[-1].knobs))
    return trials


def one_knob_store(file):
    """A new store with the study "a" of `ONE_KNOB` after five rounds."""
    with Study.open(file, "a", ONE_KNOB, seed=1) as study:
        for value in range(5):
            study.tell(study.ask(), float(value))
    return file
