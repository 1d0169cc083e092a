"""A method for `scipy.optimize.minimize`, and for what calls it: `basinhopping`, `dual_annealing`."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from trimtab import recipes
from trimtab.domains import Box
from trimtab.extras import pip_install
from trimtab.knobs import SHARE
from trimtab.tuner import Tuner
from trimtab.types import Array, Json
from trimtab.validation import whole

try:
    from scipy.optimize import OptimizeResult, OptimizeWarning
except ImportError as error:
    raise ImportError(f"trimtab.adapters.scipy needs SciPy: {pip_install('scipy')}") from error

PER_DIM = 200  # rounds for each coordinate, unless told otherwise: as many as Nelder-Mead gets
STOPPED = 99  # SciPy's status after StopIteration

Function = Callable[..., Json]


def auto(
    fun: Function,
    x0: ArrayLike,
    args: tuple[object, ...] = (),
    *,
    bounds: Json = None,
    callback: Function | None = None,
    radius: float = SHARE,
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
    The options: radius, how far to probe, as a share of each range, or, where it has an open side, of max(1, |x0|);
    maxfev, or maxiter, which is the same with one evaluation a round, 200 for each coordinate unless given; seed; disp;
    tuner, that of an earlier result (or its `Tuner.load`), to go on with: the rest of the call stays as it was.

    `x` is the operating point at the end and `fun` its value, for which the last evaluation is used (after
    StopIteration, which allows no more, it is the value measured last). `tuner` has everything else. There is no test
    of convergence, because what is worth following drifts: the rounds asked for are played. Where f is NaN or infinite
    the measurement counts as failed, and nothing moves.

    >>> from scipy.optimize import minimize
    >>> found = minimize(lambda x: (x[0] - 0.7) ** 2 + x[1] ** 2, [0.2, 5.0], method=auto, bounds=[(0, 1), (-9, None)])
    >>> found.nfev, bool(np.abs(found.x - [0.7, 0.0]).max() < 0.01)
    (400, True)
    """
    for name, given in unused.items():
        if given is not None:
            kind = RuntimeWarning if name in ("jac", "hess", "hessp") else OptimizeWarning
            warnings.warn(f"trimtab has no use for {name}={given!r}: leave it out", kind, stacklevel=3)
    if np.size(constraints):
        raise ValueError("trimtab knows no constraints here: use bounds, or a Tuner with a domain, or tt.primal_dual")
    start = np.array(np.atleast_1d(x0), dtype=float)
    low, high = _limits(bounds, start.size)
    start = np.clip(start, low, high)
    free, span = low < high, high - low
    scale = np.where(np.isfinite(span), span, np.maximum(1.0, np.abs(start)))[free]
    rounds = _rounds(maxiter, maxfev, int(free.sum()))

    def at(z: Array) -> Array:
        x: Array = start.copy()
        x[free] = np.clip(start[free] + scale * z, low[free], high[free])
        return x

    def measured(x: Array) -> float:
        return float(np.asarray(fun(x.copy(), *(args if isinstance(args, tuple) else (args,)))).item())

    value, status = math.nan, 0
    if tuner is None and free.any():
        box = Box((low - start)[free] / scale, (high - start)[free] / scale)
        tuner = Tuner(np.zeros(scale.size), recipes.auto(radius=radius), domain=box, seed=seed)
    if tuner is not None and tuner.setup.shape != scale.shape:
        raise ValueError(f"tuner={tuner} does not fit {scale.size} free coordinates: give that of the same call")
    centre = start if tuner is None else at(tuner.centre)
    told = _told(callback)
    nfev = 0
    while tuner is not None and nfev < rounds - 1 and not status:
        trial = tuner.ask()
        value, nfev = measured(at(trial.x)), nfev + 1
        tuner.tell(trial, value if math.isfinite(value) else None)
        centre = at(tuner.centre)
        try:
            told(OptimizeResult(x=centre.copy(), fun=value, nit=nfev, tuner=tuner))
        except StopIteration:
            status = STOPPED
    if not status:
        value, nfev = measured(centre), nfev + 1
    message = "the callback raised StopIteration" if status else f"{nfev} rounds were played, as many as were asked for"
    if disp:
        print(f"trimtab: {message}; f = {value:g}")
    return OptimizeResult(
        x=centre, fun=value, success=not status, status=status, message=message, nfev=nfev, nit=nfev, tuner=tuner
    )


def _limits(bounds: Json, dim: int) -> tuple[Array, Array]:
    """(low, high), of SciPy's `Bounds` or of a list of pairs."""
    if bounds is None:
        return np.full(dim, -np.inf), np.full(dim, np.inf)
    if hasattr(bounds, "lb"):
        low, high = (np.broadcast_to(np.asarray(side, dtype=float), (dim,)) for side in (bounds.lb, bounds.ub))
    else:
        pairs = np.array([tuple(pair) for pair in bounds], dtype=float).reshape(-1, 2)
        if len(pairs) != dim:
            raise ValueError(f"there are bounds for {len(pairs)} coordinates, but x0 has {dim}: give as many")
        low, high = np.where(np.isnan(pairs), [-np.inf, np.inf], pairs).T  # None is an open side
    for k in np.flatnonzero(~(low <= high))[:1]:
        raise ValueError(
            f"bounds[{k}]=({low[k]}, {high[k]}): every low must be below its high, or equal to hold it fixed"
        )
    return low, high


def _rounds(maxiter: int | None, maxfev: int | None, dim: int) -> int:
    given = [whole(name, n, 1) for name, n in (("maxiter", maxiter), ("maxfev", maxfev)) if n is not None]
    return min(given, default=PER_DIM * max(dim, 1))


def _told(callback: Function | None) -> Callable[[OptimizeResult], object]:
    """The callback, whichever of SciPy's two signatures it has."""
    if callback is None:
        return lambda result: None
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)
