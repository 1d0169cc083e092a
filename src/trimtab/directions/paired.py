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

    Where the value told before was measured at −u, it tells of the gradient too. Estimators know this and divide the
    estimate by 1 + the weight of that value, which makes it a mean of the two rounds'
    smoothed gradients: exact for a function that stands still, lagging by half a round under drift (Remark 2.5). Made
    for estimators that contrast: a plain one-point step to −u·y first makes the second estimate depend on the offset.

    >>> Paired().locate(4), Paired().locate(5), Paired().scale(3)
    ((2, 1.0), (2, -1.0), 1.0)
    """

    base: Directions = field(default_factory=Rademacher)

    def scale(self, dim: int) -> float:
        """That of the other law."""
        return self.base.scale(dim)

    def reach(self, dim: int) -> tuple[float, float]:
        """That of the other law."""
        return self.base.reach(dim)

    def locate(self, trial: int) -> tuple[int, float]:
        """One draw for two trials, the second with the other sign."""
        return trial // 2, -1.0 if trial % 2 else 1.0

    def partner(self, trial: int | Integers) -> int | Integers | None:
        """The other of the pair."""
        return trial ^ 1

    def fill(self, rng: np.random.Generator, out: Array) -> None:
        """That of the other law."""
        self.base.fill(rng, out)

    def source(self, shape: tuple[int, ...], seed: int, lane: int) -> Source:
        """That of the other law."""
        return self.base.source(shape, seed, lane)
