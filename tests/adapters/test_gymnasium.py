"""The drifting problems under Gymnasium's own checker, and policies tuned one episode a round."""

import copy
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import trimtab as tt
from trimtab.adapters.gymnasium import Drifting, Policy, linear
from trimtab.problems import registry

SMALL = {
    "allocation-v1": {"rows": 1, "columns": 2, "horizon": 2},
    "allocation-per-agent-v1": {"rows": 1, "columns": 2, "horizon": 2},
}


def made(id, **more):
    return gymnasium.make(f"trimtab/{id}", **SMALL.get(id, {}), **more)


@pytest.mark.parametrize("id", sorted(registry))
def test_every_problem_passes_gymnasiums_checker(id):
    check_env(made(id).unwrapped)


def play(env, actions):
    return [env.step(action)[1:] for action in actions]


@pytest.mark.parametrize("id", ["quadratic-v1", "pricing-v1", "walk-v1"])
def test_a_seed_restarts_the_drift_and_a_plain_reset_goes_on(id):
    whole, parts = made(id), made(id)
    actions = [whole.action_space.sample() for _ in range(30)]
    whole.reset(seed=5)
    expected = play(whole, actions)
    parts.reset(seed=5)
    found = play(parts, actions[:12])
    _, info = parts.reset()
    assert info["round"] == 12
    found += play(parts, actions[12:])
    assert found == expected
    parts.reset(seed=5)
    assert play(parts, actions) == expected
    parts.reset(seed=6)
    assert play(parts, actions) != expected


def test_the_rewards_are_those_of_the_world():
    env = made("pricing-v1").unwrapped
    observation, _ = env.reset(seed=3)
    problem = tt.problems.make("pricing-v1")
    world, low, high = problem.world(3, 1), problem.domain.low, problem.domain.high
    for t in range(5):
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        x = low + (high - low) * (action + 1) / 2
        assert reward == pytest.approx(-world.measure(t, x[None, None])[0, 0])
        assert info["cost"] == pytest.approx(world.cost(t, x[None, None])[0, 0])
        assert np.array_equal(observation, action)
        assert not terminated
        assert not truncated


def test_episodes_end_after_the_rounds_of_the_problem():
    env = Drifting("quadratic-v1", rounds=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(10))[3] for _ in range(3)] == [False, False, True]
    env.reset()
    assert env.step(np.zeros(10))[4]["round"] == 3


def test_it_begins_where_the_problem_does():
    env = Drifting("quadratic-v1", reach=2.0)
    observation, _ = env.reset(seed=4)
    assert 2.0 * observation == pytest.approx(tt.problems.make("quadratic-v1").start(4, 1)[0])


def test_limits_are_told():
    env = made("constrained-v1")
    env.reset(seed=0)
    assert len(env.step(env.action_space.sample())[4]["limits"]) >= 1


def test_a_system_that_blows_up_ends_the_episode():
    class Exploding(tt.problems.Quadratic):
        def world(self, seed, trials, first=0):
            world = super().world(seed, trials, first)
            world.cost = lambda t, x: np.full((trials, 1), np.inf)
            return world

    env = Drifting(Exploding())
    env.reset(seed=0)
    _, reward, terminated, _, _ = env.step(np.zeros(10))
    assert terminated
    assert np.isfinite(reward)


def test_before_the_first_reset():
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        Drifting().step(np.zeros(10))


@pytest.mark.parametrize(
    "action", [0.5, [0.1], None, "x", [0.1, 0.2], [[0.1, 0.2, 0.3]], [0.0, 0.0, np.nan], [0.0, 0.0, np.inf]]
)
def test_an_action_of_another_shape_is_refused_and_no_round_is_played(action):
    env, twin = Drifting("quadratic-v1", dim=3), Drifting("quadratic-v1", dim=3)
    for each in (env, twin):
        each.reset(seed=0)
    with pytest.raises(ValueError, match=r"is not 3 finite numbers: give one of Box\(-1.0, 1.0, \(3,\)"):
        env.step(action)
    assert play(env, [np.ones(3)]) == play(twin, [[1, 1, 1]])


class Counted(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.episodes, self.actions, self.regrets = 0, [], []

    def reset(self, **options):
        self.episodes += 1
        return self.env.reset(**options)

    def step(self, action):
        self.actions.append(action)
        found = self.env.step(action)
        self.regrets.append(found[-1]["regret"])
        return found


def setting(parameters, observation):
    return parameters


def test_one_episode_per_round_every_one_feasible_and_far_better_than_standing_still():
    def played(**options):
        env = Counted(made("quadratic-v1", dim=2, max_episode_steps=1))
        start, _ = env.reset(seed=2)
        policy = Policy(env, setting, x0=start, bounds=[(-1, 1)] * 2, seed=1, **options)
        assert policy.learn(1500)[-1] == policy.tuner.last_value
        return env

    env = played(radius=0.03)
    assert env.episodes == 1501
    assert len(env.actions) == 1500
    assert np.abs(env.actions).max() <= 1
    still = played(method=tt.still(radius=0.03))
    assert np.mean(env.regrets) < 0.2 * np.mean(still.regrets)


def test_goes_on_bit_by_bit(tmp_path):
    env = made("walk-v1", max_episode_steps=1)
    env.reset(seed=0)
    policy = Policy(env, setting, x0=[0.0], seed=0)
    policy.learn(30)
    policy.tuner.save(tmp_path / "policy.json")
    again = Policy(copy.deepcopy(env), setting, tuner=tt.Tuner.load(tmp_path / "policy.json"))
    assert again.learn(30) == policy.learn(30)
    assert np.array_equal(again.parameters, policy.parameters)


def test_a_linear_policy_learns_to_balance_a_pole():
    env = gymnasium.make("CartPole-v1", max_episode_steps=200)
    env.reset(seed=1)
    policy = Policy(env, radius=0.3, seed=0)
    assert policy.parameters.shape == (10,)
    returns = policy.learn(250)
    assert np.mean(returns[-50:]) > 3 * np.mean(returns[:10])
    observation, _ = env.reset()
    assert policy(observation) in (0, 1)


def test_a_linear_policy_for_continuous_actions():
    env = gymnasium.make("Pendulum-v1")
    act, size = linear(env)
    assert size == 4
    action = act(np.array([0.0, 1.0, 0.0, 0.25]), np.array([1.0, 0.5, 9.0], dtype=np.float32))
    assert action == pytest.approx([0.75])
    assert env.action_space.contains(action)
    assert env.action_space.contains(act(np.array([0.0, 9e9, 0.0, 0.0]), np.array([1.0, 0.5, 9.0], dtype=np.float32)))


def test_an_episode_that_does_not_end():
    env = made("quadratic-v1", rounds=10**6)
    env.reset(seed=0)
    policy = Policy(env, setting, x0=np.zeros(10), steps=4, seed=0)
    policy.learn(2)
    assert env.unwrapped._round == 8


def test_a_return_that_is_no_number_moves_nothing():
    class Broken(gymnasium.RewardWrapper):
        def reward(self, reward):
            return float("nan")

    env = Broken(made("walk-v1", max_episode_steps=1))
    policy = Policy(env, setting, x0=[0.3], seed=0)
    policy.learn(3)
    assert policy.tuner.skipped == 3
    assert policy.parameters == [0.3]


def test_what_cannot_be_is_said():
    env = made("walk-v1")
    with pytest.raises(TypeError, match="give x0"):
        Policy(env, setting)
    env.action_space = gymnasium.spaces.MultiBinary(3)
    with pytest.raises(TypeError, match="no linear policy"):
        Policy(env)
    with pytest.raises(ValueError, match="episodes=-1"):
        Policy(made("walk-v1"), setting, x0=[0.0]).learn(-1)
    with pytest.raises(ValueError, match="reach=0"):
        Drifting(reach=0)


@pytest.mark.parametrize(
    ("tuner", "message"),
    [
        (tt.Tuner([0.0] * 10, tt.auto(radius=0.1)), r"minimises.*: create it with maximise=True"),
        (tt.Tuner(np.zeros((3, 10)), tt.auto(radius=0.1), maximise=True), r"x0 has shape \(3, 10\).*: give \(d,\)"),
        (tt.Tuner([0.0] * 10, tt.two_point(radius=0.1, step=0.1), maximise=True), "more than one number per round"),
        (tt.Tuner([0.0] * 10, tt.primal_dual(radius=0.1, step=0.1), maximise=True), "more than one number per round"),
        (tt.Tuner([0.0] * 3, tt.auto(radius=0.1), maximise=True), r"x0 has 3 parameters, but the linear policy.* 10,"),
    ],
)
def test_a_tuner_that_cannot_tune_a_policy_is_refused(tuner, message):
    with pytest.raises(ValueError, match=message):
        Policy(gymnasium.make("CartPole-v1"), tuner=tuner)


def test_a_start_that_is_no_policy_is_refused():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"x0 has 3 parameters, but the linear policy of this environment 10, "):
        Policy(env, x0=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"x0 has shape \(2, 10\)"):
        Policy(env, x0=np.zeros((2, 10)))
    with pytest.raises(ValueError, match="more than one number per round"):
        Policy(env, method=tt.two_point(radius=0.1, step=0.1))


def test_the_pip_command():
    code = "import sys; sys.modules['gymnasium'] = None; import trimtab.adapters.gymnasium"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: trimtab.adapters.gymnasium needs gymnasium: pip install" in done.stderr
    assert "[gymnasium]" in done.stderr
