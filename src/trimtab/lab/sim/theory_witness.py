"""Record the quantities in the assumptions of the theory, which only a simulation can observe.

For each trial and round, with the query p_t = x_t + δu_t:

    change   F_t(p_{t−1}; ξ_t) − F_{t−1}(p_{t−1}; ξ_{t−1})   Assumption 3.1: its mean square is at most V_f²
    rise     f_t(p_t) − f_{t−1}(p_t)          Assumption 4.1: in expectation f_δ,t(x_t) − f_δ,t−1(x_t); sums to W_T
    slope    |f_t(p_t) − f_t(x_t)|/‖p_t − x_t‖, or ‖∇f_t(x_t)‖ where it is known and larger: at most L₀
    turn     ‖∇f_t(p_t) − ∇f_t(x_t)‖/‖p_t − x_t‖, or |bend| where no gradient is known: at most L₁
    bend     (f_t(p_t) + f_t(2x_t − p_t) − 2f_t(x_t))/‖p_t − x_t‖²   never below 0 for convex f_t
    lean     change·⟨u_t, n_t⟩·(scale/δ), n_t = ∇f_t(x_t)/‖∇f_t(x_t)‖: the part of ĝ_t along the slope that is due to
             drift. Its mean is 0 if u_t and f_t are independent; then ĝ_t is unbiased
    moment   ‖ĝ_t‖²

NaN where undefined (round 0 has no change), and after a trial has diverged.
"""

from __future__ import annotations

import numpy as np

from trimtab.problems import World
from trimtab.types import Array, Integers

NAMES = ("change", "rise", "slope", "turn", "bend", "lean", "moment")


class TheoryRecorder:
    """Observe a simulation of all methods: receives arrays `(trials, k[, d])`, returns `(trials, rounds)`."""

    def __init__(self, rounds: int, trials: int, count: int) -> None:
        self.pages = {name: np.full((rounds, trials, count), np.nan) for name in NAMES}
        self._last: tuple[Array, Array] | None = None

    def look(self, world: World, t: int, centre: Array, query: Array, value: Array, moment: Array, gain: Array) -> None:
        """Record a round before the centres move; gain: scale/δ², the factor of the probe δu_t in ĝ_t."""
        offset = query - centre
        square = np.square(offset).sum(-1)
        square[square == 0] = np.nan  # `still` probes nothing
        count = centre.shape[1]
        costs = world.cost(t, np.concatenate([centre, query, centre - offset], axis=1))
        middle, here, opposite = costs[:, :count], costs[:, count : 2 * count], costs[:, 2 * count :]
        page = {name: pages[t] for name, pages in self.pages.items()}
        page["slope"][:] = np.abs(here - middle) / np.sqrt(square)
        page["bend"][:] = (here + opposite - 2.0 * middle) / square
        page["turn"][:] = np.abs(page["bend"])
        page["moment"][:] = moment
        gradient = world.gradient(t, centre)
        if gradient is not None:
            norm = np.sqrt(np.square(gradient).sum(-1))
            page["slope"][:] = np.fmax(page["slope"], norm)
            turn = np.asarray(world.gradient(t, query)) - gradient
            page["turn"][:] = np.sqrt(np.square(turn).sum(-1) / square)
        if self._last is not None:
            before, measured = self._last
            page["change"][:] = (world.measure(t, before) if world.noisy else world.cost(t, before)) - measured
            page["rise"][:] = here - world.cost(t - 1, query)
            if gradient is not None:
                along = (offset * gradient).sum(-1) / np.where(norm > 0, norm, np.nan)
                page["lean"][:] = page["change"] * along * gain
        self._last = query.copy(), value.copy()

    def of(self, k: int, diverged_at: Integers) -> dict[str, Array]:
        """The recorded arrays of method k."""
        found = {name: np.ascontiguousarray(page[:, :, k].T) for name, page in self.pages.items()}
        for trial, t in enumerate(diverged_at[:, k]):
            if t >= 0:
                for values in found.values():
                    values[trial, t:] = np.nan
        return found
