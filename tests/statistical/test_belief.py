"""The belief's excess on two small services, against an independent implementation of the same equations.

That one was run 1,600 times on each, with directions and noise of its own. `EXPECTED` has mean and standard deviation
of the natural logarithm of a run's mean excess, first for the settings that were tried, then for the centres. These are
nearly normal: the mean over `LANES` runs is off by more than six standard errors with a chance of 2e-9, and there are
four comparisons. The seeds are fixed.
"""

import math

import numpy as np
import pytest

import trimtab as tt

LANES, RUNS, ROUNDS = 120, 1600, 300


class Pump:
    """Two knobs: energy grows linearly above the demand, with its daily wave, and shortage quadratically below."""

    dim, start = 2, 0.8

    def excess(self, t, x):
        wave = 0.45 + 0.1 * np.array([math.sin(t / 24), math.cos(t / 24)])
        return (5.0 * np.square(x - wave) + np.exp(np.minimum(-20 * (x - wave), 3.0)) / 20 + (x - wave)).sum(-1) - 0.1

    def noise(self, rng):
        return 0.03 * rng.standard_normal(LANES)


class Beam:
    """Four magnets with sensitivities from 1 to 9 whose settings drift; 3 % of the measurements fail."""

    dim, start = 4, 0.25
    sensitivity = np.array([1.0, 2.0, 4.0, 9.0])

    def excess(self, t, x):
        optimum = 0.6 + 0.0004 * t * np.array([1.0, -1.0, 0.5, -0.5])
        return 1 - np.exp(-(self.sensitivity * np.square(x - optimum)).sum(-1))

    def noise(self, rng):
        return np.where(rng.random(LANES) < 0.03, math.nan, 0.01 * rng.standard_normal(LANES))


EXPECTED = {
    Pump: ([-2.7452, -3.2234], [0.0902, 0.1275]),
    Beam: ([-2.8442, -3.2207], [0.1819, 0.2136]),
}


def excess(service, method):
    """The logarithm of the mean excess of each run: of the settings that were tried, and of the centres."""
    rng, total = np.random.default_rng(3), np.zeros((2, LANES))
    start = np.full((LANES, service.dim), service.start)
    tuner = tt.Tuner(start, method, bounds=[(0, 1)] * service.dim, seed=3)
    for t in range(ROUNDS):
        trial = tuner.ask()
        now = service.excess(t, np.stack([trial.x, tuner.centre]))
        tuner.tell(trial, now[0] + service.noise(rng))
        total += now
    return np.log(total / ROUNDS)


@pytest.mark.parametrize("service", EXPECTED)
def test_the_excess_is_that_of_an_independent_implementation(service):
    mean, deviation = np.array(EXPECTED[service])
    allowed = 6 * deviation * math.sqrt(1 / LANES + 1 / RUNS)
    found = excess(service(), tt.belief(radius=0.05)).mean(axis=1)
    assert (np.abs(found - mean) < allowed).all()
    other = excess(service(), tt.auto(radius=0.05)).mean(axis=1)  # and another method is seen to be another
    assert (other - mean > allowed).any()
