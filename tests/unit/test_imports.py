"""Slow modules and extras are imported on first use."""

import json
import subprocess
import sys

import pytest

import trimtab as tt
from trimtab.util.extras import pip_install

HEAVY = ("numba", "scipy", "matplotlib", "joblib", "jinja2", "daqp", "gest_api", "gymnasium", "optuna")


@pytest.mark.parametrize("package", ["adapters", "domains", "problems", "lab", "theory", "paper"])
def test_imports_nothing_heavy(package):
    code = f"import json, sys, trimtab.{package}; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_package_alone_imports_nothing_of_others():
    code = "import sys, trimtab; print(sorted({'numpy', 'matplotlib', 'trimtab.plotting', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_parts_of_the_house_are_attributes():
    from trimtab.recipes.method import register
    from trimtab.registry import part

    assert (tt.register, tt.part, tt.plotting.__name__) == (register, part, "trimtab.plotting")
    assert {"register", "part", "plotting"} <= set(dir(tt))


def test_a_picture_without_matplotlib_names_the_command():
    code = """if True:
    import sys
    sys.modules["matplotlib"] = None
    import trimtab as tt
    try:
        tt.plotting.panels(1, (4, 3))
    except ImportError as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"figures need matplotlib: {pip_install('lab')}\n"


def test_the_allocation_problem_needs_scipy_for_its_offline_optimum_alone():
    code = """if True:
    import sys
    from trimtab.problems import make
    problem = make("allocation-v1", rows=1, columns=2, horizon=2)
    assert "scipy.optimize" not in sys.modules
    sys.modules["scipy.optimize"] = None
    try:
        problem.world(0, 1)._search()
    except ImportError as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"the offline optimum needs SciPy: {pip_install('lab')}" in done.stdout


def test_an_adapter_is_imported_when_it_is_asked_for():
    code = """if True:
    import sys, trimtab as tt
    tt.adapters
    assert "scipy" not in sys.modules
    print(tt.adapters.scipy.auto.__name__, hasattr(tt.adapters, "abacus"))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "auto False\n"
