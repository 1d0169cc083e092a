"""Diagnostics of a study from its values and moves, in O(1) per round; `trimtab.study.advice` interprets them.

All are running means over about the last hundred told rounds (plain means before that). y are the values, Δ the moves
of the centre as shares of the ranges, ρ is the length of a probe.

    contrast     √⟨(y_t − y_{t−1})²⟩: typical change of the value from one round to the next
    drift        V_f per round, √(⟨(y_t − y_{t−16})²⟩ − ⟨(y_t − y_{t−1})²⟩)/√15: drift of the value, beyond probes
                 and noise
    contraction  α = 2⟨Δ²⟩/ρ²: the paper's 4dL²η²/δ², with L from the contrast, for a move of random direction
    signal       ‖⟨Δ⟩‖² over ⟨‖Δ‖²⟩, corrected for pure noise: signal-to-noise ratio of one estimate
    capped       share of moves at the cap
    edge         share of rounds with a knob within a probe of its limit
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trimtab.setup import LARGEST
from trimtab.types import Array, Document

WINDOW = 100
SHORT = 10
LAG = 16


class LimitDistance(NamedTuple):
    """The limits that the operating point is at after a round."""

    sides: Array
    """+1 or −1 for a coordinate at its high or low limit, else 0."""
    slope: Array
    """Slope of improvement beyond the limit: positive beyond a high limit, negative beyond a low one."""


@dataclass(frozen=True)
class Diagnostics:
    """Running statistics of a study; `after` returns those after the next round.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0)
    >>> study.tell(study.ask(), 12.5)
    >>> figures: Diagnostics = study.diagnostics
    >>> figures.told, figures.failures
    (1, 0)
    >>> study.close()
    """

    told: int = 0
    skipped: int = 0
    failures: int = 0
    """The present number of consecutive failures."""
    values: tuple[float, ...] = ()
    """The last LAG values."""
    near: float = 0.0
    far: float = 0.0
    slow: float = 0.0
    fast: float = 0.0
    moved: float = 0.0
    capped: float = 0.0
    heading: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    """Per coordinate: share of rounds at its high limit, minus the share at its low limit."""
    beyond: tuple[float, ...] = ()
    beyond_square: tuple[float, ...] = ()
    """Per coordinate: mean slope beyond the limit it is at, and mean square of that slope."""
    long: float = 0.0
    """Share of moves longer than 0.7 probes; a share is robust against outliers."""
    at_edge: int = 0
    """Total rounds with any knob at a limit."""

    def missed(self) -> Diagnostics:
        """Return the statistics after a round without a value."""
        return replace(self, skipped=self.skipped + 1, failures=self.failures + 1)

    def after(self, value: float, move: Array, cap: float, edge: LimitDistance, probe: float = math.inf) -> Diagnostics:
        """Return the statistics after a value and the move it led to."""
        told = self.told + 1
        value = min(max(value, -LARGEST), LARGEST)  # so that squares are finite
        weight, short = max(1 / told, 1 / WINDOW), max(1 / told, 1 / SHORT)
        square = float(move @ move)
        old = self.values
        near = _mean(self.near, (value - old[-1]) ** 2, max(1 / (told - 1), 1 / WINDOW)) if old else 0.0
        lagged = told - LAG
        far = _mean(self.far, (value - old[0]) ** 2, max(1 / lagged, 1 / WINDOW)) if lagged > 0 else 0.0
        slope, nothing = edge.slope.clip(-LARGEST, LARGEST), (0.0,) * len(move)
        means = np.array([figure or nothing for figure in (self.heading, self.edges, self.beyond, self.beyond_square)])
        means += (np.array([move, edge.sides, slope, slope * slope]) - means) * weight
        heading, edges, beyond, beyond_square = map(tuple, means.tolist())
        return Diagnostics(
            told=told,
            skipped=self.skipped,
            failures=0,
            values=(*old[-LAG + 1 :], value),
            near=near,
            far=far,
            slow=_mean(self.slow, value, weight),
            fast=_mean(self.fast, value, short),
            moved=_mean(self.moved, square, weight),
            capped=_mean(self.capped, float(square >= (0.999 * cap) ** 2), weight),
            heading=heading,
            edges=edges,
            beyond=beyond,
            beyond_square=beyond_square,
            long=_mean(self.long, float(2 * square >= probe**2), weight),
            at_edge=self.at_edge + bool(edge.sides.any()),
        )

    def rescaled(self, factors: Array, limits: Array) -> Diagnostics:
        """Convert to coordinates scaled by `factors`; restart the statistics of knobs with changed `limits`."""
        if not self.told:
            return self
        heading, moved = np.asarray(self.heading) * factors, self.moved / float(np.mean(factors**-2.0))
        edges, new = tuple(np.where(limits, 0.0, self.edges).tolist()), (0.0,) * len(heading)
        return replace(self, heading=tuple(heading.tolist()), moved=moved, edges=edges, beyond=new, beyond_square=new)

    def to_dict(self) -> Document:
        """Convert to JSON types."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, saved: Document) -> Diagnostics:
        """Read the output of `to_dict`."""
        known = {name: value for name, value in saved.items() if name in cls.__dataclass_fields__}
        plain: Document = {name: tuple(v) if isinstance(v, list) else v for name, v in known.items()}
        return cls(**plain)

    @property
    def trend(self) -> float:
        """The mean of about the last ten values, minus that of about the last hundred."""
        return self.fast - self.slow

    @property
    def signal(self) -> float:
        """Signal-to-noise ratio of one estimate, in power; about 1/d in a healthy study far from its optimum."""
        if self.moved == 0 or self.told < 2:
            return 0.0
        weight = max(1 / self.told, 1 / WINDOW)
        noise = 1 / self.told if weight == 1 / self.told else weight / (2 - weight)
        share = sum(h * h for h in self.heading) / self.moved
        steady = min(max((share - noise) / (1 - noise), 0.0), 0.999)
        return steady / (1 - steady)

    def figures(self, probe: float) -> dict[str, float]:
        """Return all diagnostics by name; probe: length of a probe at the given radius."""
        return {
            "contrast": math.sqrt(self.near),
            "drift": math.sqrt(max(self.far - self.near, 0.0) / (LAG - 1)) if self.told > LAG else 0.0,
            "contraction": 2 * self.moved / probe**2,
            "signal": self.signal,
            "capped": self.capped,
            "edge": max(map(abs, self.edges), default=0.0),
        }


def _mean(old: float, new: float, weight: float) -> float:
    return old + (new - old) * weight
