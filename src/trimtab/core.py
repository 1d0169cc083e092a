"""The pure core: `init`, `ask` and `tell`, functions of (setup, state[, values]).

    u_t = direction(seed, round)            where do we look
    query = x_t + δ·u_t                     → measure → y_t
    a_t = estimator(memory, y_t)            what does the number tell
    x_{t+1} = Π(x_t − η_t·(scale/δ)·a_t·u_t)   how far do we go, where may we be

`Setup` is what does not change (method, domain, seed, …), with everything that can be worked out once. `State` is
what does: a few numbers and one array, immutable. The state does not hold a pending direction, because u_t is a
function of (seed, round): asking again, also after a crash, gives the same query.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.directions import Directions, Gaussian, Rademacher, Stream
from trimtab.domains import Box, Domain, Everywhere
from trimtab.estimators import Memory, Value
from trimtab.lanes import Many, One
from trimtab.methods import Method

Array = NDArray[np.float64]

TINY = 1e-300
LARGEST = 1e150  # values beyond are taken as this, so that their squares stay finite
FARTHEST = 1e6  # no move is longer than this many times the domain: beyond, a projection has no digits left
FARTHEST_FREE = 1e12  # the same, in probe lengths, where the domain is unbounded


class State(NamedTuple):
    """Everything that changes: plain numbers and arrays."""

    round: int
    """The number of the next new trial."""
    centre: Array
    """x_t, in scaled coordinates where there are bounds: `(d,)` or `(lanes, d)`."""
    memory: Memory
    """The estimator's: the anchor, for residual feedback."""
    gain: Memory
    """The step's."""
    last: Any
    """The trial that brought the last value, the anchor: a number, or one per lane; −1 before the first."""
    skipped: Any
    """How many rounds brought no value: a number, or one per lane."""
    pending: tuple[int, ...]
    """Trials handed out ahead and not yet told (with max_pending > 1)."""
    course: tuple[Array, ...] = ()
    """The running mean of the moves, for a step that looks at it (`Adaptive`)."""
    echo: tuple[Any, ...] = ()
    """Before a round that echoes (`Echoed` directions), for such a step: the query to be repeated, and its value."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Everything that stays: what to run, where, on which random numbers.

    `lane` is the number of the first lane. With `copies`, so many neighbouring lanes share a number and so their
    directions: to try several step sizes (a step per lane) on the same random numbers.

    >>> from trimtab.methods import residual
    >>> setup = Setup(residual(radius=0.1, step=0.01), (3,), seed=1)
    >>> state = init(setup, [0.0, 0.0, 0.0])
    >>> query = ask(setup, state)
    >>> tell(setup, state, 4.2).round
    1
    """

    method: Method
    shape: tuple[int, ...]
    domain: Domain = field(default_factory=Everywhere)
    bounds: Any = None
    seed: int = 0
    lane: int = 0
    copies: int = 1
    maximise: bool = False
    max_pending: int = 1

    dim: int = field(init=False, repr=False)
    lanes: int | None = field(init=False, repr=False)
    directions: Directions = field(init=False, repr=False)
    stream: Stream = field(init=False, repr=False)
    home: Domain = field(init=False, repr=False)
    """Where centres live, so that queries stay in the domain."""
    probe: float = field(init=False, repr=False)
    """The length of a probe: δ·rms‖u‖."""
    radii: tuple[float, ...] = field(init=False, repr=False)
    """The radius of each query of a round: offset·δ."""
    _gains: tuple[float, float] = field(init=False, repr=False)
    arithmetic: Any = field(init=False, repr=False)
    _plain: bool = field(init=False, repr=False)
    _learns: bool = field(init=False, repr=False)
    _looks: bool = field(init=False, repr=False)
    _free: bool = field(init=False, repr=False)
    _bounded: bool = field(init=False, repr=False)
    _folds: bool = field(init=False, repr=False)
    _slopes: bool = field(init=False, repr=False)
    _unit: float = field(init=False, repr=False)
    _kept: tuple[Any, ...] = field(init=False, repr=False)
    _alone: bool = field(init=False, repr=False)
    _solid: bool = field(init=False, repr=False)
    _largest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 2) or min(self.shape) < 1:
            raise ValueError(f"shape={self.shape} is neither (d,) nor (lanes, d) with at least one of each")
        for name, least, most in (
            ("seed", 0, 2**64),
            ("lane", 0, 2**63),
            ("copies", 1, 2**20),
            ("max_pending", 1, 2**20),
        ):
            self._put(name, _whole(name, getattr(self, name), least, most))
        self._put("dim", self.shape[-1])
        self._put("lanes", self.shape[0] if len(self.shape) == 2 else None)
        if not isinstance(self.method, Method):
            raise TypeError(
                f"method={self.method!r} is not a Method: use for example tt.residual(radius=0.05, step=3e-3)"
            )
        if not isinstance(self.domain, Domain):
            raise TypeError(f"domain={self.domain!r} is not a domain: give for example tt.Ball(5.0), or bounds=")
        if not isinstance(self.maximise, bool | np.bool_):
            raise TypeError(f"maximise={self.maximise!r} is neither True nor False")
        step = getattr(self.method.step, "step", None)
        if isinstance(step, tuple) and len(step) != self.lanes:
            raise ValueError(f"{len(step)} steps do not fit {self.lanes or 1} lanes: give one number, or one per lane")
        if (self.lanes or 1) % self.copies:
            raise ValueError(f"copies={self.copies} does not divide the {self.lanes or 1} lanes")
        if self.bounds is not None:
            self._scale_to_bounds()
        if self.domain.dim not in (None, self.dim):
            raise ValueError(f"the domain has dimension {self.domain.dim}, but x0 has {self.dim} coordinates")

        radius = float(self.method.radius)
        law = self.method.directions or (Gaussian() if isinstance(self.domain, Everywhere) else Rademacher())
        gain = law.scale(self.dim) / radius
        self._put("directions", law)
        self._put("stream", Stream(law, self.shape, seed=self.seed, lane=self.lane, copies=self.copies))
        self._put("home", self._home(law, radius))
        self._put("probe", radius * math.sqrt(self.dim / law.scale(self.dim)))
        self._put("radii", tuple(offset * radius for offset in self.method.estimator.offsets))
        self._put("arithmetic", One if self.lanes is None else Many)
        self._put("_learns", hasattr(self.method.estimator, "learn"))
        self._put("_free", isinstance(self.domain, Everywhere) or self.method.margin == "none")
        self._put("_bounded", not isinstance(self.domain, Everywhere))
        self._put("_folds", self.method.margin == "project" and not self._free)
        self._put("_kept", (None, -1, None, 1.0))
        self._put("_unit", math.sqrt(law.scale(self.dim)))
        self._put("_looks", hasattr(self.method.step, "follow"))
        self._put("_slopes", self._learns or self._looks)
        self._put("_alone", law.partner(0) is None)
        self._put("_solid", type(self.domain).flatten is Domain.flatten)
        self._put("_plain", self.lanes is None and len(self.radii) == 1)
        self._put("_gains", (gain, gain / (1.0 + self.method.estimator.recall)))
        around = self.domain.outer_radius(self.dim)
        farthest = FARTHEST * around if math.isfinite(around) else FARTHEST_FREE * self.probe
        self._put("_largest", farthest * radius / self.probe)  # of the factor of u

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _scale_to_bounds(self) -> None:
        if not (isinstance(self.domain, Everywhere) or self.domain == Box(0.0, 1.0)):
            raise ValueError("give either bounds or a domain; for both, use Intersection(Box(low, high), domain)")
        wanted = f"give one (low, high) for each of {self.dim} coordinates"
        try:
            bounds = np.array(self.bounds, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"bounds={self.bounds!r} is not a list of pairs: {wanted}") from None
        if bounds.shape != (self.dim, 2):
            raise ValueError(f"bounds has shape {bounds.shape}: {wanted}")
        low, high = bounds.T
        for k in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low < high)))[:1]:
            raise ValueError(
                f"bounds[{k}]=({low[k]}, {high[k]}): every low must be a finite number below its high;"
                " for a side without a limit use domain=Box(low, high) with inf"
            )
        size = np.maximum(np.abs(low), np.abs(high))
        for k in np.flatnonzero((size > 1e300) | (high / 2 - low / 2 < 1e-12 * size))[:1]:
            raise ValueError(
                f"bounds[{k}]=({low[k]}, {high[k]}) are too close, or too large, for floating point: shift or rescale"
            )
        bounds.flags.writeable = False
        self._put("bounds", bounds)
        self._put("domain", Box(0.0, 1.0))

    def _home(self, law: Directions, radius: float) -> Domain:
        each, length = self.domain.reach(self.dim, *(radius * r for r in law.reach(self.dim)))
        if self.method.margin == "none" or isinstance(self.domain, Everywhere):
            return self.domain
        if math.isinf(each) and self.method.margin != "project":
            if self.method.margin == "scale":
                raise ValueError(
                    "margin='scale' needs bounded directions: use Sphere() or Rademacher(), not Gaussian()"
                )
            return self.domain
        if self.method.margin in ("erode", "project"):
            try:
                eroded = self.domain if math.isinf(each) else self.domain.erode(self.dim, each, length)
                return eroded if self.method.margin == "erode" else self.domain.erode(self.dim, 0.0, 0.0)
            except ValueError as error:
                unit = " (with bounds, a share of each range)" if self.bounds is not None else ""
                raise ValueError(f"radius={radius}{unit} is too large: {error}") from None
        inner = self.domain.inner_radius(self.dim)
        if math.isinf(inner):
            raise ValueError("margin='scale' needs a bounded domain: use margin='erode'")
        xi = min(length, each * math.sqrt(self.dim)) / inner if inner > 0 else math.inf
        return self.domain.scale(self.dim, xi + 1e-12)  # ξ = δ/r (Lemma H.3)

    def direction(self, trial: int) -> Array:
        """u of a trial, in the plane of the domain."""
        u = self.stream(trial)
        return u if self._solid else self.domain.flatten(u)

    def outward(self, z: Array) -> Array:
        """Scaled coordinates → the user's; what is inside stays inside, whatever the rounding."""
        if self.bounds is None:
            return z
        low, high = self.bounds.T
        x: Array = z * (high - low)
        x += low
        np.minimum(x, high, out=x, where=z <= 1)
        np.maximum(x, low, out=x, where=z >= 0)
        return x

    def inward(self, x: Array) -> Array:
        """The user's coordinates → scaled ones."""
        if self.bounds is None:
            return x
        low, high = self.bounds.T
        return np.asarray((x - low) / (high - low))

    def gain(self, trial: int, last: Any) -> Value:
        """scale/δ, less where the value told last was measured at −u and tells of the same gradient (`Paired`)."""
        if self._alone:
            return self._gains[0]
        partner = self.directions.partner(trial)
        if self.lanes is None:
            return self._gains[last == partner]
        return np.where(last == partner, self._gains[1], self._gains[0])

    def read(self, values: Any) -> tuple[Value, ...] | None:
        """The values of a round's queries, to be minimised; NaN in lanes that have none, None if none has."""
        if type(values) is float and self._plain and -LARGEST <= values <= LARGEST:  # the fast way, most of the time
            return (-values if self.maximise else values,)
        if values is None:
            return None
        shape: tuple[int, ...] = () if self.lanes is None else (self.lanes,)
        if len(self.radii) > 1:
            shape += (len(self.radii),)
        if isinstance(values, np.ma.MaskedArray):  # what is masked was not measured
            values = np.ma.filled(values.astype(float), math.nan)
        try:
            array = np.asarray(values)
            if array.dtype.kind not in "biufO":
                raise TypeError
            array = array.astype(float)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"value={values!r} is not a number: tell a real number, or skip the trial") from None
        if array.shape != shape:
            raise ValueError(f"value has shape {array.shape}, but {shape} is needed: one number per lane and query")
        if np.isinf(array).any():
            _refuse(values)
        if np.isnan(array).all() or (self.lanes is None and np.isnan(array).any()):
            return None
        array = np.clip(array, -LARGEST, LARGEST)
        if self.maximise:
            array = -array
        parts = (array,) if len(self.radii) == 1 else tuple(np.moveaxis(array, -1, 0))
        return tuple(float(p) for p in parts) if self.lanes is None else parts


def _shortly(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:190] + " ..."


def _whole(name: str, number: Any, least: int, most: int) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__") or not least <= operator.index(number) < most:
        raise ValueError(f"{name}={number!r} must be a whole number, at least {least} and below {most}")
    return operator.index(number)


def _refuse(values: Any) -> Any:
    raise ValueError(
        f"value={values!r} is infinite: skip the trial if the measurement failed, or tell a finite penalty"
    )


def init(setup: Setup, x0: ArrayLike) -> State:
    """The state before round 0, at x0, or where x0 is at the edge, at the nearest point whose probes all stay inside.

    With margin="erode" that is no farther than a probe reaches (on a simplex, near a corner, somewhat more); with
    margin="project" it is x0 itself.
    """
    x = np.array(x0, dtype=float)
    if x.shape != setup.shape:
        raise ValueError(f"x0 has shape {x.shape}, but the setup is for {setup.shape}")
    for place in np.argwhere(~np.isfinite(x))[:1]:
        raise ValueError(f"x0{place.tolist()}={x[tuple(place)]} is not a number: every coordinate must be finite")
    z = setup.inward(x)
    if not np.all(setup.domain.contains(z)):
        point, limits = _shortly(x), _shortly(setup.domain)
        if setup.bounds is not None:
            place = np.argwhere(~((z >= 0) & (z <= 1)))[0]
            point, limits = str(x[tuple(place)]), f"bounds[{place[-1]}]={tuple(setup.bounds[place[-1]].tolist())}"
        raise ValueError(f"x0={point} is outside {limits}: start inside, or widen the limits")
    blank: Value = math.nan if setup.lanes is None else np.full(setup.lanes, math.nan)
    zero: Value = 0.0 if setup.lanes is None else np.zeros(setup.lanes)
    skipped = 0 if setup.lanes is None else _frozen(np.zeros(setup.lanes, dtype=np.int64))
    last = -1 if setup.lanes is None else _frozen(np.full(setup.lanes, -1, dtype=np.int64))
    centre, estimator = _frozen(setup.home.project(z)), setup.method.estimator
    memory = estimator.start(blank, centre) if setup._learns else estimator.start(blank)
    course = (_frozen(np.zeros(setup.shape)),) if setup._looks else ()
    return frozen(State(0, centre, memory, setup.method.step.start(zero), last, skipped, (), course))


def ask(setup: Setup, state: State, trial: int | None = None) -> Array:
    """The query of the next round (or of a pending trial): x_t + δu_t, in the user's coordinates.

    Shape `(d,)` or `(lanes, d)`; methods with two queries give `(2, d)` or `(lanes, 2, d)`.
    """
    if setup._slopes:
        query = _probes(setup, state, state.round if trial is None else trial)[0].copy()
        return setup.outward(query)
    u = setup.direction(state.round if trial is None else trial)
    if len(setup.radii) == 1:
        query = u * setup.radii[0]
        query += state.centre
    else:
        query = np.stack([state.centre + radius * u for radius in setup.radii], axis=-2)
    return setup.outward(query)


def _probes(setup: Setup, state: State, trial: int) -> tuple[Array, Value]:
    """The queries by a radius that widens, and δ_t/δ: 1 where a wider probe would leave the domain (margin="erode")."""
    kept = setup._kept
    if kept[0] is state and kept[1] == trial:  # tell comes after ask
        return kept[2], kept[3]
    wide = setup.method.step.widening(state.gain) if setup._looks else 1.0
    if state.echo and setup.directions.echoes(trial):
        return state.echo[0], wide
    u = setup.direction(trial)
    query = _at(setup, state, u, wide)
    if setup._folds:
        query = setup.home.project(query)
    elif not setup._free and setup.arithmetic.some(wide > 1.0):
        inside = setup.domain.contains(query.reshape(-1, setup.dim), 0.0).reshape(-1, len(setup.radii)).all(-1)
        wide = setup.arithmetic.choose(inside if setup.lanes else inside[0], wide, 1.0)
        query = _at(setup, state, u, wide)
    setup._put("_kept", (state, trial, query, wide))
    return query, wide


def _at(setup: Setup, state: State, u: Array, wide: Value) -> Array:
    if setup._plain:
        query: Array = u * (wide * setup.radii[0])
        query += state.centre
        return query
    queries = [setup.arithmetic.times(wide * radius, u) for radius in setup.radii]
    for query in queries:
        query += state.centre
    return queries[0] if len(queries) == 1 else np.stack(queries, axis=-2)


def tell(setup: Setup, state: State, values: Any, trial: int | None = None) -> State:
    """The state after the values of a trial; None or NaN marks a failed measurement, which moves nothing."""
    round, pending = state.round, state.pending
    if trial is None or (trial == round and setup.max_pending == 1):
        trial = round
        round += 1
    elif trial in pending:
        pending = tuple(p for p in pending if p != trial)
    else:
        raise ValueError(f"trial {trial} is not open: {_where(state, trial)}")
    y = setup.read(values)
    if y is None:
        skipped = _frozen(state.skipped + 1)
        return state._replace(round=round, skipped=skipped, pending=pending)
    if setup._slopes:
        centre, memory, gain, last, skipped, course = _move_by_slope(setup, state, y, trial)
        heard = setup._looks and setup.directions.echoes(trial + 1)
        echo = (_frozen(_probes(setup, state, trial)[0]), _frozen(y[0])) if heard else ()
        return State(round, centre, memory, gain, last, skipped, pending, course, echo)
    move = _move if setup.lanes is None else _move_lanes
    return State(round, *move(setup, state, y, trial), pending)


def estimate(setup: Setup, state: State, values: tuple[Value, ...], trial: int | None = None) -> Array:
    """ĝ_t, in scaled coordinates, from the values of a round's queries; NaN without a contrast."""
    contrast, slope, _, _ = learn(setup, state, values, state.round if trial is None else trial)
    return np.where(np.isnan(contrast)[..., None], np.nan, slope)


def learn(setup: Setup, state: State, values: tuple[Value, ...], trial: int) -> tuple[Value, Array, Memory, Value]:
    """The contrast, ĝ_t = (scale/δ)·a_t·u_t (or what the estimator makes of its memory), the memory, and δ_t/δ."""
    estimator = setup.method.estimator
    query, wide = _probes(setup, state, trial) if setup._slopes else (state.centre, 1.0)
    if setup._learns:
        return *estimator.learn(state.memory, values[0], query, wide * setup.probe), wide
    contrast, memory = estimator.contrast(state.memory, values)
    factor = setup.gain(trial, state.last) / wide * contrast
    return contrast, setup.arithmetic.times(factor, setup.direction(trial)), memory, wide


def _where(state: State, trial: int) -> str:
    if trial > state.round or trial < 0:
        return f"it was never asked; the next one is {state.round}"
    open_ones = ", ".join(map(str, state.pending)) or "none"
    return f"it was told or skipped before; open are: {open_ones}, and the next one, {state.round}"


def _move(setup: Setup, state: State, y: tuple[Value, ...], trial: int) -> tuple[Array, Memory, Memory, Any, Any]:
    method = setup.method
    contrast, memory = method.estimator.contrast(state.memory, y)
    if contrast != contrast:  # the first measurement only anchors
        return state.centre, memory, state.gain, trial, state.skipped
    rate, gain = method.step.rate(state.gain, contrast, trial, setup.probe, setup.dim)
    factor: Any = -rate * contrast * setup.gain(trial, state.last)
    if not -setup._largest <= factor <= setup._largest:
        factor = math.copysign(setup._largest, factor)
    u = setup.direction(trial)
    if method.max_move is not None:
        length = abs(factor) * math.sqrt(np.einsum("i,i->", u, u))
        if length > method.max_move * setup.probe:
            factor *= method.max_move * setup.probe / length
    target = u * factor
    target += state.centre
    target = setup.home.project(target)
    target.setflags(write=False)
    return target, memory, gain, trial, state.skipped


def _move_lanes(setup: Setup, state: State, y: tuple[Value, ...], trial: int) -> tuple[Array, Memory, Memory, Any, Any]:
    method = setup.method
    failed = np.isnan(y[0]) if len(y) == 1 else np.logical_or.reduce([np.isnan(v) for v in y])
    contrast, memory = method.estimator.contrast(state.memory, y)
    idle = failed | np.isnan(contrast)
    known = np.where(idle, 0.0, contrast)
    rate, gain = method.step.rate(state.gain, known, trial, setup.probe, setup.dim)
    factor = np.clip(-rate * known * setup.gain(trial, state.last), -setup._largest, setup._largest)
    u = setup.direction(trial)
    if method.max_move is not None:
        length = np.abs(factor) * np.sqrt(np.einsum("ij,ij->i", u, u))
        limit = method.max_move * setup.probe
        factor = factor * np.where(length > limit, limit / np.maximum(length, limit), 1.0)
    centre = state.centre
    if not idle.all():
        target = setup.home.project(centre + factor[:, None] * u)
        centre = _frozen(np.where(idle[:, None], centre, target) if idle.any() else target)
    memory, gain = _keep(failed, state.memory, memory), _keep(idle, state.gain, gain)
    last = np.where(failed, state.last, trial)
    return centre, memory, gain, _frozen(last), _frozen(state.skipped + failed)


def _move_by_slope(setup: Setup, state: State, y: tuple[Value, ...], trial: int) -> tuple[Any, ...]:
    """The same, of one system or many, for estimators that learn a slope and steps that look at the moves so far."""
    method, centre, course, k = setup.method, state.centre, state.course, setup.arithmetic
    failed: Any = np.logical_or.reduce([np.isnan(v) for v in y]) if setup.lanes else False
    contrast, slope, memory, wide = learn(setup, state, y, trial)
    idle: Any = failed | (contrast != contrast)
    known, probe = k.choose(idle, 0.0, contrast), wide * setup.probe
    around: tuple[Any, ...] = ()
    if setup._looks:
        along = k.dot(setup.direction(trial), course[0]) / k.larger(k.root(k.dot(course[0], course[0])), TINY)
        around = along * setup._unit, _echo(setup, state, y, trial) if state.echo else None
    rate, gain = method.step.rate(state.gain, known, trial, probe, setup.dim, *around)
    target = k.times(-rate, slope)
    length = k.root(k.dot(target, target))
    if k.some((length < math.inf) ^ True):
        target = np.clip(np.nan_to_num(target), -LARGEST, LARGEST)
        length = k.root(k.dot(target, target))
    limit = setup._largest * probe / method.radius
    if method.max_move is not None:
        limit = k.smaller(limit, method.max_move * probe)
    if k.some(length > limit):
        target = k.times(limit / k.larger(length, limit), target)
    move, target = target, centre + target
    if setup._bounded:
        target = setup.home.project(target)
        move = target - centre
    if k.some(idle):
        target = np.where(idle[:, None], centre, target) if setup.lanes else centre
        if setup.lanes:
            memory = _keep(failed, state.memory, memory)
        gain = _keep(idle, state.gain, gain) if setup.lanes else state.gain
    if setup._looks and not (setup.lanes is None and idle):
        moved = method.step.follow(course[0], move)
        course = (np.where(idle[:, None], course[0], moved) if setup.lanes and idle.any() else moved,)
    last = k.choose(failed, state.last, trial) if setup.lanes else trial
    skipped = state.skipped + failed
    for x in (target, *memory, *course) if setup.lanes is None else (target, *memory, *course, last, skipped, *gain):
        if x.__class__ is np.ndarray:
            x.setflags(write=False)
    return target, memory, gain, last, skipped, course


def _echo(setup: Setup, state: State, y: tuple[Value, ...], trial: int) -> Any:
    """By how much the value of a repeated query differs from its first; NaN in lanes without one, None if none has."""
    if not setup.directions.echoes(trial):
        return None
    if setup.lanes is None:
        return y[0] - state.echo[1] if state.last == trial - 1 else None
    return np.where(state.last == trial - 1, y[0] - state.echo[1], np.nan)


def _keep(mask: NDArray[np.bool_], old: Memory, new: Memory) -> Memory:
    """The old memory in the lanes of the mask."""
    if mask.any():
        new = tuple(np.where(mask[:, None] if np.ndim(a) > 1 else mask, a, b) for a, b in zip(old, new, strict=True))
    return tuple(_frozen(a) for a in new)


def frozen(state: State) -> State:
    """The state with arrays that nobody can change (they thaw when they are pickled)."""
    parts: Any = (tuple(_frozen(a) for a in part) if isinstance(part, tuple) else _frozen(part) for part in state)
    return State(*parts)


def _frozen(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x.setflags(write=False)
    return x
