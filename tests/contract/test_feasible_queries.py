"""No query leaves the domain, whatever values are told: a million hostile ones, 100 000 for every kind that is cheap.

The queries of every kind are shared between residual feedback and `auto`, the laws of directions and the margins, in
lanes: half of the ways for one kind, the others for the next. Polytopes and intersections cost a solver's work per
projection and get fewer. With TRIMTAB_LONG=1 (`make long`) every kind gets a million, shared between all ways, which
takes some minutes. The belief, which costs more, gets a few thousand queries for every kind; 20,000 to 100,000 there.
"""

import dataclasses
import itertools
import math
import os

import numpy as np
import pytest

import trimtab as tt

LANES, FEW = 500, 60
LONG = bool(os.environ.get("TRIMTAB_LONG"))
TRIANGLE = tt.Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])
SKEW = tt.Polytope([[1, 2, 0.5], [-1, 0.3, 0], [0.1, -1, 0.2], [0, 0.2, -1], [0.3, -0.1, 1]], [1, 0.5, 0.4, 0.7, 2])

CHEAP = {
    "box": (tt.Box([-1, 0, 1e-3], [1, 1e3, 2e-3]), 3),
    "cube": (tt.Box(0, 1), 5),
    "open box": (tt.Box([0, -math.inf, -2], [math.inf, 1, math.inf]), 3),
    "distant box": (tt.Box(1e9, 1e9 + 1), 2),
    "ball": (tt.Ball(2.0, [1, -3, 0.5]), 3),
    "distant ball": (tt.Ball(1.0, 1e6), 4),
    "simplex": (tt.Simplex(), 4),
    "simplex with a floor": (tt.Simplex(5.0, [0.5, 0, 1, -1]), 4),
    "halfspace": (tt.Halfspace([3, -4, 0.1], 2.0), 3),
    "halfspace through 0": (tt.Halfspace([1, 1], 0.0), 2),
    "product": (tt.Product((tt.Simplex(), 3), (tt.Box(0, 1), 1), (tt.Ball(1.0), 2)), 6),
    "open product": (tt.Product((tt.Halfspace([1, 2], 1.0), 2), (tt.Everywhere(), 1), (tt.Simplex(2.0), 3)), 6),
}
FEWER = {  # kind, dimension, rounds of FEW queries for each way
    "triangle": (TRIANGLE, 2, 10),
    "skew polytope": (SKEW, 3, 10),
    "ball and halfspace": (tt.Intersection(tt.Ball(1.0), tt.Halfspace([1, 0, 0], 0.2)), 3, 10),
    "box and halfspaces": (
        *(tt.Intersection(tt.Box(0, 1), tt.Halfspace([1, 1, 1], 1.5), tt.Halfspace([-1, 2, 0], 1.0)), 3, 10),
    ),
    "capped simplex": (tt.Intersection(tt.Box(0, 0.5), tt.Simplex()), 4, 10),
    "product and halfspace": (
        *(tt.Intersection(tt.Product((tt.Simplex(), 3), (tt.Box(0, 1), 1)), tt.Halfspace([1, 0, 0, 1], 1.2)), 4, 6),
    ),
    "open intersection": (tt.Intersection(tt.Box(0, math.inf), tt.Halfspace([1, 2], 1.0)), 2, 20),
}
LAWS = (tt.Rademacher(), tt.Sphere(), tt.Paired(), tt.Orthogonal())
WAYS = [
    *itertools.product(("residual", "auto"), LAWS, ("erode", "scale")),
    *itertools.product(("auto",), (*LAWS, tt.Gaussian()), ("project",)),
]


BELIEF = ("belief", tt.belief(radius=1.0).directions, "project")  # with directions of its own; d² work: fewer queries


def method(name, law, margin, radius):
    if name == "belief":
        return tt.belief(radius=radius)
    if name == "residual":
        return tt.residual(radius=radius, step=1e-3, directions=law, margin=margin)
    return dataclasses.replace(tt.auto(radius=radius), directions=law, margin=margin)


def ways_for(domain, dim, kinds, kind):
    """Combinations that the domain allows: all of them, or a rotating part of the laws for each method and margin."""
    turn, share = list(kinds).index(kind), 2 if kinds is CHEAP else 4
    ways = WAYS if LONG else [way for k, way in enumerate(WAYS) if (k + k // 2 + k // 8 + turn) % share == 0]
    return [way for way in ways if way[2] != "scale" or math.isfinite(domain.outer_radius(dim))]


class Hostile:
    """Values for all lanes: each lane has one of ten characters."""

    def __init__(self, dim, seed, lanes):
        self.rng, self.lanes = np.random.default_rng(seed), lanes
        self.character = np.arange(lanes) % 10
        self.slope = self.rng.standard_normal((lanes, dim))

    def __call__(self, x, round):
        rng, lanes, noise = self.rng, self.lanes, self.rng.standard_normal(self.lanes)
        push = np.einsum("ij,ij->i", self.slope, x)
        values = [
            1e300 * np.sign(noise),  # huge
            1e-300 * noise,  # tiny
            np.full(lanes, 1e150 * (-1) ** round),  # alternating
            1e9 * push,  # straight to the edge
            push,  # softly to the edge
            np.full(lanes, 7.0),  # constant
            np.where(rng.random(lanes) < 0.3, np.nan, 1e9 * push),  # failing now and then
            noise * 10.0 ** rng.uniform(-30, 30, lanes),  # of all sizes
            1e3 * push * (-1) ** (round // 10),  # from edge to edge
            np.where(round % 20 == 10, 1e200, push),  # with outliers
        ]
        return np.choose(self.character, values)


def violations(domain, dim, rounds, way, seed=0, lanes=LANES):
    name, law, margin = way
    inner = domain.inner_radius(dim)
    radius = 0.2 * (inner if math.isfinite(inner) else 0.5) / min(law.reach(dim)[1], math.sqrt(dim))
    start = domain.erode(dim, *domain.reach(dim, radius, radius)).project(np.full(dim, 0.1))
    tuner = tt.Tuner(np.tile(start, (lanes, 1)), method(name, law, margin, radius), domain=domain, seed=seed)
    hostile = Hostile(dim, seed, lanes)
    outside = 0
    for round in range(rounds):
        trial = tuner.ask()
        outside += np.count_nonzero(~domain.contains(trial.x, tolerance=0))
        tuner.tell(trial, hostile(trial.x, round))
    moved = np.count_nonzero(np.any(tuner.centre != start, axis=1))
    assert moved >= 0.6 * lanes, "the values did not move the centres: the test shows nothing"
    return outside


@pytest.mark.parametrize("kind", CHEAP)
def test_a_hundred_thousand_queries_stay_inside(kind):
    domain, dim = CHEAP[kind]
    ways = ways_for(domain, dim, CHEAP, kind)
    rounds = -(-(1_000_000 if LONG else 100_000) // (LANES * len(ways)))
    assert sum(violations(domain, dim, rounds, way, seed) for seed, way in enumerate(ways)) == 0


@pytest.mark.parametrize("kind", FEWER)
def test_thousands_of_queries_stay_inside(kind):
    domain, dim, rounds = FEWER[kind]
    ways = ways_for(domain, dim, FEWER, kind)
    if LONG:
        rounds = -(-1_000_000 // (FEW * len(ways)))
    assert sum(violations(domain, dim, rounds, way, seed, FEW) for seed, way in enumerate(ways)) == 0


@pytest.mark.parametrize("kind", [*CHEAP, *FEWER])
def test_queries_of_the_belief_stay_inside(kind):
    domain, dim = CHEAP[kind] if kind in CHEAP else FEWER[kind][:2]
    queries = 2400 if not LONG else 100_000 if kind in CHEAP else 20_000
    assert violations(domain, dim, queries // FEW, BELIEF, lanes=FEW) == 0


RANGES = [(0.0, 1.0), (1.0, 1e4), (-1e-6, 1e-6), (1e9, 1e9 + 1), (-1e12, 1e-3), (0.1, 0.3)]


@pytest.mark.parametrize(("name", "margin"), [("residual", "erode"), ("auto", "erode"), ("auto", "project")])
@pytest.mark.parametrize("law", [tt.Rademacher(), tt.Sphere()], ids=str)
def test_queries_stay_within_bounds_in_the_units_of_the_user(name, margin, law):
    lanes, (low, high) = 200, np.transpose(RANGES)
    tuner = tt.Tuner(np.tile(0.5 * (low + high), (lanes, 1)), method(name, law, margin, 0.05), bounds=RANGES, seed=3)
    hostile = Hostile(len(RANGES), 3, lanes)
    lowest, highest = high.copy(), low.copy()
    for round in range(300):
        trial = tuner.ask()
        assert np.all((trial.x >= low) & (trial.x <= high))
        assert np.all((tuner.centre >= low) & (tuner.centre <= high))
        lowest, highest = np.minimum(lowest, trial.x.min(0)), np.maximum(highest, trial.x.max(0))
        tuner.tell(trial, hostile((trial.x - low) / (high - low), round))
    if (name, margin) != ("auto", "erode"):  # whose centres keep off by the widest probe, which is rarely made
        assert np.all(lowest - low <= 0.01 * (high - low))  # they do go to the edge
        assert np.all(high - highest <= 0.01 * (high - low))


@pytest.mark.parametrize("kind", ["cube", "ball", "simplex", "halfspace", "product"])
def test_without_a_margin_they_leave(kind):
    """The paper's first variant; and the tests above would see it."""
    domain, dim = CHEAP[kind]
    for law in (tt.Rademacher(), tt.Sphere()):
        assert violations(domain, dim, 20, ("residual", law, "none")) > 100


@pytest.mark.parametrize(
    "method",
    [tt.residual(radius=1e-4, step=1.0), tt.auto(radius=1e-4), tt.belief(radius=1e-4)],
    ids=["residual", "auto", "belief"],
)
def test_one_system_alone(method):
    for domain, dim in (*CHEAP.values(), *((domain, dim) for domain, dim, _ in FEWER.values())):
        tuner = tt.Tuner(domain.project(np.full(dim, 0.1)), method, domain=domain, seed=5)
        for value in (0.0, 1e300, -1e300, 1e-300, math.nan, 1e9, None, -1e9, 5.0, 1e150, -1e150, 0.0) * 3:
            trial = tuner.ask()
            assert domain.contains(trial.x, tolerance=0)
            tuner.tell(trial, value)


HUGE = {
    "alternating": lambda k, rng: 1e200 * (-1) ** k,
    "random": lambda _, rng: 1e200 * rng.standard_normal(),
    "of all sizes": lambda _, rng: 10.0 ** rng.uniform(-200, 200) * rng.choice([-1, 1]),
    "now and then": lambda k, rng: 1e200 if k % 7 == 0 else 1e-200,
}


@pytest.mark.parametrize("radius", [1e-8, 1e-14, 1e-28, 1e60])
@pytest.mark.parametrize("values", HUGE)
@pytest.mark.parametrize("dim", [1, 4])
def test_huge_values_in_a_tiny_domain(radius, values, dim):
    """Slopes along probes so short, and their squares, are numbers: alone, in lanes, and where values come late."""
    domain, told = tt.Ball(radius), HUGE[values]
    rng = np.random.default_rng(1)
    alone = tt.Tuner(np.zeros(dim), domain=domain, seed=1)
    lanes = tt.Tuner(np.zeros((3, dim)), domain=domain, seed=1)
    late = tt.Tuner(np.zeros(dim), domain=domain, seed=1, max_pending=3)
    for round in range(200):
        for tuner, trials in ((alone, [alone.ask()]), (lanes, [lanes.ask()]), (late, late.ask(3)[::-1])):
            for trial in trials:
                assert np.all(domain.contains(trial.x, tolerance=0))
                tuner.tell(trial, told(round, rng) if tuner is not lanes else [told(round, rng) for _ in range(3)])
            assert np.all(domain.contains(tuner.centre, tolerance=0))
    assert tt.Tuner.from_json(alone.to_json()).to_json() == alone.to_json()
