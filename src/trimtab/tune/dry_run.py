"""Preview of a study without running anything: the next trials, and the range that probes can reach."""

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
    """The range (lowest, highest) of one knob that probes around the present centre can reach."""

    now: tuple[Level, Level]
    widest: tuple[Level, Level]


@contextlib.contextmanager
def rehearsal(config: Config) -> Iterator[Study]:
    """Open the study read-only; if it does not exist, create a temporary one."""
    with tempfile.TemporaryDirectory() as folder:
        if Study.exists(config.where, config.name):
            study = Study.open_unlocked(config.where, config.name)
        else:
            study = replace(config, store=str(Path(folder) / "copy.db")).open()
        with study:
            yield study


def spans(study: Study) -> dict[str, Span]:
    """Return the reach of probes for every moving number or switch; a choice can take any value at any time.

    A round that repeats the previous query may exceed it, by the distance that the centre has moved.
    """
    now, widest = (
        core_calls.spans(study.knobs, study.setup, study.state, width)
        for width in (core_calls.width(study.setup, study.state), study.setup.method.widest)
    )
    return {name: Span(now[name], widest[name]) for name in now}
