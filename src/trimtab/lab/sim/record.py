"""Records of runs: arrays by trial and round, and summaries that tolerate infinities."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.lab.sim.provenance import Plain, Provenance, plain
from trimtab.types import Array, Document, Integers
from trimtab.util.files import pack_archive, read_archive, write_atomically
from trimtab.util.reprs import Brief, Facts

FORMAT = "trimtab.record"
VERSION = 2
EVIDENCE = "evidence."  # prefix of these arrays in the file


def quantiles(values: ArrayLike, levels: tuple[float, ...] = (0.25, 0.5, 0.75), axis: int = 0) -> Array:
    """Quantiles over an axis, by linear interpolation between ranks; infinities rank last.

    A quantile interpolated towards an infinity is infinite. NaN anywhere gives NaN.

    >>> quantiles([1.0, 2.0, np.inf, 3.0, 4.0]).tolist()
    [2.0, 3.0, 4.0]
    >>> quantiles([1.0, np.inf]).tolist()
    [inf, inf, inf]
    """
    ranked = np.moveaxis(np.sort(np.asarray(values, dtype=float), axis=axis), axis, 0)  # NaN is sorted last
    found = []
    for level in levels:
        place = level * (len(ranked) - 1)
        low, high = ranked[math.floor(place)], ranked[math.ceil(place)]
        share = place - math.floor(place)
        gap = np.subtract(high, low, out=np.zeros_like(high), where=np.isfinite(high))
        between = np.where(np.isfinite(high), low + share * gap, high)
        found.append(np.where(np.isnan(ranked[-1]), np.nan, between))
    return np.stack(found)


def divided(a: ArrayLike, b: ArrayLike) -> Array:
    """a/b of scores that may be infinite: 0 if only b diverged, 1 if both did.

    >>> divided([1.0, 1.0, np.inf, np.inf], [2.0, np.inf, 2.0, np.inf]).tolist()
    [0.5, 0.0, inf, 1.0]
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isinf(a) & np.isinf(b), 1.0, a / b)


@dataclass(frozen=True, eq=False, repr=False)
class Record(Brief):
    """Results of one method on one problem in many trials, `(trials, rounds)` unless stated otherwise.

    Costs are infinite after a trial has diverged (`diverged_at`), so that it ranks last in every summary.
    """

    cost: Array
    """f_t(x_t), the cost at the centre."""
    played: Array
    """f_t(x_t + δu_t), the evaluated cost without noise (in allocation, as measured: see `World.paid`); the mean over
    the queries of a round."""
    incurred: Array
    """Measured values at x_t + δu_t, with noise; the mean over the queries of a round."""
    optimum: Array
    """min f_t; NaN if unknown."""
    distance: Array
    """‖x_t − argmin f_t‖; NaN if unknown."""
    gradient: Array
    """‖∇f_t(x_t)‖²; NaN if not requested or unavailable."""
    fixed: Array
    """f_t at the best fixed point in hindsight; NaN if not requested."""
    final: Array
    """The last centre, `(trials, d)`."""
    diverged_at: Integers
    """The round in which a trial diverged, `(trials,)`; −1 if it did not."""
    variance_rounds: Integers
    """The rounds at which the estimator was resampled, `(n,)`."""
    variance: Array
    """Trace of the covariance of the estimate at the trial's own iterate, `(trials, n)`."""
    common_variance: Array
    """The same at an iterate common to all methods, the optimiser or a given point; NaN without one; `(trials, n)`."""
    evidence: dict[str, Array] = field(default_factory=dict)
    """Quantities in the assumptions of the theory, if requested: see `trimtab.lab.sim.theory_witness`."""
    excess: Array = field(default_factory=lambda: np.empty((0, 0, 0)))
    """g_i,t(x_t + δu_t) of each limit, required to be ≤ 0: `(trials, rounds, m)`, m = 0 without limits; the mean over
    the queries of a round."""
    about: Provenance = field(default_factory=lambda: Provenance())
    """Problem, method and its parts, step, radius, seed, …: everything needed to reproduce the record."""

    def _facts(self) -> Facts:
        known = self.cost.size and not np.isnan(self.optimum).all()
        regret = float(quantiles(self.score(), (0.5,))[0]) if known else None
        cost = float(quantiles(self.cost.mean(1), (0.5,))[0]) if self.cost.size else None
        return [
            ("", self.about.get("method")),
            ("problem", self.about.get("problem")),
            ("trials", self.trials),
            ("rounds", self.rounds),
            ("cost", cost),
            ("regret", regret),
            ("diverged", int(self.diverged.sum())),
        ]

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(self.cost.shape[0])

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(self.cost.shape[1])

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """Mask of the diverged trials: `(trials,)`."""
        return self.diverged_at >= 0

    def select(self, trials: slice) -> Record:
        """The record of some of the trials."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("about", "evidence")}
        parts = {name: values if name == "variance_rounds" else values[trials] for name, values in arrays.items()}
        return Record(
            **parts, evidence={name: values[trials] for name, values in self.evidence.items()}, about=self.about
        )

    def regret(self, kind: str = "dynamic", of: str = "centre") -> Array:
        """Accumulated regret, `(trials, rounds)`.

        kind: "dynamic", Σ f_t(x_t) − min f_t; "static", Σ f_t(x_t) − Σ f_t(x*) for the best fixed x* (run with
        static=True); "gradient", Σ ‖∇f_t(x_t)‖² (run with gradients=True).
        of: the cost at the "centre" x_t, as "played" at the queries x_t + δu_t, or as "incurred" there with noise.
        """
        if kind == "gradient":
            return np.cumsum(self.gradient, axis=1)
        against = {"dynamic": self.optimum, "static": self.fixed}
        if kind not in against:
            raise ValueError(f"kind={kind!r} is not a kind of regret: choose from 'dynamic', 'static', 'gradient'")
        return np.cumsum(self.costs(of) - against[kind], axis=1)

    def costs(self, of: str = "centre") -> Array:
        """`cost`, `played` or `incurred`, selected as in `regret`."""
        known = {"centre": self.cost, "played": self.played, "incurred": self.incurred}
        if of not in known:
            raise ValueError(f"of={of!r} is unknown: choose from {', '.join(known)}")
        return known[of]

    def violation(self) -> Array:
        """The largest mean excess over a limit so far, `(trials, rounds)`: max_i max(0, (1/t)·Σ g_i,s).

        0 without limits.
        """
        if self.excess.shape[-1] == 0:
            return np.zeros(self.cost.shape)
        means = np.cumsum(self.excess, axis=1) / np.arange(1, self.rounds + 1)[:, None]
        return np.asarray(np.maximum(means.max(-1), 0.0))

    def score(self, of: str = "centre") -> Array:
        """The score methods are ranked by, `(trials,)`: dynamic regret, or total cost if the optimum is unknown."""
        if np.isnan(self.optimum).all():
            return np.asarray(self.costs(of).sum(1))
        return self.regret(of=of)[:, -1]

    def summary(self) -> Document:
        """Medians and quartiles over trials, and the number of diverged ones, as JSON values."""
        parts = {
            "regret": self.regret()[:, -1],
            "played": self.regret(of="played")[:, -1],
            "incurred": self.regret(of="incurred")[:, -1],
            "static_regret": self.regret("static")[:, -1],
            "gradient_regret": self.regret("gradient")[:, -1],
            "cost": self.cost.mean(1),
            "played_cost": self.played.mean(1),
            "final_distance": self.distance[:, -1],
        }
        if self.excess.shape[-1]:
            parts["violation"] = self.violation()[:, -1]
        found: dict[str, Plain] = {name: spread(values) for name, values in parts.items() if not np.isnan(values).all()}
        if self.variance_rounds.size:
            found["variance"] = self._variance(self.variance)
            if not np.isnan(self.common_variance).all():
                found["common_variance"] = self._variance(self.common_variance)
        return {
            **self.about,
            "rounds": self.rounds,
            "trials": self.trials,
            "diverged": int(self.diverged.sum()),
            **found,
        }

    def _variance(self, values: Array) -> dict[str, Plain]:
        middle = [plain(v) for v in quantiles(values, (0.5,))[0]]
        return {"round": self.variance_rounds.tolist(), "median": middle}

    def save(self, path: str | Path) -> None:
        """Write `path`.npz with the arrays and `path`.json with the summary."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("about", "evidence")}
        arrays |= {EVIDENCE + name: values for name, values in self.evidence.items()}
        document = {"format": FORMAT, "version": VERSION, "about": self.about}
        summary = json.dumps(self.summary(), indent=1) + "\n"
        write_atomically(path.with_name(path.name + ".json"), summary.encode())
        write_atomically(path.with_name(path.name + ".npz"), pack_archive(document, arrays, compressed=True))

    @classmethod
    def load(cls, path: str | Path) -> Record:
        """Read a record written by `save`."""
        path = Path(path)
        file = path.with_name(path.name.removesuffix(".npz") + ".npz")
        document, arrays = read_archive(file, compressed=True)
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise ValueError(f"{file} is not a record that this trimtab can read: run it again")
        evidence = {name.removeprefix(EVIDENCE): arrays.pop(name) for name in list(arrays) if name.startswith(EVIDENCE)}
        return cls(**arrays, evidence=evidence, about=document["about"])


def spread(values: Array) -> dict[str, float | str | None]:
    """Median and quartiles as JSON values; "inf" if infinite, None if unknown."""
    q25, median, q75 = (plain(q) for q in quantiles(values))
    return {"median": median, "q25": q25, "q75": q75}
