"""Each claim of the paper, with a verdict that follows from the numbers by a stated rule.

much lower    holds at half or less in every experiment named, partly in some, else fails
comparable    holds within a factor of 1.5 of both forms of two-point feedback, partly of one, else fails
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trimtab.paper.document import Claim, Number, Results

MUCH, COMPARABLE = 0.5, 1.5
LQR = ("lqr-r1", "lqr-r1-t40", "lqr-r2")


def claims(results: Results) -> list[Claim]:
    """All of them, in the order of the paper."""
    return [
        _unbiased(results),
        _modified(results),
        _toy(results),
        _theorems(results),
        _explained(results),
        _better(results),
        _comparable(results),
        _variance_lower(results),
        _variance_close(results),
        _allocation_better(results),
        _allocation_comparable(results),
        _allocation_variance(results),
        _noise(results),
        _always(results),
        _feasible(results),
        _opponents(results),
    ]


def _claim(claim: str, where: str, verdict: str, evidence: str) -> Claim:
    return {"claim": claim, "where": where, "verdict": verdict, "evidence": evidence}


def _judge(outcomes: Sequence[bool]) -> str:
    return "holds" if all(outcomes) else "partly" if any(outcomes) else "fails"


def _value(number: Number) -> float:
    return math.inf if number == "inf" else math.nan if number is None else float(number)


def _regret(results: Results, id: str, name: str) -> float:
    return _value(results["experiments"][id]["methods"][name]["regret"]["median"])


def _out(results: Results, id: str, name: str) -> int:
    return int(results["experiments"][id]["methods"][name]["diverged"])


def _variance(results: Results, id: str, name: str, other: str) -> float:
    """The median over the run of the ratio of two variances."""
    found = results["experiments"][id]["methods"]
    a, b = (np.array([_value(v) for v in found[n]["variance"]["median"]]) for n in (name, other))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = a / b
    return float(np.nanmedian(ratio[np.isfinite(ratio)]))


def _title(results: Results, id: str) -> str:
    return str(results["experiments"][id]["title"])


def _unbiased(results: Results) -> Claim:
    seen = results["checks"]["lemmas"]["residual"]
    return _claim(
        "The residual estimate is an unbiased estimate of the gradient of the smoothed cost.",
        "Lemma 2.4",
        "holds" if seen["largest_z"] < 5 else "fails",
        f"On a quadratic that moves between the two rounds: off by {seen['bias']:.2g}, with a standard error of"
        f" {seen['error']:.2g}.",
    )


def _modified(results: Results) -> Claim:
    seen = results["checks"]["lemmas"]["modified two-point"]
    close = abs(seen["bias"] - seen["predicted_bias"]) < 5 * seen["error"]
    return _claim(
        "Two-point feedback cannot simply be spread over two rounds: that estimate is biased.",
        "Remark 2.5",
        "holds" if close and seen["predicted_bias"] > 5 * seen["error"] else "fails",
        f"Bias {seen['bias']:.3g} on the same quadratic; ½‖∇f_t−1 − ∇f_t‖ = {seen['predicted_bias']:.3g} is predicted.",
    )


def _toy(results: Results) -> Claim:
    toy = results["checks"]["toy"]
    grown = {name: toy[name][-1] / toy[name][0] for name in ("one-point", "residual")}
    return _claim(
        "When the level of the cost wanders, the second moment of the one-point estimate grows without bound, and that"
        " of the residual does not.",
        "Section 3, example",
        _judge([grown["one-point"] > 100, grown["residual"] < 3]),
        f"From round 1 to 1000 one-point grows {grown['one-point']:.0f}-fold, to {toy['one-point'][-1]:.2g}; the"
        f" residual {grown['residual']:.2f}-fold, to {toy['residual'][-1]:.3g}.",
    )


def _theorems(results: Results) -> Claim:
    rows = results["checks"]["theorems"]["rows"]
    kept = [row["mean"] <= row["bound"] for row in rows]
    slack = sorted(row["bound"] / row["mean"] for row in rows)
    return _claim(
        "The regret is below the bounds of Theorems 3.2, 3.4 and 4.3, for the steps and radii they give.",
        "Theorems 3.2, 3.4, 4.3",
        _judge(kept),
        f"Below the bound in {sum(kept)} of {len(kept)} cases (d = 2); the bound is {slack[0]:.1f} to"
        f" {slack[-1]:.0f} times what happened. (With the slips below put right.)",
    )


def _explained(results: Results) -> Claim:
    verdict, text = results["checks"]["contraction"]["findings"]["contraction"]
    return _claim(
        "The experiments validate the analysis: small steps keep the second moment contracting (α < 1).",
        "Sections 2 and 6",
        {"holds": "holds", "doubtful": "partly"}.get(verdict, "fails"),
        f"Along the LQR run with its tuned step: {text}.",
    )


def _better(results: Results) -> Claim:
    parts, outcomes = [], []
    for id in LQR:
        a, b = _regret(results, id, "residual"), _regret(results, id, "one-point")
        outcomes.append(a <= MUCH * b)
        out = _out(results, id, "residual"), _out(results, id, "one-point")
        lost = f", diverged {out[0]} and {out[1]}" if any(out) else ""
        nothing = _regret(results, id, "still")
        parts.append(f"{_title(results, id)}: {a:.3g} against {b:.3g} (doing nothing: {nothing:.3g}{lost})")
    return _claim(
        "Residual feedback has a much lower regret than one-point feedback.",
        "Section 6.1, Figure 1(a)",
        _judge(outcomes),
        "Median regret. " + "; ".join(parts) + ".",
    )


def _comparable(results: Results) -> Claim:
    ratios = {
        form: [_regret(results, id, "residual") / _regret(results, id, form) for id in LQR]
        for form in ("two-point", "two-point-forward")
    }
    return _claim(
        "Its regret is comparable to that of two-point feedback.",
        "Section 6.1, Figure 1(a)",
        _judge([max(r) <= COMPARABLE for r in ratios.values()]),
        f"Regret divided by that of the symmetric form: {_list(ratios['two-point'])}; of the forward form:"
        f" {_list(ratios['two-point-forward'])} (R1 with T = 50 and 40, R2).",
    )


def _variance_lower(results: Results) -> Claim:
    ratios = [_variance(results, id, "one-point", "residual") for id in LQR]
    return _claim(
        "Its estimates have a much smaller variance than those of one-point feedback.",
        "Section 6.1, Figure 1(b)",
        _judge([r >= 1 / MUCH for r in ratios]),
        f"One-point divided by residual, median over the run: {_list(ratios)}.",
    )


def _variance_close(results: Results) -> Claim:
    ratios = {
        form: [_variance(results, id, "residual", form) for id in LQR] for form in ("two-point", "two-point-forward")
    }
    close = [max(r) <= 2 * COMPARABLE for r in ratios.values()]
    return _claim(
        "Its variance is close to that of two-point feedback.",
        "Section 6.1, Figure 1(b)",
        _judge(close),
        f"Residual divided by the symmetric form: {_list(ratios['two-point'])}; by the forward form:"
        f" {_list(ratios['two-point-forward'])} (within 3 counts as close).",
    )


def _allocation_better(results: Results) -> Claim:
    found = results["experiments"]["allocation"]
    ends = {name: _value(m["cost_over_zeta"]["end"]) for name, m in found["methods"].items()}
    best = _value(found["levels"]["offline"])
    ratio = (ends["residual"] - best) / (ends["one-point"] - best)
    return _claim(
        "In resource allocation, residual feedback does much better than one-point feedback.",
        "Section 6.2, Figure 2(a)",
        _judge([ratio <= MUCH, ratio <= 0.9]),
        f"J/ζ after {found['rounds']} rounds: {ends['residual']:.3g} against {ends['one-point']:.3g}; the uniform"
        f" policy has {ends['still']:.3g}, the offline optimum {best:.3g}; what is left above it is {ratio:.2g} of what"
        " one-point leaves.",
    )


def _allocation_comparable(results: Results) -> Claim:
    found = results["experiments"]["allocation"]
    ends = {name: _value(m["cost_over_zeta"]["end"]) for name, m in found["methods"].items()}
    forms = [name for name in ends if name.startswith("two-point")]
    best = _value(found["levels"]["offline"])
    ratios = {form: (ends["residual"] - best) / (ends[form] - best) for form in forms}
    return _claim(
        "Its cost is as low as that of two-point feedback.",
        "Section 6.2, Figure 2(a)",
        _judge([ratio <= COMPARABLE for ratio in ratios.values()]),
        f"J/ζ at the end: {ends['residual']:.3g}; "
        + ", ".join(f"{form} {ends[form]:.3g}" for form in forms)
        + ". Distance to the offline optimum, divided by theirs: "
        + _list(list(ratios.values()))
        + ".",
    )


def _allocation_variance(results: Results) -> Claim:
    lower = _variance(results, "allocation", "one-point", "residual")
    forms = ("two-point-forward", "two-point", "two-point-common")
    close = {form: _variance(results, "allocation", "residual", form) for form in forms}
    return _claim(
        "At agent 1 its variance is comparable to that of two-point feedback, and much smaller than that of one-point.",
        "Section 6.2, Figure 2(b)",
        _judge([lower >= 1 / MUCH, *(ratio <= 2 * COMPARABLE for ratio in close.values())]),
        f"One-point divided by residual: {lower:.3g}; residual divided by "
        + ", ".join(f"{form} {ratio:.3g}" for form, ratio in close.items())
        + ".",
    )


def _noise(results: Results) -> Claim:
    ids = [id for id in results["experiments"] if id.startswith("lqr-r3-sigma-")]
    parts, outcomes = [], []
    for id in ids:
        a, b = _regret(results, id, "residual"), _regret(results, id, "one-point")
        outcomes.append(a <= MUCH * b)
        parts.append(f"σ_w = {results['experiments'][id]['parameters']['sigma_w']:g}: {a:.3g} against {b:.3g}")
    return _claim(
        "With noisy values the same holds: V_{f,ξ} takes the place of V_f.",
        "Section 5",
        _judge(outcomes),
        "Median regret of residual and one-point feedback. " + "; ".join(parts) + ".",
    )


def _always(results: Results) -> Claim:
    id = "lqr-r3-redrawn"
    a, b, still = (_regret(results, id, name) for name in ("residual", "one-point", "still"))
    others = [_regret(results, i, "residual") < _regret(results, i, "one-point") for i in results["experiments"]]
    wins = a <= 0.9 * b
    return _claim(
        "Residual feedback always outperforms one-point feedback in practice.",
        "after Theorem 3.4",
        "holds" if wins and all(others) else "partly" if any(others) else "fails",
        f"Lower regret in {sum(others)} of {len(others)} experiments. Where x₀ is redrawn in every rollout, what the"
        f" difference cancels is no longer there: {a:.3g} against {b:.3g}, and doing nothing {still:.3g}.",
    )


def _feasible(results: Results) -> Claim:
    seen = results["checks"]["feasible"]
    return _claim(
        "With u on the sphere and the shrunken set, every query stays feasible.",
        "Appendix H, Lemma H.3",
        "holds" if not seen["outside"] else "fails",
        f"{seen['outside']} of {seen['queries']} queries left a ball, a box or a simplex, under hostile values.",
    )


def _opponents(results: Results) -> Claim:
    seen = results["checks"]["opponents"]
    before, after = seen["before"], seen["after"]
    last = after["rows"][-1]
    good = all(row["regret"] <= row["bound"] for row in before["rows"])
    bad = after["exponent"] > 1
    return _claim(
        "The same bounds hold against an opponent who chooses f_t after seeing the query.",
        "Appendix I",
        "fails" if bad else "partly" if good else "fails",
        f"Choosing after u_t is drawn, it biases the estimate by {last['bias']:.3g} (predicted {last['predicted']:.3g})"
        f" and the regret grows like T^{after['exponent']:.2f}. Choosing before, the bounds hold and it grows like"
        f" T^{before['exponent']:.2f}.",
    )


def _list(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)
