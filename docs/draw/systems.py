"""The problems: what each is like, and how it drifts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import trimtab as tt
from trimtab.core import ask, init, tell
from trimtab.plotting import BLUE, GREEN, GREY, WIDTH, colour_of
from trimtab.plotting import PINK as PURPLE
from trimtab.plotting import VERMILION as ORANGE
from trimtab.problems import Problem, World, make
from trimtab.setup import Setup

SEED, TRIALS = 1, 20


def draw(id: str, path: Path) -> None:
    """Two panels for a problem."""
    problem = make(id)
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3), layout="constrained")
    LEFT.get(id, slices)(left, problem)
    RIGHT.get(id, still_and_best)(right, problem)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def slices(axes: Any, problem: Problem) -> None:
    """The cost along the line from the start to the optimum of the last round."""
    world = problem.world(SEED, 1)
    line(axes, problem, world, optimiser(world, problem.rounds - 1)[0], "optimum of the\nlast round")


def policies(axes: Any, problem: Problem) -> None:
    """The cost along the line from the uniform policy to the one that is best where ζ = 1."""
    world: Any = problem.world(SEED, 1)
    line(axes, problem, world, world.offline()[0], "best policy\nfor ζ = 1")


def line(axes: Any, problem: Problem, world: World, end: np.ndarray, name: str) -> None:
    """The cost along the line from the start to some point, in three rounds."""
    start, last = problem.start(SEED, 1)[0], problem.rounds - 1
    share = np.linspace(0, 1.5, 120)
    points = (start + share[:, None] * (end - start))[None]
    for t, colour in zip((0, last // 2, last), (BLUE, GREEN, ORANGE), strict=True):
        costs = world.cost(t, points)[0]
        axes.plot(share, costs, color=colour, label=f"round {t}")
    if costs.min() > 0 and costs.max() > 30 * costs.min():
        axes.set_yscale("log")
    axes.set_xticks([0, 1], ["start", name])
    axes.set_title("cost along a line, in one trial")
    axes.legend()


def still_and_best(axes: Any, problem: Problem) -> None:
    """The cost of staying at the start, and the optimum, over the rounds: median and quartiles of some trials."""
    world, x = problem.world(SEED, TRIALS), problem.start(SEED, TRIALS)[:, None]
    rounds = np.unique(np.linspace(0, problem.rounds - 1, 200).astype(int))
    stay, best = np.array([(world.cost(t, x)[:, 0], world.optimum(t)) for t in rounds.tolist()]).swapaxes(0, 1)
    band(axes, rounds, stay, ORANGE, "staying at the start")
    band(axes, rounds, best, BLUE, "optimum")
    if np.nanmin(best) > 0 and stay.max() > 30 * stay.min():
        axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_title(f"cost over the rounds: median, quartiles of {TRIALS}")
    axes.legend()


def one_trial(axes: Any, problem: Problem) -> None:
    """The cost of staying at the start, and the optimum, over the rounds of one trial."""
    world, x = problem.world(SEED, 1), problem.start(SEED, 1)[:, None]
    rounds = np.arange(0, problem.rounds, 5)
    stay, best = np.array([(world.cost(t, x)[0, 0], world.optimum(t)[0]) for t in rounds.tolist()]).T
    axes.plot(rounds, stay, color=ORANGE, label="staying at the start")
    if np.isfinite(best).all():
        axes.plot(rounds, best, color=BLUE, label="optimum")
        if best.min() > 0 and stay.max() > 30 * best.min():
            axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_title(f"d = {problem.dim}: cost over the rounds of one trial")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high if axes.get_yscale() == "log" else high + 0.2 * (high - low))
    axes.legend(loc="upper left", ncols=2)


def second_moments(axes: Any, problem: Problem) -> None:
    """E ĝ² at x = 0 of the one-point and the residual estimate."""
    trials, rounds, delta = 400, np.unique(np.geomspace(1, problem.rounds, 40).astype(int)), problem.radius
    world, rng = problem.world(SEED, trials), np.random.default_rng(SEED)
    moments = []
    for t in rounds.tolist():
        u = rng.standard_normal((2, trials, 1, 1))
        before, now = (world.cost(s, delta * v)[:, 0] for s, v in ((t - 1, u[0]), (t, u[1])))
        moments.append([np.mean((u[1, :, 0, 0] / delta * y) ** 2) for y in (now, now - before)])
    for values, label in zip(np.transpose(moments), ("one-point", "residual"), strict=True):
        axes.loglog(rounds, values, color=colour_of(label), label=label)
    axes.set_xlabel("round t")
    axes.set_title(f"second moment of the estimate at x = 0, δ = {delta:g}")
    axes.legend()


def band(axes: Any, rounds: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """Median and quartiles over the trials."""
    low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=1)
    axes.fill_between(rounds, low, high, color=colour, alpha=0.2, lw=0)
    axes.plot(rounds, middle, color=colour, label=label)


def levels(axes: Any, problem: Problem) -> None:
    """The toy: one parabola at several heights."""
    world, x = problem.world(SEED, 1), np.linspace(-4, 4, 80)
    for t, colour in zip((0, 10, 100), (BLUE, GREEN, ORANGE), strict=True):
        axes.plot(x, world.cost(t, x[None, :, None])[0], color=colour, label=f"round {t}")
    axes.set_xlabel("x")
    axes.set_title("cost in one trial")
    axes.legend()


def landscape(**parameters: Any) -> Callable[[Any, Problem], None]:
    """A map of the plane in round 0, and where the optimum goes."""

    def draw(axes: Any, problem: Problem) -> None:
        flat = make(problem.id, dim=2, **parameters)
        world = flat.world(SEED, 1)
        path = np.concatenate([optimiser(world, t) for t in range(0, flat.rounds, 10)])
        start = flat.start(SEED, 1)[0]
        middle = 0.5 * (np.minimum(path.min(0), start) + np.maximum(path.max(0), start))
        half = 0.7 * max(np.ptp(path, axis=0).max(), 2 * np.abs(start - middle).max(), 1.0)
        sides = [np.linspace(m - half, m + half, 150) for m in middle]
        heights = surface(world, *sides)
        filled = axes.contourf(*sides, np.sqrt(heights - heights.min()), levels=14, cmap="cividis")
        filled.set_edgecolor("face")
        axes.plot(*path.T, color="white", lw=1)
        axes.plot(*path[0], "o", color="white", ms=4)
        axes.plot(*path[-1], "o", color="white", ms=4, mfc="none")
        axes.plot(*start, "x", color="white", ms=5, mew=1.5)
        axes.set_aspect("equal")
        axes.grid(False)
        axes.set_title(f"d = 2: round 0; the optimum goes ● to ○\nin {flat.rounds} rounds; × start (dark: cheap)")

    return draw


def optimiser(world: World, round: int) -> np.ndarray:
    """Where the optimum is, where that is known."""
    best = world.optimiser(round)
    assert best is not None
    return best


def surface(world: World, x: np.ndarray, y: np.ndarray, round: int = 0) -> np.ndarray:
    """The cost on a grid."""
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    return world.cost(round, grid.reshape(1, -1, 2))[0].reshape(grid.shape[:2])


def peaks(axes: Any, problem: Problem) -> None:
    """Moving peaks from above, and where the best one is."""
    flat = make(problem.id, dim=2)
    world = flat.world(SEED, 1)
    side = np.linspace(0, 100, 250)
    filled = axes.contourf(side, side, surface(world, side, side), levels=16, cmap="cividis")
    axes.figure.colorbar(filled, ax=axes, label="cost", shrink=0.9)
    path = np.concatenate([optimiser(world, t) for t in range(0, flat.rounds, 100)])
    axes.plot(*path.T, ".", color="white", ms=3)
    axes.plot(*path[0], "o", color="white", ms=5)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_title("d = 2, round 0; ● optimum, then where it\nis after every change (it changes hands)")


def prices(axes: Any, problem: Problem) -> None:
    """The best prices over the rounds, in one trial."""
    world, rounds = problem.world(SEED, 1), np.arange(0, problem.rounds, 5)
    best = np.concatenate([optimiser(world, t) for t in rounds.tolist()])
    start = problem.start(SEED, 1)[0]
    for j, colour in enumerate((BLUE, GREEN, PURPLE)):
        axes.plot(rounds, best[:, j], color=colour, label=f"product {j + 1}")
        axes.axhline(start[j], color=colour, lw=1, ls=":")
    axes.set_xlabel("round")
    axes.set_ylabel("price")
    axes.set_title("best prices in one trial (dotted: cost plus 20 %)")
    axes.legend(ncols=3, fontsize=7, loc="upper center")
    axes.set_ylim(top=1.12 * best.max())


def profit(axes: Any, problem: Problem) -> None:
    """Profit instead of cost."""
    world, x = problem.world(SEED, TRIALS), problem.start(SEED, TRIALS)[:, None]
    rounds = np.arange(0, problem.rounds, 10)
    stay, best = -np.array([(world.cost(t, x)[:, 0], world.optimum(t)) for t in rounds.tolist()]).swapaxes(0, 1)
    band(axes, rounds, best, BLUE, "best prices")
    band(axes, rounds, stay, ORANGE, "cost plus 20 %")
    axes.set_xlabel("round")
    axes.set_ylim(bottom=0)
    axes.set_title(f"profit per round: median, quartiles of {TRIALS}")
    axes.legend(loc="lower right")


def duel(axes: Any, problem: Problem, order: str, method: tt.Method) -> tuple[np.ndarray, np.ndarray]:
    """Regret and b_t over the rounds."""
    against = make(problem.id, order=order)
    world = against.world(SEED, TRIALS)
    setup = Setup(method, (TRIALS, against.dim), domain=against.domain)
    state = init(setup, against.start(SEED, TRIALS), SEED)
    regret, level = [], []
    for t in range(against.rounds):
        query, centre = ask(setup, state).x[:, None], np.array(state.centre)[:, None]
        world.play(t, centre, query)
        regret.append(world.regret(t, centre)[:, 0])
        level.append(world.optimum(t))
        state = tell(setup, state, world.measure(t, query)[:, 0])
    return np.array(regret), np.array(level)


def duels(axes: Any, problem: Problem) -> None:
    """Residual feedback against both orders."""
    method = tt.residual(radius=problem.radius, step=0.01)
    for order, colour in (("before", BLUE), ("after", ORANGE)):
        regret, _ = duel(axes, problem, order, method)
        band(axes, np.arange(len(regret)), regret, colour, f"chosen {order} u is drawn")
    axes.set_yscale("log")
    axes.set_xlabel("round")
    axes.set_title("regret of residual feedback, η = 0.01, δ = 0.1")
    axes.legend()


def offsets(axes: Any, problem: Problem) -> None:
    """What the opponents did meanwhile."""
    method = tt.residual(radius=problem.radius, step=0.01)
    for order, colour in (("before", BLUE), ("after", ORANGE)):
        _, level = duel(axes, problem, order, method)
        axes.plot(level[:, :3], color=colour, lw=1, label=[order, None, None])
    axes.set_xlabel("round")
    axes.set_title(r"the level $b_t$, moved by $\pm V_f$ a round (3 trials each)")
    axes.legend()


def excesses(axes: Any, problem: Problem) -> None:
    """The mean excess of what was played so far, with and without an eye on the limit."""
    methods = {
        "residual (ignores it)": (tt.residual(radius=problem.radius, step=0.02), ORANGE),
        "primal-dual": (tt.primal_dual(radius=problem.radius, step=0.02, dual_step=0.02), BLUE),
    }
    for name, (method, colour) in methods.items():
        world, tuner = problem.world(SEED, TRIALS), tt.Tuner(problem.start(SEED, TRIALS), method, seed=SEED)
        played = []
        for t in range(problem.rounds):
            trial = tuner.ask()
            limits = world.limits(t, trial.x[:, None])
            assert limits is not None
            played.append(limits[:, 0, 0])
            told = {"limits": limits[:, 0]} if method.told > 1 else {}
            tuner.tell(trial, world.measure(t, trial.x[:, None])[:, 0], **told)
        rounds = np.arange(1, problem.rounds + 1)
        band(axes, rounds, np.cumsum(played, axis=0) / rounds[:, None], colour, name)
    axes.axhline(0.0, color=GREY, lw=1)
    axes.set_xlabel("round")
    axes.set_title(f"mean of g so far: median, quartiles of {TRIALS}")
    axes.legend()


LEFT: dict[str, Callable[[Any, Problem], None]] = {
    "walk-v1": levels,
    "quadratic-v1": landscape(rotate=True),
    "corner-v1": landscape(),
    "constrained-v1": landscape(),
    "absolute-v1": landscape(),
    "logcosh-v1": landscape(),
    "maximum-v1": landscape(rotate=True),
    "sines-v1": landscape(width=0.15),
    "rosenbrock-v1": landscape(),
    "peaks-v1": peaks,
    "pricing-v1": prices,
    "adversary-v1": duels,
    "allocation-v1": policies,
    "allocation-per-agent-v1": policies,
}
RIGHT: dict[str, Callable[[Any, Problem], None]] = {
    "walk-v1": second_moments,
    "quadratic-v1": one_trial,
    "corner-v1": one_trial,
    "constrained-v1": excesses,
    "absolute-v1": one_trial,
    "logcosh-v1": one_trial,
    "maximum-v1": one_trial,
    "sines-v1": one_trial,
    "rosenbrock-v1": one_trial,
    "pricing-v1": profit,
    "adversary-v1": offsets,
    "allocation-v1": one_trial,
    "allocation-per-agent-v1": one_trial,
}
