"""Run many tuners on many drifting problems, measure and compare: `run`, `tune`, `compare` and their `Record`."""

from trimtab.lab.comparing import Comparison, compare
from trimtab.lab.hindsight import hindsight
from trimtab.lab.record import Record, quantiles
from trimtab.lab.running import run, simulate
from trimtab.lab.standings import Ratio, Standings
from trimtab.lab.suites import SUITES, judge
from trimtab.lab.sweeping import sweep
from trimtab.lab.tuning import Tuned, tune

__all__ = [
    "SUITES",
    "Comparison",
    "Ratio",
    "Record",
    "Standings",
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
