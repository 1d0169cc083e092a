"""Choose radius and step of a method by successive halving, on trials that are not reported.

The first rung tries the whole grid on few trials. The next one tries steps half a decade around the best ones, for the
best radii (three, or one in quick mode) and the shared one; the last, quarter decades and radii in between. Each rung
has more rounds or trials than the one before. The ranking is that of `lab.tune`: fewest diverged trials, then the
lowest median regret at the centre.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trimtab.lab.sim.provenance import Plain, plain
from trimtab.lab.sim.simulate import Progress, part
from trimtab.lab.step_search import Rank, apart, attempt, build, needs_step, ranks
from trimtab.problems import Problem

Setting = tuple[float, float | None]
"""δ and η."""
BETWEEN = 2**0.5


@dataclass(frozen=True)
class Found:
    """The chosen setting, and the one at the shared radius."""

    own: Setting
    shared: Setting
    table: list[dict[str, Plain]]
    """The results of the first rung: radius, step, diverged, median."""
    at_edge: bool


def search(
    problem: Problem,
    name: str,
    *,
    radii: Sequence[float],
    steps: Sequence[float],
    shared: float,
    rungs: Sequence[tuple[int, int]],
    kept: int,
    seed: int,
    noise: str,
    progress: Progress | None = None,
) -> Found:
    """Find the best radius and step of a registered method; one without a step gets the shared radius.

    rungs: (rounds, trials) of each rung. kept: number of radii in the second rung, besides the shared one. The radius
    of a method without a step is not tuned, since `auto` adapts it.
    """
    if not needs_step(name):
        return Found((shared, None), (shared, None), [], False)
    found: dict[Setting, Rank] = {}

    def climb(settings: Iterable[Setting], rung: int) -> None:
        rounds, trials = rungs[rung]
        some: dict[str, Any] = {"rounds": rounds, "trials": trials, "seed": apart(seed), "noise": noise}
        share = part(progress, rung / len(rungs), (rung + 1) / len(rungs))
        found.clear()
        found.update(ranks(attempt(problem, lambda pair: build(name, *pair), settings, progress=share, **some)))

    def best(of: float | None = None) -> Setting:
        return min((pair for pair in found if of is None or pair[0] == of), key=found.__getitem__)

    grid = [(radius, step) for radius in dict.fromkeys((*radii, shared)) for step in steps]
    climb(grid, 0)
    table: list[dict[str, Plain]] = [
        {"radius": r, "step": s, "diverged": found[r, s][0], "median": plain(found[r, s][1])} for r, s in grid
    ]
    places = sorted(dict.fromkeys(r for r, _ in grid), key=lambda r: found[best(r)])
    some = [best(r) for r in dict.fromkeys((*places[:kept], shared))]
    climb([(r, s * 10.0**k) for r, s in some if s for k in (-0.5, 0.0, 0.5)], 1)
    if len(rungs) > 2:
        (r, s), (_, t) = best(), best(shared)
        assert s is not None
        assert t is not None
        about = [(r * b, s * 10.0**k) for b in (1 / BETWEEN, 1.0, BETWEEN) for k in (-0.25, 0.0, 0.25)]
        climb([*about, *((shared, t * 10.0**k) for k in (-0.25, 0.0, 0.25))], 2)
    own = best()
    inside = min(steps) < (own[1] or 0.0) < max(steps) and min(radii) < own[0] < max(radii)
    return Found(own, best(shared), table, not inside)
