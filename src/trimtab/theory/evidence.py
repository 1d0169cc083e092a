"""Estimate the constants of the theory from data, and check which of its assumptions a run satisfies.

>>> import trimtab as tt
>>> from trimtab.lab import run
>>> record = run("absolute-v1", tt.residual(radius=0.1, step=0.01), rounds=100, trials=20, evidence=True)
>>> constants = measure(record)
>>> 0.5 < constants.lipschitz.value <= 1.5  # it is 1 by construction
True
>>> diagnose(record)["contraction"].verdict
'holds'
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from trimtab.lab import Record, run
from trimtab.lab.bootstrap import LEVEL, bootstrap, interval
from trimtab.problems import Problem, make
from trimtab.recipes import BaseMethod, auto
from trimtab.theory.moments import Law, coefficients, contraction, perturbation
from trimtab.types import Array
from trimtab.validation import real

Verdict = Literal["holds", "doubtful", "fails", "not seen"]

BLOCKS = 10  # parts of the run that are compared to detect growth


@dataclass(frozen=True)
class Estimate:
    """An estimated number with an interval of about 95 % coverage.

    >>> print(Estimate(2.0, 1.5, 2.75))
    2 (1.5 to 2.75)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Apply an increasing function to the value and the interval."""
        return Estimate(*(function(v) for v in (self.value, self.low, self.high)))


@dataclass(frozen=True)
class Constants:
    """The constants of the theory along the path of a run.

    >>> import trimtab as tt
    >>> from trimtab import lab
    >>> method = tt.residual(radius=0.1, step=1e-3)
    >>> record = lab.run("logcosh-v1", method, rounds=200, trials=4, evidence=True)
    >>> constants: Constants = measure(record)
    >>> constants.lipschitz.low > 0
    True
    """

    lipschitz: Estimate
    """L₀. The largest slope seen is a certain lower limit; the upper limit is extrapolated (Robson & Whitlock 1964)."""
    smoothness: Estimate
    """L₁, likewise, from the change of the gradient between centre and probe; diverges at kinks as δ shrinks. In high
    dimension a random probe changes the gradient less than the worst one: read it as a lower limit."""
    variation: Estimate
    """V_f (with noise V_{f,ξ}): the rms change of the value at the last query, in the worst tenth of the run."""
    accumulated: Estimate
    """W_T: the total rise of the smoothed cost at the centre due to drift."""
    squared: Estimate
    """W̃_T: the squared changes summed over the run."""
    contraction: Estimate | None
    """α = 4dL₀²η²/δ² for a constant step; otherwise None."""


@dataclass(frozen=True)
class Finding:
    """The verdict on one assumption, with the evidence in words.

    >>> Finding("bounded", "holds", "none of 4 trials diverged").verdict
    'holds'
    """

    name: str
    verdict: Verdict
    text: str


class Diagnosis(dict[str, Finding]):
    """The findings by name; printed, one sentence per line.

    >>> import trimtab as tt
    >>> from trimtab import lab
    >>> method = tt.residual(radius=0.1, step=1e-3)
    >>> record = lab.run("logcosh-v1", method, rounds=200, trials=4, evidence=True)
    >>> diagnosis: Diagnosis = diagnose(record)
    >>> diagnosis["bounded"].verdict
    'holds'
    """

    def __str__(self) -> str:
        width = max(map(len, self))
        return "\n".join(f"{f.name:<{width}}  {f.verdict:<8}  {f.text}" for f in self.values())

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict by name."""
        return {name: finding.verdict for name, finding in self.items()}


def measure(source: Record | Problem | str, method: BaseMethod | None = None, **options: Any) -> Constants:
    """Estimate the constants from a run recorded with evidence=True, or from a problem or its id.

    A problem is first run with a method, by default `auto` (options: rounds, trials, seed).

    >>> 0.9 < measure("maximum-v1", rounds=50, trials=10).lipschitz.value < 1.1  # it is 1 by construction
    True
    """
    if isinstance(source, Record):
        record = source
    else:
        problem = make(source) if isinstance(source, str) else source
        record = run(problem, method or auto(radius=problem.radius), evidence=True, **options)
    seen = _evidence(record)
    square = np.square(seen["change"])
    lipschitz = _endpoint(_largest(seen["slope"]))
    return Constants(
        lipschitz=lipschitz,
        smoothness=_endpoint(_largest(seen["turn"])),
        variation=_mean(max(_blocks(square), key=np.mean)).map(math.sqrt),
        accumulated=_mean(np.nansum(seen["rise"], axis=1)),
        squared=_mean(np.nansum(square, axis=1)),
        contraction=_contraction(record, lipschitz),
    )


def estimate(queries: ArrayLike, values: ArrayLike, *, radius: float) -> dict[str, Estimate]:
    """Estimate slope and variation from queries p_t (T, d) and values y_t (T,) of one real run.

    Only y_t − y_{t−1}, the sum of drift and slope, is observed. The two are separated by correlation: successive
    gradient estimates g_t, g_{t+1} are independent, so that E⟨g_t, g_{t+1}⟩ ≈ ‖∇f‖², while drift and noise only add to
    the squares. Valid for the probes of the paper (Gaussian or signs) and small moves between rounds.

    `slope`: rms of ‖∇f‖, a lower limit of L₀. `variation`: V_f, noise included. `contrast`: rms of y_t − y_{t−1}.

    >>> rng = np.random.default_rng(0)
    >>> p = 0.1 * rng.standard_normal((20_000, 3))
    >>> y = 2.0 * p[:, 0] + 0.5 * np.cumsum(rng.standard_normal(len(p)))  # slope 2, drift 0.5
    >>> found = estimate(p, y, radius=0.1)
    >>> found["slope"].low < 2.0 < found["slope"].high and found["variation"].low < 0.5 < found["variation"].high
    True
    """
    p, y = np.asarray(queries, dtype=float), np.asarray(values, dtype=float)
    if p.ndim != 2 or y.shape != p.shape[:1] or len(y) < 100:
        raise ValueError(f"queries {p.shape} and values {y.shape} must be (T, d) and (T,), with at least 100 rounds")
    real("radius", radius, 0, above=True)
    known = np.isfinite(y) & np.isfinite(p).all(axis=1)
    if known.sum() < 100:
        raise ValueError(f"only {known.sum()} of {len(y)} rounds have finite queries and values: give at least 100")
    p, y = p[known], y[known]
    window = min(len(p), 51)
    kernel = np.ones(window) / window
    centre = np.stack([np.convolve(np.pad(x, window // 2, mode="edge"), kernel, "valid")[: len(p)] for x in p.T], 1)
    u = (p - centre) / radius
    contrast = np.diff(y)
    g = contrast[:, None] * u[1:] / radius
    aligned = np.concatenate([(g[1:] * g[:-1]).sum(-1), [0.0]])  # may be negative; its mean is the squared slope
    share = np.square(radius) * (np.square(u[1:]).sum(-1) + np.square(u[:-1]).sum(-1)).mean() / p.shape[1]
    pieces = max(10, len(contrast) // 200)
    squares = np.array([part.mean() for part in np.array_split(np.square(contrast), pieces)])
    slopes = np.array([part.mean() for part in np.array_split(aligned, pieces)])
    root = lambda v: math.sqrt(max(v, 0.0))  # noqa: E731
    return {
        "slope": _mean(slopes).map(root),
        "variation": _mean(squares - share * slopes).map(root),
        "contrast": _mean(squares).map(root),
    }


def diagnose(record: Record) -> Diagnosis:
    """State for each assumption of the theory whether it holds along this run, is doubtful, or fails.

    A run can do well although an assumption fails; the theory does not explain it then. In particular, the best step
    sizes in experiments are far above those that the theorems allow.
    """
    seen, constants = _evidence(record), measure(record)
    findings = [
        _finite(record),
        _lipschitz(seen, constants),
        _convex(seen),
        _variation(seen, constants),
        _accumulated(seen),
        _contracts(record, constants),
        _moments(record, constants),
        _unbiased(seen, constants),
    ]
    return Diagnosis({finding.name: finding for finding in findings})


def _finite(record: Record) -> Finding:
    lost = int(record.diverged.sum())
    if lost:
        return Finding("bounded", "fails", f"{lost} of {record.trials} trials diverged: no bound holds for them")
    return Finding("bounded", "holds", f"none of {record.trials} trials diverged")


def _lipschitz(seen: dict[str, Array], constants: Constants) -> Finding:
    first, last = (_largest(part).mean() for part in (_block(seen["slope"], 0), _block(seen["slope"], -1)))
    l0 = constants.lipschitz
    if last > 3 * first:
        text = f"slopes grow along the run, from about {first:.3g} to {last:.3g}: L₀ depends on the path"
        return Finding("Lipschitz", "fails" if last > 30 * first else "doubtful", text)
    if l0.high > 3 * l0.low:
        text = f"rare steep places: L₀ is at least {l0.low:.3g}, and may be up to {l0.high:.3g}"
        return Finding("Lipschitz", "doubtful", text)
    return Finding("Lipschitz", "holds", f"slopes along the run stay below L₀ = {l0}")


def _convex(seen: dict[str, Array]) -> Finding:
    bend = seen["bend"][np.isfinite(seen["bend"])]
    if not bend.size:
        return Finding("convex", "not seen", "no probe was recorded")
    size = np.abs(bend).max()
    share = float((bend < -1e-6 * size).mean()) if size else 0.0
    if share:
        text = f"curves downwards at {share:.1%} of the probes: use the theorems for nonconvex functions"
        return Finding("convex", "fails" if share > 0.01 else "doubtful", text)
    return Finding("convex", "holds", f"no downward curvature at any of {bend.size} probes")


def _variation(seen: dict[str, Array], constants: Constants) -> Finding:
    blocks = [_mean(block) for block in _blocks(np.square(seen["change"]))]
    first, last, v = blocks[0].map(math.sqrt), blocks[-1].map(math.sqrt), constants.variation
    if not v.value:
        return Finding("bounded variation", "holds", "nothing drifts")
    if last.low > 2 * first.high:
        text = f"the drift grows along the run, from V_f = {first.value:.3g} to {last.value:.3g}: no single V_f fits"
        return Finding("bounded variation", "fails" if last.low > 5 * first.high else "doubtful", text)
    return Finding("bounded variation", "holds", f"per round, the value at a fixed point changes by V_f = {v} rms")


def _accumulated(seen: dict[str, Array]) -> Finding:
    name = "vanishing variation"
    total = np.cumsum(np.nan_to_num(_average(np.square(seen["change"]), 0)))
    if len(total) < 20 or not total[-1]:
        static = len(total) and not total[-1]
        text = "nothing drifts" if static else "too few rounds to tell"
        return Finding(name, "holds" if static else "not seen", text)
    exponent = math.log(total[-1] / total[len(total) // 4]) / math.log(4) if total[len(total) // 4] else math.inf
    text = f"W̃_t grows like t^{exponent:.2f}"
    if exponent < 0.8:
        return Finding(name, "holds", f"{text}, more slowly than t")
    verdict: Verdict = "doubtful" if exponent < 0.95 else "fails"
    return Finding(name, verdict, f"{text}: the theorem for nonconvex smooth functions guarantees nothing then")


def _contracts(record: Record, constants: Constants) -> Finding:
    alpha = constants.contraction
    if alpha is None:
        return Finding("contraction", "not seen", "α is defined for a constant step and Gaussian or sphere directions")
    words = f"α = 4dL₀²η²/δ² is {alpha}"
    if alpha.low >= 1:
        factor = math.sqrt(2 * alpha.value)
        text = (
            f"{words}, not below 1: the step is {factor:.3g} times the largest with α ≤ ½; no theorem covers this run"
        )
        return Finding("contraction", "fails", text)
    if alpha.high >= 1:
        return Finding("contraction", "doubtful", f"{words}: halve the step to be sure")
    return Finding("contraction", "holds", f"{words}, below 1" + ("" if alpha.high <= 0.5 else ", though not below ½"))


def second_moments(record: Record) -> tuple[Array, Array]:
    """Both sides of Lemma 2.6 (5.2 with noise, H.6 on the sphere) in rounds 1, 2, …, averaged over the trials.

    E‖ĝ_t‖² on the left, α·E‖ĝ_{t−1}‖² + D_t on the right, with the L₀ of the path. For residual feedback with a
    constant step and Gaussian or sphere directions, recorded with evidence=True.

    >>> import trimtab as tt
    >>> from trimtab import lab
    >>> method = tt.residual(radius=0.1, step=1e-3)
    >>> record = lab.run("logcosh-v1", method, rounds=200, trials=4, evidence=True)
    >>> left, right = second_moments(record)
    >>> bool((left <= right).mean() > 0.9)
    True
    """
    seen, constants, law = _evidence(record), measure(record), _law(record)
    if constants.contraction is None or law is None:
        raise ValueError("the inequality is for residual feedback with a constant step: run tt.residual(...)")
    mean, square = _average(seen["moment"], 0), _average(np.square(seen["change"][:, 1:]), 0)
    floor = perturbation(
        dim=record.about["dim"],
        lipschitz=constants.lipschitz.value or math.ulp(1.0),
        radius=record.about["radius"],
        variation=0.0,
        law=law,
    )
    lift = coefficients(record.about["dim"], law)[2] / record.about["radius"] ** 2
    allowed = constants.contraction.value * mean[:-1] + floor + lift * square
    known = np.isfinite(allowed)
    return mean[1:][known], allowed[known]


def _moments(record: Record, constants: Constants) -> Finding:
    name = "second moment"
    if constants.contraction is None:
        return Finding(name, "not seen", "the inequality is for residual feedback with a constant step")
    found, allowed = second_moments(record)
    kept = float((found <= allowed).mean())
    text = f"E‖ĝ_t‖² ≤ α·E‖ĝ_t−1‖² + D_t in {kept:.1%} of the rounds"
    return Finding(name, "holds" if kept == 1.0 else "doubtful" if kept > 0.95 else "fails", text)


def _unbiased(seen: dict[str, Array], constants: Constants) -> Finding:
    lean = seen["lean"][:, 1:]
    if not np.isfinite(lean).any():
        return Finding("unbiased", "not seen", "the slope is unknown, so a bias along it cannot be measured")
    bias = _mean(_average(lean[np.isfinite(lean).any(axis=1)], 1))
    if bias.low <= 0 <= bias.high:
        return Finding("unbiased", "holds", f"drift adds {bias} to the slope: no significant bias")
    size = max(abs(bias.low), abs(bias.high)) / (constants.lipschitz.value or 1.0)
    text = f"drift adds {bias} to the slope, {size:.1%} of L₀: f_t depends on u_t"
    return Finding("unbiased", "fails" if size > 0.05 else "doubtful", text)


def _evidence(record: Record) -> dict[str, Array]:
    if not record.evidence:
        raise ValueError("the record has no evidence: run it again with trimtab.lab.run(..., evidence=True)")
    return record.evidence


def _law(record: Record) -> Law | None:
    found = record.about["law"]
    return next((law for law in get_args(Law) if law == found), None)


def _contraction(record: Record, lipschitz: Estimate) -> Estimate | None:
    law, step = _law(record), record.about["step"]
    if law is None or not isinstance(step, float) or not lipschitz.value:
        return None
    dim, radius = record.about["dim"], record.about["radius"]
    return lipschitz.map(lambda l0: contraction(dim=dim, lipschitz=l0, step=step, radius=radius, law=law))


def _average(values: Array, axis: int) -> Array:
    """The mean of the finite values, or NaN."""
    known = np.isfinite(values)
    count = known.sum(axis)
    return np.asarray(np.where(known, values, 0.0).sum(axis) / np.where(count, count, np.nan))


def _block(values: Array, k: int) -> Array:
    parts = [part for part in np.array_split(values[:, 1:], BLOCKS, axis=1) if part.size]
    return parts[k]


def _blocks(values: Array) -> list[Array]:
    """The mean of each trial, for each tenth of the run."""
    count = min(BLOCKS, max(values.shape[1] - 1, 1))
    blocks = []
    for part in np.array_split(values[:, 1:], count, axis=1):
        known = part[np.isfinite(part).any(axis=1)]
        if known.size:
            blocks.append(_average(known, 1))
    return blocks or [np.zeros(1)]


def _largest(values: Array) -> Array:
    """The largest value of each trial that has one."""
    known = values[np.isfinite(values).any(axis=1)]
    return np.asarray(np.nanmax(known, axis=1)) if known.size else np.zeros(1)


def _endpoint(maxima: Array) -> Estimate:
    """Extrapolate the end of a range from sampled maxima: twice the largest minus the second, with its interval."""
    top = np.sort(maxima)[::-1]
    gap = top[0] - top[1] if len(top) > 1 else top[0]
    return Estimate(float(top[0] + gap), float(top[0]), float(top[0] + LEVEL / (1 - LEVEL) * gap))


def _mean(values: Array) -> Estimate:
    """The mean with its bootstrap interval."""
    means = bootstrap(values, lambda drawn: drawn.mean(axis=1), seed=len(values))
    return Estimate(float(means[0]), *interval(means[1:]))
