"""Limits: how they are declared, told and kept, and how the belief keeps them."""

import contextlib
import math
import warnings

import numpy as np
import pytest

import trimtab as tt
from trimtab import core
from trimtab.limit import sides
from trimtab.recipes.belief.limits import LARGEST, NARROW

HOT = {"temperature": {"max": 80.0}}
NORMAL = np.full(2, math.sqrt(0.5))


def tuner(limits=HOT, lanes=None, **more):
    start = np.full(2 if lanes is None else (lanes, 2), 0.35)
    return tt.Tuner(start, bounds=[(0, 1), (0, 1)], limits=limits, seed=3, **more)


def temperature(x, wall=0.15):
    """80 at `wall` beyond the start along the diagonal, and 20 more per radius of 0.05."""
    return 80 + 20 * ((x - 0.35) @ NORMAL - wall) / 0.05


def cost(x):
    """Curvature 1 per radius², with the optimum 3 radii beyond the wall and 3 along it."""
    return ((x - 0.35 - 0.3 * NORMAL - [0.1, -0.1]) ** 2).sum(-1) / 0.005


def run(t, rounds, wall=lambda k: 0.15, noise=0.03, seed=0, told=lambda k, g: {"temperature": g}, ask=None):
    """The true excess over the limit of every query, `(rounds, …)`."""
    rng, excess = np.random.default_rng([seed, t.round]), []
    for k in range(t.round, t.round + rounds):
        trial = t.ask(**(ask(k) if ask else {}))
        g = temperature(trial.x, wall(k))
        excess.append(g - 80)
        measured = g + noise * 80 * rng.normal(size=np.shape(g))
        value = cost(trial.x) + noise * 18 * rng.normal(size=np.shape(g))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tt.AdviceWarning)
            t.tell(trial, value, limits=told(k, measured))
    return np.array(excess)


# Declaration


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (80, r'limits=80 must be limits by name: write limits=\{"temperature"'),
        (["temperature"], "must be limits by name"),
        ({"temperature": 80}, r'limit \'temperature\' is 80: write limits=\{"temperature": \{"max": 80\}\}'),
        ({"temperature": {"maxx": 80}}, "has no field 'maxx': did you mean 'max'"),
        ({"temperature": {"scale": 80}}, "has no field 'scale': it has max, min, risk"),
        ({"temperature": {}}, "has neither max nor min"),
        ({"temperature": {"max": 5, "min": 5}}, "has min=5, not below max=5"),
        ({"temperature": {"max": math.inf}}, "max=inf must be a finite number"),
        ({"temperature": {"max": "hot"}}, "max='hot' must be a finite number"),
        ({"temperature": {"max": True}}, "max=True must be a finite number"),
        ({"temperature": {"max": 5, "risk": 0}}, "risk=0 must be"),
        ({"temperature": {"max": 5, "risk": 0.5}}, "risk=0.5 must be"),
        ({"": {"max": 5}}, "must be a text"),
        ([tt.Limit("a", 1), tt.Limit("a", 2)], "'a' is declared twice"),
        ([tt.Limit(f"g{n}", 1) for n in range(11)], "11 limits are too many"),
    ],
)
def test_a_wrong_declaration_says_what_to_write(declared, words):
    with pytest.raises((ValueError, TypeError), match=words):
        tuner(declared)


@pytest.mark.parametrize("method", [tt.plane(radius=0.05), tt.residual(radius=0.05, step=0.1)])
def test_methods_that_keep_no_limits_name_one_that_does(method):
    with pytest.raises(ValueError, match=r"keeps no limits: use tt.belief\(radius=0.05\)"):
        tuner(method=method)


def test_a_tuner_with_limits_uses_the_belief_with_bounds_and_with_knobs():
    knobs = tt.Tuner(knobs=[tt.Knob("speed", 0, 100, 40)], limits=HOT, seed=0)
    for t in (tuner(), knobs):
        assert type(t.setup.method) is type(tt.belief(radius=0.1))
        assert t.setup.told == 2


def test_sides_are_bounds_from_above_of_what_is_minimised():
    limits = tt.Limit("value", max=9, min=1), tt.Limit("a", min=2, risk=0.05)
    assert [side[:4] for side in sides(limits, True)] == [(9, 0.01, 0, -1), (-1, 0.01, 0, 1), (-2, 0.05, 1, -1)]
    assert [side[:4] for side in sides(limits, False)] == [(9, 0.01, 0, 1), (-1, 0.01, 0, -1), (-2, 0.05, 1, -1)]


# Telling


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"temprature": 71.0}, "'temprature' was not declared: did you mean 'temperature'"),
        ({"pressure": 71.0}, "was not declared: declared are temperature"),
        ({"temperature": "hot"}, "'temperature' is 'hot': give a number, or None"),
        ({"temperature": math.inf}, "'temperature' is infinite"),
        ({"temperature": [1.0, 2.0]}, "give a number, or None"),
        (71.0, r"must be numbers by name: write limits=\{'temperature': …\}"),
    ],
)
def test_a_wrong_number_says_what_to_tell_and_changes_nothing(given, words):
    t = tuner()
    trial, before = t.ask(), t.to_json()
    with pytest.raises((ValueError, TypeError), match=words):
        t.tell(trial, 1.0, limits=given)
    assert t.to_json() == before


def test_numbers_that_were_not_declared_are_refused():
    plain = tt.Tuner([0.4], bounds=[(0, 1)], seed=0)
    with pytest.raises(ValueError, match="none was declared"):
        plain.tell(plain.ask(), 1.0, limits={"temperature": 3.0})
    t = tuner({"value": {"max": 30.0}})
    with pytest.raises(ValueError, match="leave it out"):
        t.tell(t.ask(), 1.0, limits={"value": 1.0})
    assert plain.beyond == t.beyond == ()


def test_a_number_that_was_not_measured_is_allowed_for():
    """Its variance grows, and with it the distance kept; the value is learnt all the same."""
    t = run_together = tuner()
    run(run_together, 40)
    wall = t.state.memory.walls[0]
    for given in (None, {}, {"temperature": None}, {"temperature": math.nan}):
        before = t.state
        t.tell(t.ask(), 5.0, limits=given)
        assert t.state.memory.value.learnt[0] >= before.memory.value.learnt[0]
        assert t.state.memory.walls[0].filter.learnt[0] == wall.filter.learnt[0]
        assert t.state.memory.walls[0].since[0] == before.memory.walls[0].since[0] + 1
        assert t.state.memory.walls[0].cov[0, 0, 0] > before.memory.walls[0].cov[0, 0, 0]


def test_a_number_counts_even_where_the_value_failed():
    t = tuner()
    run(t, 20)
    before = t.state
    t.tell(t.ask(), None, limits={"temperature": 70.0})
    after = t.state
    assert after.memory.walls[0].filter.learnt[0] == before.memory.walls[0].filter.learnt[0] + 1
    assert after.memory.value.learnt[0] == before.memory.value.learnt[0]
    assert after.skipped == before.skipped
    t.tell(t.ask(), None)
    assert t.skipped == before.skipped + 1
    assert t.state.memory.walls[0] is after.memory.walls[0]


def test_a_limit_that_is_never_measured_keeps_the_start():
    t = tuner()
    rng = np.random.default_rng(0)
    for k in range(40):
        trial = t.ask()
        assert np.abs(trial.x - 0.35).max() <= NARROW * 0.05 * 2
        with pytest.warns(tt.AdviceWarning, match="10 values came without") if k == 9 else contextlib.nullcontext():
            t.tell(trial, cost(trial.x) + rng.normal())
    np.testing.assert_array_equal(t.centre, 0.35)


def test_asking_again_gives_the_same_trial():
    t = tuner()
    run(t, 10)
    first, again = t.ask(), t.ask()
    assert (first.id, first.x.tolist()) == (again.id, again.x.tolist())
    t.tell(first, 1.0, limits={"temperature": 60})
    with pytest.raises(ValueError, match="was told or skipped before"):
        t.tell(again, 1.0, limits={"temperature": 60})


# Safety


@pytest.mark.parametrize("risk", [0.01, 0.1])
def test_the_share_beyond_is_at_most_the_risk(risk):
    """A drifting wall with 16 lanes: within four standard errors, if exceedances come in pairs."""
    t = tuner({"temperature": {"max": 80, "risk": risk}}, lanes=16)
    excess = run(t, 200, wall=lambda k: 0.15 + 0.075 * math.sin(k * 2 * math.pi / 150))
    beyond = excess > 0
    assert beyond[:30].mean() <= max(risk, 0.03)
    share = beyond[30:].mean()
    assert share <= risk + 4 * math.sqrt(2 * risk / beyond[30:].size)
    assert (t.centre @ NORMAL > 0.35 * math.sqrt(2) + 0.05).all()  # it goes to the wall nevertheless
    assert share > 0 or risk == 0.01  # and closer with a larger risk


def test_the_centre_goes_along_the_wall():
    t = tuner(lanes=8)
    excess = run(t, 150)
    assert (excess > 0).mean() <= 0.01
    best = 0.35 + 0.15 * NORMAL + [0.1, -0.1]
    assert cost(t.centre).max() < 0.5 * cost(np.full(2, 0.35))
    assert np.abs(t.centre - best).max() < 0.06


def test_a_jump_over_the_operating_point_goes_back_at_once_and_says_so():
    t = tuner(lanes=8)
    run(t, 100)
    before = t.centre @ NORMAL
    said = []
    for k in range(100, 112):
        trial = t.ask()
        g = temperature(trial.x, 0.03)  # 2.4 radii inwards
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            t.tell(trial, cost(trial.x), limits={"temperature": g})
        said += [str(w.message) for w in caught]
        if k == 100:
            assert (g > 80).any()
            assert t.beyond == ("temperature",)
            assert "in round 100 the operating point seems to exceed the limit of temperature (max 80)" in said[0]
            assert (t.centre @ NORMAL < before).any()
    assert (temperature(t.centre, 0.03) <= 80).all()
    assert t.beyond == ()


def test_a_start_beyond_the_limit_is_told_and_left():
    t = tuner()
    with pytest.warns(
        tt.AdviceWarning, match=r"the start exceeds the limit of temperature \(max 80\): start where all limits hold"
    ):
        t.tell(t.ask(), 5.0, limits={"temperature": 93.0})
    excess = run(tuner(), 60, wall=lambda k: -0.03)  # 12 degrees too hot
    assert excess[0] > 0
    assert (excess[40:] <= 0).all()


def test_the_first_probes_are_small():
    with_limits, without = tuner(), tt.Tuner([0.35, 0.35], tt.belief(radius=0.05), bounds=[(0, 1)] * 2, seed=3)
    for t in (with_limits, without):
        t.tell(t.ask(), 1.0)
    small, large = (np.abs(t.ask().x - 0.35).max() for t in (with_limits, without))
    assert small == pytest.approx(NARROW * large)


def test_a_maximum_changes_while_it_runs():
    t = tuner()
    run(t, 80)
    trial = t.ask()
    t.limits = {"temperature": {"max": 40}}  # two radii less
    assert t.limits["temperature"].max == 40
    np.testing.assert_array_equal(t.ask().x, trial.x)  # it was asked before
    run(t, 20)
    assert temperature(t.centre) < 40
    t.limits = [tt.Limit("temperature", max=80)]
    run(t, 60)
    assert 40 < temperature(t.centre) < 80
    for other in ({"pressure": {"max": 1}}, {"temperature": {"min": 1}}, {}):
        with pytest.raises(ValueError, match="are others than the tuner's, temperature"):
            t.limits = other


def test_a_minimum_is_a_maximum_of_the_negative_number():
    hot, cold = tuner(), tuner({"cold": {"min": -80.0}})
    excess = run(hot, 60), run(cold, 60, told=lambda k, g: {"cold": -g})
    np.testing.assert_array_equal(*excess)


def test_a_limited_value_is_the_same_as_its_number_told_as_a_limit():
    own, other = tuner({"value": {"max": 30.0}}), tuner({"number": {"max": 30.0}})
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = own.ask(), other.ask()
        np.testing.assert_array_equal(a.x, b.x)
        value = cost(a.x) + rng.normal()
        own.tell(a, value)
        other.tell(b, value, limits={"number": value})


def test_maximising_mirrors_the_value_and_not_the_limits():
    low, high = tuner({**HOT, "value": {"max": 40}}), tuner({**HOT, "value": {"min": -40}}, maximise=True)
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = low.ask(), high.ask()
        np.testing.assert_array_equal(a.x, b.x)
        value, g = cost(a.x) + rng.normal(), temperature(a.x) + rng.normal()
        low.tell(a, value, limits={"temperature": g})
        high.tell(b, -value, limits={"temperature": g})


def test_several_limits_hold_together():
    t = tuner({**HOT, "flow": {"min": 0.2, "max": 0.6}})
    rng = np.random.default_rng(0)
    for k in range(120):
        trial = t.ask()
        flow = trial.x[0]
        if k:
            assert flow <= 0.6
            assert temperature(trial.x) <= 80 + 5
        t.tell(
            trial,
            cost(trial.x) - 200 * flow,
            {"temperature": temperature(trial.x), "flow": flow + 0.001 * rng.normal()},
        )
    assert len(t.state.memory.walls) == 3
    assert 0.4 < t.centre[0] < 0.6


def test_with_context_the_point_of_every_load_keeps_the_limit():
    """The load moves the wall; what `at` gives is within it."""
    t = tuner(context=["load"])
    rng, beyond = np.random.default_rng(0), 0
    for k in range(300):
        load = math.sin(k / 8)
        trial = t.ask(context={"load": load})
        g = temperature(trial.x, 0.15 + 0.05 * load)
        beyond += (k >= 100) * (g > 80)
        t.tell(trial, cost(trial.x) + 0.3 * rng.normal(), limits={"temperature": g + 2 * rng.normal()})
    assert beyond <= 8  # of 200
    low, high = (t.at({"load": load}) @ NORMAL for load in (-0.9, 0.9))
    assert high > low + 0.02
    for load in (-0.9, 0.0, 0.9):
        assert temperature(t.at({"load": load}), 0.15 + 0.05 * load) <= 80


@pytest.mark.parametrize("context", [None, ["load"]])
def test_the_setting_drawn_for_a_discrete_knob_keeps_the_limit(context):
    """6 workers are allowed, and 7 are not: a query at 6.3 must not draw 7."""
    knobs = [tt.Knob("workers", 1, 12, 3, type="integer"), tt.Knob("mode", choices=["a", "b"], start="a")]
    hot = 0
    for seed in range(4):
        t = tt.Tuner(knobs=knobs, limits={"heat": {"max": 6.5}}, seed=seed, context=context)
        rng = np.random.default_rng(seed)
        for k in range(120):
            trial = t.ask(**({"context": {"load": math.sin(k)}} if context else {}))
            assert t.ask().knobs == trial.knobs
            if k == 60:
                t = tt.Tuner.from_json(t.to_json())
                assert t.ask().knobs == trial.knobs
            workers, slow = trial.knobs["workers"], trial.knobs["mode"] == "b"
            hot += workers > 6
            value = (workers - 9) ** 2 / 4 + slow + 0.05 * rng.normal()
            t.tell(trial, value, limits={"heat": workers + 0.05 * rng.normal()})
        assert t.setting["workers"] in (5, 6)
    assert hot <= 5  # of 480


@pytest.mark.parametrize("maximise", [False, True])
def test_the_belief_tells_where_each_limit_stands(maximise):
    limits = {**HOT, "value": {"max": 40.0, "min": -40.0}, "flow": {"min": 0.1}}
    t = tuner(limits, maximise=maximise)
    assert all(math.isnan(limit.level) for limit in t.belief.limits)
    rng = np.random.default_rng(0)
    for k in range(60):
        trial = t.ask()
        value, g = cost(trial.x) + 0.3 * rng.normal(), temperature(trial.x) + 2 * rng.normal()
        flow = {"flow": trial.x[0] + 0.001 * rng.normal()} if k < 50 else {}
        t.tell(trial, -value if maximise else value, limits={"temperature": g, **flow})
    before = t.to_json()
    hot, value, flow = t.belief.limits
    centre = t.centre
    assert hot.level == pytest.approx(temperature(centre), abs=5)
    assert hot.level < hot.high <= 80
    assert hot.low is None
    assert value.level == pytest.approx(-cost(centre) if maximise else cost(centre), abs=2)
    assert -40 <= value.low < value.level < value.high <= 40
    assert flow.level == pytest.approx(centre[0], abs=0.05)
    assert 0.1 <= flow.low < flow.level
    assert (hot.since, value.since, flow.since) == (1, 1, 11)
    assert 1 <= hot.careful <= LARGEST
    assert "limits: temperature" in str(t.belief)
    assert "flow" in str(t.belief)
    assert "last measured 11 rounds ago" in str(t.belief)
    assert t.belief.to_dict()["limits"][0]["max"] == 80
    assert t.to_json() == before


# Exactness


def test_a_lane_is_the_same_alone_and_with_others():
    limits = {**HOT, "value": {"max": 60}}
    many, alone = tuner(limits, lanes=3), tuner(limits, lane=1)
    rng = np.random.default_rng(5)
    for k in range(120):
        wall = np.where(k < 60, 0.15, 0.05)
        trial, single = many.ask(), alone.ask()
        np.testing.assert_array_equal(trial.x[1], single.x)
        values, g = cost(trial.x) + rng.normal(size=3), temperature(trial.x, wall) + rng.normal(size=3)
        g[1] = math.nan if k % 5 == 2 else g[1]
        values[0] = math.nan if k % 7 == 3 else values[0]
        values[2] = g[2] = math.nan if k % 3 == 1 else values[2]
        if k % 11 == 4:
            values[1] = g[1] = math.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tt.AdviceWarning)
            many.tell(trial, values, limits={"temperature": g})
            alone.tell(single, values[1], limits={"temperature": g[1]})
    np.testing.assert_array_equal(many.centre[1], alone.centre)
    for wall, one in zip(many.state.memory.walls, alone.state.memory.walls, strict=True):
        np.testing.assert_array_equal(wall.k[1], one.k[0])
        np.testing.assert_array_equal(wall.filter.cov[1], one.filter.cov[0])
    assert many.skipped.tolist()[1] == alone.skipped


def test_many_lanes_in_spans_are_the_same_as_few():
    many, few = tuner(lanes=150), tuner(lanes=2)
    for _ in range(20):
        a, b = many.ask(), few.ask()
        np.testing.assert_array_equal(a.x[:2], b.x)
        many.tell(a, cost(a.x), limits={"temperature": temperature(a.x)})
        few.tell(b, cost(b.x), limits={"temperature": temperature(b.x)})


@pytest.mark.parametrize("binary", [False, True])
def test_saving_in_the_middle_changes_nothing(tmp_path, binary):
    t = tuner(max_pending=3)
    run(t, 40)
    t.ask()  # open, and saved as such
    path = tmp_path / ("tuner.npz" if binary else "tuner.json")
    t.save(path)
    again = tt.Tuner.load(path)
    assert again.limits == t.limits
    assert again.to_json() == t.to_json()
    assert [trial.x.tolist() for trial in again.pending] == [trial.x.tolist() for trial in t.pending]
    np.testing.assert_array_equal(run(again, 20), run(t, 20))


def test_a_tuner_without_limits_saves_nothing_of_them():
    text = tt.Tuner([0.35, 0.35], tt.belief(radius=0.05), bounds=[(0, 1)] * 2, seed=3).to_json()
    assert "limits" not in text
    assert "walls" not in text


def test_units_of_a_limit_do_not_matter():
    plain, scaled = tuner(), tuner({"temperature": {"max": 1024 * 80.0 + 0.0}})
    a, b = run(plain, 60), run(scaled, 60, told=lambda k, g: {"temperature": 1024 * g})
    np.testing.assert_array_equal(a, b)


def test_forgetting_keeps_the_limits():
    t = tuner()
    run(t, 60)
    wall = t.state.memory.walls[0]
    t.forget()
    assert np.isnan(t.state.memory.value.origin).all()
    np.testing.assert_array_equal(t.state.memory.walls[0].filter.origin, wall.filter.origin)
    trial = t.ask()
    t.tell(trial, 1e6, limits={"temperature": temperature(trial.x)})
    assert temperature(t.centre) < 80


def test_late_values_are_learnt_where_they_were_measured():
    """Four open at once, told in reverse: the wall is found and kept."""
    t = tuner(max_pending=4)
    rng, beyond = np.random.default_rng(0), []
    for _ in range(60):
        trials = t.ask(4)
        for trial in trials[::-1]:
            g = temperature(trial.x)
            beyond.append(g > 80)
            t.tell(trial, cost(trial.x) + rng.normal(), limits={"temperature": g + rng.normal()})
    assert np.mean(beyond) <= 0.02
    assert cost(t.centre) < 0.5 * cost(np.full(2, 0.35))


def test_pauses_widen_the_distance():
    t = tuner()
    run(t, 60)
    before = t.state.memory.walls[0].cov[0, 0, 0]
    for _ in range(30):
        t.skip(t.ask())
    run(t, 1, told=lambda k, g: {})
    assert t.state.memory.walls[0].since[0] > 30
    assert t.state.memory.walls[0].cov[0, 0, 0] > before


@pytest.mark.parametrize("hostile", ["steps", "constant", "huge", "tiny", "wild"])
def test_hostile_numbers_leave_everything_finite_and_inside(hostile):
    t = tuner({**HOT, "value": {"min": -1e9}})
    rng = np.random.default_rng(0)
    numbers = {
        "steps": lambda k: float(k % 20 > 10) * 200,
        "constant": lambda k: 70.0,
        "huge": lambda k: (-1.0) ** k * 1e300,
        "tiny": lambda k: 80 + 1e-12 * rng.normal(),
        "wild": lambda k: float(80 + 10 * rng.standard_cauchy()),
    }[hostile]
    for k in range(150):
        trial = t.ask()
        assert ((trial.x >= 0) & (trial.x <= 1)).all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tt.AdviceWarning)
            t.tell(
                trial, float(rng.standard_cauchy()) if hostile == "wild" else cost(trial.x), {"temperature": numbers(k)}
            )
        for wall in t.state.memory.walls:
            assert np.isfinite(wall.filter.mean).all()
            assert np.isfinite(wall.filter.cov).all()
            assert (np.einsum("kii->ki", wall.filter.cov[0]) >= 0).all()
            np.testing.assert_array_equal(wall.filter.cov, np.swapaxes(wall.filter.cov, -1, -2))
            least = t.setup.frame.limits and 2.3263478740408408
            assert least * (1 - 1e-12) <= wall.k[0] <= LARGEST * least * (1 + 1e-12)
    assert tt.Tuner.from_json(t.to_json()).to_json() == t.to_json()


def test_a_change_of_radius_keeps_what_is_known_of_the_limits():
    t = tuner()
    run(t, 60)
    other = tt.Setup(tt.belief(radius=0.025), (2,), bounds=[(0, 1)] * 2, limits=t.setup.limits)
    state = core.carried(other, t.state, np.ones(2))
    (old,), (new,) = t.state.memory.walls, state.memory.walls
    slope = slice(1, 3)
    np.testing.assert_allclose(new.mean[:, slope] / 0.025, old.mean[:, slope] / 0.05)
    np.testing.assert_allclose(new.mean[:, 0], old.mean[:, 0])
    np.testing.assert_array_equal(state.memory.safe, t.state.memory.safe)


def test_on_a_simplex_the_limit_is_kept_in_its_plane():
    t = tt.Tuner(
        [0.5, 0.3, 0.2], tt.belief(radius=0.03), domain=tt.domains.Simplex(), limits={"share": {"max": 0.6}}, seed=0
    )
    rng, shares = np.random.default_rng(0), []
    for _ in range(100):
        trial = t.ask()
        assert trial.x.sum() == pytest.approx(1.0)
        shares.append(trial.x[0])
        t.tell(trial, -trial.x[0] + 0.001 * rng.normal(), limits={"share": trial.x[0] + 0.001 * rng.normal()})
    assert np.mean(np.array(shares) > 0.6) <= 0.03
    assert 0.54 < t.centre[0] < 0.6
