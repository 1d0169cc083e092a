"""Texts of the report: choices that the paper leaves open, its slips, and captions of figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """The choice of a parameter that the paper leaves open."""

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
    Choice("LQR: K₀", "0 in R1 and R3; 0.5·N(0, 1) in R2", "the plant is stable at first, so 0 is a natural start"),
    Choice(
        "LQR: T",
        "50, 40, and longer in R2 (60, 300 or 500, by the length of this run)",
        "the drift in the paper has mean +0.005 per entry: near t = 49 the plant becomes unstable under K = 0. "
        "Up to 40 no method diverges, 45 to 60 is the interesting window; R2 has a drift without a mean",
    ),
    Choice(
        "LQR: δ",
        "in two conventions: 0.05 for all (R1, R3; 0.1 in R2), and each method's own",
        "not given. For residual feedback good radii form a ridge between cliffs (figure below): with a smaller δ drift"
        " hides the slope, a larger one destabilises the plant; a shared δ puts the forward form at a disadvantage",
    ),
    Choice(
        "η (and δ), every method",
        "successive halving on other trials",
        "the paper tunes the steps of each method, but does not say on which trials",
    ),
    Choice(
        "first step", "the first measurement only sets the anchor", "there is no y₋₁; y₋₁ = 0 gives a one-point step"
    ),
    Choice("allocation: m(0)", "1 for every agent", "the order of the demand"),
    Choice(
        "allocation: demand",
        "amplitude U[0.5, 1.5], ω U[0.2, 1], φ U[0, 2π], drawn once; w ~ N(0, 0.1²)",
        "not given. They determine the level of the cost, so several networks are run and their median is reported"
        " first; number 12, with a large shortage (57th of 60 draws), is the illustration",
    ),
    Choice("allocation: centres c_p", "{−1, 0, 1}² in (m, d)", "nine features are given, their centres are not"),
    Choice(
        "allocation: neighbourhoods",
        "an agent's own store belongs to its neighbours",
        "48 edges and 16 self-loops make 64 actions. A 4 × 4 torus has 64 edges, too, but then agents cannot keep"
        " anything; it is run as well, and the report says where its conclusions differ",
    ),
    Choice(
        "allocation: ζ",
        "one walk for all agents, reflected into [0.5, 1.5]",
        "without reflection it becomes negative (in 57 % of runs by T = 1000), and shortage is rewarded",
    ),
    Choice("allocation: θ₀, δ, T", "0; 0.03 shared, or each its own; T in the tables", "not given"),
)

SLIPS = (
    "Theorem 4.2's third term must carry L₀², not L₀, and its condition must read T ≥ ε_f/d, not T ≥ 1/(d·ε_f).",
    "Theorems 3.2, 3.4 and H print two terms twice as large as their proof needs: valid, but loose.",
    "Appendix H also needs δ < r, or nothing is left of the shrunken set.",
    "Lemma 5.2's right side should read ĝ_{t−1}(x_{t−1}); smoothing is over N(0, I), not N(0, 1).",
    "Theorem 4.3 needs W̃_T = o(T), as the paper says; it then calls this weaker than the condition of Theorem 4.2,"
    " but at a fixed ε_f, o(T) is stricter than o(T^{3/2}ε_f^{3/2}).",
    "That residual feedback has the better order up to some V_f (after Theorems 3.2 and 3.4) also needs L₀ ≲ B: its"
    " own bound has a term in L₀ that remains for any drift.",
    "Appendix I: an opponent who sees u_t makes the estimate biased; the bounds hold for one who chooses before.",
    "There is no y₋₁: the first measurement can only set the anchor, or else the first step is a one-point step.",
    "The drift of the LQR experiment has a mean, which makes the plant unstable near t = 49.",
    "Unbounded, ζ_t becomes negative, and the allocation experiment then rewards shortage.",
)

CAPTIONS = {
    "idea": "A cost in two consecutive rounds, measured once in each. One-point feedback uses the level of the new"
    " value, residual feedback its difference from the previous one. Both are right on average, but the second is far"
    " less noisy.",
    "figure-1a": "Figure 1(a): accumulated regret on the drifting LQR problem, values without noise (R1), with one δ"
    " for all and with each method's own. Lines are medians, bands quartiles; a line ends where more than half of the"
    " trials have diverged.",
    "figure-1b": "Figure 1(b): variance of the gradient estimates along the run (R1, δ shared). First, as in the paper,"
    " at each method's own iterate; then at the same point for all, which is the fairer comparison.",
    "figure-1a-noisy": "Figure 1(a) in the literal reading: noisy dynamics, σ_w = 0.1, and one rollout per query (R3).",
    "figure-1b-noisy": "Figure 1(b) in the literal reading (R3).",
    "figure-2a": "Figure 2(a): cost of resource allocation on one network. The common sensitivity ζ_t swings the cost"
    " of all methods; after division by it, the uniform policy (the start) and the offline optimum are level lines.",
    "figure-2b": "Figure 2(b): variance of the estimates at agent 1, at each method's own iterate and at the offline"
    " optimum.",
    "networks": "The same on several networks: ratios of medians with bootstrap intervals, singly and together."
    " Left of 1 the first is better. The played cost includes the probes, with each method's own δ.",
    "lqr-r2": "R2, which is not in the paper: drift without a mean, so that nothing becomes unstable and runs can"
    " be long.",
    "played": "The cost of probing: regret at the centre (dark) and at the queries (light). The paper reports the"
    " first; a running system incurs the second.",
    "sensitivity": "Sensitivity to step and radius: median regret on R1 by δ and η, on the tuning trials."
    " Stars: the best; hatched: a quarter of the trials or more diverge. For residual feedback the good radii form a"
    " ridge between cliffs.",
    "limits": "Limits of the claims: noise in the rollouts; x₀ redrawn in each, which adds noise that the"
    " difference cannot cancel; and too small a radius, with the best step for it.",
    "theorems": "The bound of each theorem against the observed mean, on problems that satisfy its assumptions, with"
    " the step and radius it prescribes.",
    "toy": "The example of Section 3: the level of the cost is a random walk. The second moment of the one-point"
    " estimate follows it; that of the residual does not.",
}
