"""A state as a flat array of numbers."""

import numpy as np

import trimtab as tt
from trimtab import storage
from trimtab.setup import Setup
from trimtab.study.flat_state import Flat

CUBE = tt.Box(0.0, 1.0)
SETUP = Setup(tt.auto(radius=0.05), (10,), domain=CUBE)


def aged(setup, rng, systems):
    """Studies of one setup: new, old, with failures, and with jumps of the cost."""
    best, noise = rng.random((systems, *setup.shape)), rng.choice([0.0, 0.01, 1.0], systems)

    def value(k, x):
        return float(((x - best[k]) ** 2).sum() + noise[k] * rng.normal() + 100.0 * (rng.random() < 0.02))

    start = setup.home.project(np.full(setup.shape, 0.3))
    states = [tt.init(setup, start, int(seed)) for seed in rng.integers(0, 2**63, systems)]
    for k in range(systems):
        for _ in range(k // 2 if k < 12 else int(rng.integers(12, 150))):
            failed = rng.random() < 0.05
            told = None if failed else value(k, tt.ask(setup, states[k]).x)
            states[k] = tt.tell(setup, states[k], told)
    return states, value


def test_a_state_survives_flattening():
    states, _ = aged(SETUP, np.random.default_rng(1), 20)
    flat = Flat(states[0])
    for state in states:
        row = np.array(flat.write(state))
        assert len(row) == flat.size
        assert np.array_equal(row[flat.place("state.centre")], state.centre)
        again = flat.read(row)._replace(key=state.key)
        assert storage.to_json(SETUP, again) == storage.to_json(SETUP, state)
        assert [type(x) for x in again] == [type(x) for x in state]
        assert not again.centre.flags.writeable
        assert np.array_equal(tt.ask(SETUP, again).x, tt.ask(SETUP, state).x)
