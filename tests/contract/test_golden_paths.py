"""Every method goes the way that was recorded, in all surroundings (`golden.py` says which)."""

import pytest

from ..golden import check, digest, record, recorded, written
from . import golden

AGAIN = "python -m tests.contract.golden"


def grouped():
    """First part of the names → names: few tests, each of which says all that has changed."""
    groups = {}
    for name in golden.NAMES:
        groups.setdefault(name.split(", ")[0], []).append(name)
    return groups


def common(name):
    return name not in golden.CASES or golden.CASES[name].common


@pytest.mark.parametrize("group", grouped())
def test_paths_are_those_recorded(group):
    found = {name: golden.hash_of(name) for name in grouped()[group] if common(name)}
    check(golden.FILE, found, AGAIN)


@pytest.mark.long
@pytest.mark.parametrize("group", [group for group, names in grouped().items() if not all(map(common, names))])
def test_all_other_paths_are_those_recorded(group):
    check(golden.FILE, {name: golden.hash_of(name) for name in grouped()[group] if not common(name)}, AGAIN)


def test_each_path_is_recorded_and_each_record_is_a_path():
    assert sorted(golden.NAMES) == sorted(recorded(golden.FILE)["hashes"])


@pytest.mark.parametrize("name", ["auto, box, d=7, hostile, one", "reszo, ball, d=2, calm, lanes", "paired, pending"])
def test_a_changed_path_is_noticed_from_where_it_changes(name, monkeypatch):
    before, values = golden.hash_of(name), golden.values

    def changed(case, x, best, unit, trial, rng):
        return values(case, x, best, unit, trial, rng) * (1.0 + 1e-6 * (trial >= 95))

    monkeypatch.setattr(golden, "values", changed)
    (*same, last), (*recorded_same, recorded_last) = golden.hash_of(name).split("-"), before.split("-")
    assert same == recorded_same
    assert last != recorded_last


def test_a_difference_fails_unless_numpy_itself_differs(tmp_path, monkeypatch):
    file = tmp_path / "hashes.json"
    record(file, {"a": "1-2", "b": "3-4"})
    check(file, {"a": "1-2"}, AGAIN)
    for found in ({"a": "1-2", "b": "3-5"}, {"new": "1-2"}):
        with pytest.raises(AssertionError, match="what users see has changed"):
            check(file, found, AGAIN)
    monkeypatch.setattr("tests.golden.canary", lambda: "another processor")
    check(file, {"a": "1-2", "b": "3-4"}, AGAIN)
    with pytest.raises(pytest.skip.Exception, match="1 of 2 hashes differ, but so do the last digits of plain NumPy"):
        check(file, {"a": "1-2", "b": "3-5"}, AGAIN)


def test_what_is_hashed_leaves_out_the_last_digits_and_the_order_of_keys():
    assert written([1.0, -0.0, {"b": 2, "a": None}]) == written([1.0 + 1e-13, 0.0, {"a": None, "b": 2}])
    assert written(1.0) != written(1.0 + 1e-8)
    assert digest(["a", "b", "c", "d"]).split("-")[:3] == digest(["a", "b", "c", "e"]).split("-")[:3]
