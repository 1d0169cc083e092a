"""The belief in the user's words: `tuner.belief`, with the names and units of the knobs.

`trimtab.recipes.belief.account` has the numbers, in radii; here they become settings, sentences and JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from typing import NamedTuple

import numpy as np

from trimtab import core
from trimtab.knobs import Knob, Knobs
from trimtab.recipes.belief import Account, Belief, BeliefState
from trimtab.recipes.belief.listening import Explained
from trimtab.recipes.method import name_of
from trimtab.setup import Setup
from trimtab.state import State
from trimtab.types import Array, Document
from trimtab.util.text import aligned, plain, said

SHOWN = 12  # coordinates in a text
DIGITS = 12  # of a share of a range
FARTHEST = 1e3  # radii: farther makes no difference
PHASES = {
    "waiting": "no two values differ yet",
    "opening": "the first probes: level, slope and curvature are not known yet",
    "doubting": "the last value was far from expected: the next one tells an outlier from a jump",
    "searching": "the curvature along some knobs is not known yet",
    "approaching": "downhill, because the optimum is farther away than a probe",
    "tracking": "the optimum is within reach of the probes",
}


@dataclass(frozen=True)
class KnobBelief:
    """The belief about one knob, in its unit; for a choice, about the weight of one option. Intervals hold 90 %."""

    name: str
    unit: str
    centre: float
    optimum: float | None
    """Probable place of the optimum; None while the curvature may be zero."""
    low: float | None
    high: float | None
    """The interval of the optimum, within the limits; None: no end."""
    slope: float
    """Change of the value per unit of the knob, at the centre."""
    slope_low: float
    slope_high: float
    curvature: float | None
    """Change of the slope per unit, to one digit: an order of magnitude. None while it may be zero."""
    velocity: float | None
    """Change of the optimum per round."""
    probe: float
    """Length of a probe along the knob, in the root mean square."""


@dataclass(frozen=True)
class Window:
    """One length of memory, and how well it predicts."""

    level: float
    """Rounds after which the level is forgotten."""
    slope: float
    """Rounds after which slopes are forgotten."""
    steady: bool
    """Whether slopes go on changing as they did."""
    share: float
    """The weight of the filters with this memory, 0 to 1."""


@dataclass(frozen=True)
class LimitBelief:
    """The belief about a limited number at the operating point, without noise, in its unit."""

    name: str
    max: float | None
    min: float | None
    risk: float
    level: float
    """Its mean; NaN before it was measured."""
    low: float | None
    """Bound from below, which it exceeds but for the risk; None without `min`."""
    high: float | None
    """Bound from above; None without `max`."""
    careful: float
    """The standard deviations that are kept, as a multiple of those that the risk asks for: 1 to 3."""
    since: int
    """Rounds from its last measurement to the coming one."""

    def __str__(self) -> str:
        if math.isnan(self.level):
            return f"{self.name} was not measured yet"
        sides = (("at least", self.low, "min", self.min), ("at most", self.high, "max", self.max))
        ends = [f"{word} {said(end)} ({side} {said(at)})" for word, end, side, at in sides if at is not None]
        late = f", last measured {self.since} rounds ago" if self.since > 1 else ""
        return f"{self.name} {said(self.level)} at the centre, {' and '.join(ends)}{late}"


@dataclass(frozen=True)
class Explanation:
    """The knowledge of a tuner about its system: print it, or read the fields.

    >>> import trimtab as tt
    >>> tuner = tt.Tuner(knobs=[tt.Knob("valve", 0, 100, 20, unit="%")], method=tt.belief(radius=0.05), seed=0)
    >>> for _ in range(100):
    ...     trial = tuner.ask()
    ...     tuner.tell(trial, (trial.knobs["valve"] / 100 - 0.6) ** 2)
    >>> tuner.belief.phase, round(tuner.belief.knobs[0].optimum)
    ('tracking', 60)
    """

    round: int
    """The coming round, which everything here is about."""
    values: int
    """The number of values learnt."""
    knobs: tuple[KnobBelief, ...]
    level: float
    """The value at the centre, without noise."""
    trend: float
    """Its change per round."""
    noise: float
    """The standard deviation of a value."""
    next_low: float
    next_value: float
    next_high: float
    """The interval that holds the next value with 90 %, and its middle."""
    windows: tuple[Window, ...]
    """The lengths of memory, best first."""
    phase: str
    """waiting, opening, doubting, searching, approaching or tracking."""
    reason: str
    """Why probes are as long as they are."""
    limits: tuple[LimitBelief, ...] = ()

    @property
    def learning(self) -> bool:
        """Whether the optimum has not been found yet."""
        return self.phase != "tracking"

    def to_dict(self) -> Document:
        """All fields, as JSON values; None for numbers that are not known."""
        found: Document = plain(asdict(self))
        return found | {"learning": self.learning}

    def _rows(self) -> Iterator[tuple[str, ...]]:
        yield "knob", "centre", "optimum (90 %)", "slope (90 %)", "probe"
        for knob in self.knobs[:SHOWN]:
            name = f"{knob.name} [{knob.unit}]" if knob.unit else knob.name
            slope = _span(knob.slope, knob.slope_low, knob.slope_high)
            yield name, said(knob.centre), _span(knob.optimum, knob.low, knob.high), slope, f"± {said(knob.probe)}"

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "state", f"round {self.round}, {self.phase}: {PHASES[self.phase]}"
        if self.phase == "waiting":
            return
        centre, (low, high) = said(self.level), (said(self.next_low), said(self.next_high))
        yield "value", f"{centre} at the centre; the next one between {low} and {high} (90 %)"
        yield "noise", f"standard deviation {said(self.noise)}"
        best, moving = self.windows[0], sum(window.share for window in self.windows if window.steady)
        steady = f"; slopes that go on changing: {moving:.0%}" if moving >= 0.5 else ""
        memory = f"memories of {best.level:.0f} rounds for the level and {best.slope:.0f} for slopes predict best"
        yield "drift", f"{memory} ({best.share:.0%}){steady}"
        bends = [f"{knob.name} {said(knob.curvature)}" for knob in self.knobs[:SHOWN] if knob.curvature is not None]
        yield "curvature", f"about {', '.join(bends)}" if bends else "not known yet"
        yield "probes", self.reason
        if self.limits:
            yield "limits", "; ".join(map(str, self.limits))

    def __str__(self) -> str:
        lines = aligned(self._rows())
        if len(self.knobs) > SHOWN:
            lines.append(f"… {len(self.knobs)} in all")
        return "\n".join([*(f"{label}: {fact}" for label, fact in self._facts()), "", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(f"<b>{label}</b> {escape(fact)}<br>" for label, fact in self._facts())
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._rows())
        return f"{facts}<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


class Axis(NamedTuple):
    """One coordinate in the user's terms."""

    name: str
    unit: str
    value: Callable[[float], float]
    """Scaled coordinate → the user's, within the limits."""
    rate: float
    """The change of the user's coordinate per scaled one, at the centre."""


def explanation(setup: Setup, state: State, knobs: Knobs | None) -> Explanation:
    """Give the belief of a single system about its next round."""
    method, memory, point = setup.method, state.memory, state.centre[None]
    if setup.lanes is not None:
        raise AttributeError("a belief is explained for one system at a time: a tuner with lanes has none to show")
    decides = None
    if isinstance(method, Explained):
        decides, method, memory = method, Belief(radius=method.radius), memory.belief
    if not isinstance(method, Belief):
        raise AttributeError(
            f"{method} keeps no belief: give Tuner(…, explain=True), or use tt.belief(radius={method.radius:g})"
        )
    missing = np.full(len(setup.contexts), math.nan) if setup.contexts else None
    query = setup.inward(core.ask(setup, state, context=missing).x)[None]
    found = method.account(setup.frame, memory, state.round, (query - point) / method.radius)
    axes = list(_axes(setup, knobs, state.centre))
    sign = -1.0 if setup.maximise else 1.0
    rows = [_knob(axis, i, found, state.centre[i], method.radius, sign, memory) for i, axis in enumerate(axes)]
    ends = sorted((sign * float(found.value.low[0]), sign * float(found.value.high[0])))
    phase = _phase(found, setup, state.centre, memory)
    return Explanation(
        state.round,
        int(found.learnt[0]),
        tuple(rows),
        sign * float(found.level[0]),
        sign * float(found.trend[0]),
        float(found.noise[0]),
        ends[0],
        sign * float(found.value.middle[0]),
        ends[1],
        _windows(found),
        phase,
        f"chosen by {name_of(decides)}, which decides" if decides else _reason(found, memory, method, phase),
        tuple(_limits(setup, method, memory, state.round)),
    )


def _limits(setup: Setup, method: Belief, memory: BeliefState, round: int) -> Iterator[LimitBelief]:
    """The belief about each limit; that about a minimum is about the negative number."""
    standings = iter(method.standings(setup.frame, memory, round) if setup.limits else ())
    for limit in setup.limits:
        high = next(standings) if limit.max is not None else None
        low = next(standings) if limit.min is not None else None
        ends = [(sign, end) for sign, end in ((1.0, high), (-1.0, low)) if end is not None]
        sign, first = ends[0]
        yield LimitBelief(
            *(limit.name, limit.max, limit.min, limit.risk),
            sign * float(first.level[0]),
            None if low is None else -float(low.bound[0]),
            None if high is None else float(high.bound[0]),
            max(float(end.careful[0]) for _, end in ends),
            int(first.since[0]),
        )


def _knob(axis: Axis, i: int, found: Account, z: float, radius: float, sign: float, memory: BeliefState) -> KnobBelief:
    """The belief about coordinate i."""
    per = sign / (radius * axis.rate)
    slopes = sorted(per * float(end[0, i]) for end in (found.slope.low, found.slope.high))
    low, middle, high = (float(end[0, i]) for end in found.optimum)
    curvature, velocity = float(found.curvature[0, i]), float(found.velocity[0, i])
    known = math.isfinite(middle)
    return KnobBelief(
        axis.name,
        axis.unit,
        axis.value(z),
        axis.value(z + radius * middle) if known else None,
        _finite(axis.value(z + radius * low)),
        _finite(axis.value(z + radius * high)),
        per * float(found.slope.middle[0, i]),
        slopes[0],
        slopes[1],
        float(f"{sign * curvature / (radius * axis.rate) ** 2:.0e}") if known else None,
        velocity * radius * axis.rate if known else None,
        float(memory.course.width[0]) * radius * axis.rate,
    )


def _windows(found: Account) -> tuple[Window, ...]:
    """Members that differ in context alone are one."""
    shares: dict[tuple[float, float, bool], float] = {}
    for number, (level, slope) in enumerate(found.windows.round(6).tolist()):
        key = level, slope, number % 6 >= 4
        shares[key] = shares.get(key, 0.0) + float(found.shares[0, number])
    order = sorted(shares.items(), key=lambda item: -item[1])
    return tuple(Window(*key, share) for key, share in order)


def _phase(found: Account, setup: Setup, centre: Array, memory: BeliefState) -> str:
    if found.learnt[0] < 2:
        return "waiting"
    if found.held[0]:
        return "doubting"
    if found.learnt[0] <= max(3, 2 * setup.dim):
        return "opening"
    probe, flat = float(memory.course.width[0]), np.isnan(found.optimum.middle[0])
    steep = (found.slope.low[0] > 0) | (found.slope.high[0] < 0)
    low, high = found.optimum.low[0], found.optimum.high[0]
    way = np.where(low > probe, low, np.where(high < -probe, high, 0.0))
    way = np.where(flat & steep, -2 * probe * np.sign(found.slope.middle[0]), way).clip(-FARTHEST, FARTHEST)
    way = (
        setup.home.project(centre + setup.method.radius * way) - centre
    ) / setup.method.radius  # as far as it is free
    if (np.abs(way) > probe).any():
        return "approaching"
    return "searching" if flat.any() else "tracking"


def _reason(found: Account, memory: BeliefState, method: Belief, phase: str) -> str:
    """Why probes are as long as they are."""
    width = float(memory.course.width[0])
    if phase in ("waiting", "opening"):
        return "the first ones go as far as the radius"
    if not found.bent[0]:
        return "as long as the radius or longer, until they show the curvature"
    if width <= method.narrowest * (1 + 1e-9):
        return "as short as `narrowest` allows: little is left to gain"
    if width >= method.widest * (1 - 1e-9):
        return "as long as `widest` allows: the optimum is uncertain, or far"
    return f"{width:.2g} of the radius, so that they cost about as much as the centre's distance from the optimum"


def _axes(setup: Setup, knobs: Knobs | None, centre: Array) -> Iterator[Axis]:
    """The coordinates that move, in order."""
    if knobs is not None:
        position = 0
        for knob, shares in zip(knobs.all, knobs.shares(centre), strict=True):
            for i, share in enumerate(shares):
                yield _axis(knobs, knob, i, share, position)
                position += 1
        return
    every = np.arange(setup.shape[-1])
    moving = every if setup.free is None else every[setup.free]
    for number in moving.tolist():
        name = f"x[{number}]"
        if setup.bounds is None:
            yield Axis(name, "", float, 1.0)
        else:
            low, high = np.asarray(setup.bounds)[number].tolist()
            yield Axis(name, "", partial(_between, low, high), high - low)


def _between(low: float, high: float, z: float) -> float:
    return min(max(low + z * (high - low), low), high)


def _axis(knobs: Knobs, knob: Knob, i: int, share: float, position: int) -> Axis:
    low, length = (float(measure[position]) for measure in knobs.measures[:2])

    def part(z: float) -> float:
        return round(min(max((z - low) / length, 0.0), 1.0), DIGITS)

    if knob.choices is not None:
        return Axis(f"{knob.name}={knob.choices[i]}", "weight", part, 1 / length)
    rate = knob.high - knob.low
    if knob.scale == "log":
        rate = knob.value(share) * math.log(knob.high / knob.low)
    return Axis(knob.name, knob.unit, lambda z: knob.value(part(z)), rate / length)


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _span(middle: float | None, low: float | None, high: float | None) -> str:
    """A number and its interval."""
    if low is None and high is None:
        return "?"
    ends = f"{'any' if low is None else said(low)} to {'any' if high is None else said(high)}"
    return f"{said(middle)} ({ends})"
