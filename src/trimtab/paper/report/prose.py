"""What the report says in words: what the paper leaves open, where it slips, and what each picture shows."""

from __future__ import annotations

from dataclasses import dataclass


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
        "50, 40, and longer in R2 (60, 300 or 500, by the length of this run)",
        "the drift that is written has mean +0.005 per entry: near t = 49 the plant becomes unstable under K = 0. "
        "Up to 40 nobody diverges, 45 to 60 is the interesting window; R2 takes the mean out",
    ),
    Choice(
        "LQR: δ",
        "in two conventions: 0.05 for all (R1, R3; 0.1 in R2), and each method's own",
        "the paper does not say. For residual feedback it is a ridge between cliffs (figure below): too small and the"
        " drift drowns the slope, too large and the plant is thrown off; a δ shared by all handicaps the forward form",
    ),
    Choice(
        "η (and δ), every method",
        "successive halving on other trials",
        "the paper tunes the steps of each method, and does not say on what",
    ),
    Choice(
        "first step", "the first measurement only anchors", "there is no y₋₁; taking it as 0 makes a one-point step"
    ),
    Choice("allocation: m(0)", "1 for every agent", "the order of the demand"),
    Choice(
        "allocation: demand",
        "amplitude U[0.5, 1.5], ω U[0.2, 1], φ U[0, 2π], drawn once; w ~ N(0, 0.1²)",
        "not given. They decide on the level of the cost, so several networks are run, and their median leads;"
        " number 12, where shortage is largest (57th of 60 draws), is the illustration",
    ),
    Choice("allocation: centres c_p", "{−1, 0, 1}² in (m, d)", "nine features are given, their centres are not"),
    Choice(
        "allocation: neighbourhoods",
        "an agent's own store belongs to its neighbours",
        "48 edges and 16 self-loops make the 64 actions. A 4 × 4 torus has 64 edges, too, but then nothing is ever"
        " kept; it is run as well, and the conclusions are the same or are said to differ",
    ),
    Choice(
        "allocation: ζ",
        "one walk for all agents, reflected into [0.5, 1.5]",
        "left alone it becomes negative (57 % of runs by T = 1000), and shortage is rewarded",
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
    " own bound has a term in L₀ that no small drift takes away.",
    "Appendix I: an opponent who sees u_t makes the estimate biased; the bounds hold for one who chooses before.",
    "There is no y₋₁: the first measurement can only anchor, or else the first step is a one-point step.",
    "The drift of the LQR experiment has a mean, which makes the plant unstable near t = 49.",
    "ζ_t, left alone, becomes negative, and the allocation experiment then rewards shortage.",
)

CAPTIONS = {
    "idea": "A cost in two consecutive rounds; it can be measured once in each. One-point feedback builds on the height"
    " of the new value, residual feedback on its difference from the last. Both are right on average, but the second is"
    " far less noisy.",
    "figure-1a": "Figure 1(a): accumulated regret on the drifting LQR problem, values without noise (R1), with one δ"
    " for all and with each method's own. Lines are medians, bands quartiles; a line ends where more than half of the"
    " trials have diverged.",
    "figure-1b": "Figure 1(b): variance of the gradient estimates along the run (R1, δ shared). First, as in the paper,"
    " where each method is; then at the same point for all, which is the fairer comparison.",
    "figure-1a-noisy": "Figure 1(a) in the literal reading: noisy dynamics, σ_w = 0.1, and one rollout per query (R3).",
    "figure-1b-noisy": "Figure 1(b) in the literal reading (R3).",
    "figure-2a": "Figure 2(a): cost of resource allocation on one network. The common sensitivity ζ_t swings the cost"
    " of everybody; divided out, the uniform policy (where all start) and the offline optimum are level lines.",
    "figure-2b": "Figure 2(b): variance of the estimates at agent 1, where each method is, and at the offline optimum.",
    "networks": "The same on several networks: ratios of medians with bootstrap intervals, one by one and together."
    " Left of 1 the first is better. What is played includes the probes, of each method's own δ.",
    "lqr-r2": "R2, which the paper does not have: drift without a mean, so that nothing becomes unstable and runs can"
    " be long.",
    "played": "What probing costs: regret at the centre (full) and of what was played (light). The paper reports the"
    " first, a running system pays the second.",
    "sensitivity": "How well step and radius must be chosen: median regret on R1 by δ and η, on the trials that tune."
    " Stars: the best; hatched: a quarter of the trials or more diverge. For residual feedback the good radii are a"
    " ridge between cliffs.",
    "limits": "Where the claims stop holding: noise in the rollouts; x₀ drawn anew in each, which adds noise that the"
    " difference cannot cancel; and a radius too small, with the best step for it.",
    "theorems": "The bound of each theorem against the mean of what happened, on problems that keep its assumptions, by"
    " the step and radius it gives.",
    "toy": "The example of Section 3: the level of the cost is a random walk. The second moment of the one-point"
    " estimate follows it; that of the residual does not.",
}
