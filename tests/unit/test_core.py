"""The pure core, and what is seldom asked of its parts: by hand, and against what it says it is."""

import gc
import json
import math
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import trimtab as tt
from trimtab import core, storage
from trimtab.directions import Stream
from trimtab.recipes.method import name_of
from trimtab.recipes.reszo import _shortest, reszo
from trimtab.state import take
from trimtab.study.core_calls import probing_cost
from trimtab.xp import Lanes, Single, power

RESIDUAL = tt.residual(radius=0.1, step=0.01)


def test_the_estimate_is_that_of_the_formula():
    """ĝ_t = (y_t − y_{t−1})·u_t/δ; NaN while there is no y_{t−1}."""
    setup = tt.Setup(RESIDUAL, (3,))
    state = tt.init(setup, np.zeros(3), seed=4)
    assert np.isnan(core.estimate(setup, state, (2.0,))).all()
    state = tt.tell(setup, state, 2.0)
    u = Stream(tt.Gaussian(), (3,), seed=4)(1)
    expected = (3.5 - 2.0) * u / 0.1
    np.testing.assert_allclose(core.estimate(setup, state, (3.5,)), expected, rtol=1e-12)
    moved = tt.tell(setup, state, 3.5)
    np.testing.assert_allclose(moved.centre, state.centre - 0.01 * expected, rtol=1e-12)


def test_some_lanes_of_a_state_go_on_as_they_would_have():
    method = tt.residual(radius=0.1, step=0.01)
    setup = tt.Setup(method, (4, 2))
    state = tt.init(setup, np.arange(8.0).reshape(4, 2), seed=1)
    state = tt.tell(setup, state, np.arange(4.0))
    some = take(state, np.array([2, 0, 2]))
    np.testing.assert_array_equal(some.centre, state.centre[[2, 0, 2]])
    np.testing.assert_array_equal(some.values[0], [2.0, 0.0, 2.0])
    assert some.round == state.round
    with pytest.raises(ValueError, match="read-only"):
        some.centre[0, 0] = 1.0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: tt.init(tt.Setup(RESIDUAL, (3,)), [1.0, 2.0]),
            ValueError,
            r"x0 has shape \(2,\), .* has shape \(3,\)",
        ),
        (lambda: tt.Setup(RESIDUAL, ()), ValueError, r"shape=\(\) is neither"),
        (lambda: tt.Setup(RESIDUAL, (2, 0)), ValueError, r"shape=\(2, 0\) is neither"),
        (
            lambda: tt.init(tt.Setup(RESIDUAL, (3, 2)), np.zeros((3, 2)), copies=2),
            ValueError,
            "copies=2 does not divide the 3 lanes",
        ),
        (
            lambda: tt.Setup(RESIDUAL, (2,), domain=tt.Ball(1.0), bounds=((0, 1), (0, 1))),
            ValueError,
            "give either bounds or a domain",
        ),
        (
            lambda: tt.Setup(tt.residual(radius=0.1, step=[0.1, 0.2]), (3, 2)),
            ValueError,
            "2 steps do not fit 3 lanes",
        ),
        (
            lambda: tt.Method(estimator=tt.Residual(), radius=0.1, step=tt.Adaptive()),
            ValueError,
            r"needs an estimator that tracks its own scale: use Plane\(\)",
        ),
    ],
)
def test_what_cannot_be_is_told_at_once(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_method_knows_its_name():
    assert name_of(tt.residual(radius=0.3, step=tt.Normalised(1.0))) == "residual"
    assert name_of(tt.methods["primal-dual"](radius=0.1, step=0.1, limits=2)) == "primal-dual"
    assert (
        name_of(tt.Method(estimator=tt.Covariance(7), radius=0.1, step=0.1)) is None
    )  # no method is registered with it


def test_a_pair_draws_what_its_law_draws():
    drawn, expected = np.empty((5, 3)), np.empty((5, 3))
    tt.Paired(tt.Sphere()).fill(np.random.default_rng(1), drawn)
    tt.Sphere().fill(np.random.default_rng(1), expected)
    np.testing.assert_array_equal(drawn, expected)


def test_with_fewer_values_than_coordinates_the_shortest_slope_is_taken():
    """One step of (1, 2, 2) with a rise of 18: all of g along the step, 18/9·(1, 2, 2)."""
    np.testing.assert_allclose(_shortest(np.array([[1.0, 2.0, 2.0]]), np.array([18.0])), [2.0, 4.0, 4.0], rtol=1e-9)
    tuner = tt.Tuner(np.zeros(6), reszo(radius=0.1, step=0.01, m=3), seed=0)
    for _ in range(200):
        tuner.tell(trial := tuner.ask(), float(((trial.x - 1) ** 2).sum()))
    assert ((tuner.centre - 1) ** 2).sum() < 1.0  # of 6 at the start


def test_a_single_system_and_lanes_merge_alike():
    assert Single.merge(True, (1.0, 2.0), (3.0, 4.0)) == Lanes.merge(True, (1.0, 2.0), (3.0, 4.0)) == (1.0, 2.0)
    assert Lanes.merge(False, (1.0, 2.0), (3.0, 4.0)) == (3.0, 4.0)
    old, new = (np.zeros(2), np.zeros((2, 3))), (np.ones(2), np.ones((2, 3)))
    one, many = Lanes.merge(np.array([True, False]), old, new)
    np.testing.assert_array_equal(one, [0, 1])
    np.testing.assert_array_equal(many, [[0, 0, 0], [1, 1, 1]])
    assert Single.failed((1.0,)) is False
    np.testing.assert_array_equal(Lanes.failed((np.array([1.0, math.nan]),)), [False, True])


def test_the_price_of_a_probe_is_half_its_curvature_and_what_the_edge_took():
    """½·L·l² + ⟨g, cut⟩; nothing of it is known without a plane, or while L is not certain."""
    tuner = tt.Tuner(np.array([0.95, 0.1]), tt.auto(radius=0.1), domain=tt.Box(0.0, 1.0), seed=0)
    tuner.tell(tuner.ask(), 1.0)  # the first looks at the centre itself
    setup, state = tuner.setup, tuner.state
    fit = state.slope
    assert probing_cost(setup, state.remembering(fit._replace(certainty=0.0)), 1) is None
    known = fit._replace(certainty=0.5, bent=1.5, fade=0.5, slope=np.array([2.0, 4.0]))
    state = state.remembering(known)
    trial = core.ask(setup, state, 1)
    u = setup.frame.direction(state.key, 1)
    cut = trial.x - trial.look.centre - trial.look.width * 0.1 * u
    assert np.any(cut != 0)
    square = 2 * (0.1 * trial.look.width) ** 2
    assert probing_cost(setup, state, 1) == pytest.approx(0.5 * 3.0 * square + 0.5 * (cut @ [2.0, 4.0]))
    model = setup.rule.model(state)
    np.testing.assert_array_equal(model.scale * model.slope, 0.5 * known.slope)
    assert (model.bent, model.width) == (known.bent, state.pace.width)
    tuner = tt.Tuner(np.zeros(2), RESIDUAL)
    assert tuner.setup.rule.model(tuner.state) is None
    assert probing_cost(tuner.setup, tuner.state, 0) is None


def test_no_point_is_deeper_than_a_member():
    both = tt.Intersection(tt.Ball(1.0), tt.Box(-2.0, 2.0))
    assert both._deep(2, 0.5, np.zeros(2)) is not None
    assert both._deep(2, 1.5, np.zeros(2)) is None


def test_a_solver_that_fails_is_told(monkeypatch):
    import scipy.optimize

    class Answer:
        status, message, x = 4, "numerical difficulties", None

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: Answer)
    with pytest.raises(ValueError, match="polytope failed: numerical difficulties; check the scale"):
        tt.Polytope([[1.0], [-1.0]], [1.0, 1.0])


def test_a_saved_core_is_the_same_core(tmp_path):
    setup = tt.Setup(RESIDUAL, (2,))
    state = tt.tell(setup, tt.init(setup, np.zeros(2), seed=3), 1.5)
    text = storage.to_json(setup, state)
    storage.save(tmp_path / "tuner.json", setup, state)
    storage.save(tmp_path / "tuner.npz", setup, state)
    for found in (storage.from_json(text), storage.load(tmp_path / "tuner.json"), storage.load(tmp_path / "tuner.npz")):
        assert (found[0].method, found[0].shape, found[1].key.seed) == (RESIDUAL, (2,), 3)
        np.testing.assert_array_equal(tt.ask(*found).x, tt.ask(setup, state).x)
    with pytest.raises(TypeError, match="method='residual' is not a Method"):
        storage.from_json(text, method="residual")


def test_a_file_that_was_changed_with_care_is_found_out():
    """Its checksum fits, but the centre is where no centre can be; or an array beside it is another."""
    setup = tt.Setup(RESIDUAL, (2,), domain=tt.Ball(1.0))
    document = json.loads(storage.to_json(setup, tt.init(setup, np.zeros(2))))
    document["state"]["centre"] = [3.0, 0.0]
    with pytest.raises(ValueError, match="the saved centre is outside the domain"):
        storage.from_json(json.dumps(storage.sealed(document)))
    with pytest.raises(ValueError, match="the checksum does not match: the file was changed, or cut"):
        storage._beside({"array": "centre", "digest": "of another"}, {"centre": np.ones(2)})


def test_what_was_built_for_a_setup_goes_with_it():
    setup = tt.Setup(RESIDUAL, (2,))
    tt.tell(setup, tt.init(setup, [0.0, 0.0]), 1.0)
    gone = weakref.ref(setup)
    del setup
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.4, 1.0, 1.7])
def test_a_power_is_the_same_for_one_number_and_for_many(exponent):
    """To the last bit, on every processor: NumPy's own powers of arrays differ from those of a float on some."""
    numbers = np.exp(np.random.default_rng(1).normal(scale=5.0, size=1000))
    many, one = power(Lanes.sqrt, exponent)(numbers), power(Single.sqrt, exponent)
    assert np.array_equal(np.broadcast_to(many, 1000), [one(x) for x in numbers.tolist()])
    assert many == pytest.approx(numbers ** (round(exponent * 64) / 64))


def test_threads_share_a_kernel():
    """Systems of one configuration, each with a seed of its own, told by several threads: as if each were alone."""
    setup = tt.Setup(tt.auto(radius=0.05), (3,), domain=tt.Box(0.0, 1.0))

    def run(seed, setup=setup):
        state = tt.init(setup, np.full(3, 0.3), seed=seed)
        for _ in range(60):
            state = tt.tell(setup, state, float(np.sum((tt.ask(setup, state).x - 0.6) ** 2)))
        return state.centre

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, range(40)))
    for seed in range(0, 40, 7):
        alone = tt.Setup(tt.auto(radius=0.05), (3,), domain=tt.Box(0.0, 1.0))
        np.testing.assert_array_equal(found[seed], run(seed, alone))
