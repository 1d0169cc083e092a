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
    figure: str
    """The picture, or the section of the report, in which it can be seen."""


class Spread(TypedDict):
    """Over the trials: median, quartiles, and the bootstrap interval of the median."""

    median: Number
    q25: Number
    q75: Number
    low: Number
    high: Number


class Variance(TypedDict):
    """Of the estimates along the run: medians where each method is, and at one point for all."""

    round: list[int]
    own: list[Number]
    common: list[Number]


class Setting(TypedDict):
    """One method with one radius and step."""

    radius: Number
    step: Number
    regret: Spread
    """At the centre."""
    played: Spread
    """Of what was played, without noise (in the allocation, as measured)."""
    diverged: int


class MethodResult(Setting):
    """One method in one experiment, with its own best radius and step; and at the radius that all share."""

    at_edge: bool
    queries: int
    shared: Setting
    variance: NotRequired[Variance]
    tuning: NotRequired[list[dict[str, Number]]]
    cost_over_zeta: NotRequired[dict[str, Number]]
    """J/ζ at the start, a quarter, half and the end of the run."""


class Comparison(TypedDict):
    """a divided by b, medians of paired trials, with a 95 % bootstrap interval."""

    experiment: str
    what: str
    """"regret" (at the centre), "played", "variance" (own iterates), "common variance"."""
    convention: str
    """"own": each method with its own radius; "shared": with the same."""
    a: str
    b: str
    ratio: Number
    low: Number
    high: Number


class ExperimentResult(TypedDict):
    """One experiment, and its methods by name."""

    title: str
    problem: str
    parameters: Parameters
    rounds: int
    radius: float
    trials: int
    rungs: list[list[int]]
    methods: dict[str, MethodResult]
    levels: NotRequired[dict[str, Number]]
    """J/ζ of the uniform policy and of the offline optimum."""
    network: NotRequired[int]
    networks: NotRequired[list[ExperimentResult]]
    """Of the allocation: the same on several networks."""


class Map(TypedDict):
    """Median regret and diverged trials, by radius (rows) and step (columns)."""

    radii: list[float]
    steps: list[float]
    regret: list[list[Number]]
    diverged: list[list[int]]
    trials: int


Toy = TypedDict("Toy", {"round": list[int], "residual": list[float], "one-point": list[float]})


class Lemma(TypedDict):
    """The mean of many estimates, against the gradient of the smoothed cost."""

    bias: float
    error: float
    largest_z: float
    expected_bias: float
    """What the text predicts: 0 for an unbiased estimate."""
    from_slope: float
    """How far the smoothed gradient is from the gradient itself."""


Lemmas = dict[str, Lemma]


class Moment(TypedDict):
    """A second-moment lemma along a run."""

    kept: float
    """The share of the rounds in which the inequality holds."""
    rounds: int
    slack: float
    """The least right side over left side."""
    contraction: Number


Moments = dict[str, Moment]


class TheoremRow(TypedDict):
    """What happened, and what is promised."""

    theorem: str
    case: str
    dim: int
    horizon: int
    mean: float
    high: float
    """The upper end of the mean's 95 % interval."""
    bound: float
    played: Number
    """The mean of what was played, and the bound for it."""
    played_bound: Number


class Theorems(TypedDict):
    """All that were tried."""

    rows: list[TheoremRow]


class OpponentRow(TypedDict):
    """One horizon against an opponent."""

    horizon: int
    regret: float
    high: float
    bias: float
    predicted: float
    bound: float


class Opponent(TypedDict):
    """All horizons, and how the regret grows over them."""

    rows: list[OpponentRow]
    exponent: float


Opponents = dict[str, Opponent]
"""By what they may spend and when they choose: "before", "after", "budget before", "budget after"."""


class Feasible(TypedDict):
    """How many queries, and how many of them outside."""

    queries: int
    outside: int


class Checks(TypedDict):
    """The cells that are neither a run nor a map."""

    toy: Toy
    lemmas: Lemmas
    moments: Moments
    theorems: Theorems
    opponents: Opponents
    feasible: Feasible


class Ready(TypedDict):
    """What has been compiled, or found."""

    ready: str


TableData = Ready | Map | Toy | Lemmas | Moments | Theorems | Opponents | Feasible
Tables = dict[str, TableData]
"""What was computed, by the name of the cell."""


class Results(TypedDict):
    """The document."""

    format: int
    mode: str
    seed: int
    experiments: dict[str, ExperimentResult]
    comparisons: list[Comparison]
    checks: Checks
    maps: dict[str, Map]
    versions: dict[str, str]
    claims: NotRequired[list[Claim]]
    figures: NotRequired[dict[str, list[str]]]
