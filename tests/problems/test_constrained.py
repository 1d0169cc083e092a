"""The best point on a limit: what must hold there, and what `check_problem` says of one that is not."""

import numpy as np
import pytest

from trimtab.problems import CheckError, Constrained, check_problem, make
from trimtab.problems.constrained import ConstrainedWorld


@pytest.mark.parametrize("rotate", [False, True])
def test_the_optimality_conditions_hold_at_the_best_point(rotate):
    """∇f + λ∇g = 0 and g = 0 (Karush, Kuhn, Tucker), by differences of g, which is linear."""
    problem = make("constrained-v1", dim=3, rotate=rotate)
    world = problem.world(seed=2, trials=4)
    for t in (0, 7, 300):
        best = world.optimiser(t)
        steps = best[:, None] + np.concatenate([np.zeros((1, 3)), np.eye(3)])
        g = world.limits(t, steps)[..., 0]
        assert g[:, 0] == pytest.approx(0.0, abs=1e-12)
        slope = world.gradient(t, best[:, None])[:, 0] + world.price(t)[:, None] * (g[:, 1:] - g[:, :1])
        assert slope == pytest.approx(0.0, abs=1e-12)
        assert np.all(world.price(t) > 0)


def test_the_unconstrained_optimum_exceeds_the_limit():
    world = Constrained(dim=3, drift="none", depth=2.0, sway=0.5, period=8).world(seed=0, trials=2)
    free = np.zeros((2, 1, 3))  # c_0 = 0
    assert [float(world.limits(t, free)[0, 0, 0]) for t in (0, 2, 4, 6)] == pytest.approx([2.0, 3.0, 2.0, 1.0])
    assert np.all(world.regret(0, free) < 0)


def test_other_worlds_have_no_limits():
    assert make("quadratic-v1").world(0, 1).limits(0, np.zeros((1, 1, 10))) is None


class IgnoresTheLimit(ConstrainedWorld):
    def optimiser(self, round):
        return self._path(round)[0].copy()

    def optimum(self, round):
        return self._path(round)[1].copy()


class KeepsTooFarAway(ConstrainedWorld):
    def optimiser(self, round):
        return self._path(round)[0] + 1.3 * (super().optimiser(round) - self._path(round)[0])

    def optimum(self, round):
        return self.cost(round, self.optimiser(round)[:, None])[:, 0]


class ForgetsAnAxis(ConstrainedWorld):
    def limits(self, round, x):
        return super().limits(round, x)[..., 0]


class DependsOnTheOrder(ConstrainedWorld):
    asked = 0

    def limits(self, round, x):
        self.asked += 1
        return super().limits(round, x) + 1e-3 * self.asked


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (IgnoresTheLimit, "the optimiser exceeds a limit"),
        (KeepsTooFarAway, "below the optimum"),
        (ForgetsAnAxis, r"limits of points .* not \(trials, k, m\)"),
        (DependsOnTheOrder, "limits differs when evaluated again"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_errors_are_found(world, words, monkeypatch):
    problem = Constrained(dim=2, radius=0.3)
    check_problem(problem)
    monkeypatch.setattr(Constrained, "world", lambda self, *where: world(self, *where))
    with pytest.raises(CheckError, match=words):
        check_problem(problem)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"depth": 0}, "depth=0"), ({"sway": 1}, "sway=1 must be .* < 1, so that the limit"), ({"period": 0}, "period=0")],
)
def test_invalid_parameters_are_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        make("constrained-v1", **parameters)
