"""Systems of one setup that have seeds and ages of their own, told side by side as lanes: bit by bit as each alone.

    crowd = Crowd(setup, Draws(setup, seeds), rounds)      setup: of one system; its own seed does not matter
    after = crowd.leave(crowd.tell(crowd.enter(states), values))

Lanes of one kernel are in one round. A method that looks at the number of a round for little else than its direction
cannot tell some rounds from others: those get one number, their namesake, and each lane's own number is what it is
shifted by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from trimtab.arithmetic import Lanes
from trimtab.directions.rows import Fresh
from trimtab.domains import Domain
from trimtab.estimators import Plane
from trimtab.kernel import build
from trimtab.parts import Frame
from trimtab.reading import locked
from trimtab.setup import Setup
from trimtab.state import State, Trial, frozen
from trimtab.steps import Adaptive
from trimtab.steps.adaptive import looks_ahead, swells
from trimtab.types import Array, Integers

SHARED = ("method", "domain", "bounds", "lane", "copies", "maximise", "max_pending")
"""What of a setup is the same for one system and for many."""
AROUND = (0, 1, -1, -2)
"""Trials whose directions are drawn together: an echo looks back, and drawing several of a block costs as one."""
WORKED_OUT = ("free", "directions", "probe_length", "longest", "home")


def namesakes(setup: Setup, rounds: Sequence[int]) -> list[int]:
    """Rounds that the setup's method takes for these in all but their directions; where it has none, the same ones.

    `Plane` asks whether a round is the first, and whether it is an echo; `Adaptive`, whether it looks wider or ahead.
    """
    estimator = setup.method.estimator
    if not (isinstance(estimator, Plane) and isinstance(setup.method.step, Adaptive)):
        return list(rounds)
    if not isinstance(setup.directions, Fresh):
        return list(rounds)
    alike = _first_of_each_kind(estimator)
    return [0 if round == 0 else alike.get(_kind(estimator, round), round) for round in rounds]


def _kind(estimator: Plane, round: int) -> tuple[bool, int, bool]:
    return estimator.echoes(round), swells(round), looks_ahead(round)


@lru_cache(100)
def _first_of_each_kind(estimator: Plane) -> dict[tuple[bool, int, bool], int]:
    return {_kind(estimator, n): n for n in range(4 * estimator.every, 0, -1)}


def fits(setup: Setup) -> bool:
    """Whether systems of this setup can be told side by side: one number a round, none of them late."""
    return setup.queries * setup.told == 1 and setup.max_pending == 1 and setup.bounds is None and setup.lanes is None


class Draws:
    """Directions of systems with seeds of their own: one trial of each → u, `(systems, d)`.

    Those of the trials asked for first, and of the ones before and after them, are kept: a round needs most of them.
    """

    def __init__(self, setup: Setup, seeds: Sequence[int]) -> None:
        self._law, self._dim, self._seeds = setup.directions, setup.dim, seeds
        flatten = setup.domain.flatten
        self._flatten = None if type(setup.domain).flatten is Domain.flatten else flatten
        self._known: list[tuple[Integers, Array]] = []

    def __len__(self) -> int:
        return len(self._seeds)

    def __call__(self, trials: Integers) -> Array:
        """Not to be written to."""
        if not self._known:
            around = np.maximum(trials[:, None] + AROUND, 0)
            drawn = self._drawn([seed for seed in self._seeds for _ in AROUND], around.ravel())
            self._known = [(around[:, k], locked(drawn[k :: len(AROUND)])) for k in range(len(AROUND))]
        out, missing = np.empty((len(trials), self._dim)), np.ones(len(trials), dtype=bool)
        for asked, u in self._known:
            there = asked == trials
            if there.all():
                return u
            out[there] = u[there]
            missing &= ~there
        if missing.any():  # what was asked before is looked at again
            seeds = [seed for seed, wanted in zip(self._seeds, missing.tolist(), strict=True) if wanted]
            out[missing] = self._drawn(seeds, trials[missing])
        self._known = [*self._known[: len(AROUND)], (trials, locked(out))]
        return out

    def _drawn(self, seeds: Sequence[int], trials: Integers) -> Array:
        located = [self._law.locate(number) for number in trials.tolist()]
        u = self._law.apart(self._dim, seeds, [draw for draw, _ in located])
        if any(sign < 0 for _, sign in located):
            u = u * np.array([sign for _, sign in located])[:, None]
        return u if self._flatten is None else self._flatten(u)

    def some(self, of: Sequence[int]) -> Draws:
        """Of some of the systems, with what was drawn already."""
        found = object.__new__(Draws)
        found._law, found._dim, found._flatten = self._law, self._dim, self._flatten
        found._seeds = [self._seeds[n] for n in of]
        found._known = [(asked[of], locked(u[of])) for asked, u in self._known]
        return found


class Alone:
    """One system after another by one kernel: what it is bound to is the same for all, but for their directions."""

    def __init__(self, setup: Setup) -> None:
        """setup: one that `fits`."""
        self._draws: Draws | None = None
        self.setup = _with(setup, setup.shape, setup.inner, setup.frame._replace(direction=self._direction))

    def now(self, draws: Draws) -> Setup:
        """The setup of one system, until it is another's turn."""
        self._draws = draws
        return self.setup

    def _direction(self, trial: int | Integers) -> Array:
        assert self._draws is not None
        u: Array = self._draws(np.array([trial]))[0]
        return u


class Crowd:
    """Systems whose rounds have one namesake, as the lanes of one kernel."""

    def __init__(self, setup: Setup, draws: Draws, rounds: Integers) -> None:
        """setup: one that `fits`; rounds: the number of the next round of each."""
        (self._round,) = namesakes(setup, [int(rounds[0])])
        self._shift = shift = rounds - self._round
        self.setup = _in_lanes(setup, len(draws), lambda trial: draws(shift + trial))
        self._kernel = build(self.setup)

    def ask(self, state: State) -> Trial:
        """The next trial of each, where the state is one that was entered."""
        return self._kernel.ask(state, self._round)

    def tell(self, state: State, values: Array) -> State:
        """The state after a value of each."""
        return frozen(self._kernel.tell(state, self._round, values))

    def enter(self, state: State) -> State:
        """A state in lanes, whose trials are numbered as each lane does, as the kernel takes it."""
        last = state.last._replace(trial=state.last.trial - self._shift)
        return state._replace(round=self._round, last=last, told=state.told - self._shift)

    def leave(self, state: State) -> State:
        """The other way round; the round is then a number per lane, too."""
        last, rounds = state.last._replace(trial=state.last.trial + self._shift), state.round + self._shift
        return state._replace(round=rounds, last=last, told=state.told + self._shift)  # type: ignore[arg-type]


def _in_lanes(setup: Setup, lanes: int, direction: Callable[[int | Integers], Array]) -> Setup:
    """The same for so many systems; what was worked out and checked for one is shared."""
    frame = setup.frame._replace(xp=Lanes, direction=direction, zero=locked(np.zeros(lanes)))
    return _with(setup, (lanes, *setup.shape), (lanes, *setup.inner), frame)


def _with(setup: Setup, shape: tuple[int, ...], inner: tuple[int, ...], frame: Frame) -> Setup:
    found = object.__new__(Setup)
    about = {name: getattr(setup, name) for name in (*SHARED, *WORKED_OUT)}
    vars(found).update(about, shape=shape, inner=inner, seed=0, frame=frame)
    return found
