"""The shipped checks over everything registered, and over compositions of the parts."""

import inspect

import numpy as np
import pytest

import trimtab as tt
from trimtab import checks

LONG = pytest.mark.long  # pairs of parts, each of which another pair tries too


def build(name):
    options = {"step": 0.01} if "step" in inspect.signature(tt.methods[name]).parameters else {}
    return tt.methods[name](radius=0.1, **options)


@pytest.mark.parametrize("name", sorted(set(tt.methods) - {"still"}))  # which explores nothing, whatever the seed
def test_registered_methods_keep_the_contract(name):
    checks.check_method(build(name))


LAWS = (tt.Sphere(), tt.Rademacher(), tt.Paired(), tt.Paired(tt.Sphere()), tt.Orthogonal())


@pytest.mark.parametrize(
    ("name", "law"),
    [
        *(("residual", law) for law in LAWS),
        *(("high-pass", tt.Paired()), ("two-point", tt.Sphere())),
        *(pytest.param("high-pass", law, marks=LONG) for law in LAWS if law != tt.Paired()),
        *(pytest.param("two-point", law, marks=LONG) for law in LAWS if law != tt.Sphere()),
    ],
    ids=str,
)
def test_laws_of_direction_keep_the_contract(name, law):
    checks.check_method(tt.methods[name](radius=0.1, step=0.01, directions=law))


@pytest.mark.parametrize(
    ("estimator", "step", "law"),
    [
        (tt.Covariance(2), 1e-3, None),
        (tt.Covariance(2), tt.Normalised(1.0), tt.Orthogonal()),
        (tt.Covariance(5), tt.Normalised(1.0), None),
        (tt.Plane(), 1e-3, None),
        (tt.Plane(), tt.Normalised(1.0), tt.Orthogonal()),
        pytest.param(tt.Covariance(2), 1e-3, tt.Orthogonal(), marks=LONG),
        pytest.param(tt.Covariance(2), tt.Normalised(1.0), None, marks=LONG),
        pytest.param(tt.Covariance(5), 1e-3, None, marks=LONG),
        pytest.param(tt.Covariance(5), 1e-3, tt.Orthogonal(), marks=LONG),
        pytest.param(tt.Covariance(5), tt.Normalised(1.0), tt.Orthogonal(), marks=LONG),
        pytest.param(tt.Plane(), 1e-3, tt.Orthogonal(), marks=LONG),
        pytest.param(tt.Plane(), tt.Normalised(1.0), None, marks=LONG),
    ],
    ids=str,
)
def test_estimators_that_remember_keep_the_contract(estimator, step, law):
    checks.check_method(tt.Method(estimator=estimator, radius=0.1, step=step, directions=law))


@pytest.mark.parametrize("step", [tt.Power(0.01), tt.Normalised(1.0)], ids=str)
@pytest.mark.parametrize("max_move", [pytest.param(None, marks=LONG), 0.5])
def test_steps_keep_the_contract(step, max_move):
    checks.check_method(tt.residual(radius=0.1, step=step, max_move=max_move))


@pytest.mark.parametrize("domain", [tt.Simplex(), tt.Box(1.0, 3.0), tt.Ball(2.0, [1.0, 0.0, -1.0])], ids=str)
@pytest.mark.parametrize("name", ["residual", "auto", "belief"])
def test_methods_keep_the_contract_on_domains(name, domain):
    method = tt.residual(radius=0.02, step=1e-4) if name == "residual" else tt.methods[name](radius=0.02)
    checks.check_method(method, domain=domain)


@pytest.mark.parametrize(("name", "dim"), [("auto", 1), ("auto", 2), ("auto", 40), ("belief", 1), ("belief", 10)])
def test_dimensions(name, dim):
    checks.check_method(tt.methods[name](radius=0.1), dim=dim)


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
