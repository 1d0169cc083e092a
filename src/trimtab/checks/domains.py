"""Checks of domains: projection, membership, shrinkage, and queries that stay inside."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trimtab.checks.objectives import apart
from trimtab.checks.tunable import Make
from trimtab.directions import Rademacher, Sphere
from trimtab.domains import Domain
from trimtab.problems.checking import CheckError
from trimtab.types import Array


def check_feasible(make: Make, *, domain: Domain, dim: int, queries: int, rounds: int = 300) -> None:
    """Check that every query is inside the domain, even for extreme values.

    >>> import trimtab as tt
    >>> box = tt.Box([0.0, 0.0], [1.0, 1.0])
    >>> def make(x0, seed):
    ...     return tt.Tuner(x0, domain=box, seed=seed)
    >>> check_feasible(make, domain=box, dim=2, queries=1, rounds=50)
    """
    rng = np.random.default_rng(1)
    normal = rng.standard_normal(dim)
    hostile: list[Callable[[int, Array], float]] = [
        lambda t, x: 1e300 * (-1) ** t,
        lambda t, x: 1e-300 * (-1) ** t,
        lambda t, x: 1e12 * float(np.asarray(x).reshape(-1, dim)[0] @ normal),
        lambda t, x: 10.0 ** (t % 300),
        lambda t, x: rng.standard_cauchy(),
    ]
    for k, value in enumerate(hostile):
        tuner = make(domain.middle(dim), k)
        for t in range(rounds):
            trial = tuner.ask()
            if not np.all(domain.contains(np.reshape(trial.x, (-1, dim)), 0.0)):
                raise CheckError(f"the query {trial.x} of round {t} is outside {domain}")
            if not np.all(np.isfinite(tuner.centre)):
                raise CheckError(f"the centre became {tuner.centre} after hostile values")
            tuner.tell(trial, apart(value(t, trial.x), queries))


def check_domain(domain: Domain, *, dim: int = 3, samples: int = 200) -> None:
    """Check projection, membership and both kinds of shrinkage of a convex set.

    >>> from trimtab.domains import Box
    >>> check_domain(Box(-1.0, 1.0))
    """
    rng = np.random.default_rng(2)
    dim = domain.dim or dim
    size = domain.outer_radius(dim)
    middle = domain.middle(dim) if math.isfinite(size) else np.zeros(dim)
    size = size if math.isfinite(size) else 10.0
    points = middle + 2 * size * rng.standard_normal((samples, dim))
    near = domain.project(points.copy())
    one_by_one = np.stack([domain.project(p.copy()) for p in points])
    tolerance = 1e-8 * (size + float(np.abs(middle).max()))
    if not np.allclose(near, one_by_one, rtol=0, atol=tolerance):
        raise CheckError("projecting rows together and one by one gives different results")
    if not np.all(domain.contains(near)):
        raise CheckError("a projected point is not inside")
    if not np.allclose(domain.project(near.copy()), near, rtol=0, atol=tolerance):
        raise CheckError("projecting twice moves the point again: a point inside must be its own projection")
    apart = np.linalg.norm(near[1:] - near[:-1], axis=1) - np.linalg.norm(points[1:] - points[:-1], axis=1)
    if np.any(apart > tolerance):
        raise CheckError("two points are farther apart after projection than before: distances must not grow")
    angle = np.einsum("id,ijd->ij", points - near, near[None] - near[:, None])
    if np.any(angle > 10 * tolerance * size):
        raise CheckError("a projected point is not the nearest one: ⟨x − Πx, z − Πx⟩ ≤ 0 fails for some z inside")
    _check_shrinkage(domain, dim, points)


def _check_shrinkage(domain: Domain, dim: int, points: Array) -> None:
    inner = domain.inner_radius(dim)
    radius = 0.3 * inner / math.sqrt(dim) if math.isfinite(inner) else 0.3
    for law in (Rademacher(), Sphere()):
        each, length = domain.reach(dim, *(radius * r for r in law.reach(dim)))
        smaller = {"erode": domain.erode(dim, each, length)}
        if math.isfinite(domain.outer_radius(dim)):
            smaller["scale"] = domain.scale(dim, min(length, each * math.sqrt(dim)) / inner + 1e-12)
        for name, inner_set in smaller.items():
            u = np.empty_like(points)
            law.fill(np.random.default_rng(3), u)
            queries = inner_set.project(points.copy()) + radius * domain.flatten(u)
            if not np.all(domain.contains(queries, 0.0)):
                raise CheckError(f"a probe by {law} from a centre in the result of {name} leaves {domain}")
