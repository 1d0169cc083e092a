import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import trimtab as tt
from trimtab.directions import Stream, Streams
from trimtab.directions.rows import BLOCK
from trimtab.directions.stream import RowCache
from trimtab.state import Key

LAWS = [
    *(tt.Gaussian(), tt.Sphere(), tt.Rademacher(), tt.Orthogonal()),
    *(tt.Paired(), tt.Paired(tt.Gaussian()), tt.Paired(tt.Sphere())),
    tt.Paired(tt.Orthogonal()),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("dim", [1, 2, 7, 100, BLOCK, BLOCK + 1])
def test_a_direction_depends_only_on_seed_and_round(law, dim):
    forwards = Stream(law, (dim,), seed=5)
    backwards = Stream(law, (dim,), seed=5)
    rounds = [*list(range(12)), 10**6, 10**12]
    expected = [forwards(t).copy() for t in rounds]
    for t, u in reversed(list(zip(rounds, expected, strict=True))):
        np.testing.assert_array_equal(backwards(t), u)
        np.testing.assert_array_equal(Stream(law, (dim,), seed=5)(t), u)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_lane_is_the_same_alone_and_with_others(law):
    together = Stream(law, (6, 3), seed=5)
    for lane in (0, 4):
        alone = Stream(law, (3,), seed=5, lane=lane)
        some = Stream(law, (2, 3), seed=5, lane=lane)
        for t in (0, 1, 2, 5000):
            np.testing.assert_array_equal(together(t)[lane], alone(t))
            np.testing.assert_array_equal(together(t)[lane : lane + 2], some(t))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("dim", [2, 70])
def test_many_lanes_draw_the_same_numbers_in_chunks(law, dim, monkeypatch):
    whole = Stream(law, (5, dim), seed=5)
    monkeypatch.setattr("trimtab.directions.rows.CACHE", 5 * dim * 3)
    chunked = Stream(law, (5, dim), seed=5)
    order = [0, 1, 2, 3, 4, 10, 3, 200, 7, 8, 5000, 4999]
    for t in order:
        np.testing.assert_array_equal(chunked(t), whole(t))
        assert chunked._source.block.size <= 5 * dim * 3


def test_seeds_lanes_and_rounds_differ():
    seen = {
        tuple(Stream(tt.Gaussian(), (2,), seed=seed, lane=lane)(t))
        for seed in (0, 1, 2**64 - 1)
        for lane in (0, 1, 2**62)
        for t in range(50)
    }
    assert len(seen) == 3 * 3 * 50


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("dim", [1, 3, 50])
def test_reach_is_the_exact_bound(law, dim):
    u = np.array([Stream(law, (dim,), seed=1)(t) for t in range(400)])
    each, length = law.reach(dim)
    assert np.abs(u).max() <= each
    assert np.linalg.norm(u, axis=1).max() <= length * (1 + 1e-12)
    if law in (tt.Sphere(), tt.Rademacher()):
        assert np.linalg.norm(u, axis=1).min() == pytest.approx(length)


def test_paired_rounds_mirror_each_other():
    law = tt.Paired(tt.Gaussian())
    stream = Stream(law, (4,), seed=2)
    for t in range(0, 40, 2):
        np.testing.assert_array_equal(stream(t + 1), -stream(t))
        assert law.partner(t) == t + 1
        assert law.partner(t + 1) == t
    assert tt.Gaussian().partner(3) is None


def test_lanes_may_use_the_directions_of_different_trials():
    stream = Stream(tt.Orthogonal(), (4, 3), seed=9)
    mixed = stream(np.array([7, 2, 7, 0])).copy()
    for lane, trial in enumerate([7, 2, 7, 0]):
        np.testing.assert_array_equal(mixed[lane], stream(trial)[lane])


def test_threads_do_not_mix_up_directions():
    shared = Stream(tt.Gaussian(), (500,), seed=3)
    expected = {t: Stream(tt.Gaussian(), (500,), seed=3)(t).copy() for t in range(64)}

    def work(k: int) -> bool:
        order = np.random.default_rng(k).permutation(64)
        return all(np.array_equal(shared(int(t)), expected[int(t)]) for t in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


def test_the_global_random_state_is_unchanged():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    tuner = tt.Tuner(np.zeros(3), tt.auto(radius=0.1))
    tuner.tell(tuner.ask(), 1.0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 64, 101, 576])
def test_blocks_of_d_are_exactly_orthogonal(dim):
    stream = Stream(tt.Orthogonal(), (dim,), seed=4)
    for block in range(3):
        u = np.array([stream(block * dim + k) for k in range(dim)])
        np.testing.assert_allclose(u @ u.T, dim * np.eye(dim), atol=1e-12 * dim**1.5)


def test_orthogonal_directions_have_unit_second_moment_and_no_mean_given_the_past(monkeypatch):
    """Over 20 000 lanes, to six standard errors: E u_t = 0, E u_t u_tᵀ = I, E[u_t ⟨u_s, b⟩²…] without preference."""
    monkeypatch.setattr("trimtab.directions.orthogonal.BATCH", 0)  # a lane draws the one block that it uses
    lanes, dim = 20_000, 5
    stream = Stream(tt.Orthogonal(), (lanes, dim), seed=6)
    past = [stream(t).copy() for t in range(4)]
    u = stream(4)  # the last of its block: orthogonal to the other four, so known up to its sign
    limit = 6 / np.sqrt(lanes)
    assert np.abs(u.mean(0)).max() < limit
    second = u[:, :, None] * u[:, None, :]
    assert np.all(np.abs(second.mean(0) - np.eye(dim)) < 6 * second.std(0) / np.sqrt(lanes) + 1e-12)
    for earlier in past:
        given = u * (earlier[:, :1] > 0)  # E[u_t; an event of the past]
        assert np.abs(given.mean(0)).max() < limit


def test_orthogonal_directions_need_memory_of_order_d():
    stream = Stream(tt.Orthogonal(), (10_000,), seed=0)
    for t in range(50):
        stream(t)
    made = stream._source
    assert sum(part.size for part in (made.block, made.signs, made.order, made.flips)) <= 5 * 10_000


def test_threads_with_different_keys_share_streams():
    """One setup serves many studies at once; none gets the directions of another."""
    streams, keys = Streams(tt.Orthogonal(), (5,)), [Key(seed, lane) for seed in range(20) for lane in (0, 3)]
    expected = {
        key: [Stream(tt.Orthogonal(), (5,), seed=key.seed, lane=key.lane)(t).copy() for t in range(40)] for key in keys
    }

    def draw(n):
        key, trial = keys[n % len(keys)], n % 40
        return np.array_equal(streams(key, trial), expected[key][trial])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns after a few instructions
    try:
        with ThreadPoolExecutor(8) as pool:
            many = np.repeat(np.random.default_rng(0).integers(0, 10**6, 1000), 8)  # several threads at the same key
            assert all(pool.map(draw, many.tolist()))
    finally:
        sys.setswitchinterval(before)


class Counted(tt.Orthogonal):
    """Counts how often a stream is started."""

    started = 0

    def source(self, shape, seed, lane):
        type(self).started += 1
        return super().source(shape, seed, lane)


def test_many_keys_in_turn_are_drawn_ahead():
    """A service tells thousands of studies in turn: each starts a stream once in 32 rounds, not in every round."""
    law, keys = Counted(), [Key(seed) for seed in range(200)]
    streams = Streams(law, (5,))
    for trial in range(30):
        for key in keys:
            u = streams(key, trial)
            assert u is not None
            assert not u.flags.writeable
            if key.seed % 50 == 0:
                np.testing.assert_array_equal(u, Stream(tt.Orthogonal(), (5,), seed=key.seed)(trial))
    assert Counted.started == len(keys)
    paired = Streams(tt.Paired(tt.Sphere()), (5,))
    for trial in range(6):
        for key in keys[:50]:
            np.testing.assert_array_equal(
                paired(key, trial), Stream(tt.Paired(tt.Sphere()), (5,), seed=key.seed)(trial)
            )


def test_what_is_drawn_ahead_takes_no_more_than_its_budget():
    cache = RowCache(10_000)
    for n in range(100):
        cache.put(n, n, np.zeros((4, 8)))
    kept = [n for n in range(100) if len(cache.get(n)[1])]
    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) == 10_000 // (4 * 8 * 8 + 512)
    cache.put(kept[0], 7, np.zeros((8, 8)))  # replaced: larger than before, and the newest
    assert cache.get(kept[0])[0] == 7
    assert len(cache.get(kept[1])[1]) == 0
