"""Sweeps on real processes that die, are interrupted, and share a folder: loky and Dask; for Ray, see tests/hosts."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.fspath(Path(__file__).parent))

import clusters


@pytest.fixture(params=["loky", pytest.param("dask", marks=pytest.mark.long)])
def backend(request):
    if request.param == "dask":
        pytest.importorskip("distributed", reason="needs dask[distributed]")
    return request.param


def test_a_killed_worker_costs_its_cell(backend, tmp_path):
    clusters.a_killed_worker_costs_its_cell(backend, tmp_path)


def test_ctrl_c_keeps_what_is_finished(backend, tmp_path):
    clusters.ctrl_c_keeps_what_is_finished(backend, tmp_path)


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_at_an_address_is_used_and_left(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        def workers():
            with distributed.Client(cluster) as client:
                return set(client.run(os.getpid).values())

        before = workers()
        sweep = clusters.Sweep("dask", tmp_path, cluster.scheduler_address)
        assert sweep.end() == clusters.SQUARES
        assert {process for _, process in sweep.begun()} <= before
        assert workers() == before
