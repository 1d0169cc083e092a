"""Checks of late values and of lanes."""

from __future__ import annotations

import math

import numpy as np

from trimtab.checks.objectives import objectives
from trimtab.checks.tunable import kind_of
from trimtab.domains import Domain
from trimtab.problems.checking import CheckError
from trimtab.recipes import BaseMethod
from trimtab.state import Look, State, Trial
from trimtab.tuner import Tuner
from trimtab.types import Array, Memory, Value


def check_late(method: BaseMethod, *, dim: int, domain: Domain | None = None) -> None:
    """Check that values told late, in any order, are attributed to the query that was handed out.

    >>> import trimtab as tt
    >>> check_late(tt.auto(radius=0.1), dim=3)
    """
    start = np.zeros(dim) if domain is None or not math.isfinite(domain.inner_radius(dim)) else domain.middle(dim)
    for pending in (1, 2, 5):
        rng = np.random.default_rng(pending)
        tuner = kind_of(method)(start, method, domain=domain, seed=12, max_pending=pending)
        learnt = _watched(tuner)
        waiting: list[Trial] = []
        for _, objective in zip(range(60), objectives(dim), strict=False):
            while len(waiting) < pending:
                waiting.append(tuner.ask())
            trial = waiting.pop(int(rng.integers(len(waiting))))
            for other in tuner.pending:
                if other.id in (w.id for w in waiting) and not any(np.array_equal(other.x, w.x) for w in waiting):
                    raise CheckError(f"pending trial {other.id} has a different query from the one handed out")
            handed_out = np.array(trial.x)
            tuner.tell(trial, objective(trial.x))
            if not np.array_equal(learnt[-1], handed_out):
                raise CheckError(
                    f"with max_pending={pending}, the value of trial {trial.id} was learnt at {learnt[-1]},"
                    f" but measured at {handed_out}"
                )


def _watched(tuner: Tuner) -> list[Array]:
    """Make a tuner's rule put each point it learns from into this list."""
    rule = tuner.setup.rule
    learnt = [np.empty(0)]

    def learn(state: State, look: Look, point: Array, values: tuple[Value, ...]) -> tuple[Array, Memory]:
        learnt.append(point)
        return rule.learn(state, look, point, values)

    vars(tuner.setup)["rule"] = rule._replace(learn=learn)
    tuner.__setstate__(tuner.__getstate__())
    return learnt


def check_lanes(method: BaseMethod, dim: int, domain: Domain | None) -> None:
    """Check that each lane behaves like the same system alone.

    >>> import trimtab as tt
    >>> check_lanes(tt.residual(radius=0.1, step=0.01), 3, None)
    """
    starts = np.zeros((3, dim)) if domain is None else np.tile(domain.middle(dim), (3, 1))
    kind = kind_of(method)
    many = kind(starts, method, domain=domain, seed=11)
    alone = [kind(x, method, domain=domain, seed=11, lane=k) for k, x in enumerate(starts)]
    for t, objective in zip(range(30), objectives(dim), strict=False):
        trial = many.ask()
        values = np.array([(k + 1) * np.asarray(objective(trial.x[k])) for k in range(3)])
        if t % 7 == 3:
            values[t % 3] = math.nan
        many.tell(trial, values)
        for k, tuner in enumerate(alone):
            other = tuner.ask()
            if not np.array_equal(other.x, trial.x[k]):
                raise CheckError(f"lane {k} has a different query from the same system alone, in round {t}")
            tuner.tell(other, values[k])
    for k, tuner in enumerate(alone):
        if not np.array_equal(tuner.centre, many.centre[k]):
            raise CheckError(f"lane {k} ends at a different centre from the same system alone")
