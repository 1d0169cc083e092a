"""`check_problem` over everything registered, and over problems that are broken in one way each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trimtab.domains import Box
from trimtab.problems import CheckError, Moving, Problem, World, check_problem, make, registry

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "walk-v1": [{"dim": 3}],
    "quadratic-v1": [
        {"dim": 1},
        {"drift": "none", "noise": 0.1},
        {"drift": "line"},
        {"drift": "jumps", "every": 5},
        {"rotate": True, "condition": 100.0},
    ],
    "constrained-v1": [{"dim": 1}, {"rotate": True, "condition": 100.0}, {"drift": "jumps", "noise": 0.1}],
    "absolute-v1": [{"rotate": True}, {"scale": 5.0, "noise": 1.0}],
    "logcosh-v1": [{"rotate": True, "width": 0.01}],
    "maximum-v1": [{"rotate": True}, {"dim": 1}],
    "sines-v1": [{"rotate": True, "width": 0.3, "scale": 2.0}],
    "rosenbrock-v1": [{"dim": 6}, {"rotate": True}],
    "peaks-v1": [{"dim": 1, "peaks": 1}, {"every": 1, "correlation": 0.7, "noise": 1.0}],
    "pricing-v1": [{"dim": 1}, {"dim": 8, "season": 12.0}],
    "adversary-v1": [{"order": "after"}, {"dim": 1}],
}


# the offline optimum of the reference takes half a minute per trial
QUICK: dict[str, dict[str, Any]] = {
    "allocation-v1": {"rows": 2, "columns": 2, "horizon": 10, "offline_steps": 200, "offline_draws": 4},
    "allocation-per-agent-v1": {"rows": 2, "columns": 3, "horizon": 10},
}


@pytest.mark.parametrize(
    ("id", "parameters"),
    [(id, parameters) for id in sorted(registry) for parameters in [QUICK.get(id, {}), *VARIANTS.get(id, [])]],
)
def test_registered_problems_satisfy_the_contract(id, parameters):
    try:
        problem = make(id, **parameters)
    except ImportError as error:
        pytest.skip(str(error))
    check_problem(problem)


class Good(Problem):
    """f_t(x) = ‖x − 0.01·t‖² in a box of the plane, with noise; tests break one thing in it."""

    def __init__(self) -> None:
        self.id, self.dim, self.rounds, self.radius = "good", 2, 50, 0.1
        self.where: Any = Box([-5, -5], [5, 5])

    @property
    def domain(self) -> Any:
        return self.where

    def start(self, seed, trials, first=0):
        return 1.0 + np.array([[0.1 * (first + i), 0.0] for i in range(trials)])

    def world(self, seed, trials, first=0):
        return GoodWorld(seed, trials, first)


class GoodWorld(World):
    def cost(self, round, x):
        return np.sum((x - 0.01 * round) ** 2, axis=-1)

    def measure(self, round, x, draw=0):
        return self.cost(round, x) + self.noise(round, draw)[:, None]

    def optimum(self, round):
        return np.zeros(self.trials)

    def optimiser(self, round):
        return np.full((self.trials, 2), 0.01 * round)

    def gradient(self, round, x):
        return 2 * (x - 0.01 * round)


def test_a_good_problem_passes():
    check_problem(Good())


def findings(problem: Problem) -> list[str]:
    with pytest.raises(CheckError) as caught:
        check_problem(problem)
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value).startswith(f"{problem.id} violates the contract:\n- ")
    return caught.value.findings


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("id", "", "id='' must be a non-empty string"),
        ("dim", 0, "dim=0 must be a whole number, at least 1"),
        ("dim", 3, "the domain has dimension 2, but dim=3"),
        ("rounds", 0.5, "rounds=0.5 must be a whole number, at least 1"),
        ("radius", 0.0, "radius=0.0 must be a finite number > 0"),
        ("where", "here", "domain='here' is not a Domain"),
        ("start", lambda seed, trials, first=0: np.ones(2), "start gives the shape (2,), not (trials, d) = (3, 2)"),
        ("start", lambda seed, trials, first=0: np.full((trials, 2), np.nan), "start is not finite"),
        ("start", lambda seed, trials, first=0: np.full((trials, 2), 9.0), "start is outside the domain"),
        (
            "start",
            lambda seed, trials, first=0: np.random.default_rng().random((trials, 2)),
            "differs when evaluated again",
        ),
        (
            "start",
            lambda seed, trials, first=0: np.random.default_rng(seed).random((trials, 2)),
            "start of a trial depends on the other trials",
        ),
    ],
)
def test_a_broken_problem(name, value, sentence):
    problem = Good()
    setattr(problem, name, value)
    assert any(sentence in finding for finding in findings(problem))


def moves_x(self, round, x):
    value = GoodWorld.cost(self, round, x)
    x += 1.0
    return value


def counts(self, round, x):
    self.count = getattr(self, "count", 0.0) + 1e-9
    return GoodWorld.cost(self, round, x) + self.count


def remembers_order(self, round, x):
    """The level of a round is what had been asked before: the same when asked again, another in another order."""
    seen = self.__dict__.setdefault("seen", {})
    seen.setdefault(round, 1e-3 * len(seen))
    return GoodWorld.cost(self, round, x) + seen[round]


def ignores_first(self, round, x):
    return GoodWorld.cost(self, round, x) + np.arange(self.trials)[:, None]


def looks_beside(self, round, x):
    return GoodWorld.cost(self, round, x) + x.mean((1, 2))[:, None] ** 2


def same_array(self, round):
    return self.__dict__.setdefault("zeros", np.zeros(self.trials))


def noise_by_point(self, round, x, draw=0):
    rng = np.random.default_rng([self.seed, round, draw])
    first = rng.standard_normal((self.first + self.trials, x.shape[1]))
    return self.cost(round, x) + first[self.first :]


def noise_from_x(self, round, x, draw=0):
    return self.cost(round, x) + np.sin(1e12 * x[..., 0] + draw + round)


def noise_of(what: Callable[[Any, int, int], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda self, t, x, draw=0: self.cost(t, x) + what(self, t, draw)[:, None]


def fails(self, *_):
    raise KeyError("demand")


@pytest.mark.parametrize(
    ("name", "method", "sentence"),
    [
        (
            "cost",
            lambda self, t, x: np.zeros(self.trials),
            "cost of points (3, 1, 2) has the shape (3,), not (3, 1)",
        ),
        (
            "measure",
            lambda self, t, x, draw=0: x,
            "measure of points (3, 1, 2) has the shape (3, 1, 2), not (3, 1)",
        ),
        ("gradient", lambda self, t, x: x[0], "gradient of points (3, 1, 2) has the shape (1, 2), not (3, 1, 2)"),
        ("optimum", lambda self, t: 0.0, "optimum has the shape (), not (trials,) = (3,)"),
        ("optimiser", lambda self, t: np.zeros(2), "optimiser has the shape (2,), not (trials, d) = (3, 2)"),
        ("cost", moves_x, "cost changed the points it was given"),
        ("cost", lambda self, t, x: np.full(x.shape[:2], np.inf), "cost is not finite at the start"),
        ("measure", lambda self, t, x, draw=0: np.full(x.shape[:2], np.nan), "measure is not finite at the start"),
        ("cost", counts, "cost differs when evaluated again"),
        ("cost", remembers_order, "cost differs when rounds are evaluated in another order"),
        ("cost", ignores_first, "cost differs when the trial is run alone"),
        ("optimum", same_array, "writing to the result of optimum changes later results"),
        ("cost", looks_beside, "the cost of a point depends on the other points"),
        ("optimum", lambda self, t: np.full(self.trials, 0.5), "somewhere, below the optimum 0.5"),
        (
            "optimum",
            lambda self, t: np.full(self.trials, -1.0),
            "the cost at the optimiser is 0, not the optimum -1",
        ),
        ("optimiser", lambda self, t: np.full((self.trials, 2), 6.0), "the optimiser is outside the domain"),
        ("gradient", lambda self, t, x: (x - 0.01 * t) * [2, -2], "a random direction the gradient is"),
        ("gradient", lambda self, t, x: 2 * x, "round 1: along a random direction the gradient is"),
        ("measure", noise_by_point, "the noise of a point depends on the other points"),
        ("measure", noise_from_x, "the noise jumps between neighbouring points"),
        ("measure", noise_of(lambda self, t, draw: self.noise(t, 0)), "the noise of draw=1 equals that of draw=0"),
        ("measure", noise_of(lambda self, t, draw: self.noise(0, draw)), "the noise is the same in two rounds"),
        (
            "measure",
            noise_of(lambda self, t, draw: np.full(self.trials, np.sin(9.0 * t + draw))),
            "the noise is the same in two trials",
        ),
        ("play", fails, "the check of play raised KeyError: 'demand'"),
        ("regret", lambda self, t, x: np.zeros(3), "after play, regret has the shape (3,), not (3, 12)"),
        ("regret", lambda self, t, x: np.full(x.shape[:2], -1.0), "after play, the cost is below the optimum by 1"),
        ("cost", fails, "the check of shapes raised KeyError: 'demand'"),
    ],
)
def test_a_broken_world(name, method, sentence):
    broken = type("BrokenWorld", (GoodWorld,), {name: method})
    problem = Good()
    problem.world = lambda seed, trials, first=0: broken(seed, trials, first)  # type: ignore[method-assign]
    assert any(sentence in finding for finding in findings(problem)), findings(problem)


def test_a_suboptimal_optimiser_with_an_unknown_optimum():
    broken = {
        "optimum": lambda self, t: np.full(self.trials, np.nan),
        "optimiser": lambda self, t: np.full((self.trials, 2), 2.0),
    }
    problem = Good()
    problem.world = lambda seed, trials, first=0: type("W", (GoodWorld,), broken)(seed, trials, first)  # type: ignore[method-assign]
    assert any("at the optimiser" in finding for finding in findings(problem))


def test_an_unknown_optimum_is_allowed():
    unknown = {"optimum": World.optimum, "optimiser": World.optimiser, "gradient": World.gradient}
    problem = Good()
    problem.world = lambda seed, trials, first=0: type("W", (GoodWorld,), unknown)(seed, trials, first)  # type: ignore[method-assign]
    check_problem(problem)


def test_all_findings_are_reported_at_once():
    broken = {"gradient": lambda self, t, x: x, "optimum": lambda self, t: np.full(self.trials, 0.5)}
    problem = Good()
    problem.world = lambda seed, trials, first=0: type("W", (GoodWorld,), broken)(seed, trials, first)  # type: ignore[method-assign]
    assert len(findings(problem)) >= 2


def test_a_custom_landscape():
    class Fourth(Moving):
        id = "fourth"

        def height(self, z):
            return np.sum(z**4, axis=-1)

        def slope(self, z):
            return 4 * z**3

    check_problem(Fourth(dim=3, noise=0.1, rotate=True))
