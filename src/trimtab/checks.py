"""The contract, as functions that any method, tuner or domain must pass.

`check_method`, `check_domain` and `check_problem` run everything that applies and raise `CheckError`, which says in
words what is wrong. `check_tuner` takes a function (x0, seed) → tuner and needs only `ask`, `tell`, `skip`, `centre`,
`to_json` and `from_json`, so that it can judge implementations that share no code with this package. The statistical
checks use fixed seeds and raise a false alarm with a chance below 1e-6.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from trimtab.directions import Rademacher, Sphere
from trimtab.domains import Box, Domain, Everywhere
from trimtab.parts import Estimate, Estimation, Frame
from trimtab.problems.checking import CheckError, check_problem
from trimtab.recipes import Method
from trimtab.setup import Setup
from trimtab.state import Look, State
from trimtab.tuner import Tuner
from trimtab.types import Array, Value

__all__ = [
    "CheckError",
    "check_domain",
    "check_errors",
    "check_feasible",
    "check_forget",
    "check_late",
    "check_memory",
    "check_method",
    "check_problem",
    "check_queries",
    "check_resume",
    "check_scale_free",
    "check_skips",
    "check_still",
    "check_tuner",
    "check_unbiased",
]

Make = Callable[[Array, int], Any]

SIGMAS = 6.0  # of the statistical checks: 2e-9 per comparison


def check_method(method: Method, *, dim: int = 3, domain: Domain | None = None) -> None:
    """All promises of the contract that a method has to keep.

    >>> from trimtab.recipes import residual
    >>> check_method(residual(radius=0.1, step=0.01))
    """

    def make(x0: Array, seed: int) -> Tuner:
        if domain is not None and math.isfinite(inner := domain.inner_radius(dim)):  # somewhere in the middle
            x0 = domain.middle(dim) + 0.2 * inner * domain.flatten(x0)
        return kind(x0, method, domain=domain, seed=seed)

    def inside(x0: Array, seed: int) -> Tuner:
        return kind(x0, method, domain=Box(-1.0, 1.0), seed=seed)

    setup = Setup(method, (dim,), domain=domain or Everywhere())
    estimator, queries = method.estimator, method.queries
    kind = Tuner if estimator.told == 1 else Limited
    check_tuner(make, dim=dim, queries=queries, anchored=estimator.anchored, probes=any(estimator.offsets))
    check_late(method, dim=dim, domain=domain)
    check_forget(make, dim=dim, queries=queries, anchored=estimator.anchored)
    _check_lanes(method, dim, domain)
    if method.scale_free:
        check_scale_free(make, dim=dim, queries=queries)
    step = method.step.constant
    if estimator.unbiased and method.max_move is None and isinstance(step, float):  # a move is −η·ĝ with a known η
        turning = max(estimator.lags) == 0 and not estimator.located
        check_unbiased(make, dim=dim, setup=setup, step=step, turning=turning)
    bounded = math.isfinite(Setup(method, (dim,), domain=Box(-9.0, 9.0)).directions.reach(dim)[0])
    if (bounded or method.margin == "project") and method.radius < 0.5 and method.margin != "none":
        check_feasible(inside, domain=Box(-1.0, 1.0), dim=dim, queries=queries)


class Limited(Tuner):
    """A tuner that is told limits beside every value, made of it, so that the checks need not know of them."""

    def tell(self, trial: Any, value: Any, limits: Any = None) -> None:
        """With limits that are as wrong as the value is."""
        try:
            limits = np.multiply.outer(np.asarray(value, dtype=float), np.linspace(-0.5, 0.5, self.setup.told - 1))
        except (TypeError, ValueError):
            limits = np.zeros(self.setup.told - 1)
        super().tell(trial, value, limits)


def check_tuner(make: Make, *, dim: int = 3, queries: int = 1, anchored: bool = True, probes: bool = True) -> None:
    """The promises that need no knowledge of the method: queries, ids, skips, resume, memory.

    anchored: whether the method contrasts values with earlier ones, so that a constant value tells nothing.
    probes: whether it looks anywhere else than where it is.
    """
    check_queries(make, dim=dim, queries=queries, probes=probes)
    check_still(make, dim=dim, queries=queries, anchored=anchored)
    check_skips(make, dim=dim, queries=queries)
    check_errors(make, dim=dim, queries=queries)
    check_resume(make, dim=dim, queries=queries)
    check_memory(make, dim=dim, queries=queries)


def check_queries(make: Make, *, dim: int, queries: int, probes: bool = True) -> None:
    """One query per round (or as many as declared), the same when asked again, ids in order, no global randomness."""
    shape = (dim,) if queries == 1 else (queries, dim)
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    tuner = make(np.zeros(dim), 1)
    for round, objective in zip(range(20), _objectives(dim), strict=False):
        first, again = tuner.ask(), tuner.ask()
        if np.shape(first.x) != shape:
            raise CheckError(
                f"measures {np.size(first.x) // dim} points of shape {np.shape(first.x)} in one round,"
                f" but {queries} of shape {shape} was promised"
            )
        if first.id != again.id or not np.array_equal(first.x, again.x):
            raise CheckError("asking twice gives different queries: the direction must be a function of (seed, round)")
        if first.id != round:
            raise CheckError(f"round {round} has the trial id {first.id}: every tell must end exactly one round")
        tuner.tell(first, objective(first.x))

    def second(seed: int) -> Any:
        tuner = make(np.zeros(dim), seed)
        tuner.tell(tuner.ask(), _same(1.0, queries))
        return tuner.ask().x

    if not np.array_equal(second(1), second(1)):
        raise CheckError("the same seed gives different queries: all randomness must come from the seed")
    if probes and all(np.array_equal(second(1), second(seed)) for seed in range(2, 42)):
        raise CheckError("different seeds give the same query: the seed is not used")
    if before != (random.getstate(), pickle.dumps(np.random.get_state())):  # noqa: NPY002
        raise CheckError("uses the global random state: two tuners in one process would disturb each other")


def check_still(make: Make, *, dim: int, queries: int, anchored: bool = True) -> None:
    """A flat objective moves nothing; the centre is not the perturbed point; the first value only anchors."""
    start = np.linspace(-0.2, 0.2, dim)
    for value in (0.0, 5.0) if anchored or queries > 1 else (0.0,):
        tuner = make(start, 3)
        before = np.array(tuner.centre)
        for _ in range(10):
            trial = tuner.ask()
            tuner.tell(trial, _same(value, queries))
            if not np.allclose(tuner.centre, before, rtol=0, atol=1e-12):
                raise CheckError(
                    f"the centre moved from {before} to {tuner.centre} on a constant value of {value}:"
                    " the next centre must start from the centre, not from the query, and a constant is no contrast"
                )
    if anchored:
        tuner = make(start, 4)
        tuner.tell(tuner.ask(), 1e6)
        if not np.array_equal(tuner.centre, make(start, 4).centre):
            raise CheckError(
                "the first measurement moved the centre: it has nothing to be contrasted with, and must only anchor"
            )


def check_skips(make: Make, *, dim: int, queries: int) -> None:
    """A skipped round (skip, None, NaN) changes nothing but the round."""
    for way in ("skip", "None", "NaN"):
        tuner, twin = make(np.zeros(dim), 5), make(np.zeros(dim), 5)
        objective = next(_objectives(dim))
        for t in range(12):
            trial, other = tuner.ask(), twin.ask()
            if t in (3, 4, 8):
                centre = np.array(tuner.centre)
                if way == "skip":
                    tuner.skip(trial)
                else:
                    tuner.tell(trial, None if way == "None" else _same(math.nan, queries))
                twin.skip(other)
                if not np.array_equal(centre, tuner.centre):
                    raise CheckError(f"a failed measurement ({way}) moved the centre: it is not a bad point")
                if tuner.ask().id != trial.id + 1:
                    raise CheckError(f"a failed measurement ({way}) did not end the round")
            else:
                tuner.tell(trial, objective(trial.x))
                twin.tell(other, objective(other.x))
        if not np.array_equal(tuner.centre, twin.centre):
            raise CheckError(f"{way} and skip lead to different centres")


def check_errors(make: Make, *, dim: int, queries: int) -> None:
    """Infinite values, non-numbers and unknown, duplicate or future ids are errors that leave the state as it was."""
    tuner = make(np.zeros(dim), 6)
    objective = next(_objectives(dim))
    for _ in range(4):
        trial = tuner.ask()
        tuner.tell(trial, objective(trial.x))
    good = _same(1.0, queries)
    bad: list[tuple[str, Any, Any]] = [
        ("an infinite value", tuner.ask(), _same(math.inf, queries)),
        ("minus infinity", tuner.ask(), _same(-math.inf, queries)),
        ("a word", tuner.ask(), "seven"),
        ("a value of the wrong shape", tuner.ask(), [1.0, 2.0, 3.0]),
        ("an id that was told before", 1, good),
        ("an id that was never asked", 99, good),
        ("a negative id", -1, good),
    ]
    before = tuner.to_json()
    for what, trial, value in bad:
        try:
            tuner.tell(trial, value)
        except (ValueError, TypeError, KeyError) as error:
            if not str(error):
                raise CheckError(f"{what} is refused without a word: say what was wrong and what to do") from None
        else:
            raise CheckError(f"{what} was accepted: it must be an error")
        if tuner.to_json() != before:
            raise CheckError(f"{what} was refused, but changed the state")


def check_resume(make: Make, *, dim: int, queries: int) -> None:
    """Saved and loaded, pickled or copied at any round, the rest of the path is the same to the last bit."""
    ways: dict[str, Callable[[Any], Any]] = {
        "saving and loading": lambda t: type(t).from_json(t.to_json()),
        "pickling": lambda t: pickle.loads(pickle.dumps(t)),
        "copying": copy.deepcopy,
    }
    for stop in (0, 1, 7, 20):
        for way, twin_of in ways.items():
            tuner = make(np.zeros(dim), 7)
            objectives = _objectives(dim)
            for _, objective in zip(range(stop), objectives, strict=False):
                trial = tuner.ask()
                tuner.tell(trial, objective(trial.x))
            twin = twin_of(tuner)
            for _, objective in zip(range(20), objectives, strict=False):
                trial, other = tuner.ask(), twin.ask()
                if trial.id != other.id or not np.array_equal(trial.x, other.x):
                    raise CheckError(f"after {way} at round {stop}, the queries differ: the random stream was lost")
                tuner.tell(trial, objective(trial.x))
                twin.tell(other, objective(other.x))
                if not np.array_equal(tuner.centre, twin.centre):
                    raise CheckError(f"after {way} at round {stop}, the path differs: part of the memory was lost")


def check_memory(make: Make, *, dim: int, queries: int) -> None:
    """The tuner does not grow with the number of rounds."""
    tuner = make(np.zeros(dim), 8)
    sizes = []
    for rounds in (200, 2000):
        for _, objective in zip(range(rounds), _objectives(dim), strict=False):
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x))
        sizes.append((len(pickle.dumps(tuner)), len(tuner.to_json())))
    for before, after in zip(*sizes, strict=True):
        if after > before * 1.2 + 64:
            raise CheckError(f"keeps growing: {before} bytes after 200 rounds, {after} after 2200; memory must be O(d)")


def check_forget(make: Make, *, dim: int, queries: int, anchored: bool) -> None:
    """After `forget`, the next value only anchors, and only the one after it is learnt from again; it is saved, too."""
    if not anchored:
        return
    for round in (1, 2, 12):
        tuner = make(np.zeros(dim), 13)
        for _, objective in zip(range(round), _objectives(dim), strict=False):
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x))
        before = np.array(tuner.centre)
        tuner.forget()
        tuner = type(tuner).from_json(tuner.to_json())
        tuner.tell(tuner.ask(), _same(1e6, queries))
        if not np.array_equal(before, tuner.centre):
            raise CheckError(
                f"after forget in round {round}, the next value moved the centre: it was contrasted with one from"
                " before; what an estimator does not know before its first value must be NaN in what it starts with"
            )


def check_late(method: Method, *, dim: int, domain: Domain | None = None) -> None:
    """Values that come late, in any order, are learnt where they were measured: from the query that was handed out."""
    spy = Spy(method.estimator)
    watched = replace(method, estimator=spy)
    start = np.zeros(dim) if domain is None or not math.isfinite(domain.inner_radius(dim)) else domain.middle(dim)
    for pending in (1, 2, 5):
        rng = np.random.default_rng(pending)
        kind = Tuner if method.estimator.told == 1 else Limited
        tuner = kind(start, watched, domain=domain, seed=12, max_pending=pending)
        waiting: list[Any] = []
        for _, objective in zip(range(60), _objectives(dim), strict=False):
            while len(waiting) < pending:
                waiting.append(tuner.ask())
            trial = waiting.pop(int(rng.integers(len(waiting))))
            for other in tuner.pending:
                if other.id in (w.id for w in waiting) and not any(np.array_equal(other.x, w.x) for w in waiting):
                    raise CheckError(f"trial {other.id} is shown with another query than it was handed out with")
            handed_out = np.array(trial.x)
            tuner.tell(trial, objective(trial.x))
            if not np.array_equal(spy.learnt, handed_out):
                raise CheckError(
                    f"with max_pending={pending}, the value of trial {trial.id} was learnt at {spy.learnt},"
                    f" but measured at {handed_out}"
                )


class Spy:
    """An estimator that remembers the query it was given last; all else is another's."""

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.learnt = estimator, np.empty(0)

    located = True  # so that the query it is given is not the one in the hands of the user

    def __getattr__(self, name: str) -> Any:
        return getattr(self.estimator, name)

    def bind(self, frame: Frame) -> Estimation:
        """The other's functions, watched."""
        look, learn, longest = self.estimator.bind(frame)

        def watched(state: State, look: Look, query: Array, values: tuple[Value, ...]) -> Estimate:
            self.learnt = query
            found: Estimate = learn(state, look, query, values)
            return found

        return Estimation(look, watched, longest)


def check_scale_free(make: Make, *, dim: int, queries: int) -> None:
    """a·f + b, a > 0, has the same path as f."""
    for a, b in ((1e-6, 0.0), (1e6, 0.0), (1.0, 100.0), (50.0, -3.0)):
        tuner, twin = make(np.zeros(dim), 9), make(np.zeros(dim), 9)
        for _, objective in zip(range(30), _objectives(dim), strict=False):
            trial, other = tuner.ask(), twin.ask()
            tuner.tell(trial, objective(trial.x))
            twin.tell(other, a * objective(other.x) + b)
        if not np.allclose(tuner.centre, twin.centre, rtol=1e-6, atol=1e-9):
            raise CheckError(f"claims to be scale-free, but {a:g}·f + {b:g} leads elsewhere than f")


def check_unbiased(
    make: Make, *, dim: int, setup: Setup, step: float, turning: bool = True, samples: int = 3000
) -> None:
    """The mean move is −η·∇f_δ: against the analytic smoothed gradient of a linear plus quadratic objective.

    f(x) = ⟨b, x − x_0⟩ + ½(x − x_0)ᵀA(x − x_0) has ∇f_δ = ∇f for every symmetric law of u. For a domain with a plane
    the gradient is its part in that plane. turning: the objective is another one in the round before.
    """
    rng = np.random.default_rng(0)
    m = rng.standard_normal((dim, dim))
    a, b = 0.3 * (m + m.T), rng.standard_normal(dim)
    start = np.array(make(np.linspace(-0.3, 0.3, dim), 0).centre)
    expected = -step * setup.domain.flatten(b)
    mirrored = (
        setup.directions.partner(1) == 0
    )  # then the value before tells of the gradient too, and must be of this f
    then = _quadratic(a, b)
    first = then if mirrored or not turning else _quadratic(a, -b, 0.3 * setup.probe_length)
    moves = np.empty((samples, dim))
    for seed in range(samples):
        tuner = make(np.linspace(-0.3, 0.3, dim), seed)
        for objective in (first, then, then, then) if mirrored else (first, then):
            before = np.array(tuner.centre)
            trial = tuner.ask()
            tuner.tell(trial, objective(trial.x - start))
        # The centre may have moved before the last round: the gradient's change on the way is known.
        moves[seed] = np.asarray(tuner.centre) - before + step * setup.domain.flatten(a @ (before - start))
    error = np.abs(moves.mean(0) - expected)
    spread = moves.std(0) / math.sqrt(samples) + 1e-12 * step
    if np.linalg.norm(SIGMAS * spread) > 0.9 * np.linalg.norm(expected):
        raise CheckError(f"{samples} samples are too few to judge the mean move: use more, or a larger radius")
    if np.any(error > SIGMAS * spread):
        ratio = float(moves.mean(0) @ expected / (expected @ expected))
        raise CheckError(
            f"the mean move is {moves.mean(0)} instead of {expected} = −step·(smoothed gradient), {ratio:.3g} times it,"
            f" {float(np.max(error / spread)):.0f} standard errors away: check the factor 1/radius, and that the"
            " direction is independent of the anchor"
        )


def check_feasible(make: Make, *, domain: Domain, dim: int, queries: int, rounds: int = 300) -> None:
    """Every query is inside the domain, whatever values are told."""
    rng = np.random.default_rng(1)
    normal = rng.standard_normal(dim)
    hostile: list[Callable[[int, Array], Any]] = [
        lambda t, x: 1e300 * (-1) ** t,
        lambda t, x: 1e-300 * (-1) ** t,
        lambda t, x: 1e12 * float(np.asarray(x).reshape(-1, dim)[0] @ normal),
        lambda t, x: 10.0 ** (t % 300),
        lambda t, x: rng.standard_cauchy(),
    ]
    for k, value in enumerate(hostile):
        tuner = make(domain.middle(dim), k)
        for t in range(rounds):
            trial = tuner.ask()
            if not np.all(domain.contains(np.reshape(trial.x, (-1, dim)), 0.0)):
                raise CheckError(f"the query {trial.x} of round {t} is outside {domain}")
            if not np.all(np.isfinite(tuner.centre)):
                raise CheckError(f"the centre became {tuner.centre} after hostile values")
            tuner.tell(trial, _spread(value(t, trial.x), queries))


def check_domain(domain: Domain, *, dim: int = 3, samples: int = 200) -> None:
    """Projection, membership and both shrinkages of a convex set.

    >>> check_domain(Box(-1.0, 1.0))
    """
    rng = np.random.default_rng(2)
    dim = domain.dim or dim
    size = domain.outer_radius(dim)
    middle = domain.middle(dim) if math.isfinite(size) else np.zeros(dim)
    size = size if math.isfinite(size) else 10.0
    points = middle + 2 * size * rng.standard_normal((samples, dim))
    near = domain.project(points.copy())
    one_by_one = np.stack([domain.project(p.copy()) for p in points])
    tolerance = 1e-8 * (size + float(np.abs(middle).max()))
    if not np.allclose(near, one_by_one, rtol=0, atol=tolerance):
        raise CheckError("projecting rows together and one by one differ")
    if not np.all(domain.contains(near)):
        raise CheckError("a projected point is not inside")
    if not np.allclose(domain.project(near.copy()), near, rtol=0, atol=tolerance):
        raise CheckError("projecting twice moves the point again: the nearest point of a point inside is itself")
    apart = np.linalg.norm(near[1:] - near[:-1], axis=1) - np.linalg.norm(points[1:] - points[:-1], axis=1)
    if np.any(apart > tolerance):
        raise CheckError("two points are farther apart after projection than before: it must not expand distances")
    angle = np.einsum("id,ijd->ij", points - near, near[None] - near[:, None])
    if np.any(angle > 10 * tolerance * size):
        raise CheckError("a projected point is not the nearest one: ⟨x − Πx, z − Πx⟩ ≤ 0 fails for some z inside")
    _check_shrinkage(domain, dim, points)


def _check_shrinkage(domain: Domain, dim: int, points: Array) -> None:
    inner = domain.inner_radius(dim)
    radius = 0.3 * inner / math.sqrt(dim) if math.isfinite(inner) else 0.3
    for law in (Rademacher(), Sphere()):
        each, length = domain.reach(dim, *(radius * r for r in law.reach(dim)))
        smaller = {"erode": domain.erode(dim, each, length)}
        if math.isfinite(domain.outer_radius(dim)):
            smaller["scale"] = domain.scale(dim, min(length, each * math.sqrt(dim)) / inner + 1e-12)
        for name, home in smaller.items():
            u = np.empty_like(points)
            law.fill(np.random.default_rng(3), u)
            queries = home.project(points.copy()) + radius * domain.flatten(u)
            if not np.all(domain.contains(queries, 0.0)):
                raise CheckError(f"a probe by {law} leaves {domain} from a centre in the set that {name} gave")


def _check_lanes(method: Method, dim: int, domain: Domain | None) -> None:
    """Many systems at once behave as each alone."""
    starts = np.zeros((3, dim)) if domain is None else np.tile(domain.middle(dim), (3, 1))
    kind = Tuner if method.estimator.told == 1 else Limited
    many = kind(starts, method, domain=domain, seed=11)
    alone = [kind(x, method, domain=domain, seed=11, lane=k) for k, x in enumerate(starts)]
    for t, objective in zip(range(30), _objectives(dim), strict=False):
        trial = many.ask()
        values = np.array([(k + 1) * np.asarray(objective(trial.x[k])) for k in range(3)])
        if t % 7 == 3:
            values[t % 3] = math.nan
        many.tell(trial, values)
        for k, tuner in enumerate(alone):
            other = tuner.ask()
            if not np.array_equal(other.x, trial.x[k]):
                raise CheckError(f"lane {k} queries elsewhere than the same system alone, in round {t}")
            tuner.tell(other, values[k])
    for k, tuner in enumerate(alone):
        if not np.array_equal(tuner.centre, many.centre[k]):
            raise CheckError(f"lane {k} ends elsewhere than the same system alone")


def _quadratic(a: Array, b: Array, c: float = 0.0) -> Callable[[Array], Any]:
    def objective(x: Array) -> Any:
        values = np.asarray(x) @ b + 0.5 * ((x @ a) * x).sum(-1) + c
        return float(values) if values.ndim == 0 else values

    return objective


def _objectives(dim: int) -> Iterator[Callable[[Array], Any]]:
    """A drifting quadratic: (d,) → a number, (queries, d) → an array."""
    t = 0
    while True:
        optimum = 0.3 * np.sin(np.arange(1, dim + 1) + 0.05 * t)
        yield _quadratic(np.eye(dim), -optimum, 0.01 * t)
        t += 1


def _same(value: float, queries: int) -> Any:
    return value if queries == 1 else np.full(queries, value)


def _spread(value: float, queries: int) -> Any:
    return float(value) if queries == 1 else np.clip(value, -1e300, 1e300) * np.linspace(1.0, -1.0, queries)
