"""Hand-computed values of the default method's two parts, `Plane` and `Adaptive`, by the equations of docs/auto.md."""

import math

import numpy as np
import pytest

import trimtab as tt
from trimtab.state import Parts
from trimtab.tracker.sense import Sense

CENTRE = np.zeros(2)
METHOD = tt.Method(estimator=tt.Plane(), radius=1 / math.sqrt(2), step=tt.Adaptive(), directions=tt.Orthogonal())


def learnt(*rounds):
    """What `Plane` makes of (trial, width, query, value) in turn: the contrasts, and the memory at the end."""
    setup = tt.Setup(METHOD, (2,))  # a probe of width 1 has the length 1
    state, (_, learn), contrasts = tt.init(setup, CENTRE), METHOD.estimator.sensing(setup.frame), []
    for id, (trial, width, query, value) in enumerate(rounds):
        look = tt.Look(trial, CENTRE, width)
        contrast, _, _, memory, _ = learn(state, look, np.array(query), (value,))
        state = state.remembering(memory)._replace(values=(value,), told=id, last=look)
        contrasts.append(contrast)
    return contrasts, state.slope


OPENING = ((0, 0.0, [0.0, 0.0], 1.0), (1, 1.0, [1.0, 0.0], 3.0), (1, -1.0, [-1.0, 0.0], 1.0))


def test_the_centre_and_the_first_probe_only_anchor():
    contrasts, fit = learnt(*OPENING[:2])
    assert all(math.isnan(c) for c in contrasts)
    assert (fit.level, fit.doubts.rest, fit.spread) == (3.0, 1.0, 1.0)
    np.testing.assert_array_equal(fit.anchor, [1.0, 0.0])


def test_the_mirror_image_gives_slope_and_curvature():
    """D = (−2, 0), e = 1 − 3: g = 0.58·e·D/4, b = 3 + ½e, r = (1, 0) + ½D; ½(3 + 1) − 1 = ½L·l² with l = 1."""
    contrasts, fit = learnt(*OPENING)
    assert contrasts[2] == -2.0
    np.testing.assert_allclose(fit.fade * fit.slope, [0.58, 0.0])
    assert fit.size == pytest.approx(0.58**2)
    np.testing.assert_allclose(fit.anchor, [0.0, 0.0])
    assert (fit.level, fit.doubts.bend, fit.doubts.curvature, fit.certainty) == (2.0, 1.0, 2.0, 0.0)


def test_an_echo_tells_the_noise_and_what_of_the_curvature_is_certain():
    """D = (−1, 0), predicted 2 − 0.58; noise 0.04 counts 0.8·(1 + 10) times, 1.5 times that against a bend of 1."""
    contrasts, fit = learnt(*OPENING, (1, -1.0, [-1.0, 0.0], 1.2))
    assert contrasts[3] == pytest.approx(1.2 - (2.0 - 0.58))
    np.testing.assert_allclose(fit.fade * fit.slope, [0.58 * 2 / 3 + 0.58 * 0.22, 0.0])
    assert fit.size == pytest.approx((0.58 * 2 / 3 + 0.58 * 0.22) ** 2)
    assert (fit.doubts.echoes, fit.power) == (1.0, 4.0)
    assert fit.doubts.noise == pytest.approx(0.04)
    assert fit.certainty == pytest.approx(1.0 - 1.5 * 0.8 * 11.0 * 0.04)
    assert fit.bent == pytest.approx(2.0 * fit.certainty)


def shares(*rounds):
    """The share of signal after each round."""
    setup = tt.Setup(METHOD, (2,))
    state, (_, learn), found = tt.init(setup, CENTRE), METHOD.estimator.sensing(setup.frame), []
    for id, (trial, width, query, value) in enumerate(rounds):
        look = tt.Look(trial, CENTRE, width)
        *_, memory, sense = learn(state, look, np.array(query), (value,))
        state = state.remembering(memory)._replace(values=(value,), told=id, last=look)
        found.append(None if sense is None else sense.signal_share)
    return found


def test_the_share_of_signal_is_little_before_an_echo_and_less_the_more_of_them_are_loud():
    """0.02 at most; then 1 − 0.8·(1 + 10/n)·E[echo²]/E[e²], and 0.15/n at least, n from 3 to 16."""
    assert shares(*OPENING) == [None, None, 0.02]
    assert shares(*OPENING, (1, -1.0, [-1.0, 0.0], 1.2))[-1] == pytest.approx(1.0 - 0.8 * 11.0 * 0.04 / 4.0)
    never = [(k, 1.0, [math.cos(k), math.sin(k)], 1.0 + 0.1 * (-1) ** k) for k in range(4, 20)]
    assert shares(*OPENING, *never)[-1] == 0.25  # late values are never echoes
    loud = [(1, -1.0, [-1.0, 0.0], 10.0 * (n % 2)) for n in range(30)]
    found = shares(*OPENING, *loud)[3:]
    assert found[1] == pytest.approx(0.15 / 3)
    assert found[9] == pytest.approx(0.15 / 10)
    assert found[-1] == pytest.approx(0.15 / 16)


def test_a_surprise_that_repeats_casts_doubt_on_the_curvature():
    """A quarter of its weight is left: after a change of scale the next values say what it is."""
    rounds = [(k, 1.0, [math.cos(k), math.sin(k)], 1.0 + 0.1 * (-1) ** k) for k in range(4, 40)]
    calm = learnt(*OPENING, (1, -1.0, [-1.0, 0.0], 1.0), *rounds)[1]
    far = (40, 1.0, [math.cos(40), math.sin(40)], 1e4)
    asked = learnt(*OPENING, (1, -1.0, [-1.0, 0.0], 1.0), *rounds, far)[1]
    jumped = learnt(*OPENING, (1, -1.0, [-1.0, 0.0], 1.0), *rounds, far, far)[1]
    assert asked.doubts.weight == calm.doubts.weight
    assert jumped.doubts.weight == pytest.approx(0.25 * calm.doubts.weight)
    assert jumped.weight == pytest.approx(0.25 * calm.weight)


def test_the_level_follows_faster_while_neighbours_have_one_sign():
    """β·(1 + 0.09·n·n′), n = e/√(e² + their mean square); 0.2 is the least, 1 the most."""
    noisy = [(k, 1.0, [1.0, 0.0], float(k % 2)) for k in range(4, 400)]
    drifting = [(k, 1.0, [1.0, 0.0], float(k)) for k in range(4, 400)]
    assert learnt(*OPENING, *noisy)[1].gain == pytest.approx(0.2)
    assert learnt(*OPENING, *drifting)[1].gain == pytest.approx(1.0)
    _, first = learnt(*OPENING)
    _, then = learnt(*OPENING, (4, 1.0, [0.0, 1.0], 2.5))  # e = ½ after e = −2
    assert first.agreement == pytest.approx(-2 / math.sqrt(4 + 4))
    assert then.gain == pytest.approx(0.5 * (1 - 0.09 * 0.5 / math.sqrt(0.25 + (4 + 0.25) / 2) / math.sqrt(2)))


def test_widths_that_differ_show_the_curvature():
    """½·3·l² along directions that take turns, after an opening that showed none: L = 3."""
    flat = ((0, 0.0, [0.0, 0.0], 0.0), (1, 1.0, [1.0, 0.0], 0.0), (1, -1.0, [-1.0, 0.0], 0.0))
    rng = np.random.default_rng(0)
    rounds = []
    for k in range(4, 300):
        width = 1.1 if rng.random() < 0.5 else 0.9
        query = width * np.array([math.cos(k), math.sin(k)])
        rounds.append((k, width, query, 1.5 * width**2 + 0.01 * rng.standard_normal()))
    _, fit = learnt(*flat, *rounds)
    assert fit.certainty > 0.95
    assert fit.bent / fit.certainty == pytest.approx(3.0, rel=0.05)
    _, same = learnt(*flat, *((k, 1.0, query / width, 1.5) for k, width, query, _ in rounds))
    assert same.certainty == 0.0  # one width shows nothing


def test_surprises_upwards_and_downwards_are_told_apart():
    """Every fifth value is ten times as far up as the others are down."""
    rounds = [(k, 1.0, [math.cos(k), math.sin(k)], 10.0 if k % 5 == 0 else -1.0) for k in range(4, 200)]
    _, fit = learnt(*OPENING, *rounds)
    assert fit.drop_square < 0.7 * fit.rise_square


def test_a_change_of_the_width_is_no_surprise_where_the_curvature_is_certain():
    """At half the width a bowl's level is lower by ½L(1 − ¼): known as far as it is certain."""
    quiet = (1, -1.0, [-1.0, 0.0], 1.0)  # an echo without noise
    contrasts, fit = learnt(*OPENING, quiet, (4, 0.5, [0.0, 0.5], 5.0))
    _, before = learnt(*OPENING, quiet)
    apart = np.array([0.0, 0.5]) - before.anchor
    known = before.fade * before.slope @ apart + 0.5 * before.certainty * 2.0 * (0.25 - before.spread)
    assert before.certainty == pytest.approx(1 - 1.5 * 0.01 * 4.0)  # a hundredth of all surprises may be noise
    assert contrasts[4] == pytest.approx(5.0 - before.level - known)
    assert fit.spread == pytest.approx(before.spread + before.gain * (0.25 - before.spread))


def paced(**told):
    """The first rate, and the width after a move of some length."""
    setup = tt.Setup(METHOD, (2,))
    state, bound = tt.init(setup, CENTRE), METHOD.step.pacing(setup.frame)
    sense = {"surprise": 1.0, "steepness": 2.0, "size": 1e-9, "signal_share": 1.0}
    sense |= {"certainty": 0.0, "bent": 0.0, "distance": 1e100, "evenness": 1.0, "jumped": False}
    rate, pace, _ = bound.rate(state, tt.Look(1, CENTRE, 1.0), Sense(**{**sense, **told}))
    return rate, lambda move: bound.settle(pace, np.array([move, 0.0])).width


def test_the_first_move_is_in_units_of_the_radius_given():
    rate, _ = paced()
    assert rate == pytest.approx(2.5 / 2**0.55 / 2.0)  # PACE·l/d^POWER/s
    assert paced(signal_share=0.25)[0] == pytest.approx(0.5 * rate)  # √h
    assert paced(size=1e4)[0] == pytest.approx(2.0 / 1e2)  # no longer than two probes


def test_where_the_curvature_is_certain_it_is_newtons():
    assert paced(bent=3.0, certainty=1.0)[0] == pytest.approx(1 / 3 / 3.0)


def test_the_width_follows_the_moves_by_steps():
    """l = 3·√d·M/√h with M ← M + (‖m‖ − M)/3 from a start at which it is 1."""
    _, width = paced()
    assert width(0.0) == pytest.approx(2 / 3)
    assert width(1.0) == 1.0  # no wider than the radius given in one round
    assert paced(distance=3.0)[1](1.0) == pytest.approx(0.23 * 3.0)  # within reach
    assert paced(distance=0.1)[1](1.0) == pytest.approx(0.5 / math.sqrt(1.15))  # no less than half in one round
    assert paced(evenness=0.1)[1](1.0) == pytest.approx(1.7 * 0.1 ** (19 / 64))  # a cliff is near


def test_in_many_dimensions_wider_probes_have_to_be_worth_it():
    """(1.7·√(a/√h))^(200/d)·evenness^(0.3 + 0.95·(1 − 200/d)), d = 800."""
    method = tt.auto(radius=1.0 / math.sqrt(800))
    setup = tt.Setup(method, (800,))
    state, bound = tt.init(setup, np.zeros(800)), method.step.pacing(setup.frame)
    sense = Sense(1.0, 2.0, 1e-9, 0.25, 0.0, 0.0, 1e100, 0.5, False)
    _, pace, _ = bound.rate(state, tt.Look(1, np.zeros(800), 1.0), sense)
    assert pace.widest == pytest.approx((1.7 * math.sqrt(1.0 / 0.5)) ** 0.25 * 0.5 ** (65 / 64))  # of 1.0125


def on_course(course, round=7, moves=9.0, d=2):
    """A state whose course is known, and its setup."""
    setup = tt.Setup(tt.auto(radius=1.0), (d,))
    state = tt.init(setup, np.zeros(d))._replace(round=round, told=round - 2)
    doubts = state.slope.doubts._replace(phase=3.0)
    pace = state.pace._replace(course=np.array(course), reach=float(np.linalg.norm(course)), moves=moves, width=0.5)
    return setup, state._replace(memory=Parts(state.slope._replace(doubts=doubts), pace))


def test_one_trial_of_eight_looks_along_the_course():
    """Forwards or backwards, as long as a probe, and no farther along a coordinate than a probe may go."""
    setup, state = on_course([0.3, 0.4])
    look = tt.ask(setup, state).look
    width = 0.5 * math.sqrt(1.15)  # trial 7 looks wider
    assert look.width == 0
    assert np.abs(look.centre) == pytest.approx(width * np.array([0.75, 1.0]))  # of at most 1 in two dimensions
    np.testing.assert_array_equal(tt.ask(setup, state).x, look.centre)
    sides = {np.sign(tt.ask(setup, on_course([0.3, 0.4], round)[1]).x[0]) for round in range(7, 8 * 20, 8)}
    assert sides == {-1.0, 1.0}
    in_many, state = on_course([0.1] * 50, d=50)
    assert np.linalg.norm(tt.ask(in_many, state).x) == pytest.approx(width * math.sqrt(50))  # δ√d


@pytest.mark.parametrize("known", [{"round": 8}, {"moves": 2.0}, {"course": [0.0, 0.0]}])
def test_without_a_course_it_looks_elsewhere(known):
    setup, state = on_course(**{"course": [0.3, 0.4], **known})
    assert tt.ask(setup, state).look.width != 0


def test_what_it_finds_along_the_course_sets_the_pace():
    """log a ← log a ∓ 0.13·e/rms: it still falls ahead, so it goes faster; it rises, slower."""
    setup, state = on_course([0.3, 0.4])
    bound = setup.method.step.pacing(setup.frame)

    def pace(surprise, side):
        sense = Sense(surprise, 2.0, 1e-9, 1.0, 0.0, 0.0, 1e100, 1.0, False)
        look = tt.Look(7, state.centre + side * state.pace.course, 0.0)
        return bound.rate(state._replace(centre=np.zeros(2)), look, sense)[1].pace

    slower = (1 - 0.065) / (1 + 0.065)
    assert pace(1.0, 1.0) == pytest.approx(slower)
    assert pace(1.0, -1.0) == pytest.approx(1 / slower)
    assert pace(-1.0, 1.0) == pytest.approx(1 / slower)
    assert pace(-100.0, 1.0) == pytest.approx((1 + 0.195) / (1 - 0.195))  # no more than three rms count


def test_a_look_along_the_course_is_as_wide_as_it_is_long():
    """W is drawn to ‖p − x‖², by half: the curvature's share of the value is known there, too."""
    setup = tt.Setup(METHOD, (2,))
    state = tt.init(setup, CENTRE)
    _, fit = learnt(*OPENING, (1, -1.0, [-1.0, 0.0], 1.0))
    look = tt.Look(4, np.array([0.6, 0.8]) + CENTRE, 0.0)
    *_, after = METHOD.estimator.bind(setup.frame).learn(state.remembering(fit), look, look.centre, (1.0,))
    assert after.spread == pytest.approx(fit.spread + fit.gain * (1.0 - fit.spread))


def test_the_width_wavers_within_its_limits():
    setup = tt.Setup(METHOD, (2,))
    pace, width = tt.init(setup, CENTRE).pace, METHOD.step.pacing(setup.frame).width
    assert width(pace, 1) == pytest.approx(1.0)  # the first probe is as wide as the radius given
    pace = pace._replace(width=0.5)
    assert [width(pace, id) > 0.5 for id in range(8)] == [False, True, True, False, True, False, False, True]
    assert width(pace, 1) ** 2 - width(pace, 0) ** 2 == pytest.approx(2 * 0.15 * 0.25)
    assert width(pace._replace(width=4.0), 1) == 4.0
    assert width(pace._replace(width=0.03), 0) == 0.03


def test_a_jump_of_the_optimum_is_no_cliff_and_widens_the_probes():
    """Surprises upwards that are frequent keep probes narrow; a single one, however large, does not."""
    lanes, rng, optimum = 40, np.random.default_rng(0), 0.0
    tuner = tt.Tuner(np.zeros((lanes, 3)), tt.auto(radius=0.05), seed=0)
    for round in range(360):
        if round == 300:
            before, optimum = np.median(tuner.state.pace.width), 2.0
        trial = tuner.ask()
        tuner.tell(trial, 0.5 * np.square(trial.x - optimum).sum(-1) + 0.05 * rng.standard_normal(lanes))
    assert np.median(tuner.state.pace.width) > 1.5 * before
