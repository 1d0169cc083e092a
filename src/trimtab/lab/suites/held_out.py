"""Held-out cells of the suite `drift`, generated from a seed, to be evaluated once, at the end.

Problems and dimensions differ from those of `trimtab.lab.suites.drift`. Laws of drift and noise are stratified, so that
each occurs about equally often; other parameters are drawn log-uniformly from the intervals below. The radius is the
sensible one times a factor between ¼ and 4. Nothing may be tuned on these results: evaluate again with another seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from trimtab.lab.sim.provenance import Plain
from trimtab.lab.suites.drift import Cell, sensible_radius

SEED = 173_205_081
DRIFTS = ("walk", "line", "jumps", "ramps", "circle", "telegraph")
NOISES = ("normal", "student", "relative", "normal")

SPEED = 0.01, 0.06  # speed of the optimum, times √d
EVERY = 50, 400  # period of jumps, ramps, circles and switches, in rounds
CONDITION = 1, 1000
OFFSET = 0.0005, 0.02
TREND = 0.001, 0.02  # trend of the offset, up or down, in every third cell
NOISE = {"normal": (0.001, 0.1), "student": (0.001, 0.03), "relative": (0.05, 0.5)}  # in three cells of four
WRONG = 1 / 4, 4  # the radius, relative to the sensible one

LOW, MIDDLE, HIGH = (3, 3, 5, 5, 7, 7), (20, 20, 30, 30, 50, 50), (200, 200, 500, 500)
NETWORKS = 1000  # five are drawn from these, except number 12 of the development cells
WALLS = ("near", "at", "beyond")


def held_out(seed: int = SEED) -> tuple[Cell, ...]:
    """Generate the cells of a seed.

    >>> held_out(1) == held_out(1) != held_out(2)
    True
    """
    return tuple(_Rule(seed).places())


class _Rule:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.drifts, self.noises = self._dealt(DRIFTS), self._dealt(NOISES)

    def places(self) -> Iterator[Cell]:
        for group, dims in (("d = 3 to 7", LOW), ("d = 20 to 50", MIDDLE), ("d = 200, 500", HIGH)):
            for dim in dims:
                turned = dim <= 50 and bool(self.rng.random() < 0.5)
                yield self.landscape(group, "quadratic-v1", dim, condition=self.between(*CONDITION), rotate=turned)
        for problem, dim in (("absolute-v1", 5), ("logcosh-v1", 30), ("maximum-v1", 7), ("absolute-v1", 200)):
            yield self.landscape("nonsmooth", problem, dim)
        for dim in (2, 3, 5):
            speed = self.between(0.001, 0.01)
            yield self.landscape("Rosenbrock", "rosenbrock-v1", dim, speed=speed, radius=self.radius(0.02))
        for dim in (3, 7, 20):
            yield self.landscape("egg box", "sines-v1", dim)
        for dim, where in itertools.product((3, 30), WALLS):
            size = sensible_radius(dim)
            gap = {"near": self.between(0.1, 0.5), "at": 0.0, "beyond": -self.between(0.5, 5.0)}[where] * size
            some = {"condition": self.between(*CONDITION), "walls": int(self.rng.integers(1, dim)), "gap": gap}
            yield self.landscape("wall", "corner-v1", dim, **some)
        yield from self.pricing()
        yield from self.peaks()
        yield from self.lqr()
        yield from self.allocation()

    def landscape(self, group: str, problem: str, dim: int, **more: Plain) -> Cell:
        noise_law = next(self.noises)
        parameters: dict[str, Plain] = {
            "dim": dim,
            "drift": next(self.drifts),
            "speed": self.between(*SPEED) / dim**0.5,
            "every": round(self.between(*EVERY)),
            "offset": self.between(*OFFSET),
            "trend": self.between(*TREND) * float(self.rng.choice([-1.0, 0.0, 0.0, 0.0, 0.0, 1.0])),
            "noise": self.between(*NOISE[noise_law]) * float(self.rng.random() < 0.75),
            "noise_law": noise_law,
            "radius": self.radius(sensible_radius(dim)),
        }
        return Cell(group, problem, parameters | more, 1500 if dim >= 100 else 1000)

    def pricing(self) -> Iterator[Cell]:
        for dim in (2, 5, 8):
            parameters: dict[str, Plain] = {
                "dim": dim,
                "drift": self.between(0.01, 0.04),
                "period": self.between(200, 1000),
                "noise": self.between(5, 50),
                "radius": self.radius(0.25),
            }
            yield Cell("pricing", "pricing-v1", parameters, 1000)

    def peaks(self) -> Iterator[Cell]:
        for dim in (3, 7, 10):
            parameters: dict[str, Plain] = {
                "dim": dim,
                "peaks": int(self.rng.integers(5, 21)),
                "every": round(self.between(50, 300)),
                "shift": self.between(0.5, 2),
                "noise": self.between(0.01, 1),
                "radius": self.radius(1.0),
            }
            yield Cell("peaks", "peaks-v1", parameters, 1000)

    def lqr(self) -> Iterator[Cell]:
        kinds: tuple[tuple[str, int, float, dict[str, Plain]], ...] = (
            ("lqr-v1", 50, 0.05, {}),
            ("lqr-zero-mean-v1", 200, 0.1, {}),
            ("lqr-zero-mean-v1", 200, 0.1, {}),
            ("lqr-noisy-v1", 40, 0.05, {}),
            ("lqr-noisy-v1", 40, 0.05, {"redraw": True}),
        )
        for problem, rounds, radius, more in kinds:
            n_x, n_u = int(self.rng.choice([2, 3, 4, 8])), int(self.rng.choice([1, 2, 3, 4]))
            parameters: dict[str, Plain] = {
                "n_x": n_x,
                "n_u": n_u,
                "drift": self.between(0.005, 0.01) * 6 / n_x,  # stays controllable as long as with n_x = 6
                "radius": self.radius(radius),
            }
            yield Cell("LQR", problem, parameters | more, rounds)

    def allocation(self) -> Iterator[Cell]:
        networks = self.rng.permutation([n for n in range(NETWORKS) if n != 12])[:5]
        for k, network in enumerate(networks.tolist()):
            problem = "allocation-per-agent-v1" if k % 2 else "allocation-v1"
            yield Cell("allocation", problem, {"network": network, "radius": self.radius(0.03)}, 200)

    def between(self, low: float, high: float) -> float:
        """Draw log-uniformly, rounded to four digits."""
        return float(f"{low * (high / low) ** self.rng.random():.4g}")

    def radius(self, sensible: float) -> float:
        return float(f"{sensible * self.between(*WRONG):.4g}")

    def _dealt(self, cards: Sequence[str]) -> Iterator[str]:
        while True:
            yield from self.rng.permutation(cards).tolist()
