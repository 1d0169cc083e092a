"""How the tuning goes, from told values and moves alone, in O(1) per round; and what to do when it does not go well.

All are running means over about the last hundred rounds (a plain mean before that), of what happened in told rounds:
y the values, Δ the moves of the centre as shares of the ranges, ρ the length of a probe.

    contrast     √⟨(y_t − y_{t−1})²⟩: what a round's change of the value is worth
    drift        V_f per round, √(⟨(y_t − y_{t−16})²⟩ − ⟨(y_t − y_{t−1})²⟩)/√15: how the value wanders, beyond probes
                 and noise
    contraction  α = 2⟨Δ²⟩/ρ²: the paper's 4dL²η²/δ², L from the contrast and for a move of random direction
    signal       ‖⟨Δ⟩‖² against ⟨‖Δ‖²⟩, less what pure noise gives: signal over noise of one estimate
    capped       the share of moves as long as the cap allows
    edge         the share of rounds with a knob within a probe of its limit
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from trimtab.setup import LARGEST
from trimtab.types import Array

WINDOW = 100
SHORT = 10
LAG = 16
ENOUGH = 50  # rounds before there is any advice


class Finding(NamedTuple):
    """One figure, and a sentence of advice where it is out of its healthy range."""

    value: float
    advice: str | None


@dataclass(frozen=True)
class Diagnostics:
    """The running figures of a study; `after` gives those of the next round."""

    told: int = 0
    skipped: int = 0
    failures: int = 0
    """Failed rounds in a row, now."""
    values: tuple[float, ...] = ()
    """The last values, for the lags."""
    near: float = 0.0
    far: float = 0.0
    early: float = 0.0
    """The mean of the first values."""
    slow: float = 0.0
    fast: float = 0.0
    moved: float = 0.0
    capped: float = 0.0
    heading: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    """Per knob: the share of rounds at its high limit, less that at its low one."""
    at_edge: int = 0
    """Rounds with any knob at a limit, ever."""

    def missed(self) -> Diagnostics:
        """After a round without a value."""
        return replace(self, skipped=self.skipped + 1, failures=self.failures + 1)

    def after(self, value: float, move: Array, cap: float, sides: Array) -> Diagnostics:
        """After a value and the move it led to; `sides` is +1 or −1 for a knob at its high or low limit, else 0."""
        told = self.told + 1
        value = min(max(value, -LARGEST), LARGEST)  # whose squares are finite
        weight, short = max(1 / told, 1 / WINDOW), max(1 / told, 1 / SHORT)
        square = float(move @ move)
        old = self.values
        near = _mean(self.near, (value - old[-1]) ** 2, max(1 / (told - 1), 1 / WINDOW)) if old else 0.0
        lagged = told - LAG
        far = _mean(self.far, (value - old[0]) ** 2, max(1 / lagged, 1 / WINDOW)) if lagged > 0 else 0.0
        heading = np.asarray(self.heading or np.zeros(len(move)))
        edges = np.asarray(self.edges or np.zeros(len(move)))
        return Diagnostics(
            told=told,
            skipped=self.skipped,
            failures=0,
            values=(*old[-LAG + 1 :], value),
            near=near,
            far=far,
            early=_mean(self.early, value, 1 / told) if told <= SHORT else self.early,
            slow=_mean(self.slow, value, weight),
            fast=_mean(self.fast, value, short),
            moved=_mean(self.moved, square, weight),
            capped=_mean(self.capped, float(square >= (0.999 * cap) ** 2), weight),
            heading=tuple((heading + (move - heading) * weight).tolist()),
            edges=tuple((edges + (sides - edges) * weight).tolist()),
            at_edge=self.at_edge + bool(sides.any()),
        )

    def rescaled(self, factors: Array, limits: Array) -> Diagnostics:
        """In coordinates `factors` times as large; a knob whose limits are others now (`limits`) has been at none."""
        if not self.told:
            return self
        heading, edges = np.asarray(self.heading) * factors, np.where(limits, 0.0, self.edges)
        moved = self.moved / float(np.mean(factors**-2.0))
        return replace(self, heading=tuple(heading.tolist()), edges=tuple(edges.tolist()), moved=moved)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Diagnostics:
        """What `to_dict` gave."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in saved.items()}
        return cls(**plain)

    @property
    def trend(self) -> float:
        """The mean of the last ten values or so, less that of the last hundred."""
        return self.fast - self.slow

    @property
    def signal(self) -> float:
        """Signal over noise of one estimate, in power; about 1/d when all is well and the optimum is not reached."""
        if self.moved == 0 or self.told < 2:
            return 0.0
        weight = max(1 / self.told, 1 / WINDOW)
        noise = 1 / self.told if weight == 1 / self.told else weight / (2 - weight)
        share = sum(h * h for h in self.heading) / self.moved
        steady = min(max((share - noise) / (1 - noise), 0.0), 0.999)
        return steady / (1 - steady)

    def findings(self, probe: float, names: list[str], *, maximise: bool = False) -> dict[str, Finding]:
        """Every figure, with advice where it is wanted."""
        gained = (self.slow - self.early) * (1 if maximise else -1)
        contrast = math.sqrt(self.near)
        drift = math.sqrt(max(self.far - self.near, 0.0) / (LAG - 1)) if self.told > LAG else 0.0
        contraction = 2 * self.moved / probe**2
        knob = int(np.argmax(np.abs(self.edges))) if self.edges else 0
        edge = self.edges[knob] if self.edges else 0.0
        side = "high" if edge > 0 else "low"
        return {
            "contrast": self._finding(
                contrast, contrast == 0, "The value never changes: does the command use the knobs?"
            ),
            "drift": self._finding(
                drift,
                drift > contrast > 0 and gained <= max(contrast, drift),  # the way down from the start is no drift
                "The system changes faster than probing can follow: measure more often, or raise radius.",
            ),
            "contraction": self._finding(
                contraction, contraction >= 1, "Moves are long against probes: lower step, or set guard.largest_move."
            ),
            "signal": self._finding(
                self.signal,
                self.signal < 0.005 and abs(self.slow - self.early) <= contrast,
                "Moves have no common direction and the value is where it began: unless that was the optimum, noise"
                " hides the probes; raise radius, or measure longer.",
            ),
            "capped": self._finding(
                self.capped,
                self.capped > 0.8,
                "Most moves are as long as allowed: raise guard.largest_move, or radius.",
            ),
            "edge": self._finding(
                abs(edge),
                abs(edge) > 0.5,
                f"{names[knob]} stays at its {side} limit: widen its range if the system allows it.",
            ),
        }

    def _finding(self, value: float, wrong: bool, advice: str) -> Finding:
        return Finding(value, advice if wrong and self.told >= ENOUGH else None)


def _mean(old: float, new: float, weight: float) -> float:
    return old + (new - old) * weight
