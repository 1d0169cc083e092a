"""The shipped checks over everything registered, and over compositions of the parts."""

import inspect

import numpy as np
import pytest

import trimtab as tt
from trimtab import checks


def build(name):
    options = {"step": 0.01} if "step" in inspect.signature(tt.methods[name]).parameters else {}
    return tt.methods[name](radius=0.1, **options)


@pytest.mark.parametrize("name", sorted(set(tt.methods) - {"still"}))  # which explores nothing, whatever the seed
def test_registered_methods_keep_the_contract(name):
    checks.check_method(build(name))


@pytest.mark.parametrize(
    "law",
    [tt.Sphere(), tt.Rademacher(), tt.Paired(), tt.Paired(tt.Sphere()), tt.Orthogonal()],
    ids=str,
)
@pytest.mark.parametrize("name", ["residual", "high-pass", "two-point"])
def test_laws_of_direction_keep_the_contract(name, law):
    checks.check_method(tt.methods[name](radius=0.1, step=0.01, directions=law))


@pytest.mark.parametrize("estimator", [tt.Covariance(2), tt.Covariance(5), tt.Plane()], ids=str)
@pytest.mark.parametrize("step", [1e-3, tt.Normalised(1.0)], ids=str)
@pytest.mark.parametrize("law", [None, tt.Orthogonal()], ids=str)
def test_estimators_that_remember_keep_the_contract(estimator, step, law):
    checks.check_method(tt.Method(estimator=estimator, radius=0.1, step=step, directions=law))


@pytest.mark.parametrize("step", [tt.Power(0.01), tt.Normalised(1.0)], ids=str)
@pytest.mark.parametrize("max_move", [None, 0.5])
def test_steps_keep_the_contract(step, max_move):
    checks.check_method(tt.residual(radius=0.1, step=step, max_move=max_move))


@pytest.mark.parametrize("domain", [tt.Simplex(), tt.Box(1.0, 3.0), tt.Ball(2.0, [1.0, 0.0, -1.0])], ids=str)
@pytest.mark.parametrize("name", ["residual", "auto"])
def test_methods_keep_the_contract_on_domains(name, domain):
    method = tt.auto(radius=0.02) if name == "auto" else tt.residual(radius=0.02, step=1e-4)
    checks.check_method(method, domain=domain)


@pytest.mark.parametrize("dim", [1, 2, 40])
def test_dimensions(dim):
    checks.check_method(tt.auto(radius=0.1), dim=dim)


@pytest.mark.parametrize(
    "domain",
    [
        tt.Everywhere(),
        tt.Box(-1, [1, 2, 3]),
        tt.Ball(2.0, [1.0, 0.0, -1.0]),
        tt.Simplex(3.0),
        tt.Halfspace([1.0, -2.0, 0.5], 1.0),
        tt.Polytope([[1, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], [1, 0, 0, 1, 1]),
        tt.Product((tt.Simplex(), 2), (tt.Ball(1.0), 2)),
        tt.Intersection(tt.Ball(1.0), tt.Halfspace([1.0, 1.0, 1.0], 0.5)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_domains_keep_the_contract(domain):
    checks.check_domain(domain)


def test_memory_is_flat_over_many_rounds():
    import tracemalloc

    tuner = tt.Tuner(np.zeros(10), tt.residual(radius=0.1, step=1e-3), seed=0)
    for _ in range(1000):
        tuner.tell(tuner.ask(), 1.0)
    tracemalloc.start()
    for _ in range(20_000):
        tuner.tell(tuner.ask(), 1.0)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 150_000  # one block of directions and a state: not 20 000 of anything
