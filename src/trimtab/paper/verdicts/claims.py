"""Judge each claim of the paper by fixed rules on paired ratios of medians and their intervals.

much lower    the 95 % interval of the ratio lies at or below ½
comparable    it lies at or below 1.5 (for variances: 3)

A claim holds if this is true for all of its comparisons, and fails if all intervals lie beyond the limit. Otherwise,
also if an interval contains the limit, it holds partly. With the few trials of a network, an interval spans the
smallest to the largest value and covers less than 95 %; `_few` states how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trimtab.paper.experiments import ILLUSTRATION, LITERAL
from trimtab.paper.intervals import covered, value, written
from trimtab.paper.result_types import Claim, Comparison, Results
from trimtab.paper.results import NETWORKS
from trimtab.paper.verdicts.theorems import proven

MUCH, COMPARABLE, CLOSE = 0.5, 1.5, 3.0
EXACT = ("lqr-r1", "lqr-r1-t40", "lqr-r2")
FORMS = ("two-point", "two-point-forward")
NOISY = "lqr-r3-sigma-"
SHORT = {"lqr-r1": "R1", "lqr-r1-t40": "R1 to T = 40", "lqr-r2": "R2", LITERAL: "R3", NETWORKS: "networks"}
SHORT |= {"lqr-r3-redrawn": "R3 with x₀ redrawn", "allocation": f"network {ILLUSTRATION} for longer"}
NEAR = "comparable to that of two-point feedback"
FIGURES = {"figure-1a": "Section 6.1, Figure 1(a)", "networks": "Section 6.2, Figure 2(a)"}
Outcome = Literal["yes", "no", "open"]


def claims(results: Results) -> list[Claim]:
    """All claims, in the order of the paper, followed by questions it does not address."""
    return [
        *proven(results),
        _better(results, EXACT, "Residual feedback has a much lower regret than one-point feedback.", "figure-1a"),
        _comparable(results, EXACT, "shared", f"Its regret is {NEAR} (δ shared by all).", "figure-1a"),
        _comparable(results, EXACT, "own", "… and with each method's own δ.", "figure-1a"),
        _better(
            results, (LITERAL,), "With noisy dynamics and one rollout per query: much lower, too.", "figure-1a-noisy"
        ),
        _comparable(results, (LITERAL,), "own", f"… and {NEAR}, each with its own δ.", "figure-1a-noisy"),
        _variance_lower(results),
        _variance_close(results, "variance"),
        _variance_close(results, "common variance"),
        _allocation(results),
        _better(
            results, (NETWORKS,), "In resource allocation, it does much better than one-point feedback.", "networks"
        ),
        _comparable(results, (NETWORKS,), "own", "Its cost there is as low as that of two-point feedback.", "networks"),
        _allocation_variance(results),
        _torus(results),
        _noise(results),
        _always(results),
        _played(results),
    ]


def claim(text: str, where: str, verdict: str, evidence: str, figure: str) -> Claim:
    """Create a claim."""
    return {"claim": text, "where": where, "verdict": verdict, "evidence": evidence, "figure": figure}


def judge(outcomes: Sequence[Outcome]) -> str:
    """Combine outcomes: all, none, or partly."""
    known = set(outcomes)
    return "holds" if known == {"yes"} else "fails" if known == {"no"} else "partly"


def below(found: Comparison, limit: float) -> Outcome:
    """Whether the ratio is at or below the limit, judged by its interval."""
    return "yes" if value(found["high"]) <= limit else "no" if value(found["low"]) > limit else "open"


def above(found: Comparison, limit: float) -> Outcome:
    """Whether the ratio is at or above the limit, judged by its interval."""
    return "yes" if value(found["low"]) >= limit else "no" if value(found["high"]) < limit else "open"


def compared(results: Results, id: str, a: str, b: str, what: str = "regret", convention: str = "own") -> Comparison:
    """The comparison of a with b."""
    wanted = (id, what, convention, a, b)
    for found in results["comparisons"]:
        if (found["experiment"], found["what"], found["convention"], found["a"], found["b"]) == wanted:
            return found
    raise KeyError(f"{a} was not compared with {b} in {id} by its {what} ({convention})")


def said(found: Comparison) -> str:
    """Format a ratio with its interval."""
    return f"{written(found['ratio'])} ({written(found['low'])} to {written(found['high'])})"


def _few(results: Results) -> str:
    """State the coverage of intervals over the trials of a network."""
    trials = results["experiments"]["allocation"]["trials"]
    return (
        f" (On a network, an interval goes from the smallest to the largest of {trials} trials, which covers"
        f" {100 * covered(trials):.3g} %.)"
    )


def _called(id: str) -> str:
    """The name of an experiment in the report."""
    if id.startswith(NOISY):
        return SHORT.get(id, f"R3 with σ_w = {id.removeprefix(NOISY)}")
    return SHORT.get(id, id.replace("-", " "))


def _better(results: Results, ids: Sequence[str], text: str, figure: str) -> Claim:
    parts, outcomes = [], []
    for id in ids:
        for convention in ("shared", "own"):
            found = compared(results, id, "residual", "one-point", convention=convention)
            outcomes.append(below(found, MUCH))
            parts.append(f"{SHORT[id]}, δ {convention}: {said(found)}")
    where = FIGURES[figure.removesuffix("-noisy")]
    evidence = "Regret divided by that of one-point. " + "; ".join(parts) + "." + _few(results) * (NETWORKS in ids)
    return claim(text, where, judge(outcomes), evidence, figure)


def _comparable(results: Results, ids: Sequence[str], convention: str, text: str, figure: str) -> Claim:
    parts, outcomes = [], []
    for form in FORMS:
        ratios = [compared(results, id, "residual", form, convention=convention) for id in ids]
        outcomes += [below(found, COMPARABLE) for found in ratios]
        shown = "; ".join(f"{SHORT[id]} {said(found)}" for id, found in zip(ids, ratios, strict=True))
        parts.append(f"by {form}: {shown}")
    where = FIGURES[figure.removesuffix("-noisy")]
    evidence = "Regret divided " + ", ".join(parts) + "." + _few(results) * (NETWORKS in ids)
    return claim(text, where, judge(outcomes), evidence, figure)


def _variance_lower(results: Results) -> Claim:
    found = {
        f"{SHORT[id]}, {where}": compared(results, id, "residual", "one-point", what, "shared")
        for id in ("lqr-r1", "lqr-r2", LITERAL)
        for what, where in (("variance", "own iterates"), ("common variance", "common point"))
    }
    return claim(
        "Its estimates have a much smaller variance than those of one-point feedback.",
        "Section 6.1, Figure 1(b)",
        judge([below(one, MUCH) for one in found.values()]),
        "Variance divided by that of one-point. "
        + "; ".join(f"{name}: {said(one)}" for name, one in found.items())
        + ".",
        "figure-1b",
    )


def _variance_close(results: Results, what: str) -> Claim:
    ids = ("lqr-r1", "lqr-r2")
    where = "at each method's own iterate" if what == "variance" else "at the same point for all"
    parts, outcomes = [], []
    for form in FORMS:
        ratios = [compared(results, id, "residual", form, what, "shared") for id in ids]
        outcomes += [below(one, CLOSE) for one in ratios]
        parts.append(
            f"by {form}: " + "; ".join(f"{SHORT[id]} {said(one)}" for id, one in zip(ids, ratios, strict=True))
        )
    return claim(
        f"Its variance is close to that of two-point feedback, {where}.",
        "Section 6.1, Figure 1(b)",
        judge(outcomes),
        "Variance divided " + ", ".join(parts) + " (within 3 counts as close).",
        "figure-1b",
    )


def _allocation(results: Results) -> Claim:
    found = results["experiments"]["allocation"]
    ends = {name: value(m["cost_over_zeta"]["end"]) for name, m in found["methods"].items()}
    best = value(found["levels"]["offline"])
    ratio = compared(results, "allocation", "residual", "one-point")
    return claim(
        "On the network of the picture, residual feedback learns a far better policy than one-point feedback.",
        "Section 6.2, Figure 2(a)",
        judge([below(ratio, MUCH), below(ratio, 0.9)]),
        f"J/ζ after {found['rounds']} rounds: {ends['residual']:.3g} against {ends['one-point']:.3g}; the uniform"
        f" policy has {ends['still']:.3g}, the offline optimum {best:.3g}. Regret divided by that of one-point:"
        f" {said(ratio)}. This network is an extreme draw: the next claims are about several.{_few(results)}",
        "figure-2a",
    )


def _allocation_variance(results: Results) -> Claim:
    parts, outcomes = [], []
    for what, where in (("variance", "own iterates"), ("common variance", "offline optimum")):
        one = compared(results, "allocation", "residual", "one-point", what, "shared")
        outcomes.append(below(one, MUCH))
        parts.append(f"{where}, by one-point {said(one)}")
        for form in (*FORMS, "two-point-common"):
            one = compared(results, "allocation", "residual", form, what, "shared")
            outcomes.append(below(one, CLOSE))
            parts.append(f"by {form} {said(one)}")
    return claim(
        "At agent 1 its variance is comparable to that of two-point feedback, and much smaller than that of one-point.",
        "Section 6.2, Figure 2(b)",
        judge(outcomes),
        "Residual divided: " + ", ".join(parts) + "." + _few(results),
        "figure-2b",
    )


def _torus(results: Results) -> Claim:
    by_one, by_two = (compared(results, "torus", "residual", name) for name in ("one-point", "two-point"))
    return claim(
        "On a torus, the other reading of 64 actions, the order is the same: two-point, residual, one-point.",
        "left open by the paper",
        judge([below(by_one, 1.0), above(by_two, 1.0)]),
        f"Regret of residual divided by one-point {said(by_one)}, by two-point {said(by_two)}.{_few(results)}",
        "open",
    )


def _noise(results: Results) -> Claim:
    ids = [id for id in results["experiments"] if id.startswith(NOISY)]
    ratios = {id: compared(results, id, "residual", "one-point") for id in ids}
    shown = "; ".join(f"σ_w = {id.removeprefix(NOISY)}: {said(one)}" for id, one in ratios.items())
    return claim(
        "With noisy values it is still much better than one-point feedback, however much noise there is.",
        "Section 5",
        judge([below(one, MUCH) for one in ratios.values()]),
        f"Regret divided by that of one-point. {shown}.",
        "limits",
    )


def _always(results: Results) -> Claim:
    wanted = ("residual", "one-point", "regret", "own")
    every = [c for c in results["comparisons"] if (c["a"], c["b"], c["what"], c["convention"]) == wanted]
    outcomes = [below(one, 1.0) for one in every if one["experiment"] != NETWORKS]
    redrawn = compared(results, "lqr-r3-redrawn", "residual", "one-point")
    still = compared(results, "lqr-r3-redrawn", "residual", "still")
    return claim(
        "Residual feedback always outperforms one-point feedback in practice.",
        "after Theorem 3.4",
        judge(outcomes),
        f"Significantly lower regret in {outcomes.count('yes')} of {len(outcomes)} experiments, significantly higher in"
        f" {outcomes.count('no')}. If x₀ is redrawn in every rollout, the difference cancels less:"
        f" regret divided by that of one-point {said(redrawn)}, of no tuning {said(still)}.{_few(results)}",
        "limits",
    )


def _played(results: Results) -> Claim:
    def of(name: str, convention: str) -> list[Comparison]:
        wanted = (name, "still", "played", convention)
        every = [c for c in results["comparisons"] if (c["a"], c["b"], c["what"], c["convention"]) == wanted]
        return [c for c in every if c["experiment"] != NETWORKS]

    def dear(some: Sequence[Comparison]) -> str:
        return ", ".join(_called(c["experiment"]) for c in some if below(c, 1.0) != "yes") or "none"

    own, shared = of("residual", "own"), of("residual", "shared")
    sure = [sum(below(c, 1.0) == "yes" for c in some) for some in (own, shared)]
    return claim(
        "The played cost, probes included, is lower than without tuning.",
        "not in the paper, which counts centres alone",
        judge([below(c, 1.0) for c in own]),
        f"Significantly so for residual feedback in {sure[0]} of {len(own)} experiments, not in: {dear(own)}. For auto,"
        f" not in: {dear(of('auto', 'own'))}. (Radius and step are chosen for the regret at the centre, as in the"
        f" paper: that favours wide probes. With the shared δ it is so in {sure[1]}, not in: {dear(shared)}.)"
        f"{_few(results)}",
        "played",
    )
