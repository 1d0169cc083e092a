"""Nearest points of intersections: Dykstra's algorithm in `trimtab.domains` beside a conic and an active-set solver.

    python benchmarks/projections.py

An error is max ⟨x − p, z − p⟩/‖x − p‖ over points z inside (0 for the nearest p), relative to the size of the set, and
the p of a solver is first moved inwards until it is inside: from up to 30 radii away, and from 10³ to 10¹². The time is
the median, per point. DAQP takes linear members only.
"""

import math
import time

import clarabel
import daqp
import numpy as np
from scipy import sparse

from trimtab.domains import Ball, Box, Halfspace, Intersection, Simplex
from trimtab.domains.base import pulled_in

NEAR, FAR = (0.3, 3.0, 30.0), (1e3, 1e6, 1e12)


def intersections(dim, rng):
    """Sets of one size, cut by halfspaces that leave the middle; all have the dimension `dim`."""
    normals = rng.standard_normal((3, dim)) / math.sqrt(dim)
    cuts = [Halfspace(n, n.mean() * min(1.0, 2 / dim) + 0.1 / math.sqrt(dim)) for n in normals]
    return {
        "box, halfspaces": Intersection(Box(-0.5, 1), *cuts),
        "capped simplex": Intersection(Box(0, 2 / dim), Simplex()),
        "cut simplex": Intersection(cuts[0], Simplex()),
        "ball, halfspace": Intersection(Ball(1.0), cuts[0]),
        "box, two balls": Intersection(Box(-0.5, 1), Ball(1.0), Ball(1.0, 0.5 * normals[0])),
    }


def equations(domain, dim):
    """Rows of A x ≤ b, of A x = b, and balls."""
    if isinstance(domain, Box):
        ends = [np.broadcast_to(v, (dim,)) for v in (domain.high, -domain.low)]
        return np.vstack([np.eye(dim), -np.eye(dim)]), np.concatenate(ends), np.zeros((0, dim)), np.zeros(0), []
    if isinstance(domain, Simplex):
        return -np.eye(dim), np.zeros(dim), np.ones((1, dim)), np.array([domain.total]), []
    if isinstance(domain, Halfspace):
        return domain.normal[None], np.array([domain.offset]), np.zeros((0, dim)), np.zeros(0), []
    if isinstance(domain, Ball):
        ball = np.broadcast_to(domain.centre, (dim,)), domain.radius
        return np.zeros((0, dim)), np.zeros(0), np.zeros((0, dim)), np.zeros(0), [ball]
    parts = [equations(member, dim) for member in domain.members]
    a, b, flat, level = (np.concatenate([part[k] for part in parts]) for k in range(4))
    return a, b, flat, level, [ball for part in parts for ball in part[4]]


def by_clarabel(domain, x, unit):
    dim = x.shape[1]
    a, b, flat, level, balls = equations(domain, dim)
    rows = sparse.csc_matrix(np.vstack([flat, a, *[np.vstack([np.zeros(dim), -np.eye(dim)]) for _ in balls]]))
    cones = [clarabel.ZeroConeT(len(level))] * (len(level) > 0) + [clarabel.NonnegativeConeT(len(b))] * (len(b) > 0)
    cones += [clarabel.SecondOrderConeT(dim + 1) for _ in balls]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    cost = sparse.csc_matrix(np.eye(dim))
    for row in x:  # about x, in units of its distance
        right = [level - flat @ row, b - a @ row, *(np.append(r, row - c) for c, r in balls)]
        right = np.concatenate(right) / unit
        yield row + unit * np.array(clarabel.DefaultSolver(cost, np.zeros(dim), rows, right, cones, settings).solve().x)


def by_daqp(domain, x, unit):
    dim = x.shape[1]
    a, b, flat, level, _ = equations(domain, dim)
    rows, sense = np.vstack([flat, a]), np.zeros(len(level) + len(b), dtype=np.int32)
    length = np.linalg.norm(rows, axis=1)
    rows /= length[:, None]
    sense[: len(level)] = 5
    for row in x:
        upper = np.concatenate([level, b]) / length - rows @ row
        lower = np.where(sense == 5, upper, -1e30)
        z, _, flag, _ = daqp.solve(np.eye(dim), np.zeros(dim), rows, upper, lower, sense, primal_tol=1e-13)
        yield row + z if flag > 0 else row


def by_dykstra(domain, x, unit):
    return domain.project(x)


def error(domain, x, p, size, rng):
    around = np.concatenate(
        [q + size * 10.0 ** rng.uniform(-4, 0.5, (8, 1)) * rng.standard_normal((8, p.shape[1])) for q in p]
    )
    out = x - p
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9 * size)
    return np.einsum("id,ijd->ij", out, domain.project(around) - p[:, None]).max() / size


def measure(domain, dim, lanes, distance, how):
    """The error and the microseconds a point."""
    rng = np.random.default_rng(0)
    size, middle = domain.outer_radius(dim), domain.middle(dim)
    x = middle + distance * size * rng.standard_normal((lanes, dim)) / math.sqrt(dim)
    start = time.perf_counter()
    p = np.array(list(how(domain, x.copy(), distance * size)))
    taken = time.perf_counter() - start
    some = slice(0, 12)
    return error(domain, x[some], pulled_in(domain, p[some], middle), size, rng), 1e6 * taken / lanes


def main():
    ways = (by_dykstra, by_clarabel, by_daqp)
    print(f"{'':18}{'d':>5}{'lanes':>6}" + "".join(f"{how.__name__:>30}" for how in ways))
    for dim, lanes in ((4, 1), (4, 500), (50, 4), (576, 4)):
        for name, domain in intersections(dim, np.random.default_rng(1)).items():
            line = f"{name:18}{dim:5}{lanes:6}"
            for how in ways:
                if how is by_daqp and "ball" in name:
                    continue
                found = [measure(domain, dim, lanes, distance, how) for distance in NEAR + FAR]
                errors, times = np.transpose(found)
                near, far = (max(0.0, *part) for part in (errors[: len(NEAR)], errors[len(NEAR) :]))
                line += f"{near:11.0e}{far:8.0e}{np.median(times):8.0f} µs"
            print(line, flush=True)


if __name__ == "__main__":
    main()
