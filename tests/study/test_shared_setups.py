"""Studies of one configuration share a setup and its kernel, whichever way they come to it, and from any thread."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import trimtab as tt
from trimtab import core
from trimtab.live import Study
from trimtab.store.pool import Pool
from trimtab.study.unlocked import UnlockedStudy, load

from ..factories import KNOBS, cost, run

METHOD = tt.auto(radius=0.04)


@pytest.fixture
def eager():
    """Threads that take turns after a few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def kernel(study):
    return core.kernel(study.setup)


def test_two_studies_of_a_configuration_share_a_kernel(tmp_path):
    file = tmp_path / "trimtab.db"
    with Study.open(file, "a", KNOBS, METHOD, seed=1) as a, Study.open(file, "b", KNOBS, METHOD, seed=2) as b:
        for study in (a, b):
            study.tell(study.ask(), 1.0)
        assert kernel(a) is kernel(b)
        assert a.state.key != b.state.key
        assert a.ask().knobs != b.ask().knobs
        with Study.open(file, "c", KNOBS, tt.auto(radius=0.05), seed=1) as other:
            assert kernel(other) is not kernel(a)


def test_studies_that_were_changed_alike_share_a_kernel_again(tmp_path):
    changes = {"radius": 0.03, "knobs.gain.high": 11, "guard.largest_move": 0.2}
    with (
        Study.open(tmp_path / "a.db", "a", KNOBS, METHOD, seed=1) as a,
        Study.open(tmp_path / "b.db", "b", KNOBS, METHOD, seed=2) as b,
    ):
        for study in (a, b):
            run(study, 20)
        before = kernel(a)
        a.set(changes)
        assert kernel(a) is not before
        b.set(changes)
        assert kernel(a) is kernel(b)


def test_a_service_reads_them_with_one_kernel(tmp_path):
    file = tmp_path / "trimtab.db"
    for seed, name in enumerate("abc"):
        with Study.open(file, name, KNOBS, METHOD, seed=seed) as study:
            run(study, 3)
    pool = Pool(str(file))
    with pool.store() as store:
        for _ in range(2):  # from snapshots and events, then from rows as well
            studies = [UnlockedStudy(store, known) for known in load(store, list("abc"))]
            assert len({id(kernel(study)) for study in studies}) == 1
            for study in studies:
                study.tell(study.ask(), 1.0)
                assert study.stored()
    pool.close()


def test_threads_tell_studies_of_one_kernel_as_if_each_were_alone(tmp_path, eager):
    def history(folder, seed):
        with Study.open(tmp_path / folder / f"{seed}.db", "a", KNOBS, METHOD, seed=seed) as study:
            return [trial.knobs for trial in run(study, 60)], study.centre, kernel(study)

    for folder in ("together", "alone"):
        (tmp_path / folder).mkdir()
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda seed: history("together", seed), range(16)))
    assert len({id(kernel) for *_, kernel in together}) == 1
    assert cost(together[0][1]) < cost({"gain": 2, "size": 8})
    for seed in range(0, 16, 3):
        assert history("alone", seed)[:2] == together[seed][:2]
