"""Each check catches a tuner or domain that is broken on purpose."""

import json

import numpy as np
import pytest

import trimtab as tt
from trimtab import checks, registry
from trimtab.checks import CheckError

RADIUS, STEP = 0.1, 0.01


class Plain:
    """Residual feedback that shares no code with the package, with one method for each fault."""

    queries = 1

    def __init__(self, x0, seed):
        self.x, self.seed, self.round, self.anchor = np.array(x0, dtype=float), seed, 0, None

    @property
    def centre(self):
        return self.x

    def direction(self, round):
        return np.random.default_rng([self.seed, round]).standard_normal(self.x.size)

    def ask(self):
        return tt.Trial(self.round, self.x + RADIUS * self.direction(self.round))

    def tell(self, trial, value):
        id = trial.id if isinstance(trial, tt.Trial) else trial
        if id != self.round:
            raise ValueError(f"trial {id} is not open")
        if value is not None:
            value = np.asarray(value)
            if value.dtype.kind not in "if" or value.shape != () or np.isinf(value):
                raise ValueError(f"value={value!r} is not a finite number")
        if value is not None and not np.isnan(value):
            if self.anchor is not None:
                self.x = self.next(float(value) - self.anchor, self.direction(self.round))
            self.anchor = float(value)
        self.round += 1

    def next(self, contrast, u):
        return self.x - STEP * contrast / RADIUS * u

    def skip(self, trial):
        self.tell(trial, None)

    def to_json(self):
        return json.dumps({"x": list(self.x), "seed": self.seed, "round": self.round, "anchor": self.anchor})

    @classmethod
    def from_json(cls, text):
        saved = json.loads(text)
        tuner = cls(saved["x"], saved["seed"])
        tuner.round, tuner.anchor = saved["round"], saved["anchor"]
        return tuner


class ForgetsTheRadius(Plain):
    def next(self, contrast, u):
        return self.x - STEP * contrast * u


class StepsTwiceAsFar(Plain):
    def next(self, contrast, u):
        return self.x - 2 * STEP * contrast / RADIUS * u


class StepsFromThePerturbedPoint(Plain):
    def next(self, contrast, u):
        return self.x + RADIUS * u - STEP * contrast / RADIUS * u


class MeasuresTwice(Plain):
    def ask(self):
        u = self.direction(self.round)
        return tt.Trial(self.round, np.stack([self.x + RADIUS * u, self.x - RADIUS * u]))


class LeavesTheDomain(Plain):
    def next(self, contrast, u):
        return np.clip(super().next(contrast, u), -1.0, 1.0)  # the centre is inside, its probes are not


class LosesTheRandomStream(Plain):
    def __init__(self, x0, seed):
        super().__init__(x0, seed)
        self.started_at = 0

    def direction(self, round):
        return super().direction(round - self.started_at)

    @classmethod
    def from_json(cls, text):
        tuner = super().from_json(text)
        tuner.started_at = tuner.round
        return tuner


class KeepsGrowing(Plain):
    def __init__(self, x0, seed):
        super().__init__(x0, seed)
        self.history = []

    def tell(self, trial, value):
        super().tell(trial, value)
        self.history.append(value)


class CorrelatesDirectionAndAnchor(Plain):
    def direction(self, round):
        return super().direction(round // 2) * (-1) ** round  # mirrored, but the residual is not halved


class DrawsANewQueryEachTime(Plain):
    def ask(self):
        self.asked = getattr(self, "asked", 0) + 1
        return tt.Trial(self.round, self.x + RADIUS * super().direction(self.asked))


class AnchorsAtZero(Plain):
    def __init__(self, x0, seed):
        super().__init__(x0, seed)
        self.anchor = 0.0


class CountsAFailureAsABadPoint(Plain):
    def tell(self, trial, value):
        super().tell(trial, 1e3 if value is None or np.all(np.isnan(value)) else value)


class TakesAnything(Plain):
    def tell(self, trial, value):
        if np.shape(value) == () and not isinstance(value, str) and value is not None and np.isinf(value):
            value = 1e9
        super().tell(trial, value)


class RefusesTooLate(Plain):
    def tell(self, trial, value):
        self.round += 1
        try:
            self.round -= 1
            super().tell(trial, value)
        except ValueError:
            self.round += 1
            raise


class UsesGlobalRandomness(Plain):
    def direction(self, round):
        np.random.seed(self.seed + round)  # noqa: NPY002
        return np.random.standard_normal(self.x.size)  # noqa: NPY002


class IgnoresTheSeed(Plain):
    def direction(self, round):
        return np.random.default_rng(round).standard_normal(self.x.size)


SETUP = tt.Setup(tt.residual(radius=RADIUS, step=STEP), (3,))


def judge(cls):
    checks.check_tuner(cls, dim=3)
    checks.check_unbiased(cls, dim=3, setup=SETUP, step=STEP, samples=3000)


def test_an_independent_implementation_passes():
    judge(Plain)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (ForgetsTheRadius, "check the factor 1/radius"),
        (StepsTwiceAsFar, "2.* times it"),
        (StepsFromThePerturbedPoint, "must start from the centre, not from the query"),
        (MeasuresTwice, "measures 2 points"),
        (LosesTheRandomStream, "the random stream was lost"),
        (KeepsGrowing, "keeps growing"),
        (CorrelatesDirectionAndAnchor, "independent of the anchor"),
        (DrawsANewQueryEachTime, "asking twice gives different queries"),
        (AnchorsAtZero, "must not cause one|must only anchor"),
        (CountsAFailureAsABadPoint, "must not count as a bad value"),
        (TakesAnything, "an infinite value was accepted"),
        (RefusesTooLate, "was refused, but changed the state"),
        (UsesGlobalRandomness, "global random state"),
        (IgnoresTheSeed, "the seed is not used"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_broken_tuners_are_caught(cls, words):
    with pytest.raises(CheckError, match=words):
        judge(cls)


class DeclaresHalf(tt.Constant):
    """A step twice as long as declared."""

    @property
    def constant(self):
        return 0.5 * super().constant


def test_a_step_longer_than_declared_is_caught(monkeypatch):
    monkeypatch.setitem(registry.parts, "DeclaresHalf", DeclaresHalf)  # so that it can be saved
    with pytest.raises(CheckError, match=r"2.* times it"):
        checks.check_method(tt.Method(estimator=tt.Residual(), radius=RADIUS, step=DeclaresHalf(STEP)))


class ForgetsNothing(Plain):
    def forget(self):
        pass


def test_forgetting_nothing_is_caught():
    with pytest.raises(CheckError, match="after forget in round 1, the next value moved the centre"):
        checks.check_forget(ForgetsNothing, dim=3, queries=1, anchored=True)


def test_leaving_the_domain_is_caught():
    with pytest.raises(CheckError, match="is outside Box"):
        checks.check_feasible(LeavesTheDomain, domain=tt.Box(-1.0, 1.0), dim=3, queries=1)


def test_a_false_claim_of_being_scale_free_is_caught():
    with pytest.raises(CheckError, match="claims to be scale-free"):
        checks.check_scale_free(Plain, dim=3, queries=1)


def crooked(**replaced):
    """A box with another `project` or `erode`."""
    return type("Crooked", (tt.Box,), replaced)(-1.0, 1.0)


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (crooked(project=lambda self, x: x), "a projected point is not inside"),
        (crooked(project=lambda self, x: 0.5 * np.clip(x, -1, 1)), "projecting twice"),
        (crooked(project=lambda self, x: np.where(np.abs(x).max(-1, keepdims=True) <= 1, x, 0.0)), "grow|nearest"),
        (crooked(project=lambda self, x: x / np.maximum(1, np.abs(x).max(-1, keepdims=True))), "nearest|grow"),
        (crooked(project=lambda self, x: np.clip(x, -1, 1) if x.ndim == 1 else np.clip(x, -1, 0)), "one by one"),
        (crooked(erode=lambda self, dim, each, length: self), "a probe by .* leaves"),
    ],
)
def test_broken_domains_are_caught(domain, words):
    with pytest.raises(CheckError, match=words):
        checks.check_domain(domain)
