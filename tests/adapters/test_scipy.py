"""SciPy's minimize, and its global optimisers around it, with trimtab as the method."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy.optimize import Bounds, OptimizeWarning, basinhopping, dual_annealing, minimize

import trimtab as tt
from trimtab import checks
from trimtab.adapters.scipy import Ranges, auto

GOAL = np.array([0.7, -2.0])


def bowl(x):
    return float((((x - GOAL) / [1, 5]) ** 2).sum())


class Drifting:
    """Counts its calls, and keeps where they were."""

    def __init__(self):
        self.points = []

    def optimum(self, t):
        return np.array([0.5 + 0.2 * np.cos(t / 64), 2.0 * np.sin(t / 64)])

    def excess(self, t, x):
        return float((((x - self.optimum(t)) / [1, 10]) ** 2).sum())

    def __call__(self, x):
        self.points.append(x)
        return self.excess(len(self.points) - 1, x)


BOX = [(0, 1), (-5, 5)]


def test_one_query_per_round_every_one_feasible_and_far_better_than_standing_still():
    system = Drifting()
    found = minimize(system, [0.9, -4.0], method=auto, bounds=BOX, options={"maxfev": 800})
    assert found.nfev == found.nit == len(system.points) == 800
    assert all(Bounds(*np.transpose(BOX)).residual(x)[0].min() >= 0 for x in system.points)
    assert all(Bounds(*np.transpose(BOX)).residual(x)[1].min() >= 0 for x in system.points)
    assert np.array_equal(system.points[-1], found.x)
    assert found.fun == system.excess(799, found.x)
    played = np.mean([system.excess(t, x) for t, x in enumerate(system.points)][400:])
    assert played < 0.1 * np.mean([system.excess(t, np.array([0.9, -4.0])) for t in range(400, 800)])


@pytest.mark.parametrize("bounds", [BOX, [(0, None), (-5, 5)], None, [(0, 1), (-4.0, -4.0)]])
def test_goes_on_bit_by_bit(bounds, tmp_path):
    def run(rounds, **options):
        system = Drifting()
        options = {"maxfev": rounds + 1, "seed": 3, **options}  # the last one is at the operating point
        return system, minimize(system, [0.9, -4.0], method=auto, bounds=bounds, options=options)

    whole, _ = run(60)
    first, found = run(25)
    found.tuner.save(tmp_path / "tuner.json")
    rest = Drifting()
    rest.points = whole.points[:25].copy()  # the drift goes on
    options = {"maxfev": 36, "tuner": tt.Tuner.load(tmp_path / "tuner.json")}
    minimize(rest, [0.9, -4.0], method=auto, bounds=bounds, options=options)
    assert np.array_equal(first.points[:25], whole.points[:25])
    assert np.array_equal(rest.points[25:60], whole.points[25:60])


@pytest.mark.parametrize("bounds", [BOX, [(0, None), (-5, 5)], None, [(0, 1), (-4.0, -4.0)]])
@pytest.mark.parametrize("x0", [[0.2, 90.0], None])
def test_goes_on_where_the_tuner_is_whatever_x0_is(bounds, x0, tmp_path):
    whole = minimize(bowl, [0.9, -4.0], method=auto, bounds=bounds, options={"maxfev": 61})
    found = minimize(bowl, [0.9, -4.0], method=auto, bounds=bounds, options={"maxfev": 31})
    found.tuner.save(tmp_path / "tuner")
    x0 = found.x if x0 is None else x0
    for tuner in (tt.Tuner.load(tmp_path / "tuner"), found.tuner):
        again = minimize(bowl, x0, method=auto, bounds=bounds, options={"maxfev": 1, "tuner": tuner})
        assert np.array_equal(again.x, found.x)
        rest = minimize(bowl, x0, method=auto, bounds=bounds, options={"maxfev": 31, "tuner": tuner})
        assert np.array_equal(rest.x, whole.x)


@pytest.mark.parametrize(
    "bounds", [[(0, 1), (-5, 6)], [(0, 1), (-5, None)], None, [(0, 1), (-4, -4)], [(0, 1)], [(0, 1)] * 3]
)
def test_other_bounds_than_those_of_the_tuner_are_refused(bounds):
    tuner = minimize(bowl, [0.9, -4.0], method=auto, bounds=BOX, options={"maxfev": 5}).tuner
    x0, before = np.zeros(len(bounds or BOX)), tuner.to_json()
    with pytest.raises(
        ValueError, match=r"bounds=.* differ from those of the tuner, \[\[0.0, 1.0\], \[-5.0, 5.0\]\]: give"
    ):
        minimize(bowl, x0, method=auto, bounds=bounds, options={"tuner": tuner})
    assert tuner.to_json() == before


def test_what_is_held_fixed_elsewhere_are_other_bounds():
    tuner = minimize(bowl, [0.9, -4.0], method=auto, bounds=[(0, 1), (2, 2)], options={"maxfev": 5}).tuner
    for bounds in ([(0, 1), (3, 3)], [(2, 2), (0, 1)]):
        with pytest.raises(ValueError, match="differ from those of the tuner"):
            minimize(bowl, [0.9, -4.0], method=auto, bounds=bounds, options={"tuner": tuner})


def test_the_ranges_are_a_domain():
    checks.check_domain(Ranges([0.0, -9.0, 3.0], [10.0, 9.0, 3.0], [2.0, 5.0, 3.0]))
    checks.check_domain(Ranges([0.0, -9.0, 3.0], [10.0, np.inf, 3.0], [2.0, 5.0, 3.0]))


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        [(0, 1), (-5, 5)],
        ((0, None), (None, None)),
        np.array([[0, 1], [-np.inf, 5]]),
        Bounds([0, -5], [1, 5]),
        Bounds(-5, 5),
        Bounds([-np.inf, -5], np.inf),
        zip([0, -5], [1, 5], strict=True),
    ],
)
def test_all_shapes_of_bounds(bounds):
    found = minimize(bowl, [0.1, 1.0], method=auto, bounds=bounds)
    assert found.success
    assert found.status == 0
    assert found.nfev == 400
    assert found.fun == bowl(found.x) < 1e-3


def test_the_optimum_is_at_the_edge():
    points = []
    found = minimize(lambda x: points.append(x) or bowl(x), [0.1, 1.0], method=auto, bounds=[(0.0, 0.3), (-1.0, None)])
    assert found.x == pytest.approx([0.3, -1.0], abs=0.02)
    assert np.min(points, axis=0)[1] >= -1.0
    assert np.max(points, axis=0)[0] <= 0.3


def test_fixed_coordinates():
    found = minimize(bowl, [0.1, 1.0], method=auto, bounds=[(0, 1), (1.0, 1.0)])
    assert found.x == pytest.approx([0.7, 1.0], abs=0.02)
    assert found.x[1] == 1.0
    found = minimize(bowl, [0.1, 1.0], method=auto, bounds=[(0.1, 0.1), (1.0, 1.0)])
    assert found.nfev == 1
    assert found.fun == bowl(np.array([0.1, 1.0]))


def test_a_start_outside_is_brought_in():
    points = []
    minimize(lambda x: points.append(x) or bowl(x), [9.0, 1.0], method=auto, bounds=BOX, options={"maxiter": 3})
    assert points[0] == pytest.approx([1.0, 1.0], abs=0.1)
    assert len(points) == 3


def test_args_and_a_scalar():
    found = minimize(lambda x, a, b: (x - a) ** 2 + b, 0.0, args=(0.3, 1.0), method=auto)
    assert found.x == pytest.approx([0.3], abs=0.02)
    assert found.fun == pytest.approx(1.0, abs=1e-3)
    assert minimize(lambda x, a: (x - a) ** 2, 0.0, args=0.3, method=auto).x == pytest.approx([0.3], abs=0.02)


def test_both_callbacks():
    old, new = [], []
    minimize(bowl, [0.1, 1.0], method=auto, callback=lambda xk: old.append(xk), options={"maxfev": 20})
    minimize(
        bowl,
        [0.1, 1.0],
        method=auto,
        callback=lambda intermediate_result: new.append(intermediate_result),
        options={"maxfev": 20},
    )
    assert len(old) == len(new) == 19
    assert np.array_equal(old, [result.x for result in new])
    assert all(np.isfinite(result.fun) for result in new)


def test_stop_iteration_stops():
    calls = []

    def stop(intermediate_result):
        if intermediate_result.nit == 7:
            raise StopIteration

    found = minimize(lambda x: calls.append(x) or bowl(x), [0.1, 1.0], method=auto, callback=stop)
    assert len(calls) == found.nfev == 7
    assert not found.success
    assert found.status == 99
    assert found.fun == bowl(calls[-1])


@pytest.mark.parametrize("failure", [np.nan, np.inf])
def test_a_failed_measurement_moves_nothing(failure):
    """Most probes fail if the centre itself does, so this checks a median over five seeds."""

    def found(seed):
        part = partial(minimize, method=auto, bounds=BOX, options={"seed": seed})
        return part(lambda x: failure if x[0] > 0.5 else bowl(x), [0.1, 1.0])

    results = [found(seed) for seed in range(5)]
    assert all(result.tuner.skipped > 0 for result in results)
    assert np.median([result.x[1] for result in results]) == pytest.approx(-2.0, abs=0.15)


def test_radius_and_seed():
    def first(**options):
        points = []
        minimize(lambda x: points.append(x) or bowl(x), [0.5, 0.0], method=auto, bounds=BOX, options=options)
        return np.array(points[:6])

    assert np.array_equal(first(), first(seed=0))
    assert not np.array_equal(first(seed=0), first(seed=1))
    assert np.abs(first(radius=0.01)[:3] - [0.5, 0.0]).max() < np.abs(first(radius=0.1)[:3] - [0.5, 0.0]).max()


def test_disp(capsys):
    minimize(bowl, [0.1, 1.0], method=auto, options={"maxfev": 5, "disp": True})
    assert "5 rounds were run" in capsys.readouterr().out


def test_basinhopping_accepts_it():
    def wells(x):
        return float(np.cos(14.5 * x[0] - 0.3) + (x[0] + 0.2) * x[0])  # the least is at −0.195

    kwargs = {"method": auto, "bounds": [(-2, 2)], "options": {"maxfev": 60, "radius": 0.02}}
    found = basinhopping(wells, [1.0], minimizer_kwargs=kwargs, niter=40, rng=1)
    assert found.x == pytest.approx([-0.195], abs=0.02)
    assert found.lowest_optimization_result.success


def test_dual_annealing_accepts_it():
    kwargs = {"method": auto, "bounds": [(-4, 4)] * 2, "options": {"maxfev": 80}}
    found = dual_annealing(
        lambda x: bowl(x) + np.sin(5 * x).sum(), [(-4, 4)] * 2, minimizer_kwargs=kwargs, maxiter=60, rng=1
    )
    plain = minimize(lambda x: bowl(x) + np.sin(5 * x).sum(), found.x)
    assert found.fun == pytest.approx(plain.fun, abs=0.05)


def test_what_it_has_no_use_for_is_said():
    with pytest.warns(RuntimeWarning, match="does not support jac"):
        minimize(bowl, [0.1, 1.0], jac=lambda x: 2 * (x - GOAL), method=auto, options={"maxfev": 3})
    with pytest.warns(OptimizeWarning, match="does not support tol=1e-06"):
        minimize(bowl, [0.1, 1.0], method=auto, tol=1e-6, options={"maxfev": 3})
    with pytest.raises(ValueError, match="constraints are not supported"):
        minimize(bowl, [0.1, 1.0], method=auto, constraints={"type": "ineq", "fun": lambda x: x[0]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": [(0, 1)]}, "bounds for 1 coordinates, but x0 has 2"),
        ({"bounds": [(0, 1), (3, 2)]}, r"bounds\[1\]=\(3.0, 2.0\)"),
        ({"options": {"maxfev": 0}}, "maxfev=0"),
        ({"options": {"tuner": tt.Tuner([0.5, 0.5], bounds=[(0, 1)] * 2)}}, "does not come from this method: give the"),
        ({"options": {"tuner": "tuner.json"}}, "tuner='tuner.json' does not come from"),
        ({"options": {"radius": -1}}, "radius=-1"),
        ({"bounds": (0, 1)}, r"bounds=\(0, 1\) is not one \(low, high\) for each of 2 coordinates"),
        ({"bounds": 5}, "bounds=5 is not"),
        ({"bounds": [(0, "a"), (0, 1)]}, "'a'.* is not one"),
        ({"bounds": [(0, 1, 2), (0, 1, 2)]}, "is not one"),
        ({"bounds": Bounds([0, 0, 0], [1, 1, 1])}, "is not one"),
        ({"bounds": [(0, 1), (np.inf, np.inf)]}, r"bounds\[1\]=\(inf, inf\)"),
        ({"bounds": [(-np.inf, -np.inf), (0, 1)]}, r"bounds\[0\]=\(-inf, -inf\)"),
        ({"x0": [0.1, np.nan]}, r"x0\[1\]=nan is not a number"),
        ({"x0": [0.1, np.inf]}, r"x0\[1\]=inf is not a number"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        minimize(bowl, **{"x0": [0.1, 1.0], "method": auto, **change})


@pytest.mark.parametrize("constraints", [None, (), [], {}])
def test_no_constraints_are_none(constraints):
    assert minimize(bowl, [0.1, 1.0], method=auto, constraints=constraints, options={"maxfev": 3}).success


def test_the_pip_command():
    code = "import sys; sys.modules['scipy'] = None; import trimtab.adapters.scipy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: trimtab.adapters.scipy needs SciPy: pip install" in done.stderr
    assert "[scipy]" in done.stderr
