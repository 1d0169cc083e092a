"""Systems in which nothing that is tuned matters: level, noise and missing values of many kinds, as in A/A studies."""

import math

import numpy as np


def sine(rng, rounds, period, swing):
    return swing * np.sin(2 * np.pi * (np.arange(rounds) / period + rng.random()))


def walk(rng, rounds, step):
    return np.cumsum(rng.normal(0, step, rounds))


def jumps(rng, rounds, size):
    """A level that jumps about every 200 rounds."""
    return np.cumsum(np.where(rng.random(rounds) < 0.005, size * rng.choice([-1, 1], rounds), 0.0))


def correlated(noise, rho):
    """AR(1) noise of the same variance."""
    found, last = np.empty_like(noise), noise[0]
    for k, kick in enumerate(math.sqrt(1 - rho * rho) * noise):
        last = rho * last + kick if k else noise[0]
        found[k] = last
    return found


def lognormal(rng, rounds, sigma):
    return np.exp(sigma * rng.standard_normal(rounds))


def mixture(rng, rounds):
    level = [
        lambda: sine(rng, rounds, rng.uniform(50, 400), 10),
        lambda: walk(rng, rounds, 0.3),
        lambda: jumps(rng, rounds, 10),
    ]
    noise = [
        lambda: rng.standard_normal(rounds),
        lambda: rng.standard_t(3, rounds),
        lambda: lognormal(rng, rounds, 1.0),
    ]
    return level[rng.integers(3)]() + correlated(noise[rng.integers(3)](), rng.uniform(0, 0.8))


def loud_at_times(rng, rounds):
    return rng.standard_normal(rounds) * np.where(np.sin(np.arange(rounds) / 60) > 0.5, 4.0, 1.0)


def swinging(rng, rounds):
    """Noise in proportion to a level that swings by a factor of five."""
    return (3 + sine(rng, rounds, 200, 2)) * (10 + rng.standard_normal(rounds))


SYSTEMS = {
    "mixture": mixture,
    "white": lambda rng, n: rng.standard_normal(n),
    "sine 20": lambda rng, n: sine(rng, n, 20, 10) + rng.standard_normal(n),
    "sine 50": lambda rng, n: sine(rng, n, 50, 10) + rng.standard_normal(n),
    "sine 100": lambda rng, n: sine(rng, n, 100, 10) + rng.standard_normal(n),
    "sine 400": lambda rng, n: sine(rng, n, 400, 10) + rng.standard_normal(n),
    "walk .3": lambda rng, n: walk(rng, n, 0.3) + rng.standard_normal(n),
    "walk 1, t3": lambda rng, n: walk(rng, n, 1.0) + rng.standard_t(3, n),
    "jumps, AR .4": lambda rng, n: jumps(rng, n, 10) + correlated(rng.standard_normal(n), 0.4),
    "jumps, lognormal": lambda rng, n: jumps(rng, n, 10) + lognormal(rng, n, 1.0),
    "AR .8": lambda rng, n: correlated(rng.standard_normal(n), 0.8),
    "AR .95": lambda rng, n: correlated(rng.standard_normal(n), 0.95),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "t2.2": lambda rng, n: rng.standard_t(2.2, n),
    "lognormal 1": lambda rng, n: lognormal(rng, n, 1.0),
    "lognormal 1.5": lambda rng, n: lognormal(rng, n, 1.5),
    "spikes": lambda rng, n: rng.standard_normal(n) + 100 * (rng.random(n) < 0.01),
    "swinging": swinging,
    "loud at times": loud_at_times,
    "loud baseline": lambda rng, n: rng.standard_normal(n),
}
MISSING = {"mixture"}
"""Systems in which up to a fifth of the values is missing."""
LOUDER = {"loud baseline": 3.0}
"""Factor of the noise at the baseline."""


def drawn(system, seed, rounds):
    """Return the values of a study as tuned and at the baseline, which differ in noise alone, and which are missing."""
    rng = np.random.default_rng([seed, *system.encode()])
    tuned = SYSTEMS[system](rng, rounds)
    missing = rng.random(rounds) < (rng.uniform(0, 0.2) if system in MISSING else 0.0)
    return tuned.tolist(), (LOUDER.get(system, 1.0) * tuned).tolist(), missing.tolist()
