"""Contract tests that any method, tuner, domain or problem must pass.

`check_method`, `check_domain` and `check_problem` run all applicable checks and raise `CheckError`, whose text says
what is wrong. `check_tuner` takes a function (x0, seed) → tuner and needs only `ask`, `tell`, `skip`, `centre`,
`to_json` and `from_json`, so it works for implementations that share no code with this package. Statistical checks use
fixed seeds and have a false-alarm probability below 1e-6.

Scale-freedom, the same path for a·f + b as for f (a > 0), holds while changes of the value are between 1e-140 and
1e140 in size.
"""

from trimtab.checks.domains import check_domain, check_feasible
from trimtab.checks.estimates import check_scale_free, check_unbiased
from trimtab.checks.late import check_lanes, check_late
from trimtab.checks.method import check_method, check_tuner
from trimtab.checks.resume import check_forget, check_memory, check_resume
from trimtab.checks.rounds import check_errors, check_queries, check_skips, check_still
from trimtab.problems.checking import CheckError, check_problem

__all__ = [
    "CheckError",
    "check_domain",
    "check_errors",
    "check_feasible",
    "check_forget",
    "check_lanes",
    "check_late",
    "check_memory",
    "check_method",
    "check_problem",
    "check_queries",
    "check_resume",
    "check_scale_free",
    "check_skips",
    "check_still",
    "check_tuner",
    "check_unbiased",
]
