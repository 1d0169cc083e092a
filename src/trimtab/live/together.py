"""The next round of many studies of one shape at once, as lanes: bit by bit what each would be alone.

Only the round that nearly all are: a probe, told a number, after which nothing has to be asked of anybody. Their
numbers are the rows of a matrix, laid out as their `Shape` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trimtab.arithmetic import Lanes
from trimtab.crowd import Crowd, Draws, namesakes
from trimtab.estimators.probing import probing_costs
from trimtab.live import engine
from trimtab.live.advice import ENOUGH, HALF, MOST
from trimtab.live.diagnostics import LAG, SHORT, WINDOW, Edge
from trimtab.live.packed import BOOKS, FIGURES, Shape
from trimtab.live.saving import LARGEST as DEAREST
from trimtab.setup import LARGEST
from trimtab.state import Look, State
from trimtab.types import Array

FEW = 6  # studies: fewer are quicker one by one
TOLD, NEAR, CAPPED, LONG = map(FIGURES.index, ("told", "near", "capped", "long"))


class Rounds(NamedTuple):
    """What became of them."""

    queries: Array
    """What was measured, in coordinates."""
    numbers: Array
    """All that is known of each afterwards."""


def tell(shape: Shape, draws: Draws, numbers: Array, values: Array) -> Rounds:
    """The round of each: what was asked, and everything after its value."""
    queries, after = np.empty((len(numbers), shape.setup.dim)), numbers.copy()
    draws(numbers[:, 0].astype(np.int64))  # once for all, and for what is asked next
    if len(numbers) < FEW:
        for n, value in enumerate(values.tolist()):
            queries[n], new = _one(shape, draws.some([n]), numbers[n], value)
            after[n, : new.size] = new
        return Rounds(queries, after)
    for some in _alike(shape, numbers[:, 0]):
        queries[some], after[some] = _tell(shape, draws.some(some), numbers[some], values[some])
    return Rounds(queries, after)


def ask(shape: Shape, draws: Draws, numbers: Array) -> Array:
    """The next query of each, in coordinates."""
    queries = np.empty((len(numbers), shape.setup.dim))
    if len(numbers) < FEW:
        for n, row in enumerate(numbers):
            with shape.lock:
                state = shape.flat.read(row[: shape.flat.size])
                queries[n] = engine.ask(shape.alone.now(draws.some([n])), state)
        return queries
    for some in _alike(shape, numbers[:, 0]):
        crowd = Crowd(shape.setup, draws.some(some), numbers[some, 0].astype(np.int64))
        queries[some] = crowd.ask(crowd.enter(shape.flat.lanes(numbers[some, : shape.flat.size]))).x
    return queries


def _one(shape: Shape, draws: Draws, numbers: Array, value: float) -> tuple[Array, Array]:
    """The round of one, as `Study` has it."""
    with shape.lock:
        before = shape.position(shape.alone.now(draws), numbers)
        query = engine.ask(before.setup, before.state)
        after = before.after(shape.terms.knobs, "tell", value, engine.tell(before.setup, before.state, value))
    new = shape.numbers(after)
    assert new is not None
    return query, new


def _alike(shape: Shape, rounds: Array) -> Iterator[list[int]]:
    """Those that can be lanes of one kernel."""
    found: dict[int, list[int]] = {}
    for n, name in enumerate(namesakes(shape.setup, rounds.astype(np.int64).tolist())):
        found.setdefault(name, []).append(n)
    yield from found.values()


def _tell(shape: Shape, draws: Draws, numbers: Array, values: Array) -> tuple[Array, Array]:
    size, rounds = shape.flat.size, numbers[:, 0].astype(np.int64)
    crowd = Crowd(shape.setup, draws, rounds)
    state = crowd.enter(shape.flat.lanes(numbers[:, :size]))
    trial = crowd.ask(state)
    assert trial.look is not None
    new = crowd.tell(state, values)
    after = numbers.copy()
    after[:, :size] = shape.flat.write(crowd.leave(new))
    edge = engine.edge(shape.terms.knobs, crowd.setup, new)
    _figures(shape, after, values, new.centre - state.centre, edge)
    _books(shape, after, values, _probing(crowd, state, trial.look, trial.x))
    after[:, size] += 1.0  # the slot of the next round
    return trial.x, after


def _probing(crowd: Crowd, state: State, look: Look, query: Array) -> Array | None:
    """What probing cost in this round, as `engine.probing_cost` says it of one."""
    setup, width = crowd.setup, np.broadcast_to(look.width, len(query))
    cut = query - look.centre - (width * setup.method.radius)[:, None] * setup.frame.direction(look.trial)
    away = query - state.centre
    square = np.where(width == 0, Lanes.dot(away, away), _squares(setup.probe_length * width))
    return probing_costs(state.slope, cut, square)


def _figures(shape: Shape, after: Array, values: Array, moves: Array, edge: Edge) -> None:
    """`Diagnostics.after`, in place."""
    at, setup, dim = {name: shape.figures + n for n, name in enumerate(FIGURES)}, shape.setup, shape.setup.dim
    values = np.minimum(np.maximum(values, -LARGEST), LARGEST)
    before = after[:, at["told"]].astype(np.intp)
    told = before + 1
    weight, short = np.maximum(1 / told, 1 / WINDOW), np.maximum(1 / told, 1 / SHORT)
    window = after[:, shape.values : shape.vectors]
    full, each = before >= LAG, np.arange(len(after))
    newest = window[each, np.maximum(np.minimum(before, LAG) - 1, 0)]
    square = Lanes.dot(moves, moves)

    def mean(name: str, new: Array, weight: Array) -> None:
        old = after[:, at[name]]
        after[:, at[name]] = old + (new - old) * weight

    near = np.maximum(1 / np.maximum(before, 1), 1 / WINDOW)
    mean("near", _squares(values - newest), near)
    after[before == 0, at["near"]] = 0.0
    far = np.maximum(1 / np.maximum(told - LAG, 1), 1 / WINDOW)
    mean("far", _squares(values - window[:, 0]), far)
    after[~full, at["far"]] = 0.0
    mean("slow", values, weight)
    mean("fast", values, short)
    mean("moved", square, weight)
    mean("capped", (square >= (0.999 * engine.longest_move(setup)) ** 2).astype(float), weight)
    mean("long", (2 * square >= setup.probe_length**2).astype(float), weight)
    slope = edge.slope.clip(-LARGEST, LARGEST)
    news = np.concatenate([moves, edge.sides, slope, slope * slope], axis=1)
    means = after[:, shape.vectors : shape.vectors + 4 * dim]
    means += (news - means) * weight[:, None]
    window[full, :-1] = window[full, 1:]
    window[each, np.minimum(before, LAG - 1)] = values
    after[:, at["at_edge"]] += edge.sides.any(axis=1)
    after[:, at["told"]] = told
    after[:, at["failures"]] = 0.0


def _books(shape: Shape, after: Array, values: Array, probing: Array | None) -> None:
    """`Ledger.tuned`, in place; before the slot moves on."""
    at = {name: shape.books + n for n, name in enumerate(BOOKS)}
    if probing is not None:
        known = probing == probing
        probed = after[:, at["probed"]] + known
        mean = after[:, at["probing"]]
        change = np.where(known, probing - mean, 0.0) / np.maximum(probed, 1.0)
        after[:, at["probing"]] = np.where(known, mean + change, mean)
        after[:, at["probed"]] = probed
    after[:, at["told"]] += 1.0
    values = np.minimum(np.maximum(values, -DEAREST), DEAREST)
    last = after[:, at["last"]]
    change = np.where(np.isnan(last), 0.0, values - last)
    after[:, at["changes"]] += ~np.isnan(last)
    after[:, at["change_sum"]] += np.abs(change)
    after[:, at["change_square"]] += change * change
    after[:, at["last"]] = values
    after[:, at["paid"]] += values
    after[:, at["places"]] += after[:, shape.flat.size] - after[:, at["reference_slot"]]


def _squares(numbers: Array) -> Array:
    """As Python takes them of single numbers, whose last digit may differ from that of a product."""
    return np.array([x**2 for x in numbers.tolist()])


def due(shape: Shape, numbers: Array) -> Sequence[bool]:
    """Whose next round is for the baseline."""
    if shape.every == 0:
        return [False] * len(numbers)
    slot = shape.flat.size
    found: list[bool] = (numbers[:, slot] >= numbers[:, slot + 1]).tolist()
    return found


def silent(shape: Shape, plain: list[float]) -> bool:
    """Whether there is surely no advice on a study: what `trimtab.live.advice` asks for first is not so."""
    figures, dim = shape.figures, shape.setup.dim
    if plain[figures + TOLD] < ENOUGH:
        return True
    edges = plain[shape.vectors + dim : shape.vectors + 2 * dim]
    still = plain[figures + NEAR] > 0 and plain[figures + CAPPED] <= MOST and plain[figures + LONG] <= HALF
    return still and max(map(abs, edges)) <= MOST
