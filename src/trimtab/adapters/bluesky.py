"""Bluesky plan that keeps devices at their best operating point, with one reading per round.

    set the movables to centre + δu  →  trigger and read  →  the value of one field  →  tuner.tell

The documents contain each reading, its setting and the centre. At the end, also after an error or abort, the movables
are set to the centre.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator, Mapping, Sequence
from itertools import chain

from trimtab.knobs import Setting
from trimtab.tuner import Tuner
from trimtab.types import Document, Json
from trimtab.util.extras import pip_install
from trimtab.validation import whole

try:
    from bluesky import plan_stubs as stubs
    from bluesky import preprocessors
    from bluesky.utils import FailedStatus
except ImportError as error:
    raise ImportError(f"trimtab.adapters.bluesky needs Bluesky: {pip_install('bluesky')}") from error

__all__ = ["tune"]

Plan = Generator[Json, Json, Setting]
Steps = Generator[Json, Json, None]


def tune(
    detectors: Sequence[Json],
    field: str,
    tuner: Tuner,
    movables: Mapping[str, Json],
    rounds: int,
    *,
    save: str | os.PathLike[str] | None = None,
    md: Mapping[str, Json] | None = None,
) -> Plan:
    """Tune `movables`, devices by knob name; returns their final setting.

    field: the detector field to minimise, or to maximise if the tuner has `maximise=True`.
    save: a file that the tuner is written to after every round; `Tuner.load` resumes from it.

    A detector that fails or reads NaN is a failed measurement: the round passes and the centre stays. A movable that
    fails ends the plan. Every event contains the tuner's centre as `trimtab_<knob>`, beside the readings.

    >>> from bluesky import RunEngine
    >>> from ophyd.sim import SynAxis, SynSignal
    >>> motor = SynAxis(name="motor", value=0.2)
    >>> loss = SynSignal(name="loss", func=lambda: (motor.position - 0.7) ** 2)
    >>> tuner = Tuner(knobs=[{"name": "h", "low": 0, "high": 1, "start": 0.2}], seed=0)
    >>> _ = RunEngine({})(tune([loss], "loss", tuner, {"h": motor}, rounds=100))
    >>> abs(motor.position - 0.7) < 0.05
    True
    """
    rounds = whole("rounds", rounds, 1)
    if tuner.knobs is None or tuner.setup.max_pending > 1:
        raise ValueError("the plan sets one device for each knob, one trial at a time: give a Tuner(knobs=[...])")
    names = [knob.name for knob in tuner.knobs.all]
    if sorted(movables) != sorted(names):
        raise ValueError(f"movables={sorted(movables)} do not match the knobs {sorted(names)}: give one per knob")
    devices, centre = [movables[name] for name in names], _Centre(tuner)
    about = {
        "plan_name": "tune",
        "detectors": [device.name for device in detectors],
        "motors": [device.name for device in devices],
        "num_points": rounds,
        "hints": {"dimensions": [(["time"], "primary")]},
        "trimtab": {
            "field": field,
            "round": tuner.round,
            "seed": tuner.state.key.seed,
            "method": str(tuner.setup.method),
            "knobs": tuner.knobs.to_list(),
        },
        **(md or {}),
    }

    def put(setting: Setting) -> Steps:
        yield from stubs.mv(*chain.from_iterable((movables[name], level) for name, level in setting.items()))

    def follow() -> Steps:
        for _ in range(rounds):
            yield from stubs.checkpoint()
            trial = tuner.ask()
            yield from put(trial.knobs)
            try:
                reading = yield from stubs.trigger_and_read([*detectors, *devices, centre])
            except FailedStatus:
                tuner.skip(trial)
            else:
                if reading:  # empty if the plan is only inspected
                    tuner.tell(trial, _value(reading, field))
            if save is not None:
                tuner.save(save)

    def leave() -> Steps:
        yield from put(tuner.setting)  # the final centre

    run = preprocessors.run_wrapper(follow(), md=about)
    staged = preprocessors.stage_wrapper(run, [*detectors, *devices])
    yield from preprocessors.finalize_wrapper(staged, leave)
    return tuner.setting


class _Centre:
    """The tuner's centre as a readable device."""

    name = "trimtab"
    parent = None

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner

    def _now(self) -> Document:
        centre = {f"{self.name}_{name}": level for name, level in self._tuner.setting.items()}
        return {f"{self.name}_round": self._tuner.round, **centre}

    def read(self) -> Document:
        now = time.time()
        return {name: {"value": value, "timestamp": now} for name, value in self._now().items()}

    def describe(self) -> Document:
        return {name: {"source": "trimtab", "dtype": _dtype(value), "shape": []} for name, value in self._now().items()}


def _dtype(value: object) -> str:
    """The JSON type of a value."""
    kinds = {bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "string")


def _value(reading: Mapping[str, Document], field: str) -> float:
    if field not in reading:
        raise ValueError(f"no detector has the field {field!r}: choose from {', '.join(reading)}")
    value = reading[field]["value"]
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{field}={value!r} is not one number: choose a field that is, such as a sum or a mean"
        ) from None
