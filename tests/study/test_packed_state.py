"""The packed state in a study's row."""

import math
import random

import pytest

from trimtab.live import Study
from trimtab.store.shared_store import SharedStore
from trimtab.study import packed_state
from trimtab.study.packed_state import SHAPES, Packed, unpack
from trimtab.study.unlocked import load
from trimtab.study.verify import check_study

PLAIN = [
    {"name": "heat", "low": 150, "high": 220, "start": 180},
    {"name": "gain", "low": 0.5, "high": 100.0, "start": 2.0, "scale": "log"},
    {"name": "share", "low": 0.0, "high": 1.0, "start": 0.0},
    {"name": "fixed", "low": 3.0, "high": 3.0, "start": 3.0},
]
MIXED = [
    *PLAIN[:2],
    {"name": "size", "type": "integer", "low": 1, "high": 256, "start": 8},
    {"name": "codec", "choices": ["gzip", "zstd", "lz4"], "start": "gzip"},
    {"name": "cache", "type": "bool", "start": True},
]


def measured(chance, k, knobs):
    if chance.random() < 0.05:
        return None
    noise = [0.0, 0.1, 3.0][k % 3] * chance.gauss(0, 1) + 1e3 * (chance.random() < 0.01)
    return (knobs["heat"] - 160) ** 2 / 100 + math.log(knobs["gain"] / 50) ** 2 + knobs.get("share", 0.0) + noise


def grown(knobs, count, most, **options):
    """Studies of one shape, of all ages."""
    chance = random.Random(1)
    studies = [Study.open(":memory:", f"s{k}", knobs, seed=k, **options) for k in range(count)]
    for k, study in enumerate(studies):
        for _ in range(k if k < 5 else chance.randrange(most)):
            trial = study.ask()
            study.tell(trial, measured(chance, k, trial.knobs))
    return studies, chance


@pytest.mark.parametrize("knobs", [PLAIN, MIXED])
def test_a_position_survives_packing(knobs):
    studies, _ = grown(knobs, 8, 300, baseline=7)
    for study in studies:
        there, shape = study._position, SHAPES.of(study._position)
        data = packed_state.packed(shape, study.uid, there, study.seq, study._turn)
        piece = unpack(study.uid, data, study.seq)
        assert piece[:4] == (shape.key, study.state.key.seed, study.seq, study._turn)
        again = shape.position(piece.seed, piece.numbers)
        assert again.snapshot(study.seq) == there.snapshot(study.seq)
        assert packed_state.pack(study.uid, Packed(*piece)) == data


def test_a_packed_state_that_is_stale_foreign_or_damaged_is_ignored():
    (study,), _ = grown(PLAIN, 1, 5)
    data = packed_state.packed(SHAPES.of(study._position), "me", study._position, 4, 4)
    assert unpack("me", data, 4) is not None
    assert unpack("me", data, 5) is None
    assert unpack("you", data, 4) is None
    assert unpack("me", data[:-1], 4) is None
    assert unpack("me", b"", 4) is None
    assert unpack("me", data[:60] + bytes([data[60] ^ 1]) + data[61:], 4) is None


def test_positions_that_cannot_be_packed():
    """Studies with limits or several open trials are loaded from snapshots."""
    import trimtab as tt

    method = tt.primal_dual(radius=0.05, step=1e-3, limits=1)
    with Study.open(":memory:", "a", PLAIN, method, limits={"power": {"max": 3}}) as study:
        assert SHAPES.of(study._position) is None


@pytest.fixture(params=["file", "server"])
def store(request, tmp_path):
    where = tmp_path / "t.db" if request.param == "file" else request.getfixturevalue("url")
    with SharedStore(where) as found:
        yield found


def test_check_finds_a_packed_state_that_differs_from_the_replay(store):
    Study.open(store.where, "bent", PLAIN, seed=1, baseline=0).close()
    (known,) = load(store, ["bent"])
    moved = known.position._replace(state=known.position.state._replace(centre=known.position.state.centre + 0.01))
    data = packed_state.packed(known.shape, known.saved.uid, moved, 0, 0)
    store.execute("UPDATE trimtab_studies SET state = ? WHERE name = 'bent'", data)
    (wrong,) = check_study(store, known.saved)
    assert wrong == "the stored state does not match event 0: restore the store from a backup"
    store.execute("UPDATE trimtab_studies SET state = ? WHERE name = 'bent'", data[:-1] + b"?")
    assert check_study(store, known.saved) == []  # a damaged value is never read
    (again,) = load(store, ["bent"])
    assert again.position.snapshot(0) == known.position.snapshot(0)
