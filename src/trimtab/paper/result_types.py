"""The structure of `results.json`."""

from __future__ import annotations

from typing import NotRequired, TypedDict

Number = float | str | None
"""A number, "inf", "-inf", or None for NaN."""
Parameters = dict[str, float | bool]
"""Parameters of a problem that differ from the defaults."""


class Claim(TypedDict):
    """A claim of the paper, with a verdict and its evidence."""

    claim: str
    where: str
    verdict: str
    evidence: str
    figure: str
    """The figure or section of the report that shows it."""


class Spread(TypedDict):
    """Median and quartiles over trials, and the bootstrap interval of the median."""

    median: Number
    q25: Number
    q75: Number
    low: Number
    high: Number


class Variance(TypedDict):
    """Variance of the estimates along the run: medians at each method's own iterate, and at a common point."""

    round: list[int]
    own: list[Number]
    common: list[Number]


class Setting(TypedDict):
    """Results of one method with one radius and step."""

    radius: Number
    step: Number
    regret: Spread
    """Regret at the centre."""
    played: Spread
    """Regret at the queries, without noise (in the allocation, as measured)."""
    diverged: int


class MethodResult(Setting):
    """Results of one method in one experiment, with its own best radius and step, and at the shared radius."""

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
    """Results of one experiment by method."""

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
    """Results of the allocation on several networks."""


class Map(TypedDict):
    """Median regret and number of diverged trials, by radius (rows) and step (columns)."""

    radii: list[float]
    steps: list[float]
    regret: list[list[Number]]
    diverged: list[list[int]]
    trials: int


Toy = TypedDict("Toy", {"round": list[int], "residual": list[float], "one-point": list[float]})


class Lemma(TypedDict):
    """The mean of many estimates, compared with the gradient of the smoothed cost."""

    bias: float
    error: float
    largest_z: float
    expected_bias: float
    """The predicted bias: 0 for an unbiased estimate."""
    from_slope: float
    """The distance of the smoothed gradient from the gradient itself."""


Lemmas = dict[str, Lemma]


class Moment(TypedDict):
    """The check of a second-moment lemma along a run."""

    kept: float
    """The share of rounds in which the inequality holds."""
    rounds: int
    slack: float
    """The smallest ratio of the right to the left side."""
    contraction: Number


Moments = dict[str, Moment]


class TheoremRow(TypedDict):
    """Observed regret and its bound."""

    theorem: str
    case: str
    dim: int
    horizon: int
    mean: float
    high: float
    """The upper end of the mean's 95 % interval."""
    bound: float
    played: Number
    """Mean regret at the queries, and its bound."""
    played_bound: Number


class Theorems(TypedDict):
    """All checks of theorems."""

    rows: list[TheoremRow]


class OpponentRow(TypedDict):
    """Results for one horizon against an opponent."""

    horizon: int
    regret: float
    high: float
    bias: float
    predicted: float
    bound: float


class Opponent(TypedDict):
    """Results for all horizons, and the growth of the regret."""

    rows: list[OpponentRow]
    exponent: float


Opponents = dict[str, Opponent]
"""Results by kind of opponent: "before", "after", "budget before", "budget after"."""


class Feasible(TypedDict):
    """The number of queries, and of those outside the domain."""

    queries: int
    outside: int


class Checks(TypedDict):
    """Results of the cells that are neither runs nor maps."""

    toy: Toy
    lemmas: Lemmas
    moments: Moments
    theorems: Theorems
    opponents: Opponents
    feasible: Feasible


class Ready(TypedDict):
    """Results of the preparations."""

    ready: str


TableData = Ready | Map | Toy | Lemmas | Moments | Theorems | Opponents | Feasible
Tables = dict[str, TableData]
"""Computed tables by cell name."""


class Results(TypedDict):
    """The whole document."""

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
