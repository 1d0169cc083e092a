"""A generator by the gest-api standard (suggest/ingest with VOCS), for Xopt, Badger, blop and libEnsemble.

Importing this module registers it with Xopt, and thereby with Badger, as the generator "trimtab".
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from trimtab.knobs import SHARE, Knob, Setting
from trimtab.recipes import methods
from trimtab.state import Trial
from trimtab.tuner import Tuner
from trimtab.types import Document, Json
from trimtab.util.extras import pip_install

try:
    from gest_api import Generator as Standard
    from gest_api.vocs import (
        VOCS,
        BoundsConstraint,
        ContextualVariable,
        DiscreteVariable,
        GreaterThanConstraint,
        MaximizeObjective,
        MinimizeObjective,
    )
    from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer
except ImportError as error:
    raise ImportError(f"trimtab.adapters.gest needs gest-api: {pip_install('gest')}") from error

ID = "_id"


class Generator(BaseModel, Standard):  # type: ignore[misc]  # gest-api has no types
    """Suggest one point per round, near the current setting of the machine, and ingest its value; ids are integers.

    vocs: one objective, to be minimised or maximised; continuous and discrete variables; constraints for methods with
    limits, `method="primal-dual"` with `options={"step": …}`.
    start: current value of each variable, by name. Others start at the last point ingested before the first
    suggestion, else at their default_value, else at the middle of their range.
    radius: probing radius, as a share of each range. log: variables on a log scale.
    method, options: one of `trimtab.methods`, and its arguments besides the radius.
    max_pending: number of points that may await a value at once, for several workers.
    state: the saved tuner, as text. `model_dump` contains it, so a generator made from a dump continues exactly.

    >>> vocs = VOCS(variables={"x": [0.0, 1.0]}, objectives={"f": "MINIMIZE"}, constants={"gas": "He"})
    >>> generator = Generator(vocs, start={"x": 0.2}, seed=0)
    >>> for _ in range(200):
    ...     (point,) = generator.suggest(1)
    ...     generator.ingest([{**point, "f": (point["x"] - 0.7) ** 2}])
    >>> sorted(point), bool(abs(generator.setting["x"] - 0.7) < 0.05)
    (['_id', 'gas', 'x'], True)
    """

    name: ClassVar[str] = "trimtab"
    returns_id: ClassVar[bool] = True
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    vocs: VOCS = Field(frozen=True, description="variables, one objective, limits, constants")
    radius: float | None = Field(
        None, frozen=True, description=f"probing radius, as a share of each range (default: {SHARE})"
    )
    start: Document = Field({}, frozen=True, description="current value of each variable, by name")
    log: list[str] = Field([], frozen=True, description="variables on a log scale")
    method: str = Field("auto", frozen=True, description="one of trimtab.methods")
    options: Document = Field({}, frozen=True, description="options of the method besides the radius")
    max_pending: int = Field(1, frozen=True, description="number of points that may await a value at once")
    seed: int | None = Field(None, description="seed of the probing directions; random by default")
    state: str | None = Field(None, frozen=True, repr=False, description="state of the tuner, as saved")
    data: Json = Field(None, exclude=True, repr=False, description="table of the host; not used")

    _tuner: Tuner = PrivateAttr()
    _begun: bool = PrivateAttr(default=False)

    def __init__(self, vocs: VOCS, **options: Json) -> None:
        super().__init__(vocs=vocs, **options)

    def model_post_init(self, context: object, /) -> None:
        """Validate the fields and restore the saved tuner."""
        if self.seed is None:
            self.seed = int.from_bytes(os.urandom(8)) >> 1
        self._validate_vocs(self.vocs)
        self._begun = self.state is not None
        self._tuner = self._at({})
        if self.state is not None:
            saved = Tuner.from_json(self.state)
            if (found := _space(saved)) != (wanted := _space(self._tuner)):
                raise ValueError(
                    f"the state is of another VOCS, with {found} instead of {wanted}: give the vocs that it was saved"
                    " with, or leave state out to start afresh"
                )
            self._tuner = saved

    def _validate_vocs(self, vocs: VOCS) -> None:
        objectives = list(vocs.objectives.values())
        if len(objectives) != 1 or not isinstance(objectives[0], MinimizeObjective | MaximizeObjective):
            kinds = {name: type(objective).__name__ for name, objective in vocs.objectives.items()}
            raise ValueError(f"objectives={kinds}: trimtab optimises one number; combine several into one with weights")
        if vocs.constraints and self.method != "primal-dual":
            raise ValueError(
                f"constraints={list(vocs.constraints)}: method={self.method!r} does not support measured limits; use"
                ' method="primal-dual" with options={"step": …, "dual_step": …}, or make them observables'
            )
        for field in (self.start, self.log):
            for name in field:
                if name not in vocs.variables:
                    raise ValueError(f"{name!r} is not a variable: choose from {', '.join(vocs.variables)}")

    @property
    def tuner(self) -> Tuner:
        """The tuner, for its centre, diagnostics and `forget`."""
        return self._tuner

    @property
    def setting(self) -> Setting:
        """The operating point now, with the constants (not "the best so far", which means nothing under drift)."""
        return self._point(self._tuner.setting)

    @property
    def pending(self) -> list[Setting]:
        """Suggested points without a value (with max_pending > 1)."""
        return [self._suggested(trial) for trial in self._tuner.pending]

    def suggest(self, num_points: int | None = None) -> list[Setting]:
        """The next points, by default one; with max_pending=1, a point without a value is suggested again."""
        try:
            trials = self._tuner.ask(1 if num_points is None else num_points)
        except RuntimeError as error:
            raise ValueError(f"{error}; or drop those that failed: register_failures(generator.pending)") from None
        self._begun = True
        return [self._suggested(trial) for trial in trials]

    generate = suggest

    def ingest(self, results: Sequence[Mapping[str, object]]) -> None:
        """Tell the values of suggested points, all or none; matched by `_id`, or by position if a host drops it.

        A value that is missing, None or NaN marks a failed measurement. Points that were never suggested are ignored,
        except that before the first suggestion they set the start. An `_id` that is not open is an error.
        """
        told: list[tuple[int, float | None, list[float] | None]] = []
        for row in results:
            id = self._id(row)
            if id is None:
                self._arrive(row)
                continue
            if not (self._begun and self._tuner.is_open(id)) or any(id == other for other, _, _ in told):
                raise ValueError(
                    f"{ID}={id} is not waiting for a value: it was not suggested here, or has one already;"
                    f" leave {ID} out of points from elsewhere"
                )
            told.append((id, *self._values(row)))
        for id, value, limits in told:
            self._tuner.tell(id, value, limits)

    def add_data(self, data: Json) -> None:
        """Ingest a table of earlier measurements, which Xopt and Badger pass on restart."""
        for row in data.to_dict("records")[-1:]:
            self._arrive(row)

    def register_failures(self, suggestions: Iterable[Mapping[str, object]]) -> None:
        """Mark points as not measured (called by blop): their rounds pass and the centre stays."""
        outputs = {*self.vocs.objectives, *self.vocs.constraints}
        self.ingest([{name: value for name, value in row.items() if name not in outputs} for row in suggestions])

    def get_best_points(self) -> list[tuple[int, Setting, Document]]:
        """The operating point now and the last value, in the form of blop; under drift there is no "best so far"."""
        value = self._tuner.last_value
        told = {} if value is None else {next(iter(self.vocs.objectives)): value}
        return [(int(self._tuner.state.told), self.setting, told)]

    @field_serializer("state")
    def _saved(self, state: str | None) -> str | None:
        return self._tuner.to_json() if self._begun else None

    def _at(self, point: Mapping[str, object]) -> Tuner:
        """Create a tuner at the current point of the machine."""
        maximise = isinstance(next(iter(self.vocs.objectives.values())), MaximizeObjective)
        knobs = [
            _knob(f"x{k}", name, variable, self.start.get(name, point.get(name)), name in self.log)
            for k, (name, variable) in enumerate(self.vocs.variables.items())
        ]
        if self.method not in methods:
            raise ValueError(f"method={self.method!r} is unknown: choose from {', '.join(sorted(methods))}")
        options = dict(self.options)
        if self.vocs.constraints:
            options["limits"] = sum(1 + isinstance(c, BoundsConstraint) for c in self.vocs.constraints.values())
        try:
            default = self.radius is None and self.method == "auto" and not options
            radius = SHARE if self.radius is None else self.radius
            method = None if default else methods[self.method](radius=radius, **options)
        except TypeError as error:
            raise ValueError(
                f"options={self.options!r} do not fit method={self.method!r} ({error}): give what it needs beside the"
                f" radius, as help(trimtab.methods[{self.method!r}]) says"
            ) from None
        return Tuner(knobs=knobs, method=method, seed=self.seed, maximise=maximise, max_pending=self.max_pending)

    def _arrive(self, row: Mapping[str, object]) -> None:
        """Take a point ingested before the first suggestion as the start."""
        if not self._begun and all(name in row for name in self.vocs.variables):
            self._tuner = self._at(row)

    def _point(self, setting: Setting) -> Setting:
        found = {}
        for (name, variable), level in zip(self.vocs.variables.items(), setting.values(), strict=True):
            found[name] = _ordered(variable)[level] if isinstance(variable, DiscreteVariable) else level
        return found | {name: constant.value for name, constant in self.vocs.constants.items()}

    def _suggested(self, trial: Trial) -> Setting:
        return {**self._point(trial.knobs), ID: trial.id}

    def _id(self, row: Mapping[str, object]) -> int | None:
        """The id of a row, or that of the first open trial at the same point."""
        given = row.get(ID)
        if given is not None and not (isinstance(given, float | np.floating) and math.isnan(given)):
            if isinstance(given, float | np.floating) and float(given).is_integer():
                given = int(given)  # a table with missing ids holds floats
            if not isinstance(given, int | np.integer):
                raise ValueError(f"{ID}={given!r} is not a whole number: give the one that was suggested")
            return int(given)
        if self._begun:
            trials = self._tuner.pending if self.max_pending > 1 else (self._tuner.ask(),)
            for trial in trials:
                point = self._point(trial.knobs)
                if all(row.get(name) == point[name] for name in self.vocs.variables):
                    return trial.id
        return None

    def _values(self, row: Mapping[str, object]) -> tuple[float | None, list[float] | None]:
        """The value and its limits, ≤ 0 if satisfied; None if any is missing."""
        found = [_number(name, row.get(name)) for name in self.vocs.objectives]
        for name, limit in self.vocs.constraints.items():
            value = _number(name, row.get(name))
            if isinstance(limit, BoundsConstraint):
                found += [limit.range[0] - value, value - limit.range[1]]
            else:
                found.append((limit.value - value) if isinstance(limit, GreaterThanConstraint) else value - limit.value)
        if any(math.isnan(value) for value in found):
            return None, None
        return found[0], found[1:] or None


def _knob(name: str, said: str, variable: Json, at: object, log: bool) -> Knob:
    """Convert a variable to a knob; `name` replaces its own, which may contain colons."""
    if isinstance(variable, ContextualVariable):
        raise ValueError(f"variable {said!r} cannot be set: declare it as an observable instead")
    at = variable.default_value if at is None else at
    scale = "log" if log else "linear"
    if isinstance(variable, DiscreteVariable):
        values = _ordered(variable)
        if at is not None and at not in values:
            raise ValueError(f"variable {said!r} starts at {at!r}, which is not among {values}: use one of them")
        place = len(values) // 2 if at is None else values.index(at)
        if all(_is_number(value) for value in values):  # ordered, so neighbouring values are related
            return Knob(name=name, low=0, high=len(values) - 1, start=place, type="integer")
        return Knob(name=name, choices=tuple(range(len(values))), start=0 if at is None else place)
    kind = np.dtype(float if variable.dtype is None else variable.dtype)
    if kind.shape or kind.kind not in "iuf":
        raise ValueError(f"variable {said!r} of dtype {variable.dtype!r} is not scalar: use several variables")
    low, high = variable.domain
    if kind.kind != "f":
        low, high = math.ceil(low), math.floor(high)
    try:
        if at is None:
            at = math.sqrt(low * high) if log and low > 0 else low / 2 + high / 2
            at = at if kind.kind == "f" else math.floor(at)
        kind_name = "float" if kind.kind == "f" else "integer"
        return Knob(name=name, low=low, high=high, start=at, scale=scale, type=kind_name)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"variable {said!r}: {str(error).partition(': ')[2] or error}") from None


def _space(tuner: Tuner) -> Document:
    """The knobs of a tuner as a dict, to check that a state matches a VOCS."""
    knobs = () if tuner.knobs is None else tuner.knobs.all
    ranges = [(knob.type, knob.low, knob.high, knob.scale) for knob in knobs]
    return {"variables": ranges, "maximise": tuner.setup.maximise, "limits": tuner.setup.told - 1}


def _ordered(variable: Json) -> list[Json]:
    """The values of a discrete variable in a reproducible order, since a set has none."""
    return sorted(
        variable.values, key=lambda value: (not _is_number(value), value if _is_number(value) else repr(value))
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _number(name: str, given: object) -> float:
    """Convert a measured number; None becomes NaN."""
    try:
        value = math.nan if given is None else float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name}={given!r} is not a number: ingest one, or None if the measurement failed") from None
    if math.isinf(value):
        raise ValueError(f"{name}={value} is not finite: ingest a number, or None if the measurement failed")
    return value


if find_spec("xopt") is not None:
    from xopt.generators import generators

    generators[Generator.name] = Generator
