"""Domains against values worked out by hand."""

import math
import re
import sys

import numpy as np
import pytest

from trimtab.domains import (
    Ball,
    Box,
    Domain,
    Everywhere,
    Halfspace,
    Intersection,
    Polytope,
    Product,
    Simplex,
    dykstra,
)
from trimtab.util.extras import pip_install

INF = math.inf
TRIANGLE = ([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])
R = 1 / (2 + math.sqrt(2))  # of the circle inscribed in the triangle (0, 0), (1, 0), (0, 1)


def point(*coordinates):
    return np.array(coordinates, dtype=float)


def test_is_exported():
    import trimtab

    for domain in (Ball, Box, Domain, Everywhere, Halfspace, Intersection, Polytope, Product, Simplex):
        assert getattr(trimtab, domain.__name__) is domain


# Nearest points


@pytest.mark.parametrize(
    ("domain", "x", "nearest"),
    [
        (Everywhere(), [3, -1e9], [3, -1e9]),
        (Box(0, 1), [0.25, 1], [0.25, 1]),
        (Box(0, [1, 2]), [-1, 5], [0, 2]),
        (Box([0, -INF], [INF, 1]), [-1, -7], [0, -7]),
        (Box([0, -INF], [INF, 1]), [9, 2], [9, 1]),
        (Ball(5), [30, 40], [3, 4]),
        (Ball(5, [1, 2]), [31, 42], [4, 6]),
        (Ball(5, [1, 2]), [1, 7], [1, 7]),
        (Ball(5, 1), [1, 1, 9], [1, 1, 6]),
        (Simplex(), [0.5, 1.5, -1], [0, 1, 0]),
        (Simplex(), [1, 1, 1, 1], [0.25, 0.25, 0.25, 0.25]),
        (Simplex(1, [0.1, 0.2, 0]), [0.5, 1.5, -1], [0.1, 0.9, 0]),  # x − floor = (0.4, 1.3, −1), θ = 1.3 − 0.7
        (Simplex(1, [0.1, 0.2, 0]), [0.5, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]),  # θ = (1.2 − 0.7)/3
        (Simplex(3, 0.5), [0.5, 9], [0.5, 2.5]),
        (Simplex(1, -1), [1, 0], [1, 0]),
        (Simplex(), [7], [1]),
        (Halfspace([3, 4], 10), [6, 8], [1.2, 1.6]),
        (Halfspace([3, 4], 10), [-6, 7], [-6, 7]),
        (Halfspace([0, -2], -4), [1, 1], [1, 2]),
        (Polytope(*TRIANGLE), [1, 1], [0.5, 0.5]),
        (Polytope(*TRIANGLE), [2, 1], [1, 0]),
        (Polytope(*TRIANGLE), [-3, 0.5], [0, 0.5]),
        (Polytope(*TRIANGLE), [0.2, 0.3], [0.2, 0.3]),
        (Polytope([[1, 0], [-1, 0]], [1, -1]), [7, 3], [1, 3]),  # without an inside: the line x = 1
        (Product((Everywhere(), 1), (Simplex(), 2)), [9, 1, 1], [9, 0.5, 0.5]),
        (Product((Ball(5), 2), (Box(0, 1), 1)), [30, 40, -1], [3, 4, 0]),
        (Intersection(Ball(1), Halfspace([1, 0])), [2, 2], [0, 1]),
        (Intersection(Ball(1), Halfspace([1, 0])), [-3, 4], [-0.6, 0.8]),
        (Intersection(Ball(1), Halfspace([1, 0])), [1, 0.5], [0, 0.5]),
        (Intersection(Ball(1), Halfspace([1, 0])), [-0.5, 0.5], [-0.5, 0.5]),
        (Intersection(Box(0, 0.6), Simplex()), [1, 0, 0], [0.6, 0.2, 0.2]),
        (Intersection(Simplex(), Halfspace([1, 0], 0.25)), [1, 1], [0.25, 0.75]),
        (Intersection(Box(-INF, [1, INF]), Halfspace([0, 1], 2)), [5, 7], [1, 2]),
        (Intersection(Box(0, 1), Halfspace([1, 0], 0)), [1, 0.5], [0, 0.5]),  # without an inside: the edge x = 0
        (Intersection(Ball(2)), [3, 4], [1.2, 1.6]),
    ],
)
def test_project(domain, x, nearest):
    x = np.array(x, dtype=float)
    kept = x.copy()
    assert domain.project(x) == pytest.approx(np.array(nearest), rel=1e-12, abs=1e-12)
    assert np.array_equal(x, kept)
    lanes = domain.project(np.tile(x, (3, 1)))
    assert lanes.shape == (3, x.size)
    assert lanes[1] == pytest.approx(np.array(nearest), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "nearest"),
    [
        ((3.0, 2.9), (1, 0)),
        ((1.0, 1.0), (0.5, 0.5)),
        ((1.0, 1.0 + 1e-7), (0.45, 0.55)),
        ((-1.0, -3.0), (0, 0)),
    ],
)
def test_intersection_from_a_million_radii_away(x, nearest):
    """Dykstra's algorithm alone would need as many cycles, and end at (0.5, 0.5)."""
    corner = Intersection(Box(0, 1), Halfspace([1, 1], 1))
    assert corner.project(1e6 * np.array(x)) == pytest.approx(np.array(nearest), abs=1e-8)


def test_simplex_of_many_coordinates_adds_up():
    w = np.linspace(0.999, 0.9991, 300_000)
    for x in (np.append(-w, 0.0), np.append(-1e9 * w, 0.0), np.full(300_000, 7.0)):
        near = Simplex().project(x)
        assert abs(near.sum() - 1) < 1e-14
        assert near.min() >= 0


def test_intersection_keeps_to_the_plane():
    """Points inside up to rounding are put back, or the sum would drift away over the rounds."""
    near = Intersection(Simplex(), Box(0, 0.9)).project(point(0.25, 0.25, 0.5 + 9e-13))
    assert abs(near.sum() - 1) < 1e-15


def test_intersection_stays_inside_when_cut_short(monkeypatch):
    capped = Intersection(Simplex(), Box(0, 0.4), Halfspace([1, 2, 3], 1.9))
    middle = capped.middle(3)
    monkeypatch.setattr(dykstra, "STEPS", 1)
    monkeypatch.setattr(dykstra, "CYCLES", 3)
    near = capped.project(point(0.5, 0.1, 0.9))
    assert capped.contains(near, 0.0)
    assert np.linalg.norm(near - middle) > 0.01


# Membership


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (Everywhere(), [1e300, -5], [math.nan, 0]),
        (Box(0, [1, 2]), [1, 0], [1.1, 0]),
        (Box(0, [1, 2]), [0, 2], [0, -1e-8]),
        (Box([0, -INF], [INF, 1]), [1e9, -1e9], [-0.1, 0]),
        (Ball(5, [1, 2]), [4, 6], [4, 6.1]),
        (Simplex(2, [0.5, 0]), [0.5, 1.5], [0.4, 1.6]),
        (Simplex(2, [0.5, 0]), [2, 0], [1.5, 0.6]),
        (Halfspace([3, 4], 10), [1.2, 1.6], [1.2, 1.7]),
        (Polytope(*TRIANGLE), [0.5, 0.5], [0.5, 0.6]),
        (Product((Box(0, 1), 1), (Simplex(), 2)), [1, 0, 1], [2, 0, 1]),
        (Product((Box(0, 1), 1), (Simplex(), 2)), [1, 0.5, 0.5], [1, 0.5, 0.6]),
        (Intersection(Ball(1), Halfspace([1, 0])), [0, 1], [0.1, 0]),
        (Intersection(Ball(1), Halfspace([1, 0])), [-1, 0], [-1, 0.1]),
    ],
)
def test_contains(domain, inside, outside):
    assert domain.contains(inside)
    assert not domain.contains(outside)
    assert not domain.contains([math.nan] * len(inside))
    assert list(domain.contains([inside, outside, inside])) == [True, False, True]


def test_the_tolerance_is_relative_to_the_size():
    assert Box(0, 100).contains([100 + 1e-8])
    assert not Box(0, 100).contains([100 + 1e-8], tolerance=0)
    assert not Box(0, 100).contains([100 + 1e-6])
    assert Box(0, 100).contains([100 + 1e-6], tolerance=1e-7)
    assert Ball(1, 99).contains([100 + 1e-8])
    assert not Ball(1, 99).contains([100 + 1e-8], tolerance=0)
    assert Simplex(100).contains([100 + 1e-8, 0])
    assert not Simplex(100).contains([100 + 1e-8, 0], tolerance=0)
    assert Simplex(100).contains([100, -1e-8])
    assert not Simplex(100).contains([100, -1e-8], tolerance=0)
    assert Halfspace([1, -1]).contains([100 + 1e-8, 100])
    assert not Halfspace([1, -1]).contains([100 + 1e-8, 100], tolerance=0)
    assert Polytope([[1, -1]], [0]).contains([100 + 1e-8, 100])
    assert not Polytope([[1, -1]], [0]).contains([100 + 1e-8, 100], tolerance=0)


# Shrinking


def limits(box):
    return [*np.broadcast_to(box.low, (2,)), *np.broadcast_to(box.high, (2,))]


def test_erode_box():
    assert limits(Box(0, [1, 2]).erode(2, 0.1, 0.5)) == pytest.approx([0.1, 0.1, 0.9, 1.9])
    assert limits(Box(0, [1, 2]).erode(2, 0.5, 0.1)) == pytest.approx([0.1, 0.1, 0.9, 1.9])
    assert limits(Box([0, -INF], [INF, 1]).erode(2, 0.1, 0.1)) == pytest.approx([0.1, -INF, INF, 0.9])


def test_scale_box():
    assert limits(Box(0, [1, 2]).scale(2, 0.5)) == pytest.approx([0.25, 0.5, 0.75, 1.5])
    assert limits(Box(0, [1, 2]).scale(2, 0.5, point(0, 2))) == pytest.approx([0, 1, 0.5, 2])
    assert limits(Box([0, -INF], 1).scale(2, 0.5, point(0.5, 0))) == pytest.approx([0.25, -INF, 0.75, 0.5])


def test_shrink_ball():
    ball = Ball(5, [1, 2, 3, 4])
    for smaller, radius in ((ball.erode(4, 1, 10), 3), (ball.erode(4, 1, 0.5), 4.5), (ball.scale(4, 0.2), 4)):
        assert smaller.radius == pytest.approx(radius)
        assert list(smaller.centre) == pytest.approx([1, 2, 3, 4])
    aside = Ball(5).scale(2, 0.2, point(5, 0))
    assert aside.radius == pytest.approx(4)
    assert list(aside.centre) == pytest.approx([1, 0])


def test_shrink_simplex():
    simplex = Simplex(1, [0.1, 0.2, 0])
    assert list(simplex.erode(3, 0.05, 1).floor) == pytest.approx([0.15, 0.25, 0.05])
    assert list(simplex.erode(3, 1, 0.05).floor) == pytest.approx([0.15, 0.25, 0.05])
    # about the middle, floor + 0.7/3
    assert list(simplex.scale(3, 0.3).floor) == pytest.approx([0.17, 0.27, 0.07])
    assert list(simplex.scale(3, 0.5, point(1, 0, 0)).floor) == pytest.approx([0.55, 0.1, 0])
    assert simplex.scale(3, 0.3).total == simplex.erode(3, 0.05, 1).total == 1


def test_shrink_halfspace():
    half = Halfspace([3, 4], 10)
    assert half.erode(2, 0.5, 0.5 * math.sqrt(2)).offset == pytest.approx(10 - 0.5 * 7)  # δ‖a‖₁, Rademacher
    assert half.erode(2, 0.5, 0.5).offset == pytest.approx(10 - 0.5 * 5)  # δ‖a‖₂, Sphere
    assert half.scale(2, 0.5, point(0, 0)).offset == pytest.approx(5)
    assert half.scale(2, 0.5, point(1, 1)).offset == pytest.approx(8.5)


def test_shrink_polytope():
    triangle = Polytope(*TRIANGLE)
    assert triangle.erode(2, 0.1, 0.1 * math.sqrt(2)).b == pytest.approx([0.8, -0.1, -0.1])
    assert triangle.erode(2, 0.1, 0.1).b == pytest.approx([1 - 0.1 * math.sqrt(2), -0.1, -0.1])
    assert triangle.scale(2, 0.5).b == pytest.approx([0.5 + R, -R / 2, -R / 2])
    assert triangle.scale(2, 0.5, point(0, 0)).b == pytest.approx([0.5, 0, 0])


def test_shrink_product():
    product = Product((Simplex(), 4), (Box(0, 1), 2), (Ball(3), 4))
    simplex, box, ball = (part for part, _ in product.erode(10, 0.1, 0.1 * math.sqrt(10)).parts)
    assert simplex.floor == pytest.approx(0.15)  # 2(1 − 1/4)·0.1: in the plane, a probe reaches that far
    assert limits(box) == pytest.approx([0.1, 0.1, 0.9, 0.9])
    assert ball.radius == pytest.approx(3 - 0.1 * 2)
    simplex, box, ball = (part for part, _ in product.scale(10, 0.5).parts)
    assert list(simplex.floor) == pytest.approx([0.125] * 4)
    assert limits(box) == pytest.approx([0.25, 0.25, 0.75, 0.75])
    assert ball.radius == pytest.approx(1.5)


def test_shrink_intersection():
    half = Intersection(Ball(1), Halfspace([1, 0])).erode(2, 0.1, 0.1 * math.sqrt(2))
    assert half.members[0].radius == pytest.approx(1 - 0.1 * math.sqrt(2))
    assert half.members[1].offset == pytest.approx(-0.1)
    half = Intersection(Ball(1), Halfspace([1, 0])).scale(2, 0.5)  # about (−1/2, 0)
    assert half.members[0].radius == pytest.approx(0.5)
    assert list(half.members[0].centre) == pytest.approx([-0.25, 0], abs=1e-5)
    assert half.members[1].offset == pytest.approx(-0.25, abs=1e-5)


def test_a_flat_member_widens_the_probes_of_the_others():
    """(u − ū)_j reaches 2(1 − 1/d)δ; the box and the halfspace have to know, the simplex by itself."""
    capped = Intersection(Box(0, 1), Simplex())
    box, simplex = capped.erode(4, *capped.reach(4, 0.1, 0.2)).members
    assert limits(box) == pytest.approx([0.15, 0.15, 0.85, 0.85])
    assert simplex.floor == pytest.approx(0.15)
    coupled = Intersection(Product((Simplex(), 4), (Box(0, 1), 1)), Halfspace([0, 0, 0, 1, 1], 1))
    product, half = coupled.erode(5, *coupled.reach(5, 0.1, 0.1 * math.sqrt(5))).members
    assert product.parts[0][0].floor == pytest.approx(0.15)
    assert limits(product.parts[1][0]) == pytest.approx([0.1, 0.1, 0.9, 0.9])
    assert half.offset == pytest.approx(1 - 2 * 0.15)
    nested = Intersection(Intersection(Box(0, 1), Simplex()), Halfspace([0, 0, 0, 1], 1))
    inner, half = nested.erode(4, *nested.reach(4, 0.1, 0.2)).members
    assert inner.members[1].floor == pytest.approx(0.15)
    assert half.offset == pytest.approx(0.85)


@pytest.mark.parametrize("shrink", [lambda d: d.erode(2, 0.5, 0.5), lambda d: d.scale(2, 0.5)])
def test_everywhere_never_changes(shrink):
    assert shrink(Everywhere()) == Everywhere()


# Planes


def test_flatten_and_reach():
    assert list(Simplex().flatten(point(1, 2, 6))) == [-2, -1, 3]
    assert Simplex().flatten(np.ones((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]
    # u = (1, −1, −1, −1) has mean −1/2
    assert Simplex().reach(4, 1, 2) == pytest.approx((1.5, 2))
    # u = e_1 has mean 1/4; on the sphere, (3, −1, −1, −1)/√12
    assert Simplex().reach(4, 1, 1) == pytest.approx((math.sqrt(0.75), 1))
    mixed = Product((Simplex(), 2), (Box(0, 1), 2))
    assert list(mixed.flatten(point(1, 2, 3, 4))) == [-0.5, 0.5, 3, 4]
    assert mixed.reach(4, 1, 2) == mixed.spread(4, 1, 2) == (1, 2)
    assert Product((Simplex(), 4), (Box(0, 1), 2)).spread(6, 1, math.sqrt(6)) == pytest.approx((1.5, math.sqrt(6)))
    capped = Intersection(Box(0, 1), Simplex())
    assert list(capped.flatten(point(1, 2, 6))) == [-2, -1, 3]
    assert capped.spread(4, 1, 2) == pytest.approx((1.5, 2))
    for domain in (Everywhere(), Box(0, 1), Ball(1), Halfspace([1, 2]), Polytope(*TRIANGLE)):
        assert domain.flatten(point(1, 5)).tolist() == [1, 5]
        assert domain.reach(2, 0.1, 0.2) == domain.spread(2, 0.1, 0.2) == (0.1, 0.2)


# Sizes


@pytest.mark.parametrize(
    ("domain", "middle", "inner", "outer"),
    [
        (Box(0, [1, 2]), [0.5, 1], 0.5, math.sqrt(5) / 2),
        (Box(0, 1), [0.5, 0.5, 0.5, 0.5], 0.5, 1),
        (Ball(5, 1), [1, 1, 1], 5, 5),
        (Simplex(), [1 / 3, 1 / 3, 1 / 3], 1 / math.sqrt(6), math.sqrt(2 / 3)),
        (Simplex(2, [0.5, 0.3]), [1.1, 0.9], 0.6 * math.sqrt(2), 0.6 * math.sqrt(2)),
        (Simplex(), [1], 0, 0),
        (Polytope(*TRIANGLE), [R, R], R, (1 - R) * math.sqrt(2)),
        (Product((Ball(3, [1, 2]), 2), (Box(0, 8), 1)), [1, 2, 4], 3, 5),
        (Intersection(Ball(1), Halfspace([1, 0])), [-0.5, 0], 0.5, 1.5),
        (Intersection(Box(0, 1), Box([0.5, -3], [3, 3])), [0.75, None], 0.25, None),
        (Intersection(Box(0, 1), Simplex()), [0.5, 0.5], 0.5, math.sqrt(0.5)),
    ],
)
def test_sizes(domain, middle, inner, outer):
    dim = len(middle)
    for mine, theirs in zip(domain.middle(dim), middle, strict=True):
        assert theirs is None or mine == pytest.approx(theirs, abs=1e-5)
    assert domain.inner_radius(dim) == pytest.approx(inner, rel=2e-6, abs=1e-12)
    assert domain.inner_radius(dim) <= inner + 1e-15
    if outer is not None:
        assert domain.outer_radius(dim) == pytest.approx(outer, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize(
    ("domain", "inner"),
    [
        (Everywhere(), INF),
        (Box(-INF, INF), INF),
        (Box(0, [1, INF]), 0.5),
        (Halfspace([1, 0]), INF),
        (Polytope([[1, 0]], [0]), INF),
        (Polytope([[1, 0], [-1, 0]], [1, 1]), 1),
        (Product((Everywhere(), 1), (Box(0, 1), 1)), 0.5),
        (Intersection(Halfspace([1, 0]), Halfspace([0, 1])), INF),
        (Intersection(Polytope([[1, 0], [-1, 0]], [1, 1]), Halfspace([0, 1])), 1),
    ],
)
def test_unbounded(domain, inner):
    assert domain.outer_radius(2) == INF
    assert domain.inner_radius(2) == pytest.approx(inner, rel=2e-6)


@pytest.mark.parametrize(
    ("domain", "dim"),
    [
        (Everywhere(), None),
        (Box(0, 1), None),
        (Box(0, [1, 2]), 2),
        (Ball(1), None),
        (Ball(1, [0, 0, 0]), 3),
        (Simplex(), None),
        (Simplex(1, [0, 0]), 2),
        (Halfspace(3), 1),
        (Polytope(*TRIANGLE), 2),
        (Product((Simplex(), 3), (Everywhere(), 2)), 5),
        (Intersection(Box(0, 1), Halfspace([1, 1], 1)), 2),
        (Intersection(Box(0, 1), Ball(1)), None),
    ],
)
def test_dim(domain, dim):
    assert domain.dim == dim


def test_the_inner_ball_of_an_intersection_is_about_the_largest():
    rng = np.random.default_rng(0)
    for dim, count in ((2, 2), (4, 3), (8, 3), (4, 10)):
        a = rng.standard_normal((count, dim))
        b = np.linalg.norm(a, axis=1) * rng.uniform(0, 0.5, count)
        ours = Intersection(Box(-1, 1), *map(Halfspace, a, b)).inner_radius(dim)
        largest = Polytope(np.vstack([a, np.eye(dim), -np.eye(dim)]), [*b, *np.ones(2 * dim)]).inner_radius(dim)
        assert 0.99 * largest <= ours <= largest


def test_far_from_the_origin_and_at_any_size():
    for shift, size in ((1e6, 1.0), (-3e3, 1e-3), (0, 1e-9), (0, 1e9)):
        triangle = Polytope(TRIANGLE[0], np.array([size + 2 * shift, -shift, -shift]))
        assert triangle.middle(2) == pytest.approx(shift + size * np.array([R, R]), abs=1e-9 * size + 1e-15 * shift)
        assert triangle.inner_radius(2) == pytest.approx(R * size, rel=1e-5)
        far = shift + size * point(2, 1)
        assert triangle.project(far) == pytest.approx(shift + size * point(1, 0), abs=1e-12 * size + 1e-15 * abs(shift))
        corner = Intersection(Box(shift, shift + size), Halfspace([1, 1], size + 2 * shift))
        assert corner.inner_radius(2) == pytest.approx(R * size, rel=1e-5)
        assert corner.project(far) == pytest.approx(shift + size * point(1, 0), abs=1e-11 * size + 1e-14 * abs(shift))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e5, 1e8])
@pytest.mark.parametrize("shift", [0.0, 1e5, 1e7])
def test_probes_fit_into_polytopes_of_any_size_and_place(shift, size):
    """The solver's tolerances are absolute: neither the length of a probe nor the place may have a say in it."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(8, 4)), np.eye(4), -np.eye(4)])
    room = np.linalg.norm(rows, axis=1) * rng.uniform(0.2, 1, len(rows))
    unit = Polytope(rows, room)
    far = Polytope(rows, rows @ np.full(4, shift) + size * room)
    rounding = 1e-13 * shift / size
    inner = unit.inner_radius(4)
    assert far.inner_radius(4) == pytest.approx(size * inner, rel=1e-6 + 10 * rounding)
    for share in (1e-3, 0.5, 0.9):
        reach = share * inner
        eroded, scaled = unit.erode(4, reach, reach), unit.scale(4, share)
        assert far.erode(4, size * reach, size * reach).inner_radius(4) == pytest.approx(
            size * eroded.inner_radius(4), rel=1e-5 + 100 * rounding
        )
        assert far.scale(4, share).inner_radius(4) == pytest.approx(
            size * scaled.inner_radius(4), rel=1e-5 + 100 * rounding
        )
    with pytest.raises(ValueError, match=r"do not fit into Polytope(.|\n)*: multiply the radius by less than 0.5"):
        far.erode(4, 2 * size * inner, 2 * size * inner)


def test_a_polytope_at_the_limit_of_floating_point_has_no_room():
    """About 2·10⁹, rounding takes a tenth of this inner radius of 3·10⁻⁴: too little for the probes, yet not empty."""
    triangle = Polytope(TRIANGLE[0], np.array([1e-3 + 2e9, -1e9, -1e9]))
    with pytest.raises(ValueError, match=r"do not fit into Polytope(.|\n)*: multiply the radius by less than 0.895"):
        triangle.scale(2, 0.99)


# Objects


def test_equal_parameters_make_equal_domains():
    assert Box(0, 1) == Box(0.0, 1.0)
    assert Box(0, 1) != Box(0, 2)
    assert Box(0, 1) != Ball(1)
    assert Product((Box(0, 1), 2)) == Product((Box(0, 1), 2))
    assert Product((Box(0, 1), 2)) != Product((Box(0, 1), 3))
    assert Intersection(Ball(1), Box(0, 1)) == Intersection(Ball(1), Box(0, 1))
    assert Intersection(Ball(1), Box(0, 1)) != Intersection(Ball(2), Box(0, 1))
    assert Polytope(*TRIANGLE) == Polytope(*TRIANGLE)
    assert Polytope(*TRIANGLE) != Polytope(TRIANGLE[0], [1, 0, 1])


def test_domains_are_read_only():
    low = np.zeros(2)
    box = Box(low, 1)
    low[0] = 0.5
    assert list(box.low) == [0, 0]
    for array in (box.low, Ball(1, [0, 0]).centre, Simplex(1, [0, 0]).floor, Halfspace([1, 1]).normal):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    triangle = Polytope(*TRIANGLE)
    for array in (triangle.a, triangle.b):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


# Errors of users: the value, the reason and the remedy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(1, 0), "low=1.0 is not below high=0.0 everywhere: swap or widen the bounds"),
        (lambda: Box(1, 1), "low=1.0 is not below high=1.0"),
        (lambda: Box(math.nan, 1), "low=nan must be a number or a list of numbers other than NaN"),
        (lambda: Box([], 1), r"low=\[\] must be a number or a list"),
        (lambda: Box([[0]], 1), r"low=\[\[0\]\] must be a number or a list"),
        (lambda: Box([0, 0], [1, 1, 1]), r"disagree on the dimension: \[2, 3\]; give all the same"),
        (lambda: Ball(0), "radius=0 must be a finite number > 0"),
        (lambda: Ball(INF), "radius=inf must be a finite number > 0"),
        (lambda: Ball("wide"), "radius='wide' must be a finite number > 0"),
        (lambda: Simplex(None), "total=None must be a finite number > 0"),
        (lambda: Halfspace([1, 0], "low"), "offset='low' must be a finite number"),
        (lambda: Ball(1, INF), "centre=inf must be a number or a list of finite numbers"),
        (lambda: Simplex(0), "total=0 must be a finite number > 0"),
        (lambda: Simplex(1, [0.5, math.nan]), r"floor=\[0.5, nan\] must be"),
        (lambda: Simplex(1, [0.5, 0.5]), r"floor=\[0.5 0.5\] in 2 coordinates leaves nothing of total=1: lower the"),
        (lambda: Simplex(1, 0.4).project(np.zeros(3)), "floor=0.4 in 3 coordinates leaves nothing of total=1: lower"),
        (lambda: Halfspace([0, 0]), r"normal=\[0. 0.\] is zero and defines no halfspace: give the limited direction"),
        (lambda: Halfspace([1, 0], INF), "offset=inf must be a finite number"),
        (
            lambda: Polytope([1, 1], [1]),
            r"a of shape \(2,\) and b of shape \(1,\) do not fit: they must be \(rows, dim\)",
        ),
        (lambda: Polytope([[1, INF]], [1]), "must be finite"),
        (lambda: Polytope([[1, 1], [0, 0]], [1, 1]), "a row of a is zero: it constrains nothing; leave it out"),
        (lambda: Polytope([[1], [-1]], [0, -1]), "the polytope is empty: no x satisfies a x <= b; check the signs"),
        (lambda: Product(), r"needs at least one part: Product\(\(domain, size\), ...\)"),
        (lambda: Product((Ball(1, [0, 0]), 3)), "cannot hold 3 coordinates: give 2"),
        (lambda: Product((Ball(1), 0)), "cannot hold 0 coordinates: give 1 or more"),
        (lambda: Intersection(), r"needs at least one member: Intersection\(domain, ...\)"),
        (
            lambda: Intersection(Ball(1, [0, 0]), Halfspace([1, 1, 1])),
            r"the members disagree on the dimension: \[2, 3\]; all must have the same",
        ),
        (lambda: Intersection(Simplex(), Simplex(1, 0.1)), "2 members are flat, .* describe it in one member"),
        (lambda: Intersection(Simplex(), Product((Simplex(), 2))), "2 members are flat"),
        (
            lambda: Intersection(Ball(1), Halfspace([1, 0], -2)).middle(2),
            "the intersection is empty: no point lies in every member; widen one of them",
        ),
        # no room for the probes
        (lambda: Box(0, [1, 2]).erode(2, 0.5, 1), "do not fit into Box.*: multiply the radius by less than 1"),
        (lambda: Box(0, [1, 2]).erode(2, 2, 4), "by less than 0.25"),
        (lambda: Ball(1).erode(4, 2, 9), "do not fit into Ball.*: multiply the radius by less than 0.25"),
        (lambda: Simplex().erode(4, 0.5, 1), "do not fit into Simplex.*: multiply the radius by less than 0.5"),
        (
            lambda: Polytope(*TRIANGLE).erode(2, 1, 1),
            "do not fit into Polytope(.|\n)*: multiply the radius by less than 0.293",
        ),
        (
            lambda: Product((Box(0, 1), 1), (Ball(9), 2)).erode(3, 1, 1),
            "do not fit into Box.*: multiply .* less than 0.5",
        ),
        (
            lambda: Intersection(Ball(1), Halfspace([1, 0])).erode(2, 0.8, 0.8),
            "do not fit into Intersection.*: multiply the radius by less than 0.625",
        ),
        (
            lambda: Intersection(Ball(1), Box(-9, 9)).erode(2, 4, 4),
            "do not fit into Ball.*: multiply .* less than 0.25",
        ),
        (
            lambda: Box(1e9, 1e9 + 1e-6).erode(1, 1e-9, 1e-9),
            "do not fit into Box.*: multiply the radius by less than 0",
        ),
        (lambda: Ball(1).scale(2, 1.0), "xi=1 leaves nothing of Ball.*: choose a radius below the inner radius"),
        (lambda: Box(0, 1).scale(2, -0.1), "xi=-0.1 leaves nothing of Box"),
        (lambda: Box(1e9, 1e9 + 1e-6).scale(1, 0.1), "do not fit into Box"),
        # no middle
        (lambda: Everywhere().middle(2), "Everywhere.* has no centre, because it is not bounded: use margin='erode'"),
        (lambda: Box(0, [1, INF]).scale(2, 0.1), "Box.* has no centre, because it is not bounded: use margin='erode'"),
        (lambda: Halfspace([1]).scale(1, 0.1), "Halfspace.* has no centre"),
        (lambda: Polytope([[1, 0]], [0]).scale(2, 0.1), "Polytope.* has no centre"),
        (lambda: Product((Everywhere(), 1)).scale(1, 0.1), "Everywhere.* has no centre"),
        (lambda: Intersection(Halfspace([1, 0])).scale(2, 0.1), "Intersection.* has no centre"),
    ],
)
def test_errors_name_the_value_the_reason_and_the_remedy(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Box("wide", 1),
            "low='wide' must consist of numbers: give a number or a list of numbers other than NaN",
        ),
        (lambda: Ball(1, "here"), "centre='here' must consist of numbers: give a number or a list of finite numbers"),
        (lambda: Polytope([[1, "x"]], [1]), "must consist of numbers: give a matrix and a list"),
        (lambda: Product(Simplex(), 3), r"are not pairs of a domain and a size: Product\(\(domain, size\), ...\)"),
        (lambda: Product((Simplex(), 2.5)), "are not pairs of a domain and a size"),
        (lambda: Intersection([Ball(1), Box(0, 1)]), r"is not a domain: Intersection\(domain, ...\)"),
    ],
)
def test_wrong_types(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("missing", ["daqp", "scipy.optimize"])
def test_a_missing_extra_names_the_pip_command(monkeypatch, missing):
    triangle = Polytope(*TRIANGLE)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=re.escape(pip_install("polytope"))):
        Polytope(*TRIANGLE) if missing != "daqp" else triangle.project(point(1, 1))


def test_without_a_solution_of_the_solver_points_stay_inside(monkeypatch):
    import daqp

    triangle = Polytope(*TRIANGLE)
    monkeypatch.setattr(daqp, "solve", lambda *_, **__: (None, 0.0, -1, {}))
    assert triangle.contains(triangle.project(point(1, 1)), 0.0)


def test_unbounded_members_can_have_a_bounded_intersection():
    triangle = Intersection(Box(0, np.inf), Halfspace([1.0, 2.0], 1.0))
    assert triangle.inner_radius(2) == pytest.approx((1 + 0.5 - np.sqrt(1.25)) / 2, rel=1e-5)
    corner = Intersection(Halfspace([1.0, 0.0], 0.0), Halfspace([0.0, 1.0], 0.0))
    assert corner.inner_radius(2) == np.inf


def test_the_sides_bound_the_domain():
    low, high = Product((Box([0, 1], [2, np.inf]), 2), (Ball(3.0), 1), (Box(-1, 1), 2)).sides(5)
    np.testing.assert_array_equal(low, [0, 1, -np.inf, -1, -1])
    np.testing.assert_array_equal(high, [2, np.inf, np.inf, 1, 1])
