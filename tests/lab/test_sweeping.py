import sys

import numpy as np
import pytest

from trimtab import lab
from trimtab.lab import comparing, keeping

OPTIONS = {"rounds": 12, "trials": 4, "tuning_trials": 3, "variances": 2, "seed": 2}
NAMES = ["residual", "two-point", "still"]


@pytest.fixture(scope="module")
def reference():
    return lab.compare("lqr-v1", NAMES, **OPTIONS)


def same(one, other):
    assert list(one.records) == list(other.records)
    for name, record in one.records.items():
        np.testing.assert_array_equal(record.cost, other.records[name].cost)
        np.testing.assert_array_equal(record.variance, other.records[name].variance)
        assert record.summary() == other.records[name].summary()


@pytest.mark.parametrize("backend", ["loky", "dask"])
@pytest.mark.filterwarnings("default")
def test_two_processes_give_the_same_numbers(reference, backend):
    if backend == "dask":
        pytest.importorskip("distributed", reason="needs dask[distributed]")
    same(reference, lab.compare("lqr-v1", NAMES, jobs=2, backend=backend, **OPTIONS))


def test_one_thread_gives_the_same_numbers(reference):
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        same(reference, lab.compare("lqr-v1", NAMES, **OPTIONS))
    finally:
        numba.set_num_threads(before)


def test_finished_cells_are_not_computed_again(reference, tmp_path, monkeypatch):
    first = lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)
    same(reference, first)

    def fail(cell, progress=None):
        raise AssertionError("computed again")

    monkeypatch.setattr(comparing, "compute", fail)
    same(first, lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS))
    with pytest.raises(AssertionError, match="computed again"):
        lab.compare("lqr-v1", NAMES, folder=tmp_path, **{**OPTIONS, "seed": 3})
    monkeypatch.setattr(keeping, "code_version", lambda: "other code")
    with pytest.raises(AssertionError, match="computed again"):
        lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)


def test_a_damaged_cell_is_computed_again(reference, tmp_path):
    lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)
    for file in (tmp_path / "cells").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    same(reference, lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS))


def test_an_interruption_leaves_what_is_finished(tmp_path, monkeypatch):
    compute = comparing.compute

    def impatient(task, progress=None):
        if task.method == "still":
            raise KeyboardInterrupt
        return compute(task, progress)

    monkeypatch.setattr(comparing, "compute", impatient)
    partial = lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)
    assert list(partial.records) == ["residual", "two-point"]
    assert not partial.complete
    monkeypatch.setattr(comparing, "compute", compute)
    assert lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS).complete


def test_progress_goes_up_to_one():
    seen = []
    lab.compare("quadratic-v1", ["residual"], report=lambda n, share: seen.append((n, share)), **OPTIONS)
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 20


def test_bad_requests_are_told_before_the_work():
    with pytest.raises(ValueError, match=r"there is no problem 'lqr': choose one of .*lqr-v1"):
        lab.compare("lqr")
    with pytest.raises(ValueError, match="there is no method 'magic'"):
        lab.compare("lqr-v1", ["residual", "magic"])
    with pytest.raises(ValueError, match="names one twice"):
        lab.compare("lqr-v1", ["residual", "residual"])
    with pytest.raises(ValueError, match="backend='mpi' is unknown: choose from loky, dask, ray"):
        lab.compare("lqr-v1", ["still"], backend="mpi", **OPTIONS)


def test_a_missing_backend_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"backend='ray' needs: pip install \"trimtab\[ray\]\""):
        lab.compare("lqr-v1", ["still"], backend="ray", **OPTIONS)
