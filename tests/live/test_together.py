"""Rounds of many studies at once, from their rows alone: everything is what each study has when it is told alone."""

import math
import random

import numpy as np
import pytest

from trimtab.crowd import Draws
from trimtab.live import Study, engine, packed, together
from trimtab.live.advice import advised
from trimtab.live.checking import check_study
from trimtab.live.lot import Lot, by_shape, read, strangers, takes
from trimtab.live.packed import SHAPES, Packed, unpack
from trimtab.live.row import Known, RowStudy, load
from trimtab.live.shared import SharedStore

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
    """Studies of one shape and of all ages."""
    chance = random.Random(1)
    studies = [Study.open(":memory:", f"s{k}", knobs, seed=k, **options) for k in range(count)]
    for k, study in enumerate(studies):
        for _ in range(k if k < 5 else chance.randrange(most)):
            trial = study.ask()
            study.tell(trial, measured(chance, k, trial.knobs))
    return studies, chance


@pytest.mark.parametrize(("knobs", "goal"), [(PLAIN, False), (MIXED, True)])
@pytest.mark.parametrize("count", [3, 24])
def test_bit_by_bit_as_one_by_one(knobs, goal, count):
    studies, chance = grown(knobs, count, 150, baseline=10, maximise=goal)
    (key,) = {SHAPES.of(study._position).key for study in studies}
    shape, compared, quiet = SHAPES.get(key), 0, 0
    for _ in range(20):
        group = []
        for k, study in enumerate(studies):
            trial = study.ask()
            value = measured(chance, k, trial.knobs)
            if trial.kind == "probe" and value is not None:
                group.append((study, trial, value, shape.numbers(study._position)))
            else:
                study.tell(trial, value)
        if not group:
            continue
        rows = np.zeros((len(group), max(len(numbers) for *_, numbers in group)))
        for row, (*_, numbers) in zip(rows, group, strict=True):
            row[: len(numbers)] = numbers
        draws = Draws(shape.setup, [study.setup.seed for study, *_ in group])
        queries, after = together.tell(shape, draws, rows, np.array([value for _, _, value, _ in group]))
        following = together.ask(shape, draws, after)
        due = together.due(shape, after)
        for n, (study, trial, value, numbers) in enumerate(group):
            assert np.array_equal(engine.ask(study.setup, study.state), queries[n])
            study.tell(trial, value)
            assert shape.numbers(study._position).tobytes() == after[n, : len(numbers)].tobytes()
            assert np.array_equal(engine.ask(study.setup, study.state), following[n])
            assert (study.ask().kind == "baseline") == due[n]
            plain = after[n].tolist()
            assert shape.saving(plain) == study.saving._asdict()
            if together.silent(shape, plain):
                assert advised(study._position) == []
                quiet += 1
            compared += 1
    assert compared > 10 * count
    assert 0 < quiet <= compared


@pytest.mark.parametrize("knobs", [PLAIN, MIXED])
def test_a_piece_holds_a_position(knobs):
    studies, _ = grown(knobs, 8, 300, baseline=7)
    for study in studies:
        there, shape = study._position, SHAPES.of(study._position)
        data = packed.packed(shape, study.uid, there, study.seq, study._turn)
        piece = unpack(study.uid, data, study.seq)
        assert piece[:4] == (shape.key, study.setup.seed, study.seq, study._turn)
        again = shape.position(study.setup, piece.numbers)
        assert again.snapshot(study.seq) == there.snapshot(study.seq)
        assert packed.pack(study.uid, Packed(*piece)) == data


def test_a_piece_of_another_event_or_study_or_a_damaged_one_is_none():
    (study,), _ = grown(PLAIN, 1, 5)
    data = packed.packed(SHAPES.of(study._position), "me", study._position, 4, 4)
    assert unpack("me", data, 4) is not None
    assert unpack("me", data, 5) is None
    assert unpack("you", data, 4) is None
    assert unpack("me", data[:-1], 4) is None
    assert unpack("me", b"", 4) is None
    assert unpack("me", data[:60] + bytes([data[60] ^ 1]) + data[61:], 4) is None


def test_what_has_no_piece():
    """Limits, and several open trials, are for the long way round."""
    import trimtab as tt

    method = tt.primal_dual(radius=0.05, step=1e-3, limits=1)
    with Study.open(":memory:", "a", PLAIN, method, limits={"power": {"max": 3}}) as study:
        assert SHAPES.of(study._position) is None


@pytest.fixture(params=["file", "server"])
def store(request, tmp_path):
    where = tmp_path / "t.db" if request.param == "file" else request.getfixturevalue("url")
    with SharedStore(where) as found:
        yield found


def test_a_lot_is_stored_as_each_would_be(store, monkeypatch):
    """Two stores' worth of the same studies: one told in lots, the other one by one; everything in them is the same."""
    monkeypatch.setattr("time.time", lambda: 1e9)
    names = [f"lot{k}" for k in range(9)], [f"one{k}" for k in range(9)]
    for some in names:
        for k, name in enumerate(some):
            Study.open(store.where, name, PLAIN if k % 3 else MIXED, seed=k, baseline=0).close()
    values = random.Random(2)
    for _ in range(12):
        told = {name: values.gauss(0, 1) for name in names[0]}
        rows = [read(row, store.where) for row in store.rows(names[0])]
        assert all(takes(row, told[row.name]) for row in rows)
        for some in by_shape(rows):
            lot = Lot([rows[n] for n in some])
            done = lot.tell([told[row.name] for row in lot.rows], 1e9)
            assert store.commit_if([], [one.stored for one in done]) == {row.id for row in lot.rows}
            asked = {row.name: trial for row, trial in zip(lot.rows, lot.ask(), strict=True)}
            for known in load(store, list(asked)):
                assert isinstance(known, Known)
                assert RowStudy(store, known).ask() == asked[known.saved.name]
        for known in load(store, names[1]):
            study = RowStudy(store, known)
            study.tell(study.ask(), told[study.name.replace("one", "lot")])
            assert store.commit_if([study.move]) == {known.saved.id}
    for lots, ones in zip(*names, strict=True):
        (a,), (b,) = load(store, [lots]), load(store, [ones])
        assert a.position.snapshot(12) == b.position.snapshot(12)
        assert {**a.saved.status} == {**b.saved.status}
        assert store.events(a.saved)[1:] == store.events(b.saved)[1:]
        assert check_study(store, a.saved) == check_study(store, b.saved) == []


def test_a_state_in_a_row_that_values_do_not_lead_to_is_found(store):
    Study.open(store.where, "bent", PLAIN, seed=1, baseline=0).close()
    (known,) = load(store, ["bent"])
    moved = known.position._replace(state=known.position.state._replace(centre=known.position.state.centre + 0.01))
    data = packed.packed(known.shape, known.saved.uid, moved, 0, 0)
    store.execute("UPDATE trimtab_studies SET state = ? WHERE name = 'bent'", data)
    (wrong,) = check_study(store, known.saved)
    assert wrong == "the stored state does not match event 0: restore the store from a backup"
    store.execute("UPDATE trimtab_studies SET state = ? WHERE name = 'bent'", data[:-1] + b"?")
    assert check_study(store, known.saved) == []  # nobody reads what is not whole
    (again,) = load(store, ["bent"])
    assert again.position.snapshot(0) == known.position.snapshot(0)


def test_shapes_that_are_not_known_are_learnt(store, monkeypatch):
    for k in range(4):
        Study.open(store.where, f"new{k}", PLAIN if k % 2 else MIXED, seed=k, baseline=0).close()
    monkeypatch.setattr(SHAPES, "_known", type(SHAPES._known)())
    rows = store.rows([f"new{k}" for k in range(4)])
    assert [read(row, store.where) for row in rows] == [None] * 4
    unknown = strangers(rows)
    assert len(unknown) == 2
    load(store, unknown)
    assert strangers(rows) == []
    assert None not in [read(row, store.where) for row in rows]
