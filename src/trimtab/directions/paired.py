"""u, −u on consecutive rounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trimtab.directions.rademacher import Rademacher
from trimtab.protocols import Directions, Source
from trimtab.registry import part
from trimtab.types import Array, Integers


@part
@dataclass(frozen=True)
class Paired:
    """u, −u on consecutive rounds; u from another law.

    If the previous value was measured at −u, it carries information on the gradient too. Estimators take this into
    account and divide the estimate by 1 + the weight of that value, which makes it a mean of the smoothed gradients of
    the two rounds: exact for a static function, lagging by half a round under drift (Remark 2.5). Meant for estimators
    that use differences of values: with a plain one-point estimate, the second one depends on the offset of f.

    >>> Paired().locate(4), Paired().locate(5), Paired().scale(3)
    ((2, 1.0), (2, -1.0), 1.0)
    """

    base: Directions = field(default_factory=Rademacher)

    def scale(self, dim: int) -> float:
        """The scale of the other law."""
        return self.base.scale(dim)

    def reach(self, dim: int) -> tuple[float, float]:
        """The reach of the other law."""
        return self.base.reach(dim)

    def locate(self, trial: int) -> tuple[int, float]:
        """One draw for two trials, the second with the opposite sign."""
        return trial // 2, -1.0 if trial % 2 else 1.0

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """The other trial of the pair."""
        return trial ^ 1

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """Fill by the other law."""
        self.base.fill(rng, out)

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """The source of the other law."""
        return self.base.source(shape, seed, lane)
