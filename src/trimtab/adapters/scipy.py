"""A method for `scipy.optimize.minimize`, and for its callers such as `basinhopping` and `dual_annealing`."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab import recipes
from trimtab.domains import Box
from trimtab.domains.base import frozen
from trimtab.inputs import shortly, starting_point
from trimtab.knobs import SHARE
from trimtab.registry import part
from trimtab.tuner import Tuner
from trimtab.types import Array, Json
from trimtab.util.extras import pip_install
from trimtab.validation import whole

try:
    from scipy.optimize import OptimizeResult, OptimizeWarning
except ImportError as error:
    raise ImportError(f"trimtab.adapters.scipy needs SciPy: {pip_install('scipy')}") from error

PER_DIM = 200  # default rounds per coordinate, as for Nelder-Mead
STOPPED = 99  # SciPy's status after StopIteration

Function = Callable[..., Json]


@part
@dataclass(frozen=True, eq=False)
class Ranges(Box):
    """{lower ≤ x ≤ upper} in the coordinates of a tuner, z = (x − start)/unit, without fixed ones.

    It is saved with the tuner and converts its coordinates.

    >>> ranges = Ranges([0.0, -9.0, 3.0], [10.0, np.inf, 3.0], [2.0, 5.0, 3.0])
    >>> ranges.low, ranges.high, ranges.at(np.array([0.5, -1.0]))
    (array([-0.2, -2.8]), array([0.8, inf]), array([7., 0., 3.]))
    """

    low: Array = field(init=False)
    high: Array = field(init=False)
    lower: Array
    upper: Array
    start: Array

    def __init__(self, lower: ArrayLike, upper: ArrayLike, start: ArrayLike) -> None:
        self._set(
            lower=frozen(lower, "lower", infinite=True),
            upper=frozen(upper, "upper", infinite=True),
            start=frozen(start, "start"),
        )
        super().__init__(*((side - self.start)[self.free] / self.unit for side in (self.lower, self.upper)))

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Mask of the coordinates of x that may move."""
        return np.asarray(self.lower < self.upper)

    @cached_property
    def unit(self) -> Array:
        """The length of each range; max(1, |start|) if a side is open."""
        span = self.upper - self.lower
        return np.asarray(np.where(np.isfinite(span), span, np.maximum(1.0, np.abs(self.start)))[self.free])

    def at(self, z: Array) -> Array:
        """Convert to the user's coordinates."""
        x, free = self.start.copy(), self.free
        x[free] = np.clip(self.start[free] + self.unit * z, self.lower[free], self.upper[free])
        return x


def auto(
    fun: Function,
    x0: ArrayLike,
    args: tuple[object, ...] = (),
    *,
    bounds: Json = None,
    callback: Function | None = None,
    radius: float | None = None,
    maxiter: int | None = None,
    maxfev: int | None = None,
    seed: int = 0,
    disp: bool = False,
    tuner: Tuner | None = None,
    constraints: Json = (),
    **unused: object,
) -> OptimizeResult:
    """`minimize(f, x0, method=trimtab.adapters.scipy.auto, bounds=…, callback=…, options={"maxfev": 500})`.

    bounds: as SciPy takes them; None and ±inf leave a side open, low == high holds a coordinate fixed.
    callback: `callback(xk)` or `callback(intermediate_result)` after each round; StopIteration ends it.
    Options: radius, the probing radius as a share of each range, or of max(1, |x0|) if a side is open; maxfev or
    maxiter, equivalent with one evaluation per round, by default 200 per coordinate; seed; disp; and tuner, from an
    earlier result or `Tuner.load`, to continue from its centre instead of x0, with the same bounds.

    `x` is the final operating point and `fun` its value, measured by the last evaluation (after StopIteration, the
    last measured value). `tuner` has everything else. There is no convergence test, because optima drift: all
    requested rounds are run. If f is NaN or infinite, the measurement counts as failed and the centre stays.

    >>> from scipy.optimize import minimize
    >>> found = minimize(lambda x: (x[0] - 0.7) ** 2 + x[1] ** 2, [0.2, 5.0], method=auto, bounds=[(0, 1), (-9, None)])
    >>> found.nfev, bool(np.abs(found.x - [0.7, 0.0]).max() < 0.01)
    (400, True)
    """
    for name, given in unused.items():
        if given is not None:
            kind = RuntimeWarning if name in ("jac", "hess", "hessp") else OptimizeWarning
            warnings.warn(f"trimtab does not support {name}={given!r}: leave it out", kind, stacklevel=3)
    if constraints:
        raise ValueError("constraints are not supported here: use bounds, a Tuner with a domain, or tt.primal_dual")
    start = starting_point(np.atleast_1d(x0))
    low, high = _limits(bounds, start.size)
    start = np.clip(start, low, high)
    for k in np.flatnonzero(~np.isfinite(start))[:1]:
        raise ValueError(f"x0[{k}]={start[k]} is not a number: every coordinate must be finite")
    rounds = _rounds(maxiter, maxfev, int((low < high).sum()))

    def measured(x: Array) -> float:
        return float(np.asarray(fun(x.copy(), *(args if isinstance(args, tuple) else (args,)))).item())

    value, status = math.nan, 0
    if tuner is not None:
        ranges = _ranges(tuner, low, high)
    elif np.any(low < high):
        ranges = Ranges(low, high, start)
        closed = radius is None and bool(np.isfinite([low, high]).all())
        method = (
            recipes.between_limits(ranges.unit.size)
            if closed
            else recipes.auto(radius=SHARE if radius is None else radius)
        )
        tuner = Tuner(np.zeros(ranges.unit.size), method, domain=ranges, seed=seed)
    centre = start if tuner is None else ranges.at(tuner.centre)
    told = _told(callback)
    nfev = 0
    while tuner is not None and nfev < rounds - 1 and not status:
        trial = tuner.ask()
        value, nfev = measured(ranges.at(trial.x)), nfev + 1
        tuner.tell(trial, value if math.isfinite(value) else None)
        centre = ranges.at(tuner.centre)
        try:
            told(OptimizeResult(x=centre.copy(), fun=value, nit=nfev, tuner=tuner))
        except StopIteration:
            status = STOPPED
    if not status:
        value, nfev = measured(centre), nfev + 1
    message = "the callback raised StopIteration" if status else f"{nfev} rounds were run, as requested"
    if disp:
        print(f"trimtab: {message}; f = {value:g}")
    return OptimizeResult(
        x=centre, fun=value, success=not status, status=status, message=message, nfev=nfev, nit=nfev, tuner=tuner
    )


def _limits(bounds: Json, dim: int) -> tuple[Array, Array]:
    """Convert SciPy's `Bounds` or a list of pairs to (low, high)."""
    if bounds is None:
        return np.full(dim, -np.inf), np.full(dim, np.inf)
    try:
        if hasattr(bounds, "lb"):
            low, high = (np.broadcast_to(np.asarray(side, dtype=float), (dim,)) for side in (bounds.lb, bounds.ub))
        else:
            pairs = np.array([(least, most) for least, most in bounds], dtype=float).reshape(-1, 2)
            low, high = np.where(np.isnan(pairs), [-np.inf, np.inf], pairs).T  # None means an open side
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds={bounds!r} is not one (low, high) for each of {dim} coordinates: give {dim} pairs"
        ) from None
    if low.size != dim:
        raise ValueError(f"there are bounds for {low.size} coordinates, but x0 has {dim}: give {dim} pairs")
    for k in np.flatnonzero(~((low <= high) & (low < np.inf) & (high > -np.inf)))[:1]:
        raise ValueError(
            f"bounds[{k}]=({low[k]}, {high[k]}): every low must be below its high, or a finite number equal to it, to"
            " hold it fixed"
        )
    return low, high


def _ranges(tuner: Tuner, low: Array, high: Array) -> Ranges:
    """The ranges of the tuner to continue with; checks that its bounds are unchanged."""
    ranges = tuner.setup.domain if isinstance(tuner, Tuner) else None
    if not isinstance(ranges, Ranges):
        raise ValueError(f"tuner={tuner!r} does not come from this method: give the tuner of its result")
    if not (np.array_equal(low, ranges.lower) and np.array_equal(high, ranges.upper)):
        given, made = (shortly(np.transpose(sides).tolist()) for sides in ((low, high), (ranges.lower, ranges.upper)))
        raise ValueError(
            f"bounds={given} differ from those of the tuner, {made}: give the same, or no tuner to start afresh"
        )
    return ranges


def _rounds(maxiter: int | None, maxfev: int | None, dim: int) -> int:
    given = [whole(name, n, 1) for name, n in (("maxiter", maxiter), ("maxfev", maxfev)) if n is not None]
    return min(given, default=PER_DIM * max(dim, 1))


def _told(callback: Function | None) -> Callable[[OptimizeResult], object]:
    """Wrap the callback, which has one of SciPy's two signatures."""
    if callback is None:
        return lambda result: None
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)
