"""How fast the laboratory is, as ratios in one run.

* LQR (d = 36, H = 50) in 120 lanes (10 trials × 12 step sizes) against a plain NumPy loop over trials and steps.
* The tuner's share: what is spent outside the rollout kernel.
* An allocation rollout against a hand-written single-thread loop.
* Cost against lanes, rounds and trials: the slope of a log-log fit (1 is linear).
* Two cores against one.

    python benchmarks/lab.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

import trimtab as tt
from trimtab import lab
from trimtab.problems import make

STEPS = np.geomspace(3e-4, 3e-2, 12)
LIMITS = {"lqr_times_numpy": 30.0, "tuner_share": 0.4, "allocation_times_loop": 2.0, "two_cores": 1.7}


def best(call: Callable[[], Any], repetitions: int) -> float:
    """Seconds, the best of several; the first call only warms up."""
    found = np.inf
    for repetition in range(repetitions + 1):
        start = time.perf_counter()
        call()
        if repetition:
            found = min(found, time.perf_counter() - start)
    return found


def methods(steps: np.ndarray = STEPS) -> dict[str, tt.Method]:
    return {f"{step:.3g}": tt.residual(radius=0.05, step=float(step)) for step in steps}


def numpy_loop(rounds: int, lanes: int) -> None:
    """Residual feedback on drifting LQR as one would write it down: one trial after the other."""
    rng = np.random.default_rng(0)
    n, gamma, radius, step = 6, 0.5, 0.05, 0.003

    def value(a: np.ndarray, b: np.ndarray, gain: np.ndarray) -> float:
        loop, moment, total = a + b @ gain, np.eye(n), 0.0
        stage = np.eye(n) + gain.T @ gain
        for k in range(50):
            total += gamma**k * np.trace(stage @ moment)
            moment = loop @ moment @ loop.T
        return total

    for _ in range(lanes):
        a, b = 0.1 * rng.standard_normal((n, n)), 0.1 * rng.standard_normal((n, n))
        gain, anchor = np.zeros((n, n)), None
        for _ in range(rounds):
            u = rng.standard_normal((n, n))
            value(a, b, gain)  # what is recorded
            y = value(a, b, gain + radius * u)
            if anchor is not None:
                gain = gain - step * u / radius * (y - anchor)
            anchor = y
            a, b = a + 0.01 * rng.random((n, n)), b + 0.01 * rng.random((n, n))


def lqr(quick: bool) -> dict[str, float]:
    problem, rounds = make("lqr-v1"), 40
    ours = best(lambda: lab.simulate(problem, methods(), rounds=rounds, trials=10), 5 if quick else 15)
    loop_rounds, loop_lanes = 4, 3
    theirs = best(lambda: numpy_loop(loop_rounds, loop_lanes), 3) / (loop_rounds * loop_lanes)
    return {
        "lqr_round_us": ours / (rounds * 120) * 1e6,
        "numpy_round_us": theirs * 1e6,
        "lqr_times_numpy": theirs / (ours / (rounds * 120)),
    }


def share(quick: bool) -> dict[str, float]:
    """The time inside the compiled LQR value kernel is measured, the rest is the tuner's, the lab's and the drift's."""
    from trimtab.problems import lqr as module

    spent = {"rollouts": 0.0, "riccati": 0.0}

    def watched(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return kernel(*arguments)
            finally:
                spent[name] += time.perf_counter() - start

        return call

    problem, found = make("lqr-v1"), []
    plain = module.lqr_values, module.riccati
    module.lqr_values, module.riccati = watched("rollouts", plain[0]), watched("riccati", plain[1])
    try:
        for _ in range(6 if quick else 20):
            spent.update(rollouts=0.0, riccati=0.0)
            start = time.perf_counter()
            lab.simulate(problem, methods(), rounds=40, trials=10)
            total = time.perf_counter() - start
            found.append((1 - spent["rollouts"] / total, spent["riccati"] / total))
    finally:
        module.lqr_values, module.riccati = plain
    outside, riccati = min(found)
    return {"tuner_share": outside, "of_which_optimum": riccati}


@numba.njit(cache=True)
def allocation_loop(theta, centres, demand, neighbours, counts, gamma, stock):
    """One allocation rollout, written as one would in C."""
    horizon, agents = demand.shape
    now, following = np.full(agents, stock), np.empty(agents)
    z = np.empty(5)
    total, discount = 0.0, 1.0
    for k in range(horizon + 1):
        for i in range(agents):
            if now[i] < 0:
                total += discount * now[i] * now[i]
        if k == horizon:
            break
        discount *= gamma
        for i in range(agents):
            following[i] = -demand[k, i]
        action = 0
        for i in range(agents):
            top = -np.inf
            for j in range(counts[i]):
                score = 0.0
                for p in range(9):
                    dm, dd = now[i] - centres[p, 0], demand[k, i] - centres[p, 1]
                    score += (dm * dm + dd * dd) * theta[action + j, p]
                z[j] = score
                top = max(top, score)
            weight = 0.0
            for j in range(counts[i]):
                z[j] = np.exp(z[j] - top)
                weight += z[j]
            for j in range(counts[i]):
                following[neighbours[action + j]] += now[i] * z[j] / weight
            action += counts[i]
        now, following = following, now
    return total


def allocation(quick: bool) -> dict[str, float]:
    problem = make("allocation-v1")
    lanes = 64
    world = problem.world(0, lanes)
    theta = 0.1 * np.random.default_rng(0).standard_normal((lanes, 1, problem.dim))
    demand = world.demand
    centres = np.array([(m, d) for m in problem.centres for d in problem.centres])
    counts = np.diff(problem._firsts)

    def loop() -> np.ndarray:
        return np.array(
            [
                allocation_loop(
                    theta[k, 0].reshape(-1, 9), centres, demand[k], problem._heads, counts, problem.gamma, problem.stock
                )
                for k in range(lanes)
            ]
        )

    def ours() -> np.ndarray:
        return world._rollouts(theta, demand[:, None], np.ones((lanes, problem.agents)))[:, 0, 0]

    np.testing.assert_allclose(loop(), ours(), rtol=1e-8)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        seconds = {"loop": np.inf, "ours": np.inf}
        for _ in range(5 if quick else 20):
            seconds = {"loop": min(seconds["loop"], best(loop, 1)), "ours": min(seconds["ours"], best(ours, 1))}
    finally:
        numba.set_num_threads(before)
    return {
        "allocation_us": seconds["ours"] / lanes * 1e6,
        "loop_us": seconds["loop"] / lanes * 1e6,
        "allocation_times_loop": seconds["ours"] / seconds["loop"],
    }


def linear(quick: bool) -> dict[str, float]:
    """Slopes of log(time) against log(lanes), log(rounds), log(trials)."""
    problem = make("lqr-v1")
    repetitions = 2 if quick else 5

    def slope(sizes: list[int], call: Callable[[int], Any]) -> float:
        seconds = [best(lambda n=n: call(n), repetitions) for n in sizes]
        return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])

    one = {"residual": tt.residual(radius=0.05, step=0.003)}
    many = {n: methods(np.geomspace(1e-4, 1e-2, n)) for n in (24, 48, 96)}
    return {
        "slope_lanes": slope([24, 48, 96], lambda n: lab.simulate(problem, many[n], rounds=20, trials=20)),
        "slope_rounds": slope([20, 40, 80], lambda n: lab.simulate(problem, one, rounds=n, trials=200)),
        "slope_trials": slope([200, 400, 800], lambda n: lab.simulate(problem, one, rounds=20, trials=n)),
    }


def cores(quick: bool) -> dict[str, float]:
    """One thread against two, in a kernel-bound run; interleaved."""
    problem = make("lqr-v1")
    many = methods(np.geomspace(1e-4, 1e-2, 60))
    before, seconds = numba.get_num_threads(), {1: np.inf, 2: np.inf}
    try:
        for _ in range(4 if quick else 12):
            for count in (1, 2):
                numba.set_num_threads(min(count, before))
                seconds[count] = min(
                    seconds[count],
                    best(lambda: kernel_bound(problem, many), 1),
                )
    finally:
        numba.set_num_threads(before)
    return {"two_cores": seconds[1] / seconds[2], "cores_seen": float(os.cpu_count() or 1)}


def kernel_bound(problem: Any, many: dict[str, tt.Method]) -> None:
    lab.simulate(problem, many, rounds=10, trials=60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    found: dict[str, float] = {}
    for part in (lqr, share, allocation, linear, cores):
        found |= part(options.quick)
    print(
        f"LQR, 120 lanes: {found['lqr_round_us']:.1f} us per lane and round;"
        f" plain NumPy loop {found['numpy_round_us']:.0f} us:"
        f" {found['lqr_times_numpy']:.0f}x (at least {LIMITS['lqr_times_numpy']:.0f}x)"
    )
    print(
        f"outside the rollout kernel: {found['tuner_share']:.0%} (at most {LIMITS['tuner_share']:.0%}),"
        f" of which {found['of_which_optimum']:.0%} is the optimum to compare with"
    )
    print(
        f"allocation rollout: {found['allocation_us']:.1f} us, hand-written loop {found['loop_us']:.1f} us:"
        f" {found['allocation_times_loop']:.2f}x (at most {LIMITS['allocation_times_loop']:.0f}x)"
    )
    print(
        f"slope of log time: {found['slope_lanes']:.2f} in lanes, {found['slope_rounds']:.2f} in rounds,"
        f" {found['slope_trials']:.2f} in trials (1 is linear)"
    )
    print(f"two cores: {found['two_cores']:.2f}x one (at least {LIMITS['two_cores']}x)")
    failures = [
        name
        for name, limit in LIMITS.items()
        if (found[name] > limit if name in ("tuner_share", "allocation_times_loop") else found[name] < limit)
    ]
    failures += [name for name in ("slope_lanes", "slope_rounds", "slope_trials") if found[name] > 1.1]
    if options.json:
        options.json.write_text(json.dumps({**found, "failures": failures}, indent=1) + "\n")
    print("All within limits." if not failures else f"BEYOND LIMITS: {', '.join(failures)}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
