"""The transformation for Optax: by hand, and in the tests that Optax runs over its own contributed optimisers."""

import inspect
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from optax import contrib
from optax.contrib import _common_test as host

from trimtab.adapters.optax import ResidualState, centre, forget, residual

STANDARD = {"opt_name": "momo", "wrapper_name": None, "wrapper_kwargs": None}
"""In Optax's tests, momo is the optimiser that is given the value: ours takes its place there."""


def bodies():
    """The tests of Optax's common suite, as they are before they are multiplied by its optimisers."""
    tests = [test for _, test in inspect.getmembers(host.ContribTest, lambda member: hasattr(member, "__wrapped__"))]
    return {test.__wrapped__.__name__: test.__wrapped__ for test in tests if test.__name__.startswith("test_")}


BODIES = bodies()
# Not Rosenbrock's function: from one value a round, its valley of condition 2500 takes more rounds than the test has.
TARGETS = [host._setup_parabola, host._setup_matrix_parabola, host._setup_mixed_tensor_target]
ARGUMENTS = {
    "test_optimizers_accept_extra_args": [{"wrap": True}, {"wrap": False}],
    "test_optimizers": [{"target": target, "dtype": "float32"} for target in TARGETS],
    "test_optimizers_can_be_wrapped_in_inject_hyperparams": [{}],
    "test_preserve_dtype": [{"dtype": "bfloat16"}, {"dtype": "float32"}],
    "test_gradient_accumulation": [{"dtype": "bfloat16"}, {"dtype": "float32"}],
    "test_state_shape_dtype_shard_stability": [
        {"dtype": dtype} for dtype in (jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64)
    ],
    "test_optimizers_accept_learning_rate_schedule_if_type_annotated_as_such": [{}],
}


def test_optax_runs_no_test_that_is_not_run_here():
    assert set(ARGUMENTS) == set(BODIES)


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, arguments) for name, several in ARGUMENTS.items() for arguments in several]
)
def test_of_optax(name, arguments, monkeypatch):
    if name == "test_optimizers":  # 30 000 values must bring the query itself within 3% of the optimum
        options = {"learning_rate": optax.cosine_decay_schedule(5e-3, 30_000), "radius": 1e-2}
    else:
        options = {"learning_rate": 1e-3, "radius": 1e-2}
    monkeypatch.setattr(contrib, "momo", residual)
    wanted = {**STANDARD, "opt_kwargs": options, **arguments}
    BODIES[name](
        host.ContribTest(), **{k: wanted[k] for k in inspect.signature(BODIES[name]).parameters if k != "self"}
    )


def run(tx, params, loss, rounds):
    state, queries = tx.init(params), []
    for _ in range(rounds):
        queries.append(params)
        updates, state = tx.update(params, state, params, value=loss(params))
        params = optax.apply_updates(params, updates)
    return params, state, queries


def test_residual_feedback_by_hand():
    # The first value, at the start itself, only anchors: x₁ = x₀. x₂ = x₁ − η·(y₁ − y₀)·(p₁ − x₁)/δ² (Eq. 3).
    tx, start = residual(0.02, 0.1, normalised=False), jnp.array([1.0, -2.0])
    state = tx.init(start)
    updates, state = tx.update(start, state, start, value=3.0)
    np.testing.assert_array_equal(centre(state), start)
    query = optax.apply_updates(start, updates)
    assert float(jnp.abs(query - start).max()) > 0
    _, state = tx.update(query, state, query, value=5.0)
    np.testing.assert_allclose(centre(state), start - 0.02 * 2.0 * (query - start) / 0.01, rtol=1e-5)


def test_normalised_by_hand():
    # s² is 4, then (4 + 16)/2: the moves are lr·(2/2)·u and lr·(4/√10)·u.
    tx, params = residual(0.02, 0.1), jnp.array([1.0, -2.0])
    state = tx.init(params)
    for value, contrast in ((3.0, 0.0), (5.0, 1.0), (9.0, 4 / math.sqrt(10))):
        before = centre(state)
        updates, state = tx.update(params, state, params, value=value)
        np.testing.assert_allclose(centre(state), before - 0.02 * contrast * (params - before) / 0.1, rtol=1e-5)
        params = optax.apply_updates(params, updates)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_failed_measurement_moves_nothing_and_the_anchor_stays(value):
    tx, params = residual(0.02, 0.1, normalised=False), jnp.array([1.0, -2.0])
    _, state, _ = run(tx, params, lambda p: 3.0, 1)
    moved, after = tx.update(params, state, params, **({} if value is None else {"value": value}))
    np.testing.assert_array_equal(centre(after), centre(state))
    query = optax.apply_updates(params, moved)
    _, last = tx.update(query, after, query, value=5.0)
    np.testing.assert_allclose(centre(last), params - 0.02 * 2.0 * (query - params) / 0.01, rtol=1e-5)


@pytest.mark.parametrize("huge", [1e20, 3e38, -3e38])
def test_one_huge_value_leaves_the_parameters_where_they_were(huge):
    tx, params = residual(3e-3, 1e-2), jnp.full(3, 10.0)
    state = tx.init(params)
    for k in range(60):
        value = (-1) ** k * huge if k in (20, 21) else 1e4 * jnp.sum(params**2)
        updates, state = tx.update(params, state, params, value=value)
        params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(centre(state), 10.0, atol=0.3)
    assert math.isfinite(state.square)


def test_forget_makes_the_next_value_an_anchor_also_inside_a_chain():
    tx = optax.chain(optax.identity(), residual(0.02, 0.1))
    params, state, _ = run(tx, {"centre": jnp.ones(2), "b": jnp.zeros(3)}, lambda p: jnp.sum(p["centre"]), 5)
    before = centre(state)
    _, state = tx.update(params, forget(state), params, value=1e6)
    jax.tree.map(np.testing.assert_array_equal, centre(state), before)
    _, state = tx.update(params, state, params, value=2e6)
    assert float(jnp.abs(centre(state)["b"] - before["b"]).max()) > 0


def test_the_query_carried_is_one_probe_from_the_centre():
    tx = residual(1e-3, 0.1)
    params, state, _ = run(tx, jnp.zeros(1000), lambda p: jnp.sum(p**2), 4)
    rms = float(jnp.sqrt(jnp.mean((params - centre(state)) ** 2)))
    assert 0.085 < rms < 0.115  # δ, by 1000 normal coordinates: ±15% is more than six standard deviations


def test_dtypes_and_trees_are_kept_and_the_centre_is_precise():
    params = {"w": jnp.ones((2, 3), jnp.bfloat16), "b": [jnp.zeros(3), jnp.ones((), jnp.float16)]}
    loss = jax.jit(lambda p: sum(jnp.sum(x.astype(jnp.float32) ** 2) for x in jax.tree.leaves(p)))
    after, state, _ = run(residual(1e-4, 0.05), params, loss, 5)
    assert jax.tree.structure(after) == jax.tree.structure(params)
    assert [x.dtype for x in jax.tree.leaves(after)] == [x.dtype for x in jax.tree.leaves(params)]
    assert {x.dtype for x in jax.tree.leaves(centre(state))} == {jnp.dtype("float32")}


def test_jit_and_scan_equal_eager():
    tx, start = residual(5e-3, 0.05), jnp.array([1.0, -2.0, 0.5])
    loss = lambda p: jnp.sum((p - 0.3) ** 2)  # noqa: E731

    def step(carry, _):
        params, state = carry
        updates, state = tx.update(params, state, params, value=loss(params))
        return (optax.apply_updates(params, updates), state), None

    eager = run(tx, start, loss, 50)[:2]
    jitted = (start, tx.init(start))
    for _ in range(50):
        jitted, _ = jax.jit(step)(jitted, None)
    scanned, _ = jax.lax.scan(step, (start, tx.init(start)), length=50)
    for other in (jitted, scanned):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6), eager, other)


def test_lanes_under_vmap_go_as_they_would_alone():
    starts = jnp.arange(6.0).reshape(3, 2)
    keys = jax.random.split(jax.random.key(5), 3)
    loss = lambda p: jnp.sum((p - 0.3) ** 2)  # noqa: E731

    def path(start, key):
        tx = residual(5e-3, 0.05, seed=key)

        def step(carry, _):
            params, state = carry
            updates, state = tx.update(params, state, params, value=loss(params))
            return (optax.apply_updates(params, updates), state), centre(state)

        return jax.lax.scan(step, (start, tx.init(start)), length=40)[1]

    together = jax.vmap(path)(starts, keys)
    alone = jnp.stack([jax.jit(path)(start, key) for start, key in zip(starts, keys, strict=True)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-6)
    moves = jnp.diff(together, axis=1)
    assert not np.allclose(moves[0], moves[1])  # each lane has directions of its own


def test_the_state_is_arrays_and_resumes_bit_for_bit(tmp_path):
    tx, start = residual(5e-3, 0.05, seed=3), jnp.array([1.0, -2.0])
    loss = lambda p: jnp.sum((p - 0.3) ** 2)  # noqa: E731
    step = jax.jit(lambda p, s: tx.update(p, s, p, value=loss(p)))

    def go(params, state, rounds):
        for _ in range(rounds):
            updates, state = step(params, state)
            params = optax.apply_updates(params, updates)
        return params, state

    through = go(start, tx.init(start), 30)
    half = go(start, tx.init(start), 13)
    assert half[1].key.dtype == jnp.uint32
    leaves, tree = jax.tree.flatten(half)
    np.savez(tmp_path / "saved.npz", *leaves)
    with np.load(tmp_path / "saved.npz") as saved:
        resumed = jax.tree.unflatten(tree, [jnp.asarray(saved[name]) for name in saved.files])
    jax.tree.map(np.testing.assert_array_equal, go(*resumed, 17), through)
    assert isinstance(through[1], ResidualState)


def test_injected_hyperparameters_can_be_changed_while_it_runs():
    tx = optax.inject_hyperparams(residual)(learning_rate=1e-3, radius=0.1)
    params, state, _ = run(tx, jnp.zeros(500), lambda p: jnp.sum(p**2), 3)
    state.hyperparams["radius"] = jnp.asarray(0.01)
    updates, state = tx.update(params, state, params, value=1.0)
    params = optax.apply_updates(params, updates)
    assert 0.008 < float(jnp.sqrt(jnp.mean((params - centre(state)) ** 2))) < 0.012


def test_multi_steps_moves_once_in_so_many():
    tx = optax.MultiSteps(residual(5e-3, 0.05), every_k_schedule=3)
    params = jnp.ones(4)
    state, distinct = tx.init(params), set()
    step = jax.jit(lambda params, state: tx.update(params, state, params, value=jnp.sum(params**2)))
    for _ in range(9):
        updates, state = step(params, state)
        params = optax.apply_updates(params, updates)
        distinct.add(np.asarray(params).tobytes())
    assert len(distinct) == 4  # the start, and three queries


def test_errors_say_what_to_do():
    tx = residual(1e-3)
    with pytest.raises(ValueError, match="update needs params"):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)), value=1.0)
    with pytest.raises(ValueError, match="0 states"):
        centre(optax.sgd(0.1).init(jnp.ones(2)))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"radius": 0.0}, "radius=0.0 must be a finite number > 0"),
        ({"radius": math.nan}, "radius=nan"),
        ({"radius": jnp.zeros(())}, "radius=0.0"),
        ({"radius": jnp.ones(2)}, "radius=Array"),
        ({"learning_rate": -0.5}, "learning_rate=-0.5 must be a finite number >= 0"),
        ({"window": 0.5}, "window=0.5"),
    ],
)
def test_what_cannot_be_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        residual(**{"learning_rate": 1e-3, **options})
    with pytest.raises(ValueError, match=match):
        optax.inject_hyperparams(residual)(**{"learning_rate": 1e-3, **options}).init(jnp.ones(2))


def test_more_values_than_one_are_refused():
    tx, params = residual(1e-3), jnp.ones(3)
    for value in (jnp.ones(3), [1.0]):
        with pytest.raises(ValueError, match=r"value has shape \(\d,\): give one number"):
            jax.jit(tx.update)(params, tx.init(params), params, value=jnp.asarray(value))


def test_rosenbrock_goes_down_a_hundredfold():
    start, _, loss = host._setup_rosenbrock(jnp.float32)
    tx = residual(optax.cosine_decay_schedule(5e-3, 20_000), 2e-3)

    def step(carry, _):
        params, state = carry
        updates, state = tx.update(params, state, params, value=loss(params))
        return (optax.apply_updates(params, updates), state), None

    (_, state), _ = jax.lax.scan(step, (start, tx.init(start)), length=20_000)
    assert float(loss(centre(state))) < 0.01 * float(loss(start))


def test_the_page(example):
    names = example("optax")
    assert float(jnp.abs(names["centre"](names["state"]) - 0.3).max()) < 0.1
