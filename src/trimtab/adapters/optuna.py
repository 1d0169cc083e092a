"""Optuna sampler for studies of drifting systems: trials stay near the current operating point."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import warnings
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import numpy as np

from trimtab.core import init
from trimtab.knobs import SHARE, Knob, Setting
from trimtab.recipes import BaseMethod, auto
from trimtab.state import Look, Trial
from trimtab.tuner import Tuner
from trimtab.types import Json
from trimtab.util.extras import pip_install
from trimtab.validation import real, whole

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
        distribution_to_json,
    )
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError(f"trimtab.adapters.optuna needs optuna: {pip_install('optuna')}") from error

Space = dict[str, BaseDistribution]
CENTRE = 2  # index of the centre in the data of a trial: id, direction, centre, width
NEAR = 2  # trials that differ in number by more than NEAR × workers are taken not to run at once


class Sampler(optuna.samplers.BaseSampler):
    """`optuna.create_study(sampler=Sampler(start={"x": 0.2}))`.

    The sampler's state is a function of the study: each trial stores its look beside its parameters, and finished
    trials are replayed in the order in which they finished. So a killed study resumes from its storage with the same
    next trial, and several processes learn from one another.

    radius: probing radius, as a share of each range; or a method, which has a radius.
    start: current value of each parameter, by name. By default the first trial is random, or the one enqueued with
    `study.enqueue_trial`; later ones probe around it.
    seed: derived from the study's name by default.
    workers: number of trials that run at once, in all threads and processes; further unfinished ones count as lost.

    Parameters that are not in every finished trial with the same distribution are sampled independently.
    Failed and pruned trials, and those whose parameters did not come from this sampler, do not move the centre.

    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=Sampler(start={"x": 0.1}, seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.7) ** 2, n_trials=200)
    >>> bool(abs(study.sampler.setting(study)["x"] - 0.7) < 0.05)
    True
    """

    def __init__(
        self,
        radius: float | None = None,
        *,
        method: BaseMethod | None = None,
        start: Mapping[str, object] | None = None,
        seed: int | None = None,
        workers: int = 1,
    ) -> None:
        self._default = method is None and radius is None
        self._method = auto(radius=SHARE if radius is None else radius) if method is None else method
        if start is not None and not isinstance(start, Mapping):
            raise TypeError(f"start={start!r} is not a mapping: give the current values by name, start={{'x': 0.2}}")
        self._start = dict(start or {})
        self._seed = None if seed is None else whole("seed", seed, 0, 2**63)
        self._workers = whole("workers", workers, 1, 2**10)
        self._lock = threading.Lock()
        self._known: dict[str, tuple[list[tuple[datetime, int]], Tuner | None]] = {}
        self._spaces: dict[str, IntersectionSearchSpace] = {}

    def setting(self, study: Study) -> Setting:
        """The operating point now (not `study.best_params`, which means nothing under drift)."""
        space = self.infer_relative_search_space(study, None)
        if not space:
            return {}
        with self._lock:
            tuner = self._learnt(study, space)
            return {} if tuner is None else _parameters(space, tuner.setting)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial | None) -> Space:
        """The parameters common to all finished trials, except those with a single value."""
        with self._lock:
            space = self._spaces.setdefault(study.study_name, IntersectionSearchSpace()).calculate(study)
        return {name: law for name, law in space.items() if not law.single()}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Space) -> Setting:
        """The query of this trial; empty without `start` and finished trials."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            tuner = self._learnt(study, search_space)
            if tuner is None:
                return {}
            key, number = self._key(study, search_space), trial.number
            beside = self._beside(study.get_trials(deepcopy=False), key, number)
            open = [_handed_out(t, key) for t in beside if not t.state.is_finished() and t.number < number]
            tuner.state = tuner.state._replace(round=number, open=self._others(open))
            asked = tuner.ask()
            id, look = tuner.state.open[-1]
        said = [id, int(look.trial), look.centre.tolist(), float(look.width)]
        study._storage.set_trial_system_attr(trial._trial_id, key, said)
        return _parameters(search_space, asked.knobs)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Json:
        """The current value of a parameter, or a draw determined by (seed, trial, name)."""
        self._raise_error_if_multi_objective(study)
        if self._begins_in(param_name, param_distribution):
            given = param_distribution.to_internal_repr(self._start[param_name])
            return param_distribution.to_external_repr(given)
        rng = np.random.default_rng([self._seed_of(study), trial.number, zlib.crc32(param_name.encode())])
        knob, (place, draw) = _knob("x", param_name, param_distribution, None), rng.random(2).tolist()
        level = knob.at([1.0] * knob.size if knob.choices is not None else [place], draw)
        return _parameters({param_name: param_distribution}, {"x": level})[param_name]

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Warn if the trial has constraints that the method does not support."""
        if trial.constraints and self._method.told == 1:
            warnings.warn(
                f"trial {trial.number} has constraints, which {self._method} does not support: give"
                f" method=tt.primal_dual(radius=..., step=..., limits={len(trial.constraints)})",
                stacklevel=2,
            )

    def _seed_of(self, study: Study) -> int:
        name = hashlib.sha256(study.study_name.encode()).digest()
        return int.from_bytes(name[:8]) >> 1 if self._seed is None else self._seed

    def _key(self, study: Study, space: Space) -> str:
        """The attribute that stores a trial's look, specific to this method and search space."""
        laws = {name: distribution_to_json(law) for name, law in sorted(space.items())}
        said = json.dumps([study.study_name, self._seed_of(study), repr(self._method), self._default, laws])
        return f"trimtab:{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def _beside(self, trials: Sequence[FrozenTrial], key: str, number: int) -> list[FrozenTrial]:
        """Trials of this sampler that may be running at the same time."""
        reach = NEAR * self._workers
        near = trials[max(number - reach, 0) : number + reach + 1]
        return [t for t in near if key in t.system_attrs and t.number != number]

    def _others(self, open: list[tuple[int, Look]]) -> tuple[tuple[int, Look], ...]:
        """Open trials that other workers may still be running; the rest were lost."""
        return tuple(open[max(len(open) - self._workers + 1, 0) :])

    def _learnt(self, study: Study, space: Space) -> Tuner | None:
        """The tuner after all finished trials; None while there is no point to start from."""
        key, trials = self._key(study, space), study.get_trials(deepcopy=False)
        ours = [t for t in trials if key in t.system_attrs]
        if not ours:
            origin = self._origin(trials, space)
            return None if origin is None else self._tuner(study, space, origin)
        finished = sorted((t for t in ours if t.state.is_finished()), key=_finished)
        learnt, (known, tuner) = [_finished(t) for t in finished], self._known.get(key, ([], None))
        if tuner is None or known != learnt[: len(known)]:  # a trial has appeared that finished before others
            known, tuner = [], self._tuner(study, space, {})
            tuner.state = init(tuner.setup, ours[0].system_attrs[key][CENTRE], *tuner.state.key)
        for trial in finished[len(known) :]:
            self._tell(tuner, trials, space, key, trial)
        self._known = {key: (learnt, tuner)}
        return tuner

    def _origin(self, trials: Sequence[FrozenTrial], space: Space) -> Setting | None:
        """The starting point: that of the last trial, or else `start`."""
        done = [t for t in trials if t.state == TrialState.COMPLETE and all(name in t.params for name in space)]
        if not done:
            return self._start if all(self._begins_in(name, law) for name, law in space.items()) else None
        found = max(done, key=_finished).params
        return found if all(_contains(law, found[name]) for name, law in space.items()) else None

    def _begins_in(self, name: str, law: BaseDistribution) -> bool:
        """Whether `start` gives a valid value of this parameter."""
        if name not in self._start:
            return False
        if not isinstance(law, CategoricalDistribution):
            real(f"start[{name!r}]", self._start[name], why=f", as {law} needs")
        return _contains(law, self._start[name])

    def _tuner(self, study: Study, space: Space, at: Setting) -> Tuner:
        return Tuner(
            knobs=[_knob(f"x{k}", name, law, at.get(name)) for k, (name, law) in enumerate(space.items())],
            method=None if self._default else self._method,
            seed=self._seed_of(study),
            maximise=study.direction == StudyDirection.MAXIMIZE,
            max_pending=max(2, self._workers),
        )

    def _tell(self, tuner: Tuner, trials: Sequence[FrozenTrial], space: Space, key: str, trial: FrozenTrial) -> None:
        """Tell the tuner a finished trial."""
        at, handed_out = _finished(trial), _handed_out(trial, key)
        beside = [t for t in self._beside(trials, key, trial.number) if _started(t) < at[0] and _finished(t) > at]
        open = (*self._others([_handed_out(t, key) for t in beside]), handed_out)
        id = handed_out[0]
        tuner.state = tuner.state._replace(round=max(tuner.state.round, id + 1), open=open)
        tuner.tell(id, *self._values(tuner.pending[-1], space, trial))
        tuner.state = tuner.state._replace(open=())

    def _values(self, asked: Trial, space: Space, trial: FrozenTrial) -> tuple[float | None, list[float] | None]:
        """The value of a trial and those of its limits; None if it failed or had other parameters."""
        query = _parameters(space, asked.knobs)
        if trial.state != TrialState.COMPLETE or any(trial.params.get(name) != query[name] for name in query):
            return None, None
        limits, told = list(trial.constraints.values()), self._method.told
        found = [trial.value, *(limits if told > 1 else ())]
        if len(found) != told or not all(value is not None and math.isfinite(value) for value in found):
            return None, None
        return trial.value, limits if told > 1 else None

    def __getstate__(self) -> Json:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_known", "_spaces")}

    def __setstate__(self, saved: Json) -> None:
        self.__dict__.update(saved, _lock=threading.Lock(), _known={}, _spaces={})


def _handed_out(trial: FrozenTrial, key: str) -> tuple[int, Look]:
    id, direction, centre, width = trial.system_attrs[key]
    return id, Look(direction, np.array(centre), width)


def _finished(trial: FrozenTrial) -> tuple[datetime, int]:
    return trial.datetime_complete or datetime.max, trial.number


def _started(trial: FrozenTrial) -> datetime:
    return trial.datetime_start or datetime.max


def _contains(law: BaseDistribution, value: object) -> bool:
    try:
        return law._contains(law.to_internal_repr(value))
    except ValueError:
        return False


def _knob(name: str, said: str, law: Json, at: Json) -> Knob:
    """Convert a distribution to a knob; `name` replaces Optuna's, which may be any text.

    Knobs of choices hold indices, because None is a valid choice; so do those of floats with a step, because Optuna's
    values may have rounding errors.
    """
    if isinstance(law, CategoricalDistribution):
        place = 0 if at is None and None not in law.choices else int(law.to_internal_repr(at))
        return Knob(name=name, choices=tuple(range(len(law.choices))), start=place)
    at = law.low if at is None else at
    try:
        if _is_stepped(law):
            high, start = (round((level - law.low) / law.step) for level in (law.high, at))
            return Knob(name=name, low=0, high=high, start=start, type="integer")
        return Knob(
            name=name,
            low=law.low,
            high=law.high,
            start=at,
            type="integer" if isinstance(law, IntDistribution) else "float",
            scale="log" if law.log else "linear",
            step=None if law.log or law.step == 1 else law.step,
        )
    except ValueError as error:
        raise ValueError(f"parameter {said!r}: {str(error).partition(': ')[2]}") from None


def _is_stepped(law: Json) -> bool:
    return isinstance(law, FloatDistribution) and law.step is not None


def _parameters(space: Space, setting: Setting) -> Setting:
    """Convert knob values to Optuna parameters."""
    return {name: _level(law, v) for (name, law), v in zip(space.items(), setting.values(), strict=True)}


def _level(law: Json, value: Json) -> Json:
    if isinstance(law, CategoricalDistribution):
        return law.choices[value]
    if _is_stepped(law):  # decimal, so that three steps of 0.1 make 0.3
        return min(float(Decimal(str(law.low)) + value * Decimal(str(law.step))), law.high)
    return value
