"""Optax: residual feedback as a gradient transformation that uses the value of the loss and no gradient.

    value = loss(params)                                        params are the query p_t = x_t + δu_t
    updates, state = tx.update(params, state, params, value=value)
    params = optax.apply_updates(params, updates)               params are now the next query
    centre(state)                                               x, the operating point

    a_t = y_t − y_{t−1}                                         residual feedback (Eq. 3)
    x ← x − lr·(a_t/s_t)·(p_t − x)/δ                            normalised: s is the running rms of a
    x ← x − lr·a_t·(p_t − x)/δ²                                 as in the paper

The first params are the current operating point; their value only sets the anchor. u is a function of (key, count).
"""

from __future__ import annotations

from typing import NamedTuple

from trimtab.types import Json
from trimtab.util.extras import pip_install
from trimtab.validation import real

try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as error:
    raise ImportError(f"trimtab.adapters.optax needs JAX and Optax: {pip_install('optax')}") from error

__all__ = ["ResidualState", "centre", "forget", "residual"]


class ResidualState(NamedTuple):
    """The whole state as arrays, which can be saved, mapped and scanned."""

    count: jax.Array
    key: jax.Array
    """Raw key of uint32."""
    centre: optax.Params
    """x, in float32 or more, because half precision cannot resolve a step."""
    radius: jax.Array
    """δ of the current query."""
    anchored: jax.Array
    anchor: jax.Array
    contrasts: jax.Array
    square: jax.Array


def residual(
    learning_rate: optax.ScalarOrSchedule,
    radius: float | jax.Array = 1e-3,
    *,
    normalised: bool = True,
    window: float | jax.Array = 100.0,
    seed: int | jax.Array = 0,
) -> optax.GradientTransformationExtraArgs:
    """Residual feedback; `update(..., value=...)` takes the value at params and ignores the gradients.

    learning_rate: typical move of each parameter per step, less than `radius`; with `normalised=False`, η of the
    paper. May be a schedule.
    radius: δ, the probing radius of each parameter.
    window: time constant, in steps, of the rms of the contrast.
    seed: a number, or a JAX key; under `vmap`, one key per lane.

    A value that is missing or not finite is a failed measurement: only the next query is drawn.
    Contrasts are clipped so that their dtype can hold their squares: to about 1e18 in float32.

    >>> tx = residual(3e-3, 1e-2)
    >>> params = jnp.ones(3)
    >>> state = tx.init(params)
    >>> for _ in range(2):
    ...     updates, state = tx.update(params, state, params, value=jnp.sum(params**2))
    ...     params = optax.apply_updates(params, updates)
    >>> centre(state).shape
    (3,)
    """
    if not callable(learning_rate):
        _check("learning_rate", learning_rate, 0.0)
    _check("radius", radius, 0.0, above=True)
    _check("window", window, 1.0)

    def init(params: optax.Params) -> ResidualState:
        x = jax.tree.map(lambda p: jnp.asarray(p, _precise(p)), params)
        zero = jnp.zeros((), optax.tree.dtype(x, "highest") if jax.tree.leaves(x) else jnp.float32)
        number = jnp.zeros((), jnp.int32)
        return ResidualState(number, _raw(seed), x, zero + radius, jnp.zeros((), bool), zero, number, zero)

    def update(
        updates: optax.Updates,
        state: ResidualState,
        params: optax.Params | None = None,
        *,
        value: Json = None,
        **extra: object,
    ) -> tuple[optax.Updates, ResidualState]:
        if params is None:
            raise ValueError(
                "update needs params, the query that the value belongs to: tx.update(updates, state, params, ...)"
            )
        y = jnp.full_like(state.anchor, jnp.nan) if value is None else jnp.asarray(value, state.anchor.dtype)
        if y.shape:
            raise ValueError(f"value has shape {y.shape}: give one number, the loss at params")
        measured = jnp.isfinite(y)
        known = measured & state.anchored
        most = jnp.finfo(y.dtype).max ** 0.5 / 16
        contrast = jnp.where(known, jnp.clip(y - state.anchor, -most, most), 0.0)
        contrasts = state.contrasts + known
        share = jnp.maximum(1.0 / jnp.maximum(contrasts, 1), 1.0 / window)
        square = state.square + jnp.where(known, (contrast * contrast - state.square) * share, 0.0)
        rms = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        rate = learning_rate(state.count) if callable(learning_rate) else learning_rate
        factor = rate * contrast / (state.radius * (rms if normalised else state.radius))
        x = jax.tree.map(
            lambda x, p: (x - factor * jnp.where(known, p.astype(x.dtype) - x, 0.0)).astype(x.dtype),
            state.centre,
            params,
        )
        count = optax.safe_increment(state.count)
        new = ResidualState(
            count,
            state.key,
            x,
            jnp.asarray(radius, state.radius.dtype),
            state.anchored | measured,
            jnp.where(measured, y, state.anchor),
            contrasts,
            square.astype(state.square.dtype),
        )
        u = optax.tree.random_like(jax.random.fold_in(state.key, count), x, jax.random.normal)
        query = jax.tree.map(lambda x, u: x + new.radius.astype(x.dtype) * u, x, u)
        return jax.tree.map(lambda q, p: (q - p.astype(q.dtype)).astype(p.dtype), query, params), new

    return optax.GradientTransformationExtraArgs(init, update)


def centre(state: optax.OptState) -> optax.Params:
    """The operating point x from the state of `residual`, which may be wrapped or part of a chain."""
    found = [part for part in jax.tree.leaves(state, is_leaf=_is_ours) if _is_ours(part)]
    if len(found) != 1:
        raise ValueError(
            f"{len(found)} states of `residual` found, but one is needed: give the state of that transformation alone"
        )
    return found[0].centre


def forget(state: optax.OptState) -> optax.OptState:
    """The state in which the next value only sets the anchor, for use after a change of batch or context."""

    def forgotten(part: Json) -> Json:
        return part._replace(anchored=jnp.zeros_like(part.anchored)) if _is_ours(part) else part

    return jax.tree.map(forgotten, state, is_leaf=_is_ours)


def _is_ours(part: object) -> bool:
    return isinstance(part, ResidualState)


def _precise(p: Json) -> Json:
    """Convert to the dtype of the centre."""
    return jnp.promote_types(jnp.asarray(p).dtype, jnp.float32)


def _check(name: str, given: Json, least: float, *, above: bool = False) -> None:
    """Check a number, unless it is traced and has no value yet."""
    if not isinstance(given, jax.core.Tracer):
        real(name, given.item() if getattr(given, "shape", None) == () else given, least, above=above)


def _raw(seed: int | jax.Array) -> jax.Array:
    given = jnp.asarray(seed)
    if jnp.issubdtype(given.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(given)
    return given if given.ndim else jax.random.PRNGKey(given.astype(jnp.uint32))
