"""What a study would set, before anything is run: the next trials, and how far probes can go."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from trimtab.spec.knob_encoding import Level
from trimtab.study import core_calls
from trimtab.study.study import Study
from trimtab.tune.config import Config


class Span(NamedTuple):
    """How far probes about the present centre can set one knob: (least, largest), now and at their widest."""

    now: tuple[Level, Level]
    widest: tuple[Level, Level]


@contextlib.contextmanager
def rehearsal(config: Config) -> Iterator[Study]:
    """The study, to look at; where there is none yet, the one that would begin. Nothing is kept."""
    with tempfile.TemporaryDirectory() as folder:
        if Study.exists(config.where, config.name):
            study = Study.look(config.where, config.name)
        else:
            study = replace(config, store=str(Path(folder) / "copy.db")).open()
        with study:
            yield study


def spans(study: Study) -> dict[str, Span]:
    """Of every knob that is a number or a switch and moves; a choice may be any of its possibilities at any time.

    A round that measures the point of the one before once more may be beyond, by as far as the centre has moved.
    """
    now, widest = (
        core_calls.spans(study.knobs, study.setup, study.state, width)
        for width in (core_calls.width(study.setup, study.state), study.setup.method.step.widest)
    )
    return {name: Span(now[name], widest[name]) for name in now}
