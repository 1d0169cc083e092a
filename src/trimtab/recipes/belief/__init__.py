"""The belief: a bank of filters of level, slope, curvature and drift near the operating point.

Read `model`, then `bank`, `decision` and `rule`. The equations are numbered as in docs/belief.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from trimtab.protocols import Directions, Frame, Rule
from trimtab.recipes.base import BaseMethod, Margin
from trimtab.recipes.belief import account as accounts
from trimtab.recipes.belief import rule
from trimtab.recipes.belief.account import Account as Account
from trimtab.recipes.belief.account import Interval
from trimtab.recipes.belief.bank import Bank
from trimtab.recipes.belief.frames import Rotated
from trimtab.recipes.belief.limits import Limits, Standing
from trimtab.recipes.belief.model import Constants
from trimtab.recipes.belief.rule import LONGEST_PAUSE
from trimtab.recipes.belief.rule import BeliefState as BeliefState
from trimtab.recipes.method import register
from trimtab.registry import part
from trimtab.types import Array
from trimtab.validation import real

MOST = 60  # knobs: covariances are quadratic in their number, in memory and in time


@part
@dataclass(frozen=True, kw_only=True)
class Belief(BaseMethod):
    """A bank of Kalman filters that predicts each value; the centre goes to where it believes the optimum.

    max_move: shortens a move to this many lengths of a probe; None for no limit.

    narrowest, widest: the least and the largest width of a probe, as multiples of the radius.

    >>> Belief(radius=0.05).scale_free
    True
    """

    narrowest: float = Constants.narrowest
    widest: float = Constants.widest
    margin: Margin = "project"
    directions: ClassVar[Directions] = Rotated()  # type: ignore[misc]
    located: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    finds_width: ClassVar[bool] = True
    takes_context: ClassVar[bool] = True
    takes_limits: ClassVar[bool] = True
    learns_settings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        real("narrowest", self.narrowest, 0, 1, above=True, why=", as a multiple of the radius")
        real("widest", self.widest, 1, why=", as a multiple of the radius")
        if self.margin not in ("project", "none"):
            raise ValueError(f"margin={self.margin!r} is for probes of a fixed width: use margin='project'")

    def bind(self, frame: Frame) -> Rule:
        """Bind to a setup of at most 60 coordinates."""
        if frame.dim > MOST:
            raise ValueError(
                f"the belief is for at most {MOST} knobs, and there are {frame.dim}: use tt.auto(radius=…)"
            )
        return rule.bind(frame, replace(Constants(), narrowest=self.narrowest, widest=self.widest))

    def account(self, frame: Frame, memory: BeliefState, round: int, query: Array) -> Account:
        """The belief about a round that is to come, and about a value at the query z, `(lanes, d)`, of that round."""
        bank = Bank.of(frame.dim, Constants(), frame.periods, frame.flatten)
        rounds = np.minimum(round - memory.clock, LONGEST_PAUSE)
        return accounts.account(bank, memory.value, memory.course, rounds, query)

    def effects(self, frame: Frame, memory: BeliefState, round: int, middles: Array, steps: Array) -> Interval:
        """The change of the value by a step along each coordinate, `(lanes, d)`, in a round that is to come."""
        bank = Bank.of(frame.dim, Constants(), frame.periods, frame.flatten)
        rounds = np.minimum(round - memory.clock, LONGEST_PAUSE)
        return accounts.effects(bank, memory.value, memory.course, rounds, middles, steps)

    def standings(self, frame: Frame, memory: BeliefState, round: int) -> list[Standing]:
        """The belief about each side of each limit at the operating point, in a round that is to come."""
        bank = Bank.of(frame.dim, Constants(), frame.periods, frame.flatten)
        limits, functions = Limits(bank, frame.limits), bank.columns.functions
        walls = limits.let_pass(memory.fence, np.maximum(round - 1.0 - memory.clock, 0.0))
        return limits.standings(walls, np.zeros((len(memory.clock), functions)) if functions else None)


@register("belief")
def belief(
    *,
    radius: float,
    narrowest: float = Constants.narrowest,
    widest: float = Constants.widest,
    max_move: float | None = None,
    margin: Margin = "project",
) -> Belief:
    """A method that knows how sure it is: it tracks with a filter of level, slope, curvature and drift.

    radius: how far it probes at first. From then on a probe is as long as the centre is uncertain, between `narrowest`
    and `widest` times the radius. For up to 60 knobs, and best with ten or fewer. The path is the same for a·f + b,
    a > 0.

    >>> belief(radius=0.05).queries
    1
    """
    return Belief(radius=radius, narrowest=narrowest, widest=widest, max_move=max_move, margin=margin)
