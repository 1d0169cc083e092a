"""Explanation of a study from a belief: which knobs matter, why it moved, what the next probe is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from trimtab.explanation import Explanation, KnobBelief
from trimtab.recipes.method import name_of
from trimtab.spec.knob_encoding import Knob, Knobs
from trimtab.store.store import Store
from trimtab.store.tables import Event, Setting, StudyRow
from trimtab.study import core_calls
from trimtab.study.listening import listen, refusal
from trimtab.study.position import Position, follow
from trimtab.types import Document
from trimtab.util.text import aligned, plain, plural, said, word

SEARCHED = 300  # latest events among which the last round is looked for
SHOWN = 12  # knobs and moves in the text
FEW = 20  # values, before which little is certain
WHOLE = ("bool", "choice")
SMALLEST = 1e-3  # ratio of a knob with a logarithmic scale, for a step that would reach zero
WIDE = 0.25  # share of a range: a wider interval of the optimum says little
ROUNDS = ("tell", "applied", "skip")
RESTARTS = ("undo", "reset")
PURPOSES = {
    "opening": "one of the first probes, for the level, slopes and curvature",
    "doubting": "it tells whether the surprise before it was an outlier or a jump",
    "searching": "it looks for the curvature, which shows where the optimum is",
    "approaching": "it looks for the slope, the way to the optimum",
    "tracking": "it checks whether the optimum has moved",
}


@dataclass(frozen=True)
class Effect:
    """The effect of one step of a knob, in the unit of the value; intervals hold 90 %."""

    name: str
    """The knob; for a choice, one of its options: valve=open."""
    unit: str
    centre: float
    step: float
    """Spacing of the knob, 1 for an integer, otherwise the radius; negative where a step up leaves the range."""
    change: float
    """Change of the value by this step from the centre; for a switch, if on; for an option, from the mean of all."""
    low: float
    high: float
    bend: float | None
    """Change of the value one step away from the optimum, to one digit; None while the curvature may be zero, and for
    switches and options."""
    share: float
    """Its share of the effects that are shown, 0 to 1."""

    @property
    def shown(self) -> bool:
        """Whether the values so far show that this knob has an effect."""
        return self.bend is not None or self.low > 0 or self.high < 0


@dataclass(frozen=True)
class LastMove:
    """The last round, and the move that it led to."""

    round: int
    kind: str
    value: float | None
    expected: tuple[float, float] | None
    """The interval that held this value with 90 %, before it was measured; None where no prediction is comparable."""
    knobs: dict[str, tuple[float, float]]
    """The centre before and after it, for each knob that moved."""
    reason: str


@dataclass(frozen=True)
class NextProbe:
    """The next setting to measure."""

    round: int
    kind: str
    knobs: Setting
    purpose: str


@dataclass(frozen=True)
class StudyExplanation:
    """The explanation of a study: print it, or read the fields. `Study.explain` returns it."""

    study: str
    method: str
    round: int
    """The coming round, which everything here is about."""
    listened: int | None
    """The number of rounds that the belief listened to; None if the method is the belief itself."""
    since: int | None
    """The first of these rounds."""
    effects: tuple[Effect, ...]
    """The effect of each knob, largest first."""
    move: LastMove | None
    probe: NextProbe
    unsure: tuple[str, ...]
    """Open questions, one each."""
    belief: Explanation
    """Optimum, slope and curvature by knob, the noise and the drift."""

    def to_dict(self) -> Document:
        """Return all fields as JSON values; None for numbers that are not known."""
        fields = {
            "study": self.study,
            "method": self.method,
            "round": self.round,
            "listened": self.listened,
            "since": self.since,
            "effects": [{**asdict(effect), "shown": effect.shown} for effect in self.effects],
            "move": None if self.move is None else asdict(self.move),
            "probe": asdict(self.probe),
            "unsure": list(self.unsure),
        }
        found: Document = plain(fields)
        return {**found, "belief": self.belief.to_dict()}

    def _facts(self) -> Iterator[str]:
        heard = "its own belief"
        if self.listened is not None:
            heard = f"a belief that listened to {plural(self.listened, 'round')}, from round {self.since} on"
        yield f"{self.study}: round {self.round}, method {self.method}; explained by {heard}"
        yield f"last move: {'no round yet' if self.move is None else self.move.reason}"
        yield f"next probe: round {self.probe.round} at {_named(self.probe.knobs)}: {self.probe.purpose}"
        if self.belief.limits:
            yield f"limits: {'; '.join(map(str, self.belief.limits))}"
        for sentence in self.unsure or ("no more than the intervals below",):
            yield f"unsure: {sentence}"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        yield "knob", "centre", "optimum (90 %)", "one step", "changes the value by (90 %)", "share"
        optima = {knob.name: knob for knob in self.belief.knobs}
        for effect in self.effects[:SHOWN]:
            name = f"{effect.name} [{effect.unit}]" if effect.unit else effect.name
            change = f"{said(effect.change)} ({said(effect.low)} to {said(effect.high)})"
            bend = "" if effect.bend is None else f"; off the optimum {said(effect.bend)}"
            shown = f"{effect.share:.0%}" if effect.shown else "not shown"
            yield name, said(effect.centre), _optimum(optima[effect.name]), said(effect.step), change + bend, shown

    def __str__(self) -> str:
        lines = aligned(self._rows())
        if len(self.effects) > SHOWN:
            lines.append(f"… {len(self.effects)} in all")
        return "\n".join([*self._facts(), "", *lines])

    __repr__ = __str__


def explain(
    store: Store,
    saved: StudyRow,
    position: Position,
    seq: int,
    round: int | None = None,
    report: Callable[[float], None] | None = None,
) -> StudyExplanation:
    """Explain a study at its present position, or as it was before a round."""
    if (why := refusal(saved, position)) and not core_calls.has_belief(position.setup):
        raise ValueError(why)
    until = seq if round is None else _before(store, saved, position, round, seq)
    history = store.events(saved, until - SEARCHED, until)
    last = next((event for event in reversed(history) if event.kind in (*ROUNDS, *RESTARTS)), None)
    wanted = last.seq if last is not None and last.kind in ROUNDS else None
    rounds = since = before = after = None
    if core_calls.has_belief(position.setup):
        there = position if until == seq else _position(store, saved, until)
        if wanted is not None:
            before, after = (_position(store, saved, at) for at in (wanted - 1, wanted))
    else:
        there, rounds, since, before, after = listen(store, saved, until, wanted, report)
    belief = _belief(there)
    if belief.phase == "waiting":
        few = "no two of its values differ" if belief.values else "it has no values"
        raise ValueError(f"study {saved.name!r} cannot be explained yet: {few}")
    setup, knobs = there.setup, there.terms.knobs
    effects = tuple(_effects(there, belief))
    method = name_of(core_calls.decides(setup)) or str(core_calls.decides(setup))
    moved = None
    if last is not None:
        moved = _move(last, before, after) if before and after else _restart(last)
    unsure = tuple(_unsure(knobs, belief, effects))
    coming = core_calls.next_round(setup, there.state)
    return StudyExplanation(
        saved.name, method, coming, rounds, since, effects, moved, _probe(there, belief), unsure, belief
    )


def _before(store: Store, saved: StudyRow, position: Position, round: int, seq: int) -> int:
    """Return the event after which a round was the next one."""
    event = store.before_round(saved, round, late=position.setup.max_pending > 1)
    if event is None or event.seq > seq:
        raise ValueError(
            f"round {round} of study {saved.name!r} has not been run, or is no longer kept: the next round is"
            f" {position.state.round}"
        )
    return event.seq


def _position(store: Store, saved: StudyRow, seq: int) -> Position:
    snapshot = store.last_snapshot(saved, seq)
    events = [] if snapshot is None else store.events(saved, snapshot.seq, seq)
    if snapshot is None or len(events) != seq - snapshot.seq:
        raise ValueError(f"the state of study {saved.name!r} after event {seq} is no longer kept: choose a later round")
    return follow(snapshot, events, f"study {saved.name!r}")


def _belief(there: Position) -> Explanation:
    return core_calls.explained(there.terms.knobs, there.setup, there.state)


def _effects(there: Position, belief: Explanation) -> list[Effect]:
    """Return the effect of one step of each knob, largest first."""
    knobs, width = there.terms.knobs, core_calls.probe_width(there.state)
    every = [knob for knob in knobs.all for _ in range(knob.size)]
    steps = [_step(knobs, knob, seen.centre) for knob, seen in zip(every, belief.knobs, strict=True)]
    places = [_place(*about, width) for about in zip(every, belief.knobs, steps, strict=True)]
    changes = core_calls.effects(there.setup, there.state, *zip(*places, strict=True))
    found, sizes = [], []
    for knob, seen, step, ends in zip(every, belief.knobs, steps, changes, strict=True):
        bend = None if seen.curvature is None else float(f"{0.5 * seen.curvature * step * step:.0e}")
        if knob.type in WHOLE:
            bend = None
        found.append(Effect(seen.name, seen.unit, seen.centre, step, *ends, bend, 0.0))
        size = abs(ends[0] if knob.type in WHOLE else seen.slope * step) + abs(bend or 0.0)
        sizes.append(size if found[-1].shown else 0.0)
    whole = math.fsum(sizes) or 1.0
    shared = [replace(effect, share=size / whole) for effect, size in zip(found, sizes, strict=True)]
    return sorted(shared, key=lambda effect: (not effect.shown, -effect.share))


def _step(knobs: Knobs, knob: Knob, centre: float) -> float:
    """Return one step of a knob, in its unit: upwards, unless that leaves the range."""
    if knob.type in WHOLE:
        return 1.0
    share = knobs.radius if knob.radius is None else knob.radius
    if knob.step is not None or knob.type == "integer":
        step = float(knob.step or 1)
    else:
        low, high = knobs.ranges.get(knob.name, (knob.low, knob.high))
        step = share * (centre * math.log(high / low) if knob.scale == "log" else high - low)
    return step if centre + step <= knob.high else -step


def _place(knob: Knob, seen: KnobBelief, step: float, width: float) -> tuple[float, float]:
    """Return the middle of a step as seen from the centre, and its length, in radii.

    A switch is only ever measured on and off, and a choice at its options, so that is what is compared.
    """
    per = seen.probe / width
    if knob.type in WHOLE:
        return (1 / len(knob.choices or (False, True)) - seen.centre) / per, 1 / per
    if knob.scale == "log":
        step = math.log(max((seen.centre + step) / seen.centre, SMALLEST)) * seen.centre
    return 0.5 * step / per, step / per


def _restart(last: Event) -> LastMove:
    """Return the last event as a move, if it is not a round, or its state is no longer kept."""
    words = {"undo": "an undo returned it to an earlier state", "reset": "a reset returned it"}
    reason = words.get(last.kind, f"round {last.round}, whose state is no longer kept")
    return LastMove(last.round, last.kind, last.value, None, {}, f"{reason}{f' ({last.note})' if last.note else ''}")


def _move(last: Event, before: Position, after: Position) -> LastMove:
    """Explain the move after a round."""
    old, new = _belief(before), _belief(after)
    head, plain = f"round {last.round}", (last.round, last.kind, last.value)
    expected = None if last.value is None else _expected(last, before, old)
    if last.value is not None:
        head += f" gave {said(last.value)}{_surprise(last.value, expected)}"
    pairs = [(a, b) for a, b in zip(old.knobs, new.knobs, strict=True) if a.centre != b.centre]
    moved = {a.name: (a.centre, b.centre) for a, b in pairs}
    if last.value is None:
        head += " had no value"
        if not moved:
            return LastMove(*plain, None, {}, f"{head}, so nothing moved")
    if not moved:
        return LastMove(*plain, expected, {}, f"{head}; {_still(after, new)}")
    if _undone(before, after):
        rest = "so the move before was undone: " + "; ".join(f"{a.name} back to {said(b.centre)}" for a, b in pairs)
    else:
        sign = -1.0 if after.setup.maximise else 1.0
        order = sorted(pairs, key=lambda pair: -abs(pair[1].centre - pair[0].centre) / pair[1].probe)
        rest = "; ".join(
            f"{a.name} {said(a.centre, 4)} → {said(b.centre, 4)}, {_towards(a, b, sign)}" for a, b in order[:3]
        )
        rest += f"; and {plural(len(order) - 3, 'smaller move')}" if len(order) > 3 else ""
    return LastMove(*plain, expected, moved, f"{head}; {rest}")


def _expected(last: Event, before: Position, old: Explanation) -> tuple[float, float] | None:
    """Return the interval of the value that was told, if the prediction is about just this query."""
    setup = before.setup
    alike = last.kind == "tell" and last.round == before.state.round and not before.terms.knobs.rounded
    known = math.isfinite(old.next_low) and math.isfinite(old.next_high)
    return (old.next_low, old.next_high) if alike and known and not setup.contexts else None


def _surprise(value: float, expected: tuple[float, float] | None) -> str:
    if expected is None:
        return ""
    low, high = expected
    words = "above" if value > high else "below" if value < low else "within"
    return f", {words} the expected {said(low)} to {said(high)}"


def _still(after: Position, new: Explanation) -> str:
    if new.phase == "doubting" and core_calls.has_belief(after.setup):
        return "nothing moved, because the next value first tells an outlier from a jump"
    return "nothing moved: the method compares values first, or the centre is at its limits"


def _undone(before: Position, after: Position) -> bool:
    """Whether the belief took back its last move, after a value that was much worse than expected."""
    if not core_calls.has_belief(after.setup):
        return False
    old, new = (core_calls.belief_of(at.state).course.move for at in (before, after))
    return bool(np.any(old) and np.allclose(new, -old, rtol=1e-6, atol=0.0))


def _towards(old: KnobBelief, new: KnobBelief, sign: float) -> str:
    """Describe the direction of one knob's move, as the belief sees it after the value."""
    if new.optimum is not None:
        nearer = abs(new.centre - new.optimum) <= abs(old.centre - new.optimum)
        return f"{'towards' if nearer else 'away from'} its probable optimum {said(new.optimum)}"
    way = sign * new.slope * (new.centre - old.centre)
    if not (new.slope_low > 0 or new.slope_high < 0):
        return "a try: its slope may still have either sign"
    return "the better way, by its slope" if way < 0 else "the worse way, by the slope that the belief sees now"


def _probe(there: Position, belief: Explanation) -> NextProbe:
    """Return the next trial, and what it is for."""
    setup, knobs = there.setup, there.terms.knobs
    round = core_calls.next_round(setup, there.state)
    if there.baseline.is_due:
        reference = dict(there.baseline.setting or knobs.setting(knobs.start))
        return NextProbe(round, "baseline", reference, "the reference, which the saving is measured against")
    state = there.opened(round, None).state
    setting = knobs.probe(core_calls.ask(setup, state, round), state.key.seed, round)
    look = core_calls.next_look(setup, state, round)
    purpose = PURPOSES[belief.phase]
    if look.width == 0:
        purpose = "the operating point itself, for the level"
    elif look.trial != round:
        how = "the mirror image of" if look.width < 0 else "the direction of"
        purpose = f"{how} round {look.trial}'s probe: {purpose}"
    return NextProbe(round, "probe", setting, purpose)


def _unsure(knobs: Knobs, belief: Explanation, effects: Sequence[Effect]) -> Iterator[str]:
    """Say what is not known yet."""
    if belief.values < FEW:
        yield f"everything, after {plural(belief.values, 'value')}"
    if belief.phase == "doubting":
        yield "whether the last value was an outlier or the system has jumped"
    if hidden := [effect.name for effect in effects if not effect.shown]:
        yield f"whether there is any effect of {_list(hidden)}"
    shown = {effect.name for effect in effects if effect.shown}
    if flat := [knob.name for knob in belief.knobs if knob.optimum is None and knob.name in shown]:
        yield f"the optimum of {_list(flat)}: the curvature may still be zero"
    if wide := list(_wide(knobs, belief)):
        yield f"how far the optimum is: {_list(wide)}"
    if belief.windows and belief.windows[0].share < 0.5:
        yield "how fast the system drifts: no length of memory predicts clearly best"


def _wide(knobs: Knobs, belief: Explanation) -> Iterator[str]:
    """Name the knobs whose optimum is known, but only within a wide interval."""
    every = [knob for knob in knobs.all for _ in range(knob.size)]
    for knob, seen in zip(every, belief.knobs, strict=True):
        length = 1.0 if knob.choices is not None else float(knob.high) - float(knob.low)
        low, high = (math.inf if end is None else end for end in (seen.low, seen.high))
        if seen.optimum is not None and not high - low <= WIDE * length:
            yield f"{seen.name} {_optimum(seen)}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _named(setting: Setting) -> str:
    return ", ".join(f"{name} {word(v) if isinstance(v, str | bool) else said(v)}" for name, v in setting.items())


def _optimum(knob: KnobBelief) -> str:
    if knob.low is None and knob.high is None:
        return "?"
    ends = f"{'any' if knob.low is None else said(knob.low)} to {'any' if knob.high is None else said(knob.high)}"
    return f"{said(knob.optimum)} ({ends})"
