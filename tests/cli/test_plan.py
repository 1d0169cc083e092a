"""`trimtab plan`, in processes of its own."""

import json

import pytest

from trimtab import theory

from ..program import run

USUAL = ["convex-lipschitz", "--dim", "36", "--horizon", "1000", "--lipschitz", "2"]


def plan(*words, status=0):
    done = run("plan", *words)
    assert done.returncode == status, done.stderr
    return done


def test_a_table_with_step_radius_and_bound():
    done = plan(*USUAL, "--distance", "1", "--variation", "0.1")
    for word in ("Theorem 3.2", "step η", "0.0001657", "contraction α", "smallest horizon", "bound: drift", "41.23"):
        assert word in done.stdout
    assert "note" not in done.stderr


def test_json_is_what_the_library_says():
    found = json.loads(plan(*USUAL, "--distance", "1", "--variation", "0.1", "--json").stdout)
    expected = theory.convex_lipschitz(dim=36, horizon=1000, lipschitz=2.0, distance=1.0)
    assert (found["step"], found["radius"], found["holds"]) == (expected.step, expected.radius, True)
    assert found["bound"]["terms"] == expected.bound(variation=0.1).terms
    assert found["bound"]["per_step"] == expected.bound(variation=0.1).per_step


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (USUAL, "also give --variation"),
        ([*USUAL, "--variation", "0.1"], "also give --distance"),
        ([*USUAL, "--distance", "100", "--variation", "0.1"], "needs a horizon of at least 10000, not 1000"),
        (
            ["nonconvex-smooth", "--dim", "3", "--horizon", "9", "--lipschitz", "1", "--smoothness", "1"],
            "also give --gap",
        ),
        (
            ["nonconvex-smooth", "--dim=3", "--horizon=9", "--lipschitz=1", "--smoothness=1", "--gap=1"],
            "also give --variation",
        ),
    ],
)
def test_what_is_missing_for_the_guarantee_is_said(words, note):
    done = plan(*words)
    assert note in done.stderr
    assert "bound, total" not in done.stdout
    assert any(note in n for n in json.loads(plan(*words, "--json").stdout)["notes"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["convex-lipschitz", "--dim", "3", "--horizon", "9"], "needs --lipschitz (largest change of the cost"),
        (["convex-smooth", *USUAL[1:]], "needs --smoothness (largest change of the slope"),
        ([*USUAL, "--smoothness", "1"], "does not use --smoothness: leave it out, or choose convex-smooth"),
        ([*USUAL, "--gap", "1"], "does not use --gap"),
        ([*USUAL[:-1], "-2"], "lipschitz=-2.0 must be a finite number > 0"),
        ([*USUAL, "--distance", "1", "--variation", "-1"], "variation=-1.0 must be"),
        (["concave"], "there is no theorem 'concave': choose one of convex-lipschitz"),
        ([*USUAL, "--setting", "magic"], "setting='magic' is unknown"),
        ([*USUAL, "--exponent", "nan"], "exponent=nan must be a finite number"),
        ([*USUAL, "--exponent", "1000"], "too large or too small for floating point: give values closer to 1"),
        ([*USUAL, "--distance", "1e200"], "too large or too small"),
        ([*USUAL[:-1], "1e200", "--distance", "1", "--variation", "0.1", "--json"], "too large or too small"),
        (
            ["nonconvex-smooth", "--dim=3", "--horizon=9", "--lipschitz=1", "--smoothness=1", "--gap=1",
             "--variation=0.1", "--accumulated=-500"],
            "accumulated=-500.0 must be a finite number >= 0",
        ),
        (["convex-lipschitz-ball", *USUAL[1:], "--setting", "adversarial"], "has no guarantee with ball smoothing"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(words, reason):
    done = plan(*words, status=2)
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
