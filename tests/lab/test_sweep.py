import functools
import os
import re
import sys
import zipfile

import numba
import numpy as np
import pytest

import trimtab as tt
from trimtab import lab, problems
from trimtab.lab import comparison
from trimtab.lab.parallel import executors, result_cache, sweep
from trimtab.util.extras import pip_install

OPTIONS = {"rounds": 12, "trials": 4, "tuning_trials": 3, "variances": 2, "seed": 2}
NAMES = ["residual", "two-point", "still"]


@pytest.fixture(scope="module")
def reference():
    return lab.compare("lqr-v1", NAMES, **OPTIONS)


@pytest.fixture(scope="module")
def kept(reference, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    same(reference, lab.compare("lqr-v1", NAMES, folder=folder, **OPTIONS))
    return folder


@pytest.fixture(scope="module")
def reference_bytes(kept):
    found = contents(kept)
    assert len(found) == 2 * len(NAMES)
    return found


def contents(folder):
    return {file.name: file.read_bytes() for file in (folder / "cells").iterdir()}


class Counted:
    def __init__(self, call):
        self.call, self.calls = call, 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        return self.call(*arguments, **options)


def same(one, other):
    assert list(one.records) == list(other.records)
    for name, record in one.records.items():
        np.testing.assert_array_equal(record.cost, other.records[name].cost)
        np.testing.assert_array_equal(record.variance, other.records[name].variance)
        assert record.summary() == other.records[name].summary()


@pytest.mark.parametrize("backend", ["loky", "dask"])
@pytest.mark.filterwarnings("default")
def test_two_processes_give_the_same_bytes(reference, reference_bytes, backend, tmp_path):
    if backend == "dask":
        pytest.importorskip("distributed", reason="needs dask[distributed]")
    same(reference, lab.compare("lqr-v1", NAMES, jobs=2, backend=backend, folder=tmp_path, **OPTIONS))
    assert contents(tmp_path) == reference_bytes


@pytest.mark.parametrize("backend", ["loky", "dask", "ray"])
def test_nothing_is_started_when_nothing_is_missing(reference, kept, backend, monkeypatch):
    def fail(*_):
        raise AssertionError("a cluster was started")

    monkeypatch.setattr(sweep, "executor_for", fail)
    same(reference, lab.compare("lqr-v1", NAMES, jobs=2, backend=backend, folder=kept, **OPTIONS))
    with pytest.raises(AssertionError, match="was started"):
        lab.compare("lqr-v1", [*NAMES, "one-point"], jobs=2, backend=backend, folder=kept, **OPTIONS)


def test_a_crew_that_was_hired_stays_for_the_next_sweep():
    with executors.executor_of(2) as executor:
        whose = ["__import__('os').getpid()"] * 6
        first, second = (set(sweep.sweep(eval, whose, jobs=2, executor=executor)) for _ in range(2))
    assert second <= first  # the same processes
    assert os.getpid() not in first
    with executors.executor_of(1) as executor:
        assert executor is None  # this process


def test_an_object_store_keeps_the_same_cells(reference, reference_bytes, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    place = "memory://sweeps/test"
    same(reference, lab.compare("lqr-v1", NAMES, folder=place, **OPTIONS))
    files = fsspec.filesystem("memory")
    archives = files.glob("/sweeps/test/cells/*")
    assert len(archives) == len(NAMES)
    found = {}
    for name in archives:
        with zipfile.ZipFile(files.open(name)) as archive:
            found |= {member: archive.read(member) for member in archive.namelist()}
    assert found == reference_bytes
    files.pipe_file(archives[0], b"PK damaged")
    monkeypatch.setattr(comparison, "compute", counted := Counted(comparison.compute))
    same(reference, lab.compare("lqr-v1", NAMES, folder=place, **OPTIONS))
    assert counted.calls == 1
    files.rm("/sweeps", recursive=True)


def test_a_folder_may_be_given_as_a_url(reference, kept, monkeypatch):
    monkeypatch.setattr(comparison, "compute", None)
    same(reference, lab.compare("lqr-v1", NAMES, folder=kept.as_uri(), **OPTIONS))


def test_a_cell_that_kills_every_worker_is_named():
    with pytest.raises(ChildProcessError, match="workers die of 9"):
        sweep.sweep(os._exit, [9], jobs=2)


def test_an_error_in_a_cell_is_that_of_the_cell():
    with pytest.raises(ValueError, match="invalid literal"):
        sweep.sweep(int, ["17", "x"], jobs=2)


def test_workers_have_the_same_code():
    assert executors.compute_in_worker(int, "17", result_cache.code_version(), 1) == 17
    with pytest.raises(
        ImportError, match="has another trimtab than this one, or another NumPy, SciPy or Numba: install"
    ):
        executors.compute_in_worker(int, "17", "other code", 1)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
def test_several_threads_give_the_same_numbers(reference):
    assert numba.get_num_threads() == 1  # by a fixture of all tests, and so of the reference
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    try:
        same(reference, lab.compare("lqr-v1", NAMES, **OPTIONS))
    finally:
        numba.set_num_threads(1)


def test_finished_cells_are_not_computed_again(reference, tmp_path, monkeypatch):
    first = lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)
    same(reference, first)

    def fail(cell, progress=None):
        raise AssertionError("computed again")

    monkeypatch.setattr(comparison, "compute", fail)
    same(first, lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS))
    with pytest.raises(AssertionError, match="computed again"):
        lab.compare("lqr-v1", NAMES, folder=tmp_path, **{**OPTIONS, "seed": 3})
    monkeypatch.setattr(result_cache, "code_version", lambda: "other code")
    with pytest.raises(AssertionError, match="computed again"):
        lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)


@pytest.mark.parametrize("package", result_cache.COMPUTES)
def test_cells_are_of_the_versions_that_computed_them(package, monkeypatch):
    version = result_cache.metadata.version
    before = result_cache.code_version.__wrapped__()
    assert result_cache.code_version.__wrapped__() == before
    monkeypatch.setattr(result_cache.metadata, "version", lambda name: "99" if name == package else version(name))
    assert result_cache.code_version.__wrapped__() != before


def test_what_was_registered_elsewhere_is_not_kept(tmp_path, monkeypatch):
    """It may have changed since, and nobody would see."""

    def mine(size):
        return lambda radius: tt.auto(radius=size)

    def ramp(speed):
        return lambda: problems.from_function(lambda t, x: (x[0] - speed * t) ** 2, x0=[0.0], rounds=9, radius=0.1)

    found = []
    for number in (0.05, 0.4):
        monkeypatch.setitem(tt.methods, "mine", mine(number))
        monkeypatch.setitem(problems.registry, "ramp-v0", ramp(number))
        for problem, name in (("quadratic-v1", "mine"), ("ramp-v0", "still")):
            found.append(lab.compare(problem, [name], rounds=9, trials=2, variances=0, folder=tmp_path).records[name])
    assert not (found[0].played == found[2].played).all()
    assert not (found[1].cost == found[3].cost).all()
    assert not list(tmp_path.rglob("*.*"))
    lab.compare("quadratic-v1", ["mine", "still"], rounds=9, trials=2, variances=0, folder=tmp_path)
    assert len(list(tmp_path.rglob("*.npz"))) == 1


def test_what_is_trimtab_s_own_is_kept_under_a_name():
    for name in tt.methods:
        assert result_cache.key({"method": name})
    for id in problems.registry:
        assert result_cache.key({"problem": id})


def test_a_constructor_with_fixed_arguments_is_known_by_them(monkeypatch):
    names = []
    for move in (0.1, 0.2, 0.2):
        monkeypatch.setitem(tt.methods, "mine", functools.partial(tt.residual, max_move=move))
        names.append(result_cache.key({"method": "mine"}))
    assert names[0] != names[1] == names[2] != ""


def test_a_damaged_cell_is_computed_again(reference, tmp_path):
    lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)
    for file in (tmp_path / "cells").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    same(reference, lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS))


def test_an_interruption_leaves_what_is_finished(tmp_path, monkeypatch):
    compute = comparison.compute

    def impatient(task, progress=None):
        if task.method == "still":
            raise KeyboardInterrupt
        return compute(task, progress)

    monkeypatch.setattr(comparison, "compute", impatient)
    partial = lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS)
    assert list(partial.records) == ["residual", "two-point"]
    assert not partial.complete
    monkeypatch.setattr(comparison, "compute", compute)
    assert lab.compare("lqr-v1", NAMES, folder=tmp_path, **OPTIONS).complete


def test_progress_goes_up_to_one():
    seen = []
    lab.compare("quadratic-v1", ["residual"], report=lambda n, share: seen.append((n, share)), **OPTIONS)
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 20


def test_bad_requests_are_told_before_the_work():
    with pytest.raises(ValueError, match=r"unknown problem 'lqr': choose one of .*lqr-v1"):
        lab.compare("lqr")
    with pytest.raises(ValueError, match="there is no method 'magic'"):
        lab.compare("lqr-v1", ["residual", "magic"])
    with pytest.raises(ValueError, match="names one twice"):
        lab.compare("lqr-v1", ["residual", "residual"])
    with pytest.raises(ValueError, match="backend='mpi' is unknown: choose from loky, dask, ray"):
        lab.compare("lqr-v1", ["still"], backend="mpi", **OPTIONS)
    with pytest.raises(ValueError, match="cluster='tcp://here:1' needs backend='dask' or 'ray'"):
        lab.compare("lqr-v1", ["still"], cluster="tcp://here:1", **OPTIONS)
    with pytest.raises(ValueError, match="jobs=0 must be a whole number, at least 1"):
        lab.compare("lqr-v1", ["still"], jobs=0, **OPTIONS)


def test_a_missing_backend_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=re.escape(f"backend='ray' needs: {pip_install('ray')}")):
        lab.compare("lqr-v1", ["still"], backend="ray", **OPTIONS)
