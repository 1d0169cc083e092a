"""What is run: the paper's two experiments in the variants that the reading of it left open, at three lengths.

The paper gives the systems, but neither T, δ, η, Q, R, the law of x₀ nor the demand constants. What was chosen, and
why, is in `OPEN`, which the report prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from trimtab.paper.document import Parameters

ONE_QUERY = ("residual", "one-point", "auto", "still")
TWO_POINT = ("two-point", "two-point-forward")
COMMON = "-common"  # the second query of a round meets the same noise as the first
SIGMAS = (0.0, 0.01, 0.1, 0.3)
PAPER_TRIALS = 10


@dataclass(frozen=True)
class Mode:
    """How long and how often."""

    name: str
    trials: int
    """LQR; the figures of the paper show the first ten."""
    tuning_trials: int
    zero_mean_rounds: int
    allocation_rounds: int
    allocation_trials: int
    allocation_tuning: int
    """Trials to tune on."""
    sigmas: tuple[float, ...]
    grid: int
    """Radii in the sensitivity maps."""
    resamples: int
    lanes: int
    """Trials of the checks of lemmas and theorems."""
    horizons: tuple[int, ...]
    """At which the theorems are tried."""


MODES = {
    "quick": Mode("quick", 20, 8, 150, 250, 4, 2, (0.0, 0.1), 5, 32, 20_000, (400, 1600)),
    "default": Mode("default", 60, 20, 500, 4000, 10, 4, SIGMAS, 9, 64, 50_000, (400, 1600, 6400)),
    "full": Mode("full", 200, 40, 500, 10_000, 10, 6, SIGMAS, 13, 64, 100_000, (400, 1600, 6400, 25_600)),
}


@dataclass(frozen=True)
class Experiment:
    """Methods side by side on one problem."""

    id: str
    title: str
    problem: str
    rounds: int
    radius: float
    trials: int
    tuning_trials: int
    methods: tuple[str, ...]
    parameters: Parameters = field(default_factory=dict)
    variances: int = 12
    """At how many rounds the estimators are resampled."""
    agent: int | None = None
    """Whose coordinates count in the variance."""


class _Trials(TypedDict):
    trials: int
    tuning_trials: int


def experiments(mode: Mode) -> dict[str, Experiment]:
    """All of them, by id."""
    exact = (*ONE_QUERY, *TWO_POINT)
    noisy = (*exact, *(name + COMMON for name in TWO_POINT))
    trials = _Trials(trials=mode.trials, tuning_trials=mode.tuning_trials)
    found = [
        Experiment("lqr-r1", "LQR, literal drift, T = 50", "lqr-v1", 50, 0.05, methods=exact, **trials),
        Experiment("lqr-r1-t40", "LQR, literal drift, T = 40", "lqr-v1", 40, 0.05, methods=exact, **trials),
        Experiment(
            "lqr-r2",
            f"LQR, drift without mean, T = {mode.zero_mean_rounds}",
            "lqr-zero-mean-v1",
            mode.zero_mean_rounds,
            0.1,
            methods=exact,
            **trials,
        ),
        *(
            Experiment(
                f"lqr-r3-sigma-{sigma:g}",
                f"LQR, one noisy rollout per query, σ_w = {sigma:g}",
                "lqr-noisy-v1",
                40,
                0.05,
                methods=noisy if sigma else exact,
                parameters={"sigma_w": sigma},
                variances=0,
                **trials,
            )
            for sigma in mode.sigmas
        ),
        Experiment(
            "lqr-r3-redrawn",
            "LQR, x₀ redrawn in every rollout",
            "lqr-noisy-v1",
            40,
            0.05,
            methods=noisy,
            parameters={"sigma_w": 0.0, "redraw": True},
            variances=0,
            **trials,
        ),
        Experiment(
            "allocation",
            f"Resource allocation, T = {mode.allocation_rounds}",
            "allocation-v1",
            mode.allocation_rounds,
            0.03,
            methods=noisy,
            trials=mode.allocation_trials,
            tuning_trials=mode.allocation_tuning,
            agent=0,
        ),
    ]
    return {experiment.id: experiment for experiment in found}


@dataclass(frozen=True)
class Choice:
    """A parameter that the paper leaves open."""

    name: str
    value: str
    why: str


OPEN = (
    Choice("LQR: Q, R", "the identity", "the usual choice; the paper names the matrices and gives no values"),
    Choice(
        "LQR: x₀ and the measured value",
        "E x₀x₀ᵀ = I, and V_t(K) computed exactly (R1, R2)",
        "the paper's Figure 1 has no noise floor; one noisy rollout is R3, and there x₀ = (1, …, 1)",
    ),
    Choice("LQR: process noise w", "none in R1 and R2; σ_w from 0 to 0.3 in R3", "“noisy dynamics”, no variance given"),
    Choice(
        "LQR: K₀", "0 in R1 and R3; 0.5·N(0, 1) in R2", "the plant is stable at first, so 0 is where one would begin"
    ),
    Choice(
        "LQR: T",
        "50, 40, and 500 in R2",
        "the drift that is written has mean +0.005 per entry: near t = 49 the plant becomes unstable under K = 0. "
        "Up to 40 nobody diverges, 45 to 60 is the interesting window; R2 takes the mean out",
    ),
    Choice("LQR: δ", "0.05 (R1, R3), 0.1 (R2)", "in the flat part of the sensitivity map below"),
    Choice("η, every method", "a log grid, on other trials", "the paper tunes each method, and does not say on what"),
    Choice(
        "first step", "the first measurement only anchors", "there is no y₋₁; taking it as 0 makes a one-point step"
    ),
    Choice("allocation: m(0)", "1 for every agent", "the order of the demand"),
    Choice(
        "allocation: demand",
        "amplitude U[0.5, 1.5], ω U[0.2, 1], φ U[0, 2π], drawn once; w ~ N(0, 0.1²)",
        "not given; one network for all trials, whose level is 18 at the uniform policy",
    ),
    Choice("allocation: centres c_p", "{−1, 0, 1}² in (m, d)", "nine features are given, their centres are not"),
    Choice(
        "allocation: neighbourhoods",
        "an agent's own store belongs to its neighbours",
        "48 edges and 16 self-loops make the 64 actions; otherwise nothing is ever kept",
    ),
    Choice(
        "allocation: ζ",
        "one walk for all agents, reflected into [0.5, 1.5]",
        "left alone it becomes negative (57 % of runs by T = 1000), and shortage is rewarded",
    ),
    Choice("allocation: θ₀, δ, T", "0, 0.03, 4000 (10 000 with --full)", "not given"),
)

SLIPS = (
    "Theorem 4.2's third term must carry L₀², not L₀, and its condition must read T ≥ ε_f/d, not T ≥ 1/(dε_f).",
    "Theorems 3.2, 3.4 and H print two terms twice as large as their proof needs: valid, but loose.",
    "Appendix H also needs δ < r, or nothing is left of the shrunken set.",
    "Lemma 5.2's right side should read ĝ_{t−1}(x_{t−1}); smoothing is over N(0, I), not N(0, 1).",
    "Theorem 4.3 needs W̃_T = o(T): under a constant V_f it says nothing.",
    "Appendix I: an opponent who sees u_t makes the estimate biased; the bounds hold for one who chooses before.",
    "There is no y₋₁: the first measurement can only anchor, or else the first step is a one-point step.",
    "The drift of the LQR experiment has a mean, which makes the plant unstable near t = 49.",
    "ζ_t, left alone, becomes negative, and the allocation experiment then rewards shortage.",
)
