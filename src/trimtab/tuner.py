"""`Tuner`: the core as an object that holds one setup and one state."""

from __future__ import annotations

import math
import operator
import os
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike

from trimtab import core
from trimtab.context import Context, context_row, contexts_of
from trimtab.domains import Domain, Everywhere
from trimtab.explanation import Explanation, explanation
from trimtab.inputs import beside, pairs, starting_point
from trimtab.kernel import build
from trimtab.knobs import SHARE as SHARE
from trimtab.knobs import Knob, Knobs, Setting
from trimtab.limit import Limit, limits_of, measured, numbers_row
from trimtab.recipes import BaseMethod, Belief, Explained, auto, belief, between_limits, informed
from trimtab.recipes.method import name_of
from trimtab.setup import ProbesTooWide, Setup, fitting
from trimtab.state import NEVER, State, Trial, frozen
from trimtab.types import Array, Document, Fields, Integers, Value
from trimtab.util.advice_warning import AdviceWarning
from trimtab.util.reprs import Brief, Facts
from trimtab.validation import whole

if TYPE_CHECKING:
    from trimtab.storage import Saved

Measured = Mapping[str, ArrayLike | None]
"""A context: numbers by name, in lanes one each; None where one is not known."""
Bounded = Mapping[str, Mapping[str, float] | Limit] | Iterable[Limit]
"""Limits: their max, min and risk by name."""
Told = ArrayLike | Measured | None
"""Numbers measured beside a value: by name, or in order."""
HALF = 0.5  # largest radius, as a share of the range: wider probes only reach the limits
SILENT = 10  # warn after this many None in a row: the user's function may lack a return


class Tuner(Brief):
    """Keep a drifting system at its best operating point, from one measurement per round.

    x0: where the system is now; `(d,)`, or `(lanes, d)` for many systems at once.
    method: one of `trimtab.recipes`; by default `auto`, which needs no step size.
    bounds: (low, high) per coordinate; coordinates are scaled to the range, so the method's radius is a share of it.
    A coordinate with low == high is fixed: it never moves and is never probed.
    domain: any other set that queries have to stay in (its coordinates are not scaled).
    knobs: named parameters instead of x0, bounds and domain, as `trimtab.Knob`s or mappings of their fields; for a
    single system. `trial.knobs` is the setting to apply, `setting` that of the centre; `trial.x` has the coordinates.
    seed: that of the probing directions; by default a fresh one, saved with the state. `lane` numbers the first lane.
    maximise (or maximize): True if large values are good.
    max_pending: the number of trials that may be open at once, for values that arrive late or out of order.
    context: names of numbers that are known before each query and explain changes of the cost, such as a load; or
    `trimtab.Context`s. `ask(context={"load": 0.7})` then asks for the best setting under that load.
    limits: numbers that must stay below a `max`, or above a `min`, at all queries but a share `risk` of them, 1 % by
    default: `{"temperature": {"max": 80}}`, told by `tell(trial, value, limits={"temperature": 71.2})`; "value" is the
    value itself. They must hold at the start.
    explain: keep a belief beside the method, for `belief`; the method decides as it would without.
    `ask` and `tell` may be called from several threads.

    >>> tuner = Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
    >>> for _ in range(500):
    ...     trial = tuner.ask()
    ...     tuner.tell(trial, (trial.x[0] - 0.6) ** 2 + (trial.x[1] / 100 - 0.7) ** 2)
    >>> bool(abs(tuner.centre[0] - 0.6) < 0.1), bool(abs(tuner.centre[1] - 70) < 10)
    (True, True)
    >>> tuner = Tuner(knobs=[dict(name="batch", low=1, high=512, start=32, type="integer", scale="log")], seed=0)
    >>> list(tuner.ask().knobs)
    ['batch']
    >>> tuner.setting
    {'batch': 32}
    """

    _lock: threading.Lock
    _bare: float
    setup: Setup
    knobs: Knobs | None
    """The named parameters behind the coordinates; None if the tuner was given x0."""

    def __init__(
        self,
        x0: ArrayLike | None = None,
        method: BaseMethod | None = None,
        *,
        bounds: ArrayLike | None = None,
        domain: Domain | None = None,
        knobs: Iterable[Knob | Fields] | None = None,
        seed: int | None = None,
        maximise: bool = False,
        maximize: bool = False,
        max_pending: int = 1,
        lane: int = 0,
        context: Iterable[str | Context] | None = None,
        limits: Bounded | None = None,
        explain: bool = False,
    ) -> None:
        space, contexts, bounded = None, contexts_of(context), limits_of(limits)
        if knobs is not None:
            if x0 is not None or bounds is not None or domain is not None:
                raise ValueError(
                    "knobs say where to start and the limits: leave out x0, bounds and domain"
                    " (many systems at once, in lanes, have no knobs: use x0 and bounds)"
                )
            space = Knobs.of(knobs, getattr(method, "radius", SHARE))
            if method is None:
                space = space.with_default_radii()
                method = belief(radius=SHARE) if contexts or bounded else between_limits(space.movable)
            domain = space.domain
            x0 = space.start
        elif x0 is None:
            raise TypeError("give x0, where the system is now, or knobs")
        x = starting_point(x0)
        if bounds is not None and domain is not None:
            raise ValueError("give either bounds or a domain; for both, use Intersection(Box(low, high), domain)")
        if method is None:
            method = _default_method(x, bounds, domain)
            if contexts or bounded:
                method = belief(radius=method.radius)
        elif getattr(method, "margin", None) == "project" and (bounds is not None or space) and method.radius > HALF:
            raise ValueError(
                f"radius={method.radius:g} is a share of each range where there are bounds or knobs, 0 to {HALF}: give"
                f" for example tt.auto(radius={SHARE})"
            )
        if contexts or bounded:
            method = informed(method)
        if explain and not isinstance(method, Belief):
            method = Explained(method=method)
        try:
            setup = Setup(
                method,
                x.shape,
                domain=Everywhere() if domain is None else domain,
                bounds=bounds,
                maximise=maximize or maximise,
                max_pending=max_pending,
                contexts=contexts,
                limits=bounded,
            )
        except ProbesTooWide as error:
            raise error if space is None else ProbesTooWide(error.args[0], space.room()) from None
        if space is not None and setup.queries > 1:
            raise ValueError(f"knobs are set once a round, but {setup.method} measures twice: use another method")
        seed = int.from_bytes(os.urandom(8)) >> 1 if seed is None else seed
        self.__setstate__((setup, core.init(setup, x, seed, lane), space))

    @property
    def state(self) -> State:
        """The current state, with read-only arrays."""
        return frozen(self._state)

    @state.setter
    def state(self, state: State) -> None:
        self._state = frozen(state)

    @property
    def centre(self) -> Array:
        """The operating point now (not "the best so far", which means nothing under drift)."""
        return self.setup.outward(self._state.centre)

    center = recommendation = centre

    @property
    def setting(self) -> Setting:
        """The operating point now as knob values, rounded to what can be set."""
        if self.knobs is None:
            raise AttributeError("this tuner has no knobs to set: see centre, or give Tuner(knobs=[...])")
        return self.knobs.setting(self.centre)

    def at(self, context: Measured | None = None) -> Array | Setting:
        """The operating point for a context, without asking: the schedule that was learnt. By name, if there are knobs.

        >>> tuner = Tuner([0.5], bounds=[(0, 1)], context=["load"], seed=0)
        >>> for round in range(300):
        ...     load = round % 40 / 40
        ...     trial = tuner.ask(context={"load": load})
        ...     tuner.tell(trial, (trial.x[0] - 0.3 - 0.4 * load) ** 2)
        >>> bool(abs(tuner.at({"load": 0.1})[0] - 0.34) < 0.05), bool(abs(tuner.at({"load": 0.8})[0] - 0.62) < 0.05)
        (True, True)
        """
        if not self.setup.contexts:
            raise ValueError("the tuner has no context: give Tuner(…, context=[names]), or see its centre")
        x = core.at(self.setup, self._state, context_row(self.setup.contexts, context, self.setup.lanes))
        return x if self.knobs is None else self.knobs.setting(x)

    @property
    def belief(self) -> Explanation:
        """The state of knowledge: where the optimum may be, slopes, noise, drift, and how far the next probe goes.

        Print it, or read its fields. For `tt.belief`, and with `explain=True` for any method of one value a round.

        >>> tuner = Tuner([0.2], bounds=[(0, 1)], seed=0, explain=True)
        >>> for _ in range(100):
        ...     trial = tuner.ask()
        ...     tuner.tell(trial, (trial.x[0] - 0.6) ** 2)
        >>> tuner.belief.phase, tuner.belief.knobs[0].low < 0.6 < tuner.belief.knobs[0].high
        ('tracking', True)
        """
        return explanation(self.setup, self.state, self.knobs)

    @property
    def round(self) -> int:
        """The number of the next new trial."""
        return self._state.round

    @property
    def skipped(self) -> int | Integers:
        """The number of rounds without a value (one per lane)."""
        return self.state.skipped

    @property
    def pending(self) -> tuple[Trial, ...]:
        """The trials handed out and not yet told (with max_pending > 1)."""
        return tuple(self._named(self._kernel.ask(self._state, id)) for id, _ in self._state.open)

    @property
    def last_value(self) -> Value | None:
        """The value told last (one per lane, NaN before a lane's first); None before the first and after `forget`.

        >>> tuner = Tuner([0.5], bounds=[(0, 1)], maximize=True, seed=0)
        >>> tuner.tell(tuner.ask(), 3.5)
        >>> tuner.last_value
        3.5
        """
        values = self.state.values[:: self.setup.told]
        value = values[0] if len(values) == 1 else np.stack(values, axis=-1)
        if np.isnan(value).all():
            return None
        return -value if self.setup.maximise else value

    @overload
    def ask(self, *, context: Measured | None = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, context: Measured | None = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, *, context: Measured | None = None) -> Trial | list[Trial]:
        """Hand out the next query; until it is told, the same one again, unless max_pending > 1.

        n: hand out this many as a list, all or none; max_pending must leave room for them.
        context: by name, the numbers that were declared as the tuner's `context`; None, or left out, where one is not
        known. Another context asks anew, as long as the trial has not been told.

        >>> tuner = Tuner([0.2], bounds=[(0, 1)], seed=0, max_pending=3)
        >>> [trial.id for trial in tuner.ask(3)]
        [0, 1, 2]
        """
        row = context_row(self.setup.contexts, context, self.setup.lanes)
        if n is not None:
            return self._several(whole("n", n, 1), context, row)
        if self._alone:
            state = self._state
            trial = self._kernel.ask(state, state.round)
            return trial if self.knobs is None else self._named(trial)
        with self._lock:
            state = self._state
            if state.open and self.setup.max_pending == 1:
                ((id, look),) = state.open
                if row is None or context is None or np.array_equal(row, np.asarray(look.context), equal_nan=True):
                    return self._named(self._kernel.ask(state, id))
                state = state._replace(round=id, open=())
            trial, self._state = allowed(self.setup, self.knobs, *core.hand_out(self.setup, state, row))
        return self._named(trial)

    def _several(self, n: int, context: Measured | None, row: Array | None) -> list[Trial]:
        if self.setup.max_pending == 1 and n == 1:
            return [self.ask(context=context)]
        with self._lock:
            state, trials = self._state, []
            if len(state.open) + n > self.setup.max_pending:
                raise RuntimeError(
                    f"ask({n}) does not fit beside the {len(state.open)} open trials: max_pending={n} or more, given"
                    f" to the Tuner, allows this many (it is {self.setup.max_pending})"
                )
            for _ in range(n):
                trial, state = allowed(self.setup, self.knobs, *core.hand_out(self.setup, state, row))
                trials.append(trial)
            self._state = state
        return [self._named(trial) for trial in trials]

    def _named(self, trial: Trial) -> Trial:
        """The trial with its knob values and its context."""
        if trial.look is not None and trial.look.context is not None:
            columns = np.moveaxis(trial.look.context, -1, 0)
            names = [each.name for each in self.setup.contexts]
            values = [float(x) if x.ndim == 0 else x for x in columns]
            trial = trial._replace(context=dict(zip(names, values, strict=True)))
        if self.knobs is None:
            return trial
        key = self._state.key
        return trial._replace(knobs=self.knobs.probe(trial.x, key.seed, trial.id, key.lane))

    def is_open(self, trial: Trial | int) -> bool:
        """Whether `tell` accepts this trial: it was handed out and neither told nor skipped.

        >>> tuner = Tuner([0.2], bounds=[(0, 1)], seed=0)
        >>> tuner.tell(tuner.ask(), 1.0)
        >>> tuner.is_open(0), tuner.is_open(1)
        (False, True)
        """
        id, state = _id(trial), self._state
        return id == state.round if self._alone else any(id == number for number, _ in state.open)

    def forget(self) -> None:
        """Stop comparing future values with past ones, for example after a change of batch or context.

        Like the first value, the next one only sets the anchor. The centre, the slope and the pace are kept. Open
        trials stay open; skip those measured before the change.

        >>> from trimtab.recipes import residual
        >>> tuner = Tuner([0.2], residual(radius=0.05, step=0.1), bounds=[(0, 1)], seed=0)
        >>> tuner.tell(tuner.ask(), 1.0)
        >>> tuner.forget()
        >>> tuner.tell(tuner.ask(), 1000.0)
        >>> tuner.centre
        array([0.2])
        """
        with self._lock:
            self._state = core.forget(self.setup, self._state)

    @property
    def limits(self) -> dict[str, Limit]:
        """The limits by name. Assign other bounds or risks of the same limits to change them while it runs.

        >>> tuner = Tuner([0.5], bounds=[(0, 1)], limits={"temperature": {"max": 80}}, seed=0)
        >>> tuner.limits = {"temperature": {"max": 75}}
        >>> tuner.limits["temperature"].max
        75
        """
        return {each.name: each for each in self.setup.limits}

    @limits.setter
    def limits(self, limits: Bounded) -> None:
        with self._lock:
            setup = replace(self.setup, limits=(new := limits_of(limits)))
            if _kinds(new) != _kinds(self.setup.limits):
                names = ", ".join(self.limits) or "none"
                raise ValueError(
                    f"limits={limits!r} are others than the tuner's, {names}: change their numbers alone, or give other"
                    " limits to a new Tuner(…, limits=…)"
                )
            self.setup, self._kernel = setup, build(setup)

    @property
    def beyond(self) -> tuple[str, ...]:
        """The limits that the operating point was found to exceed at the last value; it has moved back since.

        With lanes, those exceeded in any of them.
        """
        found = np.atleast_2d(self.setup.rule.beyond(self._state))
        numbers = {side.limit for k, side in enumerate(self.setup.frame.limits) if found[:, k].any()}
        return tuple(each.name for n, each in enumerate(self.setup.limits) if n in numbers)

    def tell(self, trial: Trial | int, value: object, limits: Told = None) -> None:
        """Report the measured value(s) of a trial; None or NaN if the measurement failed.

        limits: by name, the numbers that were declared as the tuner's `limits`; None, or left out, where one was not
        measured. For `primal_dual`, g_i to be kept ≤ 0 in the long run; one row per lane.
        """
        id = trial.id if isinstance(trial, Trial) else _id(trial)
        if value is None and np.all((self._state.told == NEVER) & (self._state.skipped == SILENT - 1)):
            warnings.warn(
                f"{SILENT} values in a row were None, which marks failed measurements: does your function return one?",
                AdviceWarning,
                stacklevel=2,
            )
        if self.setup.limits:
            value = self._with_limits(value, limits)
        elif limits is not None and value is not None:
            value = self._beside(value, limits)
        with self._lock:
            before = self.beyond if self.setup.limits else ()
            self._state = self._kernel.tell(self._state, id, value, self._played(id))
            new = set(self.beyond) - set(before) if self.setup.limits else ()
        if new:
            self._say_beyond(sorted(new))

    def _played(self, id: int) -> Array | None:
        """The coordinates of the setting that was drawn, for a method that learns from it; else None."""
        if self.knobs is None or not self.setup.method.learns_settings or not self.is_open(id):
            return None  # if it is not open, the kernel says why
        key = self._state.key
        return self.knobs.drawn(self._kernel.ask(self._state, id).x, key.seed, id, key.lane)

    def _with_limits(self, value: object, given: object) -> object:
        """Append the numbers measured beside the value, NaN where there is none."""
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(
                f"limits={given!r} must be numbers by name: write limits={{{self.setup.limits[0].name!r}: …}}"
            )
        row = numbers_row(self.setup.limits, given, self.setup.lanes)
        if not row.shape[-1]:
            return value
        bare = bool(np.isnan(row).all())
        if value is None and bare:
            return None
        self._bare = self._bare + 1 if bare else -math.inf
        if self._bare == SILENT:
            warnings.warn(
                f"{SILENT} values came without a number of any limit, and until there is one the operating point stays:"
                f" tell(trial, value, limits={{{measured(self.setup.limits)[0]!r}: …}})",
                AdviceWarning,
                stacklevel=3,
            )
        return beside(np.full(row.shape[:-1], np.nan) if value is None else value, row, row.shape[-1])

    def _say_beyond(self, names: list[str]) -> None:
        listed = ", ".join(f"{name} ({_range(self.limits[name])})" for name in names)
        if np.all(self._state.told == 0):
            said = f"the start exceeds the limit of {listed}: start where all limits hold"
        else:
            told = int(np.max(self._state.told))
            said = f"in round {told} the operating point seems to exceed the limit of {listed}: it goes back"
        warnings.warn(said, AdviceWarning, stacklevel=3)

    def _beside(self, value: object, limits: ArrayLike | Measured) -> Array:
        """Append the values of the limits to the value."""
        if isinstance(limits, Mapping):
            raise ValueError(f"limits={limits!r}, but none was declared: give Tuner(…, limits={{name: {{'max': …}}}})")
        if self.setup.told == 1:
            raise ValueError(
                f"limits={limits!r} do not apply to {self.setup.method}: use for example"
                f" tt.primal_dual(radius=..., step=..., limits={np.size(limits)})"
            )
        return beside(value, limits, self.setup.told - 1)

    def skip(self, trial: Trial | int) -> None:
        """Report a failed measurement: the round passes, the centre and the anchor stay."""
        with self._lock:
            self._state = self._kernel.tell(self._state, _id(trial), None)

    def to_json(self) -> str:
        """Setup and state as readable JSON, without loss of precision."""
        return str(_storage().to_json(self.setup, self._state, self._said()))

    @classmethod
    def from_json(cls, text: str, *, method: BaseMethod | None = None) -> Tuner:
        """Restore a tuner from `to_json`; `method` replaces one that cannot be saved (a schedule)."""
        return cls._of(_storage(), _storage().parsed(text), method)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file atomically: JSON if its name ends in .json, else compact binary (for large d)."""
        _storage().save(path, self.setup, self._state, self._said())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, method: BaseMethod | None = None) -> Tuner:
        """Restore a tuner from `save`."""
        return cls._of(_storage(), _storage().opened(path), method)

    def _said(self) -> Document | None:
        return None if self.knobs is None else {"radius": self.knobs.radius, "all": self.knobs.to_list()}

    @classmethod
    def _of(cls, storage: ModuleType, saved: Saved, method: BaseMethod | None) -> Tuner:
        setup, state = storage.revive(*saved, method)
        said = saved[0].get("knobs")
        tuner = cls.__new__(cls)
        tuner.__setstate__((setup, state, None if said is None else Knobs.of(said["all"], said["radius"])))
        return tuner

    def __getstate__(self) -> tuple[Setup, State, Knobs | None]:
        return self.setup, self.state, self.knobs

    def __setstate__(self, saved: tuple[Setup, State, Knobs | None]) -> None:
        self.setup, state, self.knobs = saved
        self.state = state
        self._kernel = build(self.setup)
        self._alone = self.setup.keeps_one and not self.setup.limits  # which may change before the value comes
        self._lock = threading.Lock()
        self._bare = 0.0  # values without the number of a limit, until there is one

    def _facts(self) -> Facts:
        one = self.setup.lanes is None
        centre = (self.centre.tolist() if self.knobs is None else self.setting) if one else None
        size = [("lanes", self.setup.lanes), ("dim", None if one else self.setup.dim)]
        method = name_of(self.setup.method) or self.setup.method.kind.__name__
        return [*size, ("round", self.round), ("centre", centre), ("value", self._shown_value()), ("method", method)]

    def _shown_value(self) -> float | None:
        value = self.last_value
        return None if value is None or np.ndim(value) else float(value)


def allowed(setup: Setup, knobs: Knobs | None, trial: Trial, state: State) -> tuple[Trial, State]:
    """The trial at a setting that keeps the limits, if the one drawn for its discrete knobs does not."""
    look = trial.look
    if not setup.limits or knobs is None or not knobs.rounded or look is None:
        return trial, state
    drawn = knobs.probe(trial.x, state.key.seed, trial.id, state.key.lane)
    settings = [*knobs.alternatives(trial.x, drawn), *knobs.alternatives(state.centre, knobs.setting(state.centre))]
    points = np.array([knobs.coordinates(setting) for setting in settings])
    over = setup.rule.exceeds(state, points, trial.id, look.context)
    x = setup.home.project(points[int((over <= 0).argmax() if (over <= 0).any() else over.argmin())])
    look = look._replace(centre=x, width=0.0)
    opened = tuple((id, look if id == trial.id else other) for id, other in state.open)
    return trial._replace(x=x.copy(), look=look), frozen(state._replace(open=opened))


def _range(limit: Limit) -> str:
    sides = (("min", limit.min), ("max", limit.max))
    return ", ".join(f"{side} {number:g}" for side, number in sides if number is not None)


def _kinds(limits: tuple[Limit, ...]) -> list[tuple[str, bool, bool]]:
    return [(each.name, each.max is None, each.min is None) for each in limits]


def _storage() -> ModuleType:
    """Import `trimtab.storage` on first use, to keep `import trimtab` fast."""
    return import_module("trimtab.storage")


def _id(trial: object) -> int:
    if isinstance(trial, Trial):
        return trial.id
    if isinstance(trial, bool | np.ndarray) or not hasattr(trial, "__index__"):
        raise TypeError(f"trial={trial!r} is neither a Trial nor its id: tell(trial, value)")
    return operator.index(trial)


def _default_method(x: Array, bounds: ArrayLike | None, domain: Domain | None) -> BaseMethod:
    if bounds is not None:
        low, high = pairs(bounds, x.shape[-1]).T
        return between_limits(int(np.sum(low < high)))
    if domain is not None and np.isfinite(inner := fitting(domain, x.shape[-1]).inner_radius(x.shape[-1])):
        return auto(radius=SHARE * inner)
    radius = SHARE * (float(np.abs(x).max()) or 1.0)
    warnings.warn(
        f"no method and no bounds given: probing with radius={radius:.3g}, {SHARE:.0%} of the largest coordinate of x0;"
        " give bounds=, or method=tt.auto(radius=...), to choose it",
        AdviceWarning,
        stacklevel=3,
    )
    return auto(radius=radius)
