"""The paper's two experiments, in variants for the choices it leaves open, at three lengths.

The paper specifies the systems, but not T, δ, η, Q, R, the law of x₀ or the demand constants. The choices and their
reasons are in `trimtab.paper.report.prose.OPEN`, which the report prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from trimtab.paper.result_types import Parameters

PAPER = ("residual", "one-point", "two-point", "two-point-forward")
RELATED = ("reszo", "hlf-szo", "pbgd")
UNTUNED = ("auto", "still")
COMMON = "-common"  # suffix: the second query of a round has the same noise as the first
TWICE = ("two-point-common", "two-point-forward-common")
LITERAL = "lqr-r3-sigma-0.1"
"""The paper's text taken literally: noisy dynamics, and one rollout per query."""
ILLUSTRATION = 12
"""The network shown in figures."""

OFFLINE: Parameters = {"offline_draws": 16, "offline_steps": 300}
"""Settings of the search for the best policy: a quarter of the default noise paths gives the same quality."""

RADII = (1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2)
COARSE = (1e-3, 4e-3, 0.015, 0.05, 0.2)
STEPS = tuple(10.0**k for k in range(-7, 1))
WIDE = (0.01, 0.03, 0.1, 0.3)
FLAT = tuple(10.0**k for k in range(-6, 0))


@dataclass(frozen=True)
class Mode:
    """The sizes of all experiments in one of the three modes."""

    name: str
    radii: tuple[float, ...]
    """Candidate radii in LQR, besides the shared one."""
    trials: int
    """Trials in LQR."""
    tuning: tuple[int, ...]
    """Trials in each rung of the search for radius and step."""
    kept: int
    """Number of radii, besides the shared one, that reach the second rung."""
    wide: tuple[float, ...]
    """Candidate radii in the allocation."""
    thorough: bool
    """Whether related methods are run in R1, R2, R3 and on all networks, or only in R1; and whether R1 is tuned
    separately for T = 40."""
    zero_mean_rounds: int
    sigmas: tuple[float, ...]
    networks: tuple[int, ...]
    network_rounds: int
    network_trials: int
    long_rounds: int
    """Rounds of the illustrated allocation run."""
    grid: int
    """Number of radii in the sensitivity maps."""
    mapped: int
    """Trials in the sensitivity maps."""
    resamples: int
    """Estimates per point for the variance."""
    varied: int
    """Number of trials in which the variance is measured."""
    lanes: int
    """Lanes in the checks of lemmas."""
    horizons: tuple[int, ...]
    """Horizons in the checks of theorems."""
    repeats: int
    """Trials in the checks of theorems."""


MODES = {
    "quick": Mode(
        "quick", COARSE[::2], 16, (2, 6), 1, WIDE[1:], False, 60, (0.1,), (0, 12), 40, 3, 60, 4, 4, 8, 8, 10_000,
        (100,), 8,
    ),
    "default": Mode(
        "default", COARSE, 60, (4, 8, 12), 3, WIDE, True, 300, (0.0, 0.1, 0.3), (0, 1, 2, 3, 12), 300, 4, 1000, 7, 8,
        32, 16, 60_000, (200, 800), 16,
    ),
    "full": Mode(
        "full", RADII, 120, (8, 16, 24), 3, WIDE, True, 500, (0.0, 0.01, 0.1, 0.3), (0, 1, 2, 3, 4, 5, 12), 800, 4,
        10_000, 9, 12, 64, 32, 200_000, (400, 1600, 3200), 24,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """Several methods on one problem."""

    id: str
    title: str
    problem: str
    rounds: int
    radius: float
    """The radius shared by all methods, in one of the two conventions."""
    trials: int
    rungs: tuple[tuple[int, int], ...]
    """(rounds, trials) of each rung of the search."""
    methods: tuple[str, ...]
    radii: tuple[float, ...] = RADII
    steps: tuple[float, ...] = STEPS
    kept: int = 3
    parameters: Parameters = field(default_factory=dict)
    variances: int = 0
    """The number of rounds at which the estimators are resampled."""
    agent: int | None = None
    """The agent whose coordinates enter the variance."""
    network: int | None = None
    """The number of the network, if this is one of those reported together."""
    begins: str | None = None
    """A longer experiment that begins with these rounds; methods it contains are not run again."""


class _Sizes(TypedDict):
    trials: int
    rungs: tuple[tuple[int, int], ...]
    radii: tuple[float, ...]
    kept: int


def experiments(mode: Mode) -> dict[str, Experiment]:
    """All experiments by id."""
    all_of_them = (*PAPER, *RELATED, *UNTUNED)
    table = all_of_them if mode.thorough else (*PAPER, *UNTUNED)
    twice = TWICE if mode.thorough else TWICE[:1]
    first = mode.tuning[0]

    def sizes(rounds: int) -> _Sizes:
        rungs = tuple((rounds, trials) for trials in mode.tuning)
        return _Sizes(trials=mode.trials, rungs=rungs, radii=mode.radii, kept=mode.kept)

    zero_mean = mode.zero_mean_rounds
    found = [
        Experiment(
            "lqr-r1", "LQR, literal drift, T = 50", "lqr-v1", 50, 0.05, methods=all_of_them, variances=8, **sizes(50)
        ),
        Experiment(
            "lqr-r1-t40",
            "LQR, literal drift, T = 40",
            "lqr-v1",
            40,
            0.05,
            methods=(*PAPER, *UNTUNED),
            begins=None if mode.thorough else "lqr-r1",
            **sizes(40),
        ),
        Experiment(
            "lqr-r2",
            f"LQR, drift without mean, T = {zero_mean}",
            "lqr-zero-mean-v1",
            zero_mean,
            0.1,
            mode.trials // 2,
            tuple((zero_mean // part, first) for part in (5, 2, 1))[-len(mode.tuning) :],
            table,
            mode.radii,
            kept=mode.kept,
            variances=6,
        ),
        *(
            Experiment(
                f"lqr-r3-sigma-{sigma:g}",
                f"LQR, one noisy rollout per query, σ_w = {sigma:g}, T = 40",
                "lqr-noisy-v1",
                40,
                0.05,
                methods=(*table, *twice) if f"{sigma:g}" == "0.1" else (*PAPER, *UNTUNED),
                parameters={"sigma_w": sigma},
                variances=8 if f"{sigma:g}" == "0.1" else 0,
                **sizes(40),
            )
            for sigma in mode.sigmas
        ),
        Experiment(
            "lqr-r3-redrawn",
            "LQR, x₀ redrawn in every rollout, T = 40",
            "lqr-noisy-v1",
            40,
            0.05,
            methods=(*(PAPER if mode.thorough else PAPER[:3]), *UNTUNED, TWICE[0]),
            parameters={"sigma_w": 0.0, "redraw": True},
            **sizes(40),
        ),
        *(_network(mode, number, table) for number in mode.networks),
        _network(mode, ILLUSTRATION, (*PAPER, *UNTUNED, TWICE[0]), mode.long_rounds),
        _network(mode, ILLUSTRATION, ("residual", "one-point", "two-point", "still"), torus=True),
    ]
    return {experiment.id: experiment for experiment in found}


def _network(
    mode: Mode, number: int, methods: tuple[str, ...], long: int | None = None, *, torus: bool = False
) -> Experiment:
    rounds = long or mode.network_rounds
    kind = "torus" if torus else "allocation" if long else f"network-{number}"
    short = mode.network_rounds
    return Experiment(
        kind,
        f"Resource allocation{', torus' if torus else ''}, network {number}, T = {rounds}",
        "allocation-v1",
        rounds,
        0.03,
        mode.network_trials,
        ((max(short // 8, 20), 2), (max(short * 2 // 5, 30), 2)),
        methods,
        radii=mode.wide,
        steps=FLAT,
        kept=min(mode.kept, 2),
        parameters={"network": number, "draws": 2, "torus": torus, **OFFLINE},
        variances=6 if long else 0,
        agent=0,
        network=None if long or torus else number,
        begins="allocation" if kind == f"network-{ILLUSTRATION}" and rounds <= mode.long_rounds else None,
    )
