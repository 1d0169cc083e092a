"""The shape of `results.json`: what each check, map and experiment says, in numbers that JSON can hold."""

from __future__ import annotations

from typing import NotRequired, TypedDict

Number = float | str | None
"""A number; "inf", "-inf", and None for NaN."""
Parameters = dict[str, float | bool]
"""What a problem is made with, beyond its reference values."""


class Claim(TypedDict):
    """What the paper says, and what the numbers say of it."""

    claim: str
    where: str
    verdict: str
    evidence: str


class Spread(TypedDict):
    """Over the trials."""

    median: Number
    q25: Number
    q75: Number


class Variance(TypedDict):
    """Of the estimates, along the run."""

    round: list[int]
    median: list[Number]


class MethodResult(TypedDict):
    """One method in one experiment."""

    step: Number
    step_at_edge: bool | None
    queries: int
    regret: Spread
    incurred: Spread
    diverged: int
    variance: Variance
    tuning: list[dict[str, Number]] | None
    cost_over_zeta: NotRequired[dict[str, Number]]
    """J/ζ at the start, a quarter, half and the end of the run."""


class ExperimentResult(TypedDict):
    """One experiment, and its methods by name."""

    title: str
    problem: str
    parameters: Parameters
    rounds: int
    radius: float
    trials: int
    tuning_trials: int
    methods: dict[str, MethodResult]
    levels: NotRequired[dict[str, Number]]
    """J/ζ of the uniform policy and of the offline optimum."""


class Map(TypedDict):
    """Median regret and diverged trials, by radius (rows) and step (columns)."""

    radii: list[float]
    steps: list[float | None]
    regret: list[list[Number]]
    diverged: list[list[int]]
    trials: int


Toy = TypedDict("Toy", {"round": list[int], "residual": list[float], "one-point": list[float]})


class Lemma(TypedDict):
    """The mean of many estimates, against the gradient."""

    bias: float
    error: float
    largest_z: float
    predicted_bias: NotRequired[float]


Lemmas = TypedDict("Lemmas", {"residual": Lemma, "modified two-point": Lemma})


class TheoremRow(TypedDict):
    """What happened, and what is promised."""

    theorem: str
    horizon: int
    mean: float
    bound: float


class Theorems(TypedDict):
    """All that were tried."""

    rows: list[TheoremRow]


class OpponentRow(TypedDict):
    """One horizon against an opponent."""

    horizon: int
    regret: float
    bias: float
    predicted: float
    bound: float


class Opponent(TypedDict):
    """All horizons, and how the regret grows over them."""

    rows: list[OpponentRow]
    exponent: float


class Opponents(TypedDict):
    """By when they choose."""

    before: Opponent
    after: Opponent


class Contraction(TypedDict):
    """The step, and of each assumption the verdict and its text."""

    step: float | None
    findings: dict[str, tuple[str, str]]


class Feasible(TypedDict):
    """How many queries, and how many of them outside."""

    queries: int
    outside: int


class Checks(TypedDict):
    """The cells that are neither a run nor a map."""

    toy: Toy
    lemmas: Lemmas
    theorems: Theorems
    opponents: Opponents
    contraction: Contraction
    feasible: Feasible


TableData = Map | Toy | Lemmas | Theorems | Opponents | Contraction | Feasible
Tables = dict[str, TableData]
"""What was computed, by the name of the cell."""


class Results(TypedDict):
    """The document."""

    format: int
    mode: str
    seed: int
    experiments: dict[str, ExperimentResult]
    checks: Checks
    maps: dict[str, Map]
    versions: dict[str, str]
    claims: NotRequired[list[Claim]]
    figures: NotRequired[dict[str, list[str]]]
