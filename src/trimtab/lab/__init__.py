"""Run many tuners on many drifting problems, measure and compare: `run`, `tune`, `compare` and their `Record`."""

from trimtab.lab.comparison import Comparison, compare
from trimtab.lab.parallel.sweep import sweep
from trimtab.lab.sim.record import Record, quantiles
from trimtab.lab.sim.simulate import run, simulate
from trimtab.lab.sim.static_optimum import hindsight
from trimtab.lab.step_search import Tuned, tune
from trimtab.lab.suites.judge import SUITES, judge
from trimtab.lab.suites.ratios import Ratio, SuiteResult

Standings = SuiteResult
"""The former name of `SuiteResult`."""

__all__ = [
    "SUITES",
    "Comparison",
    "Ratio",
    "Record",
    "Standings",
    "SuiteResult",
    "Tuned",
    "compare",
    "hindsight",
    "judge",
    "quantiles",
    "run",
    "simulate",
    "sweep",
    "tune",
]
