"""The program, in processes of its own."""

import json
import os

import pytest
from typer.testing import CliRunner

from trimtab import lab, recipes
from trimtab.cli import app, compare, console

from ..program import run

QUICK = ["--rounds", "10", "--trials", "4", "--tuning-trials", "3"]


@pytest.fixture
def shell(tmp_path):
    def call(*words, check=True):
        environment = {**os.environ, "TRIMTAB_CACHE": str(tmp_path / "cache"), "COLUMNS": "120"}
        done = run(*words, cwd=tmp_path, env=environment)
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return call


def test_compare_prints_a_table_and_draws(shell, tmp_path):
    done = shell("compare", "quadratic-v1", "--methods", "residual,one-point,two-point", *QUICK, "--jobs=1")
    for word in ("residual", "one-point", "two-point", "regret, centre", "diverged", "summary.json"):
        assert word in done.stdout
    folder = tmp_path / "out" / "compare-quadratic-v1"
    for name in ("regret.png", "regret.svg", "played.png", "variance.png"):
        assert (folder / name).stat().st_size > 5000
    assert json.loads((folder / "summary.json").read_text())["complete"]
    assert (folder / "records" / "residual.npz").exists()


def test_one_round_and_one_trial_are_singular(shell):
    few = ("--rounds", "1", "--trials", "1", "--tuning-trials", "1", "--jobs", "1")
    assert (
        "quadratic-v1: 1 round, 1 trial, seed 0" in shell("compare", "quadratic-v1", "--methods", "still", *few).stdout
    )


def test_compare_json_is_for_scripts(shell):
    words = ("compare", "quadratic-v1", "--methods", "residual,auto,still", *QUICK)
    options = (*words, "--json", "--out", "here", "--jobs=1")
    summary = json.loads(shell(*options).stdout)
    assert list(summary["methods"]) == ["residual", "auto", "still"]
    for name, method in summary["methods"].items():
        assert set(method["regret"]) == set(method["played"]) == {"median", "q25", "q75"}
        assert method["diverged"] == 0
        assert (method["step"] is None) == (name != "residual")
    assert json.loads(shell(*options).stdout) == summary  # from the cells that are finished


def test_cells_are_kept_where_one_says(shell, tmp_path):
    words = ("compare", "quadratic-v1", "--methods", "residual,still", *QUICK, "--json", "--cells")
    first = shell(*words, "shared").stdout
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "shared" / "cells").iterdir()}
    assert len(files) == 4
    assert shell(*words, (tmp_path / "shared").as_uri(), "--jobs", "2").stdout == first
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "shared" / "cells").iterdir()} == files
    assert not (tmp_path / "cache").exists()


def test_parameters_of_the_problem(shell):
    words = ("compare", "quadratic-v1", "--methods", "still", "-p", "dim=3", *QUICK, "--json")
    assert json.loads(shell(*words).stdout)["parameters"]["dim"] == 3


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["compare", "lqr"], "unknown problem 'lqr': choose one of "),
        (["compare", "quadratic-v1", "--methods", "magic"], "there is no method 'magic': choose from auto, "),
        (["compare", "quadratic-v1", "--param", "dim"], "is not name=value"),
        (["compare", "quadratic-v1", "--param", "size=3"], "size"),
        (["compare", "quadratic-v1", "--radius", "-1"], "radius=-1.0 must be a finite number"),
        (["compare", "quadratic-v1", "--backend", "mpi"], "backend='mpi' is unknown"),
        (
            ["compare", "quadratic-v1", "--cluster", "tcp://here:1"],
            "cluster='tcp://here:1' needs backend='dask' or 'ray'",
        ),
        (["compare", "quadratic-v1", "--cells", "here", "--fresh"], "--fresh contradicts --cells"),
        (["compare", "quadratic-v1", "--methods", ","], "--methods ',' names no method: name at least one"),
        (["compare", "quadratic-v1", "--out", "file"], "file cannot be written (File exists)"),
    ],
)
def test_bad_input_is_one_clear_line(shell, tmp_path, words, reason):
    (tmp_path / "file").touch()
    done = shell(*words, *QUICK, check=False)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--rounds", "5"), ("--tuning-trials", "5"), ("--radius", "0.1"), ("--param", "dim=3"), ("--noise", "bogus"),
        ("--static",), ("--gradients",),
    ],
)  # fmt: skip
def test_a_suite_refuses_what_it_does_not_use(shell, words):
    done = shell("compare", "--suite", "late", *words, check=False)
    assert done.returncode == 2
    assert f"{words[0]} applies to a problem, not to a suite" in done.stderr


def test_an_empty_list_of_methods_is_told_of_a_suite_too(shell):
    done = shell("compare", "--suite", "late", "--methods", ",,", check=False)
    assert done.returncode == 2
    assert "name at least one" in done.stderr


def test_where_nothing_can_be_written_nothing_is_computed(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(lab, "compare", pytest.fail)
    monkeypatch.setattr(lab, "judge", pytest.fail)
    for words in (["quadratic-v1"], ["--suite", "late"]):
        with pytest.raises(ValueError, match=r"cannot be written \(Not a directory\): name another folder"):
            CliRunner().invoke(
                app, ["compare", *words, "--out", str(tmp_path / "file" / "in it")], catch_exceptions=False
            )


def test_the_files_of_the_user_stay(shell, tmp_path):
    """Only files of an earlier run are deleted."""
    mine = [tmp_path / "here" / name for name in ("holiday.png", "records/tax.pdf", "records/auto.pdf", "variance.png")]
    (tmp_path / "here" / "records").mkdir(parents=True)
    for file in mine:
        file.touch()
    words = ("compare", "quadratic-v1", *QUICK, "--out", "here", "--methods")
    shell(*words, "still")
    assert all(file.exists() for file in mine)
    shell(*words, "residual,still")
    assert (tmp_path / "here" / "records" / "residual.npz").exists()
    shell(*words, "still")
    assert {file.name for file in (tmp_path / "here" / "records").iterdir()} == {
        "still.npz", "still.json", "tax.pdf", "auto.pdf"
    }  # fmt: skip
    assert mine[0].exists()
    assert not (tmp_path / "here" / "variance.svg").exists()  # standing still has none


def test_a_summary_that_is_not_ours_names_nothing(tmp_path):
    (tmp_path / "kept.npz").touch()
    for text in ("[]", "{}", "no JSON", '{"methods": ["../kept"]}', '{"methods": 3}'):
        (tmp_path / "target").mkdir(exist_ok=True)
        (tmp_path / "target" / "summary.json").write_text(text)
        compare._clear(tmp_path / "target")
    assert (tmp_path / "kept.npz").exists()


def test_help_has_an_example(shell):
    assert "trimtab compare lqr-v1" in shell("compare", "--help").stdout
    assert "compare" in shell("--help").stdout
    assert shell("--version").stdout.startswith("trimtab 0")


def test_compare_over_a_suite(shell, tmp_path):
    words = ("compare", "--suite", "late", "--methods", "auto,still,residual", "--trials", "2", "--quick", "--jobs=1")
    done = shell(*words)
    for word in (
        "for development",
        "played to residual",
        "worst cell, centre",
        "diverged trials",
        "ratios.png",
        "d = 2",
    ):
        assert word in done.stdout
    folder = tmp_path / "out" / "suite-late"
    assert (folder / "ratios.png").stat().st_size > 5000
    found = json.loads((folder / "summary.json").read_text())
    assert found["complete"]
    own = found["methods"]["residual"]["to residual"]
    for name in ("mean", "played", "worst", "worst_played"):
        assert own[name]["value"] == own[name]["low"] == own[name]["high"] == pytest.approx(1.0)
    still = found["methods"]["still"]["to residual"]
    assert still["mean"]["low"] < still["mean"]["value"] < still["mean"]["high"]
    again = json.loads(shell(*words, "--json").stdout)  # from what is kept
    assert again == found


def test_compare_over_limits_shows_the_queries_beyond(shell, tmp_path):
    words = ("--methods", "limits,belief,still", "--trials", "2", "--quick", "--jobs=1", "--fresh")
    done = shell("compare", "--suite", "limits", *words)
    for word in ("played to still", "played to belief", "queries beyond a limit in truth", "never binds", "ratios.png"):
        assert word in done.stdout
    assert "0 / 0 / 0" in done.stdout
    found = json.loads((tmp_path / "out" / "suite-limits" / "summary.json").read_text())
    shares = {name: method["beyond"]["still"]["after"] for name, method in found["methods"].items()}
    assert shares["belief"] > 0.9 > 0.1 > shares["limits"]
    assert "limits" in shell("compare", "--help").stdout


def test_progress_is_told_in_a_pipe_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIMTAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(console, "PROGRESS_INTERVAL", 0.0)
    words = ("compare", "--suite", "late", "--methods", "still", "--trials", "2", "--quick", "--json", "--jobs", "1")
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "suite late: cells, 100% after" in done.stderr
    json.loads(done.stdout)


def test_a_problem_or_a_suite(shell):
    for words in ((), ("lqr-v1", "--suite", "drift"), ("--suite", "none")):
        done = shell("compare", *words, check=False)
        assert done.returncode == 2
        assert "drift" in done.stderr


METHOD = """
import trimtab as tt

@tt.register("bold")
def bold(radius: float, step: float) -> tt.Method:
    return tt.residual(radius=2 * radius, step=step)
"""
PROBLEM = """
from dataclasses import dataclass
from trimtab.problems import from_function, register

@dataclass(frozen=True)
class Pace:
    speed: float

@register("ramp-v1")
def ramp(speed: float = 0.01):
    pace = Pace(speed)
    return from_function(lambda t, x: (x[0] - pace.speed * t) ** 2, x0=[0.0], radius=0.1, id="ramp-v1")
"""


@pytest.mark.parametrize(
    ("text", "words", "problem", "methods"),
    [
        (METHOD, ["lqr-v1"], "lqr-v1", ["bold", "residual"]),
        (METHOD, [], "quadratic-v1", ["bold", "residual"]),
        (PROBLEM, ["-p", "speed=0.02"], "ramp-v1", ["residual", "still"]),
        (METHOD + PROBLEM, ["--jobs", "2"], "ramp-v1", ["bold", "residual"]),
    ],
    ids=["method", "method alone", "problem", "both, in processes"],
)
def test_a_file_of_ones_own_is_compared(shell, tmp_path, text, words, problem, methods):
    (tmp_path / "mine.py").write_text(text)
    done = shell("compare", "mine.py", *words, "--methods", ",".join(methods), *QUICK, "--json")
    summary = json.loads(done.stdout)
    assert (summary["problem"], list(summary["methods"])) == (problem, methods)


def test_a_method_of_ones_own_is_compared_with_the_usual_ones(tmp_path):
    (tmp_path / "mine.py").write_text(METHOD)
    problem, files, methods = compare._problem(["lqr-v1", str(tmp_path / "mine.py")])
    assert (problem, files, methods) == ("lqr-v1", [str(tmp_path / "mine.py")], ["bold"])
    del recipes.methods["bold"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no file mine.py"),
        ("x = 1\n", "mine.py registers neither a problem nor a method: put @trimtab.problems.register("),
        ("x = 1\n1/0\n", "mine.py cannot be loaded: line 2: ZeroDivisionError: division by zero"),
        ("x = 1\nif:\n", "mine.py cannot be loaded: line 2: invalid syntax"),
        (PROBLEM + PROBLEM.replace("ramp-v1", "ramp-v2"), "one problem at a time: choose from ramp-v1, ramp-v2"),
    ],
)
def test_a_file_that_cannot_be_compared(shell, tmp_path, text, said):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    done = shell("compare", "mine.py", *QUICK, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
