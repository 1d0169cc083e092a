"""Judge claims that have a proof: lemmas, theorems, the example of Section 3, the opponents of Appendix I."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.paper.intervals import value, written
from trimtab.paper.result_types import Claim, Lemma, Results

SURE = 5.0  # standard errors


def proven(results: Results) -> list[Claim]:
    """All claims with a proof, in the order of the paper."""
    return [
        _unbiased(
            results["checks"]["lemmas"]["residual"],
            "The residual estimate is an unbiased estimate of the gradient of the smoothed cost.",
            "Lemma 2.4",
        ),
        _modified(results),
        *(_moment(results, *words) for words in MOMENTS),
        _toy(results),
        *(_theorem(results, name) for name in THEOREMS),
        _unbiased(
            results["checks"]["lemmas"]["residual on the sphere"],
            "On the unit sphere it is unbiased for the mean over a ball.",
            "Lemma H.1",
        ),
        _feasible(results),
        _opponents(results),
        _budget(results),
    ]


MOMENTS = (
    ("Lemma 2.6", "The second moment is bounded by α times that of the round before and a perturbation, which the LQR"
     " experiment is said to validate.", "along the run of Figure 1(b)"),
    ("Lemma 5.2", "The same with noisy values.", "along the run of R3, one noisy rollout per query"),
    ("Lemma H.6", "The same on the unit sphere.", "along a run in a ball, by the step of Theorem H.7"),
)  # fmt: skip
THEOREMS = {
    "Theorem 3.2": "convex and Lipschitz",
    "Theorem 3.4": "convex and smooth",
    "Theorem 4.2": "Lipschitz, not convex",
    "Theorem 4.3": "smooth, not convex",
    "Section 5 (Theorem 3.4 with noise)": "convex and smooth, with noise",
    "Theorem H.7": "convex, and every query feasible",
}


def _claim(text: str, where: str, verdict: str, evidence: str, figure: str) -> Claim:
    return {"claim": text, "where": where, "verdict": verdict, "evidence": evidence, "figure": figure}


def _all(outcomes: Sequence[bool]) -> str:
    return "holds" if all(outcomes) else "partly" if any(outcomes) else "fails"


def _unbiased(seen: Lemma, text: str, where: str) -> Claim:
    return _claim(
        text,
        where,
        "holds" if seen["largest_z"] < SURE else "fails",
        f"On a cubic that moves between the two rounds: off by {seen['bias']:.2g}, with a standard error of"
        f" {seen['error']:.2g} (largest z {seen['largest_z']:.1f}); the gradient without smoothing is"
        f" {seen['from_slope']:.2g} away.",
        "idea",
    )


def _modified(results: Results) -> Claim:
    seen = results["checks"]["lemmas"]["modified two-point"]
    return _claim(
        "Two-point feedback cannot simply be spread over two rounds: that estimate is biased.",
        "Remark 2.5",
        "holds" if seen["largest_z"] < SURE and seen["expected_bias"] > SURE * seen["error"] else "fails",
        f"Bias {seen['bias']:.3g} on the same cubic, with a standard error of {seen['error']:.2g};"
        f" ½‖∇f_{{δ,t−1}} − ∇f_{{δ,t}}‖ = {seen['expected_bias']:.3g} is predicted.",
        "idea",
    )


def _moment(results: Results, lemma: str, text: str, where: str) -> Claim:
    seen = results["checks"]["moments"][lemma]
    alpha = value(seen["contraction"])
    remark = "" if alpha < 1 else ", so that no theorem covers this run: the inequality is not what makes it go well"
    return _claim(
        text,
        lemma,
        "holds" if seen["kept"] == 1.0 else "partly" if seen["kept"] > 0.95 else "fails",
        f"It holds in {seen['kept']:.0%} of {seen['rounds']} rounds {where}, by a factor of at least"
        f" {written(seen['slack'])}. (There α = {written(seen['contraction'])}{remark}.)",
        "figure-1b" if lemma == "Lemma 2.6" else "figure-1b-noisy" if lemma == "Lemma 5.2" else "theorems",
    )


def _toy(results: Results) -> Claim:
    toy = results["checks"]["toy"]
    rounds = toy["round"]
    quarter = max(1, len(rounds) // 4)  # several rounds together: single ones scatter by a third
    early, late = (
        {name: sum(toy[name][part]) / quarter for name in ("one-point", "residual")}
        for part in (slice(quarter), slice(-quarter, None))
    )
    one, residual = (late[name] / early[name] for name in ("one-point", "residual"))
    return _claim(
        "When the level of the cost wanders, the second moment of the one-point estimate grows without bound, and that"
        " of the residual does not.",
        "Section 3, example",
        _all([one > 10, residual < 3]),
        f"From rounds 1–{rounds[quarter - 1]} to rounds {rounds[-quarter]}–{rounds[-1]} one-point grows {one:.0f}-fold,"
        f" to {written(late['one-point'])}; the residual {residual:.2f}-fold, to {written(late['residual'])}.",
        "toy",
    )


def _theorem(results: Results, name: str) -> Claim:
    rows = [row for row in results["checks"]["theorems"]["rows"] if row["theorem"] == name]
    kept = [row["high"] <= row["bound"] for row in rows]
    slack = sorted(row["bound"] / row["mean"] for row in rows)
    cases = sorted({f"d = {row['dim']}, {row['case']}" for row in rows})
    paid = [(value(row["played"]), value(row["played_bound"])) for row in rows if row["played"] is not None]
    also = f" The played cost is below its bound in {sum(a <= b for a, b in paid)} of {len(paid)}." if paid else ""
    return _claim(
        f"The bound for costs that are {THEOREMS[name]}, with the step and radius it gives.",
        name,
        _all(kept),
        f"The mean, with its 95 % interval, is below the bound in {sum(kept)} of {len(kept)} cases"
        f" ({'; '.join(cases)}; T up to {max(row['horizon'] for row in rows)}); the bound is {slack[0]:.1f} to"
        f" {slack[-1]:.0f} times the observed value, without the paper's spare factors.{also}",
        "theorems",
    )


def _feasible(results: Results) -> Claim:
    seen = results["checks"]["feasible"]
    return _claim(
        "With u on the sphere and the shrunken set, every query stays feasible.",
        "Lemma H.3",
        "holds" if not seen["outside"] else "fails",
        f"{seen['outside']} of {seen['queries']} queries left a ball, a box or a simplex, under hostile values.",
        "theorems",
    )


def _opponents(results: Results) -> Claim:
    before, after = (results["checks"]["opponents"][order] for order in ("before", "after"))
    last = after["rows"][-1]
    good = all(row["high"] <= row["bound"] for row in before["rows"])
    broken = after["exponent"] > 1 or any(row["regret"] > row["bound"] for row in after["rows"])
    return _claim(
        "The same bounds hold against an opponent who chooses f_t after seeing the query.",
        "Appendix I, bounded changes",
        "fails" if broken or not good else "partly",
        f"Choosing after u_t is drawn, it biases the estimate by {last['bias']:.3g} (predicted"
        f" {last['predicted']:.3g}), and the regret grows like T^{after['exponent']:.2f}, to"
        f" {last['regret'] / last['bound']:.2g} of the bound. Choosing before, the bounds hold and it grows like"
        f" T^{before['exponent']:.2f}.",
        "theorems",
    )


def _budget(results: Results) -> Claim:
    before, after = (results["checks"]["opponents"][f"budget {order}"] for order in ("before", "after"))
    kept = {
        "before": all(row["high"] <= row["bound"] for row in before["rows"]),
        "after": all(row["high"] <= row["bound"] for row in after["rows"]),
    }
    last = after["rows"][-1]
    unbiased = abs(last["bias"]) < 0.1 * abs(last["predicted"])
    return _claim(
        "… and against one whose squared changes add up to a budget W̃_T.",
        "Appendix I, budget",
        "holds" if all(kept.values()) and unbiased else "partly" if any(kept.values()) else "fails",
        f"With W̃_T = √T, choosing before u_t is drawn, the squared slopes are at most"
        f" {max(r['high'] / r['bound'] for r in before['rows']):.2g} of the bound of Theorem 4.3. Choosing after, the"
        f" estimate is biased by {last['bias']:.3g} (predicted {last['predicted']:.3g}) while the budget lasts, so the"
        f" proof does not apply; the loose bound is {'kept' if kept['after'] else 'broken'} all the same"
        f" (at most {max(r['high'] / r['bound'] for r in after['rows']):.2g} of it).",
        "theorems",
    )
