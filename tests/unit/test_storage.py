import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import trimtab as tt
from trimtab import storage

DOMAINS = [
    tt.Everywhere(),
    tt.Box([0, -math.inf, 0], [1, 2, math.inf]),
    tt.Ball(3.0, [0.1, 0.2, 0.3]),
    tt.Simplex(2.0),
    tt.Halfspace([1.0, 2.0, 3.0], 4.0),
    tt.Polytope(np.vstack([np.eye(3), -np.eye(3)]), np.ones(6)),
    tt.Product((tt.Simplex(), 2), (tt.Box(-1, 1), 1)),
    tt.Intersection(tt.Ball(1.0), tt.Box(-0.9, 0.9)),
]
METHODS = [
    tt.residual(radius=0.01, step=1 / 3),
    tt.one_point(radius=0.01, step=tt.Power(0.1, exponent=0.5), max_move=0.7),
    tt.two_point(radius=0.01, step=0.1, form="forward", margin="none"),
    tt.high_pass(radius=0.01, step=tt.Normalised(2.0, window=7), beta=0.3, directions=tt.Paired(tt.Sphere())),
    tt.auto(radius=0.01),
]


def started(method=METHODS[0], domain=None, shape=(3,), rounds=5, **options):
    domain = tt.Everywhere() if domain is None else domain
    x0 = np.broadcast_to(domain.project(np.full(3, 0.3)), shape)
    tuner = tt.Tuner(x0, method, domain=domain, seed=2**63 + 11, **options)
    for _ in range(rounds):
        trial = tuner.ask()
        tuner.tell(trial, np.sin(np.asarray(trial.x) @ [1.0, 2.0, 3.0]))
    return tuner


def same(a, b):
    assert a.to_json() == b.to_json()
    np.testing.assert_array_equal(a.ask().x, b.ask().x)
    assert a.setup.domain == b.setup.domain
    assert a.setup.method == b.setup.method


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("name", ["tuner.json", "tuner.npz", "tuner"])
def test_every_domain_is_saved_exactly(domain, name, tmp_path):
    tuner = started(domain=domain)
    tuner.save(tmp_path / name)
    same(tuner, tt.Tuner.load(tmp_path / name))
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m.estimator).__name__)
@pytest.mark.parametrize("shape", [(3,), (4, 3), (40, 3)])
def test_every_method_is_saved_exactly(method, shape, tmp_path):
    tuner = started(method, shape=shape)
    same(tuner, tt.Tuner.from_json(tuner.to_json()))
    tuner.save(str(tmp_path / "t.npz"))
    same(tuner, tt.Tuner.load(str(tmp_path / "t.npz")))


def test_bounds_goal_lane_and_pending_are_saved():
    tuner = tt.Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], maximise=True, max_pending=4, lane=5, seed=1)
    tuner.ask(), tuner.ask()
    twin = tt.Tuner.from_json(tuner.to_json())
    same(tuner, twin)
    assert (twin.setup.maximise, twin.setup.max_pending, twin.state.key) == (True, 4, (1, 5, 1))
    np.testing.assert_array_equal(twin.setup.bounds, [[0, 1], [1, 100]])


def test_the_text_is_plain_json_for_humans():
    document = json.loads(started().to_json(), parse_constant=pytest.fail)
    assert document["setup"]["method"]["estimator"] == {"type": "Residual"}
    assert document["state"]["round"] == 5
    fresh = json.loads(started(rounds=0).to_json(), parse_constant=pytest.fail)
    assert fresh["state"]["values"] == ["nan"]


def test_a_large_state_is_compact_in_the_binary_file(tmp_path):
    tuner = tt.Tuner(np.full(10**5, 1 / 3), METHODS[0], seed=0)
    tuner.tell(tuner.ask(), 1.0)
    tuner.save(tmp_path / "big.npz")
    assert (tmp_path / "big.npz").stat().st_size < 2 * 8 * 10**5 + 4000  # the centre, and the one of the last look
    same(tuner, tt.Tuner.load(tmp_path / "big.npz"))


def test_a_schedule_has_to_be_given_again():
    method = tt.residual(radius=0.1, step=lambda t: 0.1 / (1 + t))
    text = started(method).to_json()
    with pytest.raises(ValueError, match=r"<lambda> could not be saved: give the method again"):
        tt.Tuner.from_json(text)
    same(started(method), tt.Tuner.from_json(text, method=method))


def test_an_unknown_part_has_to_be_given_again():
    document = json.loads(started().to_json().replace('"Residual"', '"Residuum"'))
    text = json.dumps(storage.sealed(document))
    with pytest.raises(ValueError, match=r"'Residuum' is not registered: give the method again"):
        tt.Tuner.from_json(text)
    same(started(), tt.Tuner.from_json(text, method=METHODS[0]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(version=9), "saved in version 9 of the format, and this trimtab reads version 3"),
        (lambda d: d.pop("version"), "version None"),
        (lambda d: d.update(format="something"), "not a saved tuner"),
        (lambda d: d.pop("state"), "damaged"),
        (lambda d: d["state"].pop("memory"), "state does not fit"),
        (lambda d: d["state"].update(centre=[1.0]), r"centre has shape \(1,\) instead of \(3,\)"),
        (lambda d: d["state"].update(centre=["nan", 0, 0]), "centre has an impossible number"),
        (
            lambda d: d["state"]["memory"].update(slope=[1.0, 2.0]),
            "slope does not fit .*: give the method .*use the trimtab",
        ),
        (lambda d: d["state"].update(values=["x"]), "values does not fit"),
        (lambda d: d["state"].update(values=["inf"]), "values has an impossible number"),
        (lambda d: d["state"]["last"].update(trial=-2), "-2 is not a whole number"),
        (lambda d: d["state"]["last"].update(width="nan"), "width has an impossible number"),
        (lambda d: d["state"].update(round=-1), "-1 is not a whole number"),
        (lambda d: d["state"].update(round=1.5), "1.5 is not a whole number"),
        (lambda d: d["state"].update(open=[[7, d["state"]["last"]]]), "do not fit round 5"),
        (lambda d: d["state"].update(open=[[1, d["state"]["last"]]] * 2), "do not fit round 5"),
        (lambda d: d["state"].update(open=[[1, None]]), "damaged"),
        (lambda d: d["state"].update(skipped=-4), "-4 is not a whole number"),
        (lambda d: d["setup"].update(shape=[100_000_000]), r"centre has shape \(3,\) instead of \(100000000,\)"),
        (lambda d: d["setup"].update(maximise="no"), "neither True nor False"),
        (lambda d: d["state"]["key"].update(seed=-4), "seed=-4"),
        (lambda d: d["setup"].update(surprise=1), "damaged"),
        (lambda d: d["setup"]["method"].update(radius=-1), "radius=-1"),
    ],
)
def test_a_damaged_or_foreign_text_is_refused(change, words):
    """Even where whoever changed it made the checksum anew."""
    document = json.loads(started().to_json())
    change(document)
    if {"setup", "state"} <= document.keys():
        document = storage.sealed(document)
    with pytest.raises(ValueError, match=words):
        tt.Tuner.from_json(json.dumps(document))


def test_every_change_of_a_text_is_noticed():
    """Each digit of each number, and each letter: nothing that is changed is loaded as another tuner."""
    text, rng, survivors = started(METHODS[-1], shape=(4, 3)).to_json(), np.random.default_rng(0), 0
    for place in rng.integers(0, len(text), 3000):
        broken = text[:place] + chr(int(rng.integers(32, 127))) + text[place + 1 :]
        try:
            tuner = tt.Tuner.from_json(broken)
        except ValueError:
            continue
        survivors += 1
        assert tuner.to_json() == text  # it was white space, or the same character, or a digit that adds nothing
    assert survivors < 1500


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, '{"format": "trimtab.tuner", "version": 2, "setup": NaN}'],
    ids=["brackets", "braces", "NaN"],
)
def test_hostile_texts_are_refused_in_a_line(text):
    with pytest.raises(ValueError, match="not a saved tuner") as caught:
        tt.Tuner.from_json(text)
    assert len(str(caught.value)) < 300


def test_an_archive_that_would_inflate_is_not_read(tmp_path):
    started(shape=(40, 3)).save(tmp_path / "t.npz")
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, document=np.zeros(2**24, dtype=np.uint8))
    with pytest.raises(ValueError, match="bytes would inflate to 16777"):
        tt.Tuner.load(bomb)


def test_a_file_keeps_its_mode_and_no_device_is_followed(tmp_path):
    path = tmp_path / "t.json"
    started().save(path)
    path.chmod(0o640)
    started().save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(ValueError, match="is a device"):
        started().save(os.devnull)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"x"'])
def test_no_saved_tuner_at_all(text):
    with pytest.raises(ValueError, match="not a saved tuner"):
        tt.Tuner.from_json(text)


def test_every_cut_and_many_flips_of_a_binary_file_are_noticed(tmp_path):
    path = tmp_path / "t.npz"
    started(shape=(40, 3)).save(path)
    whole = path.read_bytes()
    expected = tt.Tuner.load(path).to_json()
    rng = np.random.default_rng(0)
    for cut in rng.integers(0, len(whole) - 1, 40):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"damaged|not a saved tuner"):
            tt.Tuner.load(path)
    for place in rng.integers(0, len(whole), 200):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(broken))
        try:
            survivor = tt.Tuner.load(path)
        except ValueError:
            continue
        assert survivor.to_json() == expected  # the flip hit padding or a time stamp


def test_saving_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    tuner = started()
    tuner.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    tuner.tell(tuner.ask(), 1.0)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(storage.os, name, full)
            with pytest.raises(OSError, match="No space left"):
                tuner.save(path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["t.json"]


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^\S+ cannot be read \(No such file or directory\): check the path"):
        tt.Tuner.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        tt.Tuner.load(Path(tmp_path) / "none.npz")


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m.estimator).__name__)
def test_what_a_store_has_verified_is_read_exactly_without_another_look(method):
    tuner = started(method, max_pending=3)
    tuner.ask(), tuner.ask()
    document = json.loads(tuner.to_json())
    setup, state = storage.revive({**document, "checksum": "not looked at"}, {}, None, verified=True)
    assert storage.to_json(setup, state) == tuner.to_json()
    np.testing.assert_array_equal(tt.ask(setup, state).x, tuner.ask().x)
    other = {**document, "state": {**document["state"], "key": {"seed": 2**63 + 5, "lane": 1, "copies": 1}}}
    shared, found = storage.revive(other, {}, None, verified=True)
    assert shared is setup  # those of one configuration share a setup, and so a kernel
    assert found.key == (2**63 + 5, 1, 1)
    np.testing.assert_array_equal(found.centre, state.centre)


def test_a_verified_state_of_another_trimtab_is_refused():
    document = json.loads(started(METHODS[-1]).to_json())
    document["state"]["memory"]["slope"].popitem()
    with pytest.raises(ValueError, match=r"the saved \w+ has other fields here: use the trimtab that wrote it"):
        storage.revive(document, {}, None, verified=True)


def test_a_state_of_another_trimtab_is_not_called_damaged():
    setup = tt.Setup(tt.auto(radius=0.1), (2,))
    document = json.loads(storage.to_json(setup, tt.init(setup, np.zeros(2))))
    document["state"]["memory"]["pace"]["following"].popitem()
    with pytest.raises(ValueError, match=r"the saved following does not fit .*, use the trimtab that wrote it$"):
        storage.from_json(json.dumps(storage.sealed(document)))


def test_a_verified_seed_is_a_whole_number():
    document = json.loads(started().to_json())
    document["state"]["key"]["seed"] = -4
    with pytest.raises(ValueError, match="seed=-4"):
        storage.revive(document, {}, None, verified=True)
