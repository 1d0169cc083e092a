"""Gymnasium: the drifting problems as environments, and `Policy`, which tunes a policy on any environment.

Importing this module registers every problem: `gymnasium.make("trimtab/quadratic-v1")`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from trimtab.domains import Box
from trimtab.inputs import LARGEST
from trimtab.problems import Problem, World, make, registry
from trimtab.recipes import BaseMethod, auto
from trimtab.tuner import Tuner
from trimtab.types import Array, Document, Json
from trimtab.util.extras import pip_install
from trimtab.validation import real, whole

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise ImportError(f"trimtab.adapters.gymnasium needs gymnasium: {pip_install('gymnasium')}") from error

Act = Callable[[Array, Json], Json]
"""(parameters, observation) → action."""
Transition = tuple[Array, float, bool, bool, Document]


class Drifting(gymnasium.Env[Array, Array]):
    """A problem of `trimtab.problems` as an environment: the action is the setting, the reward −(measured cost).

    A step is a round; an episode has `rounds` of them (by default, those of the problem). `reset(seed=…)` restarts the
    drift of that seed; `reset()` begins a new episode and lets the drift continue.
    Actions are −1 to 1 in each coordinate, mapped to the range of a box, or to ±reach without limits (by default twice
    the distance of the start from 0, or ten radii). In other domains the nearest point is used.
    The observation is the last setting. `info` has the round, the cost without noise, the regret if the optimum is
    known, and the limits, if any. If the system diverges, the episode is terminated.

    >>> env = gymnasium.make("trimtab/quadratic-v1", dim=3)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(observation)
    >>> info["round"], bool(reward < 0)
    (0, True)
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self,
        problem: str | Problem = "quadratic-v1",
        *,
        rounds: int | None = None,
        reach: float | None = None,
        render_mode: str | None = None,
        **parameters: object,
    ) -> None:
        self.problem = make(problem, **parameters) if isinstance(problem, str) else problem
        self.rounds = self.problem.rounds if rounds is None else whole("rounds", rounds, 1)
        self.render_mode = render_mode
        self._reach = None if reach is None else real("reach", reach, 0, above=True)
        self.observation_space = spaces.Box(-1.0, 1.0, (self.problem.dim,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (self.problem.dim,), np.float64)
        self._world: World | None = None
        self._round = self._played = 0

    def reset(self, *, seed: int | None = None, options: Document | None = None) -> tuple[Array, Document]:
        """Begin a new episode; with a seed, restart the drift."""
        super().reset(seed=seed)
        if seed is not None or self._world is None:
            drift = int(self.np_random.integers(2**63)) if seed is None else seed
            self._world, self._round = self.problem.world(drift, 1), 0
            start = self.problem.start(drift, 1)[0]
            self._middle, self._half = self._range(start)
            self._set = np.clip((start - self._middle) / self._half, -1.0, 1.0)
        self._played = 0
        return self._set.copy(), {"round": self._round}

    def step(self, action: Array) -> Transition:
        """Run one round."""
        if self._world is None:
            raise RuntimeError("the episode has not begun: call reset() first")
        self._set = np.clip(self._read(action), -1.0, 1.0)
        x = self.problem.domain.project(self._middle + self._half * self._set)[None, None]
        world, round = self._world, self._round
        if world.listens:
            world.play(round, x, x)
        value, cost = float(world.measure(round, x)[0, 0]), float(world.cost(round, x)[0, 0])
        info: Document = {"round": round, "cost": cost}
        if math.isfinite(regret := float(world.regret(round, x)[0, 0])):
            info["regret"] = regret
        if (limits := world.limits(round, x)) is not None:
            info["limits"] = limits[0, 0].tolist()
        self._round, self._played = round + 1, self._played + 1
        reward = -LARGEST if math.isnan(value) else min(max(-value, -LARGEST), LARGEST)
        return self._set.copy(), reward, not math.isfinite(value), self._played >= self.rounds, info

    def _read(self, action: ArrayLike) -> Array:
        """Validate an action and convert it to an array."""
        try:
            found = np.array(action, dtype=float)
        except (TypeError, ValueError):
            found = np.array(np.nan)
        if found.shape != self.action_space.shape or not np.isfinite(found).all():
            raise ValueError(
                f"action={action!r} is not {self.problem.dim} finite numbers: give one of {self.action_space}"
            )
        return found

    def _range(self, start: Array) -> tuple[Array, Array]:
        """The middle and half-width of the range of each coordinate."""
        domain, dim = self.problem.domain, self.problem.dim
        if isinstance(domain, Box) and np.isfinite(domain.high - domain.low).all():
            low, high = (np.broadcast_to(side, (dim,)) for side in (domain.low, domain.high))
            return (low + high) / 2, (high - low) / 2
        reach = self._reach or max(2.0 * float(np.abs(start).max()), 10.0 * self.problem.radius)
        return np.zeros(dim), np.full(dim, reach)


class Policy:
    """Tune the parameters of a policy in use, one episode per round, with its return as the value.

    act: (parameters, observation) → action; requires x0, the current parameters. By default the policy is linear in
    the flattened observation, W·observation + b, starting with zeros: clipped to a Box of actions, or choosing the
    Discrete action with the largest score.
    radius: probing radius; with bounds, (low, high) for each parameter, a share of the range. method: replaces it.
    steps: maximum length of an episode, for environments that do not end by themselves.
    tuner: continue with the tuner of another policy or from `Tuner.load(path)`; it must have `maximise=True`.

    >>> env = gymnasium.make("trimtab/quadratic-v1", dim=2, max_episode_steps=1)
    >>> policy = Policy(env, lambda parameters, observation: parameters, x0=[0.9, 0.9], radius=0.03, seed=0)
    >>> _ = env.reset(seed=0)
    >>> returns = policy.learn(100)
    >>> bool(np.mean(returns[-10:]) > 0.2 * np.mean(returns[:5]))
    True
    """

    def __init__(
        self,
        env: gymnasium.Env[Json, Json],
        act: Act | None = None,
        *,
        x0: ArrayLike | None = None,
        radius: float = 0.1,
        bounds: ArrayLike | None = None,
        method: BaseMethod | None = None,
        steps: int | None = None,
        seed: int | None = None,
        tuner: Tuner | None = None,
    ) -> None:
        self.env, self.steps = env, None if steps is None else whole("steps", steps, 1)
        size = None
        if act is None:
            act, size = linear(env)
            x0 = np.zeros(size) if x0 is None else x0
        if tuner is None:
            if x0 is None:
                raise TypeError("give x0, the parameters that the policy has now")
            tuner = Tuner(x0, method or auto(radius=radius), bounds=bounds, seed=seed, maximise=True)
        _check(tuner, size)
        self.act, self.tuner = act, tuner

    @property
    def parameters(self) -> Array:
        """The current parameters of the policy."""
        return self.tuner.centre

    def __call__(self, observation: Json) -> Json:
        """The action of the current policy, without probing."""
        return self.act(self.parameters, observation)

    def play(self, parameters: Array) -> float:
        """Run one episode with these parameters after `reset()`, and return the sum of its rewards."""
        total, played, over = 0.0, 0, False
        observation, _ = self.env.reset()
        while not over and played != self.steps:
            observation, reward, terminated, truncated, _ = self.env.step(self.act(parameters, observation))
            total, played, over = total + float(reward), played + 1, terminated or truncated
        return total

    def learn(self, episodes: int = 1) -> list[float]:
        """Run this many rounds and list their returns; one that is not finite counts as a failed measurement."""
        returns = []
        for _ in range(whole("episodes", episodes, 0)):
            trial = self.tuner.ask()
            returns.append(self.play(trial.x))
            self.tuner.tell(trial, returns[-1] if math.isfinite(returns[-1]) else None)
        return returns


def _check(tuner: Tuner, size: int | None) -> None:
    """Check that the tuner can tune a policy with `size` parameters."""
    setup = tuner.setup
    if not setup.maximise:
        raise ValueError(f"tuner={tuner} minimises, but returns are to be maximised: create it with maximise=True")
    if setup.lanes is not None:
        raise ValueError(f"x0 has shape {setup.shape}, but a policy is one system: give (d,)")
    if setup.queries > 1 or setup.told > 1:
        raise ValueError(f"{setup.method} needs more than one number per round, but an episode gives one: use tt.auto")
    if size not in (None, setup.shape[0]):
        raise ValueError(
            f"x0 has {setup.shape[0]} parameters, but the linear policy of this environment {size}, the rows of W and"
            " then b: give that many, or leave x0 out to start from zeros"
        )


def linear(env: gymnasium.Env[Json, Json]) -> tuple[Act, int]:
    """The policy W·observation + b for an environment, and its number of parameters: the rows of W, then b."""
    seen, space = spaces.flatdim(env.observation_space), env.action_space
    if isinstance(space, spaces.Box):
        rows = math.prod(space.shape)
    elif isinstance(space, spaces.Discrete):
        rows = int(space.n)
    else:
        raise TypeError(f"no linear policy gives an action of {space}: give act=(parameters, observation) → action")

    def act(parameters: Array, observation: Json) -> Json:
        flat = np.asarray(spaces.flatten(env.observation_space, observation), dtype=float)
        scores = parameters[: rows * seen].reshape(rows, seen) @ flat + parameters[rows * seen :]
        if isinstance(space, spaces.Discrete):
            return int(space.start + np.argmax(scores))
        return np.clip(scores.reshape(space.shape), space.low, space.high).astype(space.dtype)

    return act, rows * (seen + 1)


for _id in registry:
    if f"trimtab/{_id}" not in gymnasium.registry:
        gymnasium.register(f"trimtab/{_id}", "trimtab.adapters.gymnasium:Drifting", kwargs={"problem": _id})
