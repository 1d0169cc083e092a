"""Projections and shrinkages of random domains, near and far, alone and in lanes."""

import math
import os
from functools import cache

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from trimtab.directions import Rademacher, Sphere
from trimtab.domains import Ball, Box, Everywhere, Halfspace, Intersection, Polytope, Product, Simplex

EVERY = settings(
    derandomize=True, deadline=None, database=None, max_examples=30 if os.environ.get("TRIMTAB_LONG") else 3
)
POINTS = 12


def unit(rng, dim):
    v = rng.standard_normal(dim)
    return v / np.linalg.norm(v)


def box(rng, dim):
    low = rng.normal(size=dim)
    return Box(low, low + 10.0 ** rng.uniform(-2, 2, dim))


def open_box(rng, dim):
    low, high = rng.uniform(-2, 0, dim), rng.uniform(1, 2, dim)
    return Box(np.where(rng.random(dim) < 0.3, -math.inf, low), np.where(rng.random(dim) < 0.5, math.inf, high))


def ball(rng, dim):
    return Ball(10.0 ** rng.uniform(-2, 2), rng.normal(size=dim))


def simplex(rng, dim):
    floor = rng.uniform(-0.3, 1 / dim, dim + 1)
    return Simplex(1 + 9 * rng.random(), floor * rng.choice([0, 1], dim + 1))


def halfspace(rng, dim):
    return Halfspace(rng.normal(size=dim), rng.normal())


def polytope(rng, dim):
    rows = np.vstack([rng.normal(size=(2 * dim, dim)), np.eye(dim), -np.eye(dim)])
    inner = rng.normal(size=dim)
    return Polytope(rows, rows @ inner + np.linalg.norm(rows, axis=1) * rng.uniform(0.2, 1, len(rows)))


def wedge(rng, dim):
    """An unbounded polytope with a vertex."""
    rows = np.array([unit(rng, dim) + 2 * np.eye(dim)[0] for _ in range(dim)])
    return Polytope(rows, rng.normal(size=dim))


def product(rng, dim):
    return Product((simplex(rng, dim), dim + 1), (box(rng, 1), 1))


def curved_product(rng, dim):
    return Product((ball(rng, dim), dim), (simplex(rng, 1), 2), (Everywhere(), 1))


def cut(member, rng, dim, count=1):
    """Halfspaces that leave at least a ball of a tenth of the inner radius about the middle."""
    middle, room = member.middle(dim), 0.1 * member.inner_radius(dim)
    normals = [unit(rng, dim) for _ in range(count)]
    return [Halfspace(n, n @ middle + room * (1 + 3 * rng.random())) for n in normals]


def cut_box(rng, dim):
    member = Box(-1, rng.uniform(0, 1, dim))
    return Intersection(member, *cut(member, rng, dim, 3))


def cut_simplex(rng, dim):
    member = simplex(rng, dim)
    return Intersection(*cut(member, rng, dim + 1), member, Box(-1, 8))


def cut_ball(rng, dim):
    member = ball(rng, dim + 1)
    return Intersection(member, *cut(member, rng, dim + 1))


def cut_product(rng, dim):
    member = Product((simplex(rng, dim), dim + 1), (Box(0, 1), 1))
    return Intersection(*cut(member, rng, dim + 2), member)


def box_and_balls(rng, dim):
    return Intersection(Box(-0.5, 1), Ball(1), Ball(1, 0.5 * unit(rng, dim)))


def open_cut(rng, dim):
    """No member is bounded."""
    return Intersection(Box(0, math.inf), Halfspace(np.ones(dim + 1), 1 + rng.random()))


FAMILIES = {
    f.__name__: f
    for f in (
        *(box, open_box, ball, simplex, halfspace, polytope, wedge, product, curved_product),
        *(cut_box, cut_simplex, cut_ball, cut_product, box_and_balls, open_cut),
    )
}
POLYHEDRAL = [name for name in FAMILIES if "ball" not in name and "curved" not in name]
BOUNDED = [name for name in FAMILIES if "open" not in name and name not in ("halfspace", "wedge", "curved_product")]
SEEDS = st.integers(0, 3)
DISTANCES = st.sampled_from([0.3, 1.0, 3.0, 30.0, 1e3, 1e6, 1e12])


@cache
def build(name, seed):
    """A random domain of 1 to 4 dimensions (or a few more), its dimension, a point inside and its size."""
    rng = np.random.default_rng([seed, sorted(FAMILIES).index(name)])
    domain = FAMILIES[name](rng, 1 + seed % 4)
    dim = domain.dim or 1 + seed % 4 + (name == "open_cut")
    outer = domain.outer_radius(dim)
    middle = domain.middle(dim) if math.isfinite(outer) else domain.project(np.zeros(dim))
    return domain, dim, middle, outer if math.isfinite(outer) else 2.0


def around(name, seed, distance, salt=0):
    """The domain, points at about so many radii from it, the radius, and what rounding does at that distance."""
    domain, dim, middle, size = build(name, seed)
    rng = np.random.default_rng([seed, salt])
    points = middle + distance * size * rng.standard_normal((POINTS, dim))
    return domain, points, size, size + np.abs(middle).max() + 1e-6 * distance * size


EACH = pytest.mark.parametrize("name", FAMILIES)


# Nearest points


@EACH
@EVERY
@given(seed=SEEDS, distance=DISTANCES)
def test_projections_are_inside_and_idempotent(name, seed, distance):
    domain, points, _, scale = around(name, seed, distance)
    near = domain.project(points.copy())
    assert np.all(domain.contains(near, 1e-13))
    assert np.abs(domain.project(near.copy()) - near).max() <= 1e-13 * (scale + np.abs(near).max())


@EACH
@EVERY
@given(seed=SEEDS, distance=DISTANCES)
def test_a_lane_is_the_same_with_others_and_alone(name, seed, distance):
    domain, points, _, _ = around(name, seed, distance)
    near = domain.project(points.copy())
    for k in range(0, POINTS, 5):
        assert np.array_equal(domain.project(points[k].copy()), near[k])


@EACH
@EVERY
@given(seed=SEEDS, distance=DISTANCES, apart=st.sampled_from([1e-3, 0.1, 1.0]))
def test_projections_do_not_expand(name, seed, distance, apart):
    domain, points, size, scale = around(name, seed, distance)
    others = points + apart * size * np.random.default_rng(seed).standard_normal(points.shape)
    before = np.linalg.norm(points - others, axis=1)
    after = np.linalg.norm(domain.project(points.copy()) - domain.project(others.copy()), axis=1)
    assert np.all(after <= before * (1 + 1e-12) + 1e-8 * scale)


@EACH
@EVERY
@given(seed=SEEDS, distance=DISTANCES)
def test_no_point_inside_is_nearer(name, seed, distance):
    """⟨x − Πx, z − Πx⟩ ≤ 0 for every z inside; with x − Πx made a unit vector, in lengths."""
    domain, points, size, scale = around(name, seed, distance)
    near = domain.project(points.copy())
    spread = size * 10.0 ** np.linspace(-4, 0.5, POINTS)[:, None]
    rng = np.random.default_rng(seed)
    inside = np.concatenate(
        [domain.project(near[k] + spread * rng.standard_normal((POINTS, near.shape[1]))) for k in range(0, POINTS, 3)]
    )
    out = points - near
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9 * scale)
    gain = np.einsum("id,ijd->ij", out, inside - near[:, None])
    assert gain.max() <= 1e-9 * scale + 1e-14 * np.abs(near).max()


def rows(domain, dim):
    """A x ≤ b and the number of equations A x = b that stand before them."""
    eye = np.eye(dim)
    if isinstance(domain, Box):
        low, high = np.broadcast_to(domain.low, (dim,)), np.broadcast_to(domain.high, (dim,))
        a, b = np.vstack([eye, -eye]), np.append(high, -low)
        return a[np.isfinite(b)], b[np.isfinite(b)], 0
    if isinstance(domain, Simplex):
        floor = np.broadcast_to(domain.floor, (dim,))
        return np.vstack([np.ones(dim), -eye]), np.append(domain.total, -floor), 1
    if isinstance(domain, Halfspace):
        return domain.normal[None], np.array([domain.offset]), 0
    if isinstance(domain, Polytope):
        return domain.a, domain.b, 0
    if isinstance(domain, Product):
        parts, start = [], 0
        for part, size in domain.parts:
            a, b, equal = rows(part, size)
            parts.append((np.pad(a, ((0, 0), (start, dim - start - size))), b, equal))
            start += size
    else:
        parts = [rows(member, dim) for member in domain.members]
    a = np.vstack([a[:e] for a, _, e in parts] + [a[e:] for a, _, e in parts])
    b = np.concatenate([b[:e] for _, b, e in parts] + [b[e:] for _, b, e in parts])
    return a, b, sum(e for _, _, e in parts)


def nearest_by_quadratic_program(domain, x, unit):
    """By the interior-point solver Clarabel, which shares nothing with ours; about x, in the given unit of length."""
    a, b, equal = rows(domain, x.size)
    cones = [clarabel.ZeroConeT(equal)] * (equal > 0) + [clarabel.NonnegativeConeT(len(b) - equal)]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    cost = sparse.csc_matrix(np.eye(x.size))
    offsets = (b - a @ x) / unit
    answer = clarabel.DefaultSolver(cost, np.zeros(x.size), sparse.csc_matrix(a), offsets, cones, options).solve()
    return x + unit * np.array(answer.x)


@pytest.mark.parametrize("name", POLYHEDRAL)
@EVERY
@given(seed=SEEDS, distance=st.sampled_from([0.3, 1.0, 3.0, 30.0, 1e3]))
def test_against_a_quadratic_program(name, seed, distance):
    domain, points, size, scale = around(name, seed, distance)
    near = domain.project(points.copy())
    for x, p in zip(points[:4], near, strict=False):
        assert p == pytest.approx(nearest_by_quadratic_program(domain, x, distance * size), abs=1e-7 * scale * distance)


def nearest_in_cut_ball(ball, half, x):
    """The nearest point of the ball, of the halfspace, or of the sphere where their surfaces meet."""
    candidates = [ball.project(x), half.project(x)]
    for p in candidates:
        if ball.contains(p) and half.contains(p):
            return p
    normal = half.normal / np.linalg.norm(half.normal)
    depth = half.offset / np.linalg.norm(half.normal) - normal @ ball.centre
    along = x - ball.centre - normal * (normal @ (x - ball.centre))
    along /= np.linalg.norm(along)
    return ball.centre + depth * normal + math.sqrt(ball.radius**2 - depth**2) * along


@EVERY
@given(seed=SEEDS, distance=st.sampled_from([0.3, 1.0, 3.0, 30.0, 1e3, 1e6]))
def test_against_geometry(seed, distance):
    domain, points, _, scale = around("cut_ball", seed, distance)
    near = domain.project(points.copy())
    for x, p in zip(points, near, strict=True):
        assert p == pytest.approx(nearest_in_cut_ball(*domain.members, x), abs=3e-9 * scale)


def test_many_members_against_an_active_set_method():
    rng = np.random.default_rng(0)
    normals = np.array([unit(rng, 10) for _ in range(20)])
    ours = Intersection(Box(-2, 2), *(Halfspace(n, 1.0) for n in normals))
    theirs = Polytope(np.vstack([normals, np.eye(10), -np.eye(10)]), np.append(np.ones(20), np.full(20, 2.0)))
    for distance in (2, 10, 1e3, 1e6):
        x = distance * rng.standard_normal((10, 10))[3:7]
        assert ours.project(x) == pytest.approx(theirs.project(x), abs=1e-8)


# Shrinking


def extremes(domain, x):
    """For every row of x, unit directions towards the edges: (rows, directions, dim)."""
    dim = x.shape[1]
    if isinstance(domain, Product):
        blocks, start = [], 0
        for part, size in domain.parts:
            found = extremes(part, x[:, start : start + size])
            blocks.append(np.pad(found, ((0, 0), (0, 0), (start, dim - start - size))))
            start += size
        found = np.concatenate(blocks, axis=1)
    elif isinstance(domain, Intersection):
        found = np.concatenate([extremes(member, x) for member in domain.members], axis=1)
    elif isinstance(domain, Ball):
        found = (x - domain.centre)[:, None]
    else:
        a = np.eye(dim)[:0] if isinstance(domain, Everywhere) else rows(domain, dim)[0]
        found = np.broadcast_to(a, (len(x), *a.shape))
    found = domain.flatten(found)
    return found / np.maximum(np.linalg.norm(found, axis=-1, keepdims=True), 1e-300)


def probes(law, domain, x):
    """The directions of a law that matter at the rows of x: all signs, or those of the sphere towards the edges."""
    dim = x.shape[1]
    if isinstance(law, Rademacher):
        signs = 1.0 - 2.0 * ((np.arange(2**dim)[:, None] >> np.arange(dim)) & 1)
        return np.broadcast_to(domain.flatten(signs), (len(x), *signs.shape))
    u = np.empty((40, dim))
    law.fill(np.random.default_rng(0), u)
    u = domain.flatten(u)
    return np.concatenate([np.broadcast_to(u, (len(x), *u.shape)), extremes(domain, x)], axis=1)


def radius_that_fits(domain, dim, law, share):
    inner = domain.inner_radius(dim)
    return share * (inner if math.isfinite(inner) else 0.1) / law.reach(dim)[1]


LAWS = st.sampled_from([Rademacher(), Sphere()])
SHARES = st.sampled_from([1e-6, 0.1, 0.5, 0.9])


@EACH
@EVERY
@given(seed=SEEDS, distance=DISTANCES, law=LAWS, share=SHARES)
def test_probes_from_the_eroded_set_stay_inside(name, seed, distance, law, share):
    domain, points, _, _ = around(name, seed, distance)
    dim = points.shape[1]
    radius = radius_that_fits(domain, dim, law, share)
    each, length = domain.reach(dim, *(radius * r for r in law.reach(dim)))
    centres = domain.erode(dim, each, length).project(points)
    queries = centres[:, None] + radius * probes(law, domain, centres)
    assert np.all(domain.contains(queries, 0.0))


@pytest.mark.parametrize("name", ["box", "open_box", "ball", "simplex", "halfspace", "polytope", "wedge", "product"])
@EVERY
@given(seed=SEEDS, distance=st.sampled_from([1.0, 30.0]), law=LAWS, share=st.sampled_from([0.1, 0.9]))
def test_a_probe_from_just_outside_the_eroded_set_leaves(name, seed, distance, law, share):
    if name == "ball":
        law = Sphere()  # for signs the ball that erode gives is the largest one, but not the whole set
    domain, points, size, _ = around(name, seed, distance)
    dim = points.shape[1]
    middle = build(name, seed)[2]
    points = middle + domain.flatten(points - middle)
    radius = radius_that_fits(domain, dim, law, share)
    centres = domain.erode(dim, *domain.reach(dim, *(radius * r for r in law.reach(dim)))).project(points)
    out = points - centres
    length = np.linalg.norm(out, axis=1)
    outside = length > 1e-4 * size
    beyond = centres[outside] + 1e-5 * size * out[outside] / length[outside][:, None]
    queries = beyond[:, None] + radius * probes(law, domain, beyond)
    assert not np.any(np.all(domain.contains(queries, 0.0), axis=1))


@pytest.mark.parametrize("name", BOUNDED)
@EVERY
@given(seed=SEEDS, distance=DISTANCES, law=LAWS, share=SHARES)
def test_probes_from_the_scaled_set_stay_inside(name, seed, distance, law, share):
    """(1 − ξ)X with ξ = δ/r (Lemma H.3)."""
    domain, points, _, _ = around(name, seed, distance)
    dim = points.shape[1]
    radius = radius_that_fits(domain, dim, law, share)
    xi = radius * law.reach(dim)[1] / domain.inner_radius(dim)
    centres = domain.scale(dim, xi).project(points)
    queries = centres[:, None] + radius * probes(law, domain, centres)
    assert np.all(domain.contains(queries, 0.0))


@pytest.mark.parametrize("name", BOUNDED)
@EVERY
@given(seed=SEEDS)
def test_the_inner_ball_is_inside_and_the_outer_one_around(name, seed):
    domain, dim, middle, _ = build(name, seed)
    x = np.tile(middle, (1, 1))
    ball = middle + domain.inner_radius(dim) * (1 - 1e-12) * probes(Sphere(), domain, x)[0]
    assert np.all(domain.contains(ball, 1e-12))
    rng = np.random.default_rng(seed)
    inside = domain.project(middle + 10 * domain.outer_radius(dim) * rng.standard_normal((30, dim)))
    assert np.linalg.norm(inside - middle, axis=1).max() <= domain.outer_radius(dim) * (1 + 1e-9)


@pytest.mark.parametrize("name", BOUNDED)
@EVERY
@given(seed=SEEDS, distance=st.sampled_from([1.0, 30.0]), xi=st.floats(0.01, 0.99))
def test_scaling_is_a_homothety(name, seed, distance, xi):
    """Π onto c + (1 − ξ)(X − c) of c + (1 − ξ)(x − c) is c + (1 − ξ)(Πx − c)."""
    domain, points, _, scale = around(name, seed, distance)
    middle = build(name, seed)[2]
    near = middle + (1 - xi) * (domain.project(points.copy()) - middle)
    smaller = domain.scale(points.shape[1], xi)
    assert smaller.project(middle + (1 - xi) * (points - middle)) == pytest.approx(near, abs=1e-8 * scale)
