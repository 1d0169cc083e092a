"""The mean estimate against the analytic smoothed gradient.

For f(x) = c + ⟨b, x⟩ + ½xᵀAx the smoothed gradient is ∇f(x) = b + Ax for every symmetric law of u, whatever δ.
Every comparison is in standard errors of the sample mean, over N lanes; a coordinate beyond 6 of them has a chance of
2e-9, and with less than 400 comparisons in this file a false alarm has a chance below 1e-6. The seeds are fixed.
"""

import numpy as np
import pytest

import trimtab as tt

LANES = 20_000
STEP = 1e-3
LAWS = [tt.Gaussian(), tt.Sphere(), tt.Rademacher()]


class Quadratic:
    def __init__(self, dim, seed):
        rng = np.random.default_rng(seed)
        m = rng.standard_normal((dim, dim))
        self.a, self.b, self.c = (m + m.T) / 2, rng.standard_normal(dim), rng.standard_normal()

    def __call__(self, x):
        return self.c + x @ self.b + 0.5 * ((x @ self.a) * x).sum(-1)

    def gradient(self, x):
        return self.b + x @ self.a


def estimates(method, objectives, x, domain=None, seed=0, lanes=LANES):
    """ĝ of the last round, one per lane, and the centres they were taken at."""
    tuner = tt.Tuner(np.tile(x, (lanes, 1)), method, domain=domain, seed=seed)
    for t, f in enumerate(objectives):
        centre, trial = tuner.centre, tuner.ask()
        if method.queries == 1:
            tuner.tell(trial, f(trial.x))
        else:
            each = [objectives[t - lag] for lag in method.lags]
            tuner.tell(trial, np.stack([g(trial.x[:, k]) for k, g in enumerate(each)], axis=1))
    return (centre - tuner.centre) / STEP, centre


def assert_mean(samples, expected):
    error = samples.mean(0) - expected
    spread = samples.std(0) / np.sqrt(len(samples)) + 1e-9
    assert np.all(np.abs(error) <= 6 * spread), f"off by {np.max(np.abs(error) / spread):.1f} standard errors"
    # and the test has teeth: the gradient twice, or not at all, would be seen
    assert np.linalg.norm(6 * spread) < 0.9 * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["residual", "one-point", "high-pass", "two-point", "two-point-forward"])
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(
    ("dim", "radius"), [(1, 0.5), *(pytest.param(dim, 0.1, marks=pytest.mark.long) for dim in (2, 7)), (7, 0.5)]
)
def test_the_mean_estimate_is_the_smoothed_gradient(name, law, dim, radius):
    method = tt.methods[name](radius=radius, step=STEP, directions=law)
    before, now = Quadratic(dim, seed=dim), Quadratic(dim, seed=dim + 10)
    x = np.linspace(-0.5, 0.8, dim)
    noisy = name == "one-point" or (dim == 7 and radius == 0.1)  # as `assert_mean` would say
    lanes = 2 * LANES if noisy else LANES // 2
    samples, centres = estimates(method, [before, now], x, lanes=lanes)
    # one-point has moved already: compare with the gradient where it was
    assert_mean(samples - now.gradient(centres) + now.gradient(x), now.gradient(x))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_residual_feedback_stays_unbiased_after_moves_and_jumps(law):
    fs = [Quadratic(3, seed=k) for k in range(5)]
    method = tt.residual(radius=0.3, step=STEP, directions=law)
    samples, centres = estimates(method, fs, np.array([0.3, -0.2, 0.5]))
    assert_mean(samples - fs[-1].gradient(centres) + fs[-1].gradient(centres.mean(0)), fs[-1].gradient(centres.mean(0)))


@pytest.mark.parametrize("law", [tt.Gaussian(), tt.Rademacher()], ids=str)
def test_residual_feedback_is_unbiased_for_the_smoothed_cost_where_that_is_another(law):
    """f = Σ c_j x_j³: the slope of f_δ is that of f plus 3c_jδ². With signs E u_j⁴ = 1, not 3: c_jδ² more."""
    weights, radius, x = np.array([0.5, -1.0, 2.0]), 0.3, np.array([0.4, -0.3, 0.2])

    def cubic(p):
        return (weights * p**3).sum(-1)

    tuner = tt.Tuner(np.tile(x, (LANES, 1)), tt.residual(radius=radius, step=STEP, directions=law), seed=0)
    tuner.tell(trial := tuner.ask(), cubic(trial.x) + 0.1)  # another round, another level
    tuner.tell(trial := tuner.ask(), cubic(trial.x))
    more = 3.0 if isinstance(law, tt.Gaussian) else 1.0
    assert_mean((x - tuner.centre) / STEP, 3 * weights * x**2 + more * weights * radius**2)


def test_residual_feedback_on_orthogonal_blocks_is_unbiased_only_while_the_centre_stays(monkeypatch):
    """Within a block the directions that are left depend on those that were used, and so does a centre that moved."""
    monkeypatch.setattr("trimtab.directions.orthogonal.BATCH", 0)  # a lane draws only the block it uses, not dozens
    fs = [Quadratic(3, seed=2) for _ in range(4)]  # rounds 1, 2, … of a block of three
    x = np.array([0.3, -0.2, 0.5])
    gradient = fs[-1].gradient

    def deviation(step):
        method = tt.residual(radius=0.3, step=step, directions=tt.Orthogonal())
        samples, centres = estimates(method, fs[:3], x, lanes=2 * LANES)
        off = samples * STEP / step - gradient(centres)
        return np.abs(off.mean(0) / (off.std(0) / np.sqrt(len(off)))).max()

    assert deviation(1e-6) < 6
    assert deviation(0.2) > 10


@pytest.mark.parametrize("base", LAWS, ids=str)
@pytest.mark.parametrize("estimator", [tt.Residual(), tt.HighPass(0.5)], ids=str)
def test_paired_directions_estimate_a_mean_of_two_rounds(base, estimator):
    """On the second round of a pair: (∇f_{δ,t}(x_t) + recall·∇f_{δ,t−1}(x_{t−1}))/(1 + recall)."""
    before, now = Quadratic(3, seed=1), Quadratic(3, seed=2)
    method = tt.Method(estimator=estimator, radius=0.3, step=STEP, directions=tt.Paired(base))
    samples, centres = estimates(method, [before, before, before, now], np.array([0.3, -0.2, 0.5]))
    w = 1.0 if estimator == tt.Residual() else 1 - estimator.beta  # the weight of −y_{t−1} in the contrast
    expected = (now.gradient(centres.mean(0)) + w * before.gradient(centres.mean(0))) / (1 + w)
    assert_mean(samples, expected)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("dim", [2, 5])
def test_modified_two_point_has_the_bias_of_remark_2_5(law, dim):
    """E ĝ − ∇f_{δ,t} = ½(∇f_{δ,t−1} − ∇f_{δ,t})."""
    before, now = Quadratic(dim, seed=1), Quadratic(dim, seed=2)
    method = tt.modified_two_point(radius=0.3, step=STEP, directions=law)
    x = np.linspace(-0.5, 0.8, dim)
    tuner = tt.Tuner(np.tile(x, (LANES, 1)), method, seed=0)
    trial = tuner.ask()
    tuner.tell(trial, np.stack([now(trial.x[:, 0]), before(trial.x[:, 1])], axis=1))
    samples = (x - tuner.centre) / STEP
    bias = 0.5 * (before.gradient(x) - now.gradient(x))
    assert_mean(samples, now.gradient(x) + bias)
    assert np.linalg.norm(bias) > 0.1  # which is not nothing


def test_on_the_simplex_the_mean_is_the_gradient_in_its_plane():
    now = Quadratic(4, seed=2)
    x = np.array([0.4, 0.3, 0.2, 0.1])
    for law in (tt.Rademacher(), tt.Sphere()):
        method = tt.residual(radius=0.02, step=1e-5, directions=law)
        samples, _ = estimates(method, [now, now], x, domain=tt.Simplex())
        gradient = now.gradient(x)
        assert_mean(samples * STEP / 1e-5, gradient - gradient.mean())


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("dim", [1, 3, 8])
def test_directions_are_centred_and_scaled(law, dim):
    """E u = 0, scale·E[u uᵀ] = I, and rounds and lanes are uncorrelated."""
    from trimtab.directions import Stream

    stream = Stream(law, (LANES, dim), seed=3)
    u, v = stream(0), stream(1)
    scale = law.scale(dim)
    root = np.sqrt(LANES)
    assert np.abs(u.mean(0)).max() < 6 * np.sqrt(1 / scale) / root
    second = scale * np.einsum("ni,nj->nij", u, u)
    assert np.all(np.abs(second.mean(0) - np.eye(dim)) < 6 * second.std(0) / root + 1e-9)
    across = scale * np.einsum("ni,nj->nij", u, v)
    assert np.all(np.abs(across.mean(0)) < 6 * across.std(0) / root + 1e-9)
    neighbours = scale * np.einsum("ni,nj->nij", u[1:], u[:-1])
    assert np.all(np.abs(neighbours.mean(0)) < 6 * neighbours.std(0) / root + 1e-9)


@pytest.mark.parametrize("t", [1, 100])
def test_second_moments_on_the_toy_of_section_3(t):
    """f_0 = x²/2, f_t = f_{t−1} + n_t, n ~ N(0, 1), at a fixed x, with δ = 0.1 and u ~ N(0, 1).

    One-point: E ĝ² = E u²(½(x+δu)² + Σn)²/δ², which is (t + E u²·f²)/δ² and grows with t. Residual:
    E ĝ² = E u²(n + f_0(x+δu) − f_0(x+δv))²/δ² = (1 + E u²(f − f')²)/δ², whatever t.
    """
    radius, x, lanes = 0.1, 0.3, 100_000
    rng = np.random.default_rng(t)
    walk = np.sqrt(t - 1) * rng.standard_normal(lanes)  # the sum of the first t − 1 increments
    last = rng.standard_normal(lanes)
    step = 1e-9  # so that x stays where it is
    moments = {}
    for name in ("one-point", "residual"):
        tuner = tt.Tuner(np.full((lanes, 1), x), tt.methods[name](radius=radius, step=step), seed=5)
        first = tuner.ask()
        tuner.tell(first, 0.5 * first.x[:, 0] ** 2 + walk)
        before, second = tuner.centre, tuner.ask()
        tuner.tell(second, 0.5 * second.x[:, 0] ** 2 + walk + last)
        moments[name] = ((before - tuner.centre) / step)[:, 0] ** 2
    # Gaussian moments E u² = 1, E u⁴ = 3, E u⁶ = 15 with f = ½x² + xδu + ½δ²u²
    c0, c1, c2 = 0.5 * x**2, x * radius, 0.5 * radius**2
    u2f2 = c0**2 + 3 * (c1**2 + 2 * c0 * c2) + 15 * c2**2
    u2f, f, f2 = c0 + 3 * c2, c0 + c2, c0**2 + c1**2 + 2 * c0 * c2 + 3 * c2**2
    expected = {
        "one-point": (t + u2f2) / radius**2,
        "residual": (1 + u2f2 - 2 * u2f * f + f2) / radius**2,
    }
    for name, samples in moments.items():
        assert abs(samples.mean() - expected[name]) < 6 * samples.std() / np.sqrt(lanes)
    assert expected["residual"] == pytest.approx(100, rel=0.02)
    assert expected["one-point"] == pytest.approx(100 * t, rel=0.02)


@pytest.mark.parametrize("estimator", [tt.Residual(), tt.HighPass(0.5)], ids=str)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 1, None, 3], [0, 1, 3, 2], [0, 1, 2, 4, 3]], ids=str)
def test_paired_directions_are_unbiased_after_skips_and_out_of_order(estimator, order):
    """Whatever was told before, the last estimate has the mean ∇f (the function stands still)."""
    if order == [0, 1, 2, 4, 3] and estimator != tt.Residual():
        pytest.skip("a running mean still holds the partner's value when another one comes between")
    f, x = Quadratic(3, seed=1), np.array([0.3, -0.2, 0.5])
    f.c = -f(x) + f.c
    method = tt.Method(estimator=estimator, radius=0.3, step=STEP, directions=tt.Paired())
    tuner = tt.Tuner(np.tile(x, (LANES, 1)), method, seed=0, max_pending=5)
    trials = [tuner.ask() for _ in range(5)]
    for t, trial in enumerate(order):
        before = tuner.centre
        if trial is None:
            tuner.skip(t)
        else:
            tuner.tell(trial, f(trials[trial].x))
    assert_mean((before - tuner.centre) / STEP, f.gradient(x))
