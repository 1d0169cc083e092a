"""Advice for each diagnostic outside its healthy range: one sentence that names the setting to change and its value.

Advice is given only on figures that cannot occur in a healthy study. tests/study/test_advice.py has runs for each
sentence: some where it is right, and some where it must not appear.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trimtab.spec.constraints import Limits
from trimtab.spec.knob_encoding import Knob, Knobs
from trimtab.study import core_calls
from trimtab.study.position import Position

ENOUGH = 50  # rounds before any advice, except on limits
SOON = 20  # rounds before advice on limits
SILENT = 10  # values without a number before advice
OFTEN = 0.7  # share of rounds; at a limit, half of the probes exceed it
LIMITS = "limits"  # the name of the diagnostic of measured limits
MOST, HALF = 0.8, 0.5  # shares of about the last hundred rounds
STEADY = 1.0  # signal-to-noise ratio of moves in one direction
CERTAIN = 0.8  # mean slope over its rms: over four standard errors, with correlated rounds allowed for
FALLS = 0.2  # contrasts: improvement of the mean of ten values over that of a hundred


class Finding(NamedTuple):
    """One diagnostic, with a sentence of advice if it is outside its healthy range.

    >>> from trimtab.live import Study
    >>> knobs = [dict(name="heat", low=150, high=220, start=180)]
    >>> study = Study.open(":memory:", "press", knobs, seed=0)
    >>> study.tell(study.ask(), 12.5)
    >>> study.findings()["edge"]  # no advice before fifty rounds
    Finding(value=0.0, advice=None)
    >>> study.close()
    """

    value: float
    advice: str | None


def findings(name: str, position: Position) -> dict[str, Finding]:
    """Return all diagnostics of a study by name, each with advice or None."""
    figures = position.diagnostics.figures(core_calls.probe_length(position.setup))
    advice = _sentences(name, position, figures) if position.diagnostics.told >= ENOUGH else {}
    if position.limits.all:
        figures[LIMITS] = max(position.limits.exceeded, default=0.0)
        advice[LIMITS] = _from_the_start(position) or _exceeded(position.limits) or _unmeasured(position)
    return {figure: Finding(value, advice.get(figure)) for figure, value in figures.items()}


def advised(position: Position) -> list[str]:
    """Return the names of the diagnostics that have advice."""
    return [figure for figure, found in findings("", position).items() if found.advice]


def _sentences(name: str, position: Position, figures: dict[str, float]) -> dict[str, str | None]:
    running, method, terms = position.diagnostics, position.setup.method, position.terms
    better = -running.trend if not position.setup.maximise else running.trend
    adaptive, radius = method.finds_width, method.radius
    largest = terms["guard.largest_move"]
    found: dict[str, str | None] = {}
    if figures["contrast"] == 0:
        found["contrast"] = (
            f"The value has been the same in all {running.told} rounds: check that the command in study.toml uses the"
            " knobs and prints enough digits."
        )
    one_way, held = running.signal > STEADY, running.capped > MOST
    if one_way and held and largest is not None:
        found["capped"] = (
            "Most moves reach guard.largest_move and go in one direction: allow longer ones with"
            f" trimtab set {name} guard.largest_move={_round(min(2 * largest, 1.0))}."
        )
    if adaptive and not held and running.long > MOST and better < FALLS * figures["contrast"]:
        found["drift"] = (
            "Most moves are as long as a probe, and the value does not improve: the optimum drifts as fast as the"
            " study can follow. Measure more often, or widen the probes with"
            f" trimtab set {name} radius={_round(min(4 * radius, 0.5))}."
        )
    if not adaptive and running.long > HALF:
        share = 0.35 * core_calls.probe_length(position.setup) / _shortest(terms.knobs)
        found["contraction"] = (
            "Most moves are longer than the probes behind them, because step is too large: shorten them with"
            f" trimtab set {name} guard.largest_move={_round(min(share, 1.0))}."
        )
    found["edge"] = _edge(name, position)
    return found


def _edge(name: str, position: Position) -> str | None:
    """Advise on a knob's limit beyond which the value improves."""
    knobs, running = position.terms.knobs, position.diagnostics
    mean, square, edges = (np.asarray(x) for x in (running.beyond, running.beyond_square, running.edges))
    sure = (mean * np.sign(edges) > CERTAIN * np.sqrt(square)) & (np.abs(edges) > MOST)
    if not sure.any():
        return None
    place = int(np.argmax(np.abs(edges) * sure))
    knob = [knob for knob in knobs.all for _ in range(knob.size)][place]
    side = "high" if edges[place] > 0 else "low"
    wider = beyond(knob, side)
    if wider is None:
        return None
    return (
        f"{knob.name} is at its {side} limit, and the value improves towards it: if the system allows, widen it with"
        f" trimtab set {name} knobs.{knob.name}.{side}={wider}."
    )


def _from_the_start(position: Position) -> str | None:
    """Advise on a limit with a risk that was exceeded in all its measurements, as at the operating point."""
    limits = position.limits
    if not limits.counts:
        return None
    over, last = core_calls.beyond(position.setup, position.state), dict(zip(limits.numbers, limits.last, strict=True))
    for limit, beyond_it, (measured, exceeded) in zip(limits.all, over, limits.counts, strict=True):
        if beyond_it and measured == exceeded:
            value = f"{limit.name} is {last[limit.name]:.4g}"
            return f"The start exceeds a limit, {limit.side} {limit.bound:.4g}: {value}; start where all limits hold."
    return None


def _unmeasured(position: Position) -> str | None:
    """Advise on a limit with a risk that has no number after several values."""
    limits, rounds = position.limits, position.diagnostics.told
    if not limits.has_risk or rounds < SILENT:
        return None
    counts = limits.counts or ((0, 0),) * len(limits.all)
    name = next((limit.name for limit, (measured, _) in zip(limits.all, counts, strict=True) if not measured), None)
    return name and (
        f"No number of {name} came with {rounds} values, and until there is one the operating point stays: tell it"
        " beside the value, or remove the limit."
    )


def _exceeded(limits: Limits) -> str | None:
    """Advise on the measured limit that is exceeded most often, if in most of the last rounds."""
    if limits.told < SOON or (share := max(limits.exceeded, default=0.0)) <= OFTEN:
        return None
    limit = limits.all[limits.exceeded.index(share)]
    value = dict(zip(limits.numbers, limits.last, strict=True))[limit.name]
    way = "above" if limit.side == "max" else "below"
    return (
        f"{limit.name} was {way} its limit of {limit.bound:.4g} in {share:.0%} of the last rounds, and is {value:.4g}:"
        " the study does not keep it. Stop it, and choose low and high of the knobs so that it cannot be exceeded."
    )


def beyond(knob: Knob, side: str) -> Any:
    """Return a limit half the range farther out, on a log scale twice as far; None if the limit is a natural one.

    A low limit of 0, or of 1 for an integer, is natural.

    >>> beyond(Knob(name="batch", low=1, high=512, start=8, type="int", scale="log"), "high")
    1024
    >>> beyond(Knob(name="share", low=0.0, high=1.0, start=0.5), "low")
    """
    low, high = knob.low, knob.high
    if side == "low" and (low == 0 or (low == 1 and knob.type == "integer")):
        return None
    if knob.scale == "log":
        wanted = high * 2 if side == "high" else low / 2
    else:
        wanted = high + (high - low) / 2 if side == "high" else low - (high - low) / 2
        wanted = low / 2 if side == "low" and low > 0 > wanted else wanted
    if knob.step is not None or knob.type == "integer":
        apart = knob.step or 1
        steps = math.ceil(abs(wanted - low) / apart)
        wanted = low + steps * apart if side == "high" else low - steps * apart
        wanted = low - apart if side == "low" and low > 0 >= wanted else wanted
        wanted = int(wanted) if knob.type == "integer" else float(f"{wanted:.12g}")
        return None if side == "low" and knob.scale == "log" and wanted <= 0 else wanted
    return _round(wanted, 4)


def _shortest(knobs: Knobs) -> float:
    return min((knobs.side(knob) for knob in knobs.all if knob.size), default=1.0)


def _round(number: float, digits: int = 2) -> float:
    return float(f"{number:.{digits}g}")
