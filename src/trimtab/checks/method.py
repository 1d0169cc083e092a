"""The checks of a method and of a tuner."""

from __future__ import annotations

import math

from trimtab.checks.domains import check_feasible
from trimtab.checks.estimates import check_scale_free, check_unbiased
from trimtab.checks.late import check_lanes, check_late
from trimtab.checks.resume import check_forget, check_memory, check_resume
from trimtab.checks.rounds import check_errors, check_queries, check_skips, check_still
from trimtab.checks.tunable import Make, kind_of
from trimtab.domains import Box, Domain, Everywhere
from trimtab.recipes import BaseMethod
from trimtab.setup import Setup
from trimtab.tuner import Tuner
from trimtab.types import Array


def check_method(method: BaseMethod, *, dim: int = 3, domain: Domain | None = None) -> None:
    """Run all checks that apply to a method.

    >>> from trimtab.recipes import residual
    >>> check_method(residual(radius=0.1, step=0.01))
    """

    def make(x0: Array, seed: int) -> Tuner:
        if domain is not None and math.isfinite(inner := domain.inner_radius(dim)):  # somewhere in the middle
            x0 = domain.middle(dim) + 0.2 * inner * domain.flatten(x0)
        return kind(x0, method, domain=domain, seed=seed)

    def inside(x0: Array, seed: int) -> Tuner:
        return kind(x0, method, domain=Box(-1.0, 1.0), seed=seed)

    setup = Setup(method, (dim,), domain=domain or Everywhere())
    queries = method.queries
    kind = kind_of(method)
    check_tuner(make, dim=dim, queries=queries, anchored=method.anchored, probes=any(method.offsets))
    check_late(method, dim=dim, domain=domain)
    check_forget(make, dim=dim, queries=queries, anchored=method.anchored)
    check_lanes(method, dim, domain)
    if method.scale_free:
        check_scale_free(make, dim=dim, queries=queries)
    step = method.constant
    if method.unbiased and method.max_move is None and isinstance(step, float):  # a move is −η·ĝ with a known η
        turning = max(method.lags) == 0 and not method.located
        check_unbiased(make, dim=dim, setup=setup, step=step, turning=turning, lanes=True)
    bounded = math.isfinite(Setup(method, (dim,), domain=Box(-9.0, 9.0)).directions.reach(dim)[0])
    if (bounded or method.margin == "project") and method.radius < 0.5 and method.margin != "none":
        check_feasible(inside, domain=Box(-1.0, 1.0), dim=dim, queries=queries)


def check_tuner(make: Make, *, dim: int = 3, queries: int = 1, anchored: bool = True, probes: bool = True) -> None:
    """Run the checks that need no knowledge of the method: queries, ids, skips, errors, resume, memory.

    anchored: whether the method uses differences to earlier values, so that a constant value has no effect.
    probes: whether its queries differ from the centre.

    >>> import trimtab as tt
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, tt.residual(radius=0.1, step=0.01), seed=seed)
    >>> check_tuner(make)
    """
    check_queries(make, dim=dim, queries=queries, probes=probes)
    check_still(make, dim=dim, queries=queries, anchored=anchored)
    check_skips(make, dim=dim, queries=queries)
    check_errors(make, dim=dim, queries=queries)
    check_resume(make, dim=dim, queries=queries)
    check_memory(make, dim=dim, queries=queries)
