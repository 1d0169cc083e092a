"""Studies as users see them, from the first trial to an import. Record them again: `python -m tests.study.golden`."""

import math
import re
import tempfile
import warnings
import zlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import trimtab as tt
from trimtab.live import Study

from ..golden import digest, record, written

FILE = Path(__file__).with_name("golden_studies.json")
ROUNDS = 130
WHEN = {"time", "age", "created", "holder"}
"""Fields that depend on when and by whom a study was run."""

METHODS = {
    "auto": tt.auto(radius=0.05),
    "residual": tt.residual(radius=0.05, step=3e-3),
    "hlf-szo": tt.hlf_szo(radius=0.05, step=1e-3),
    "reszo": tt.reszo(radius=0.05, step=3e-3),
}
KNOBS: dict[str, list[dict[str, Any]]] = {
    "plain": [
        {"name": "heat", "low": 150, "high": 220, "start": 180},
        {"name": "gain", "low": 0.5, "high": 100.0, "start": 2.0, "scale": "log"},
    ],
    "mixed": [
        {"name": "size", "type": "integer", "low": 1, "high": 256, "start": 8, "scale": "log"},
        {"name": "codec", "choices": ["gzip", "zstd", "lz4"], "start": "gzip"},
        {"name": "cache", "type": "bool", "start": True},
    ],
}
HIGHER = {"plain": {"knobs.heat.high": 215.0}, "mixed": {"knobs.size.high": 200}}
BEST = {"heat": 200.0, "gain": 10.0, "size": 64.0, "cache": 1.0, "codec": 4.0}
WIDTH = {"heat": 20.0, "gain": 5.0, "size": 60.0, "cache": 1.0, "codec": 1.0}
LIMITS = {"draught": {"max": 3.0}, "load": {"min": -2.0}}


@dataclass(frozen=True)
class Case:
    """One study in a file, with every action that users can take."""

    name: str
    method: Any
    knobs: str
    baseline: int = 0
    maximise: bool = False
    limits: dict[str, Any] | None = None

    @property
    def seed(self):
        """A number of 64 bits, so that about half of them are above 2**63."""
        return zlib.crc32(self.name.encode()) * (2**32 + 1)


def cost(knobs, turn):
    """A valley around a drifting optimum, flat far away; text counts by its length."""
    places = {name: float(len(level) if isinstance(level, str) else level) for name, level in knobs.items()}
    squares = sum(((place - BEST[name]) / WIDTH[name] - turn / ROUNDS) ** 2 for name, place in places.items())
    return 5.0 * squares / (5.0 + squares)


class Life:
    """Run a study and record everything it shows."""

    def __init__(self, case, file):
        self.case, self.file, self.lines, self.turn = case, file, [], 0
        self.rng = np.random.default_rng(case.seed)

    def see(self, *seen):
        self.lines.append(written(seen))

    def open(self, **changed):
        case = self.case
        options = {"method": case.method, "maximise": case.maximise, "seed": case.seed, "limits": case.limits}
        study = Study.open(
            self.file,
            "a",
            KNOBS[case.knobs],
            **{**options, "settings": {}, "baseline": case.baseline, "source": "study.toml", **changed},
        )
        self.see("opened", study.fields(), [nameless(words) for words in study.news()])
        return study

    def value(self, knobs):
        """A noisy measurement, with occasional failures and outliers."""
        self.turn += 1
        height = 10.0 + cost(knobs, self.turn) + 0.05 * self.rng.standard_normal()
        if self.turn % 13 == 5:
            return None if self.turn % 2 else math.nan
        height += 50.0 * (self.turn % 23 == 11)
        return -height if self.case.maximise else height

    def rounds(self, study, count):
        for _ in range(count):
            trial = study.ask()
            self.see(contextless(trial))
            value = self.value(trial.knobs)
            if value is None:
                study.skip(trial, "it failed")
            else:
                beside = {"draught": cost(trial.knobs, 0), "load": self.rng.standard_normal()}
                note = f"turn {self.turn}" if self.turn % 10 == 0 else None
                study.tell(trial, value, note, limits=beside if self.case.limits else None)
            self.see(study.round, study.centre, study.new_advice())
            if self.turn % 10 == 0:
                self.look(study)

    def look(self, study):
        self.see(timeless(study.summary()), study.findings(), study.saving, study.probes, study.counted)
        self.see(study.baseline.every, study.start, [contextless(trial) for trial in study.ahead(3)])

    def history(self, study):
        for event in study.events():
            self.see(timeless(study.describe(event)))


def contextless(trial):
    """Return the fields of a trial of a study without context."""
    *fields, context = trial
    assert context is None
    return fields


def timeless(document):
    """Return a document without times and persons."""
    if isinstance(document, dict):
        return {key: timeless(value) for key, value in document.items() if key not in WHEN}
    if isinstance(document, list):
        return [timeless(one) for one in document]
    return nameless(document) if isinstance(document, str) else document


def nameless(words):
    """Remove the user and the machine from the note of a change made in a study.toml."""
    return re.sub(r"\([^()]*: study\.toml\)", "(study.toml)", words)


def run(case, folder):
    """One history: changes, reopening, undo, rounds at rest, reset, export, import, and more rounds."""
    life = Life(case, folder / "t.db")
    with life.open() as study:
        life.rounds(study, 40)
        life.see(study.set({"radius": 0.04, **HIGHER[case.knobs]}, who="anna", why="it rattles"))
        life.rounds(study, 20)
        life.see(contextless(study.ask()))  # asked again after the next opening
    with life.open(settings={"guard.failures": 3, "radius": 0.03}) as study:
        life.rounds(study, 20)
        study.undo()  # of the change
        life.rounds(study, 20)
        study.note("pause", "anna: lunch")
        life.see(contextless(study.ask()))
        study.note("resume", "anna")
        study.record_hold(study.centre, 10.0, "at rest")
        life.rounds(study, ROUNDS - 100)
        study.undo(100)
        life.see(contextless(study.ask()))
        life.rounds(study, 5)
    bounds = {"draught": {"max": 2.0}, "load": {"min": -1.0}} if case.limits else None
    with life.open(limits=bounds, baseline=7 if case.baseline else 0) as study:
        study.undo(3)
        life.rounds(study, 5)
        study.reset()
        life.rounds(study, 10)
        study.record_hold(study.centre, None, kind="leave")
        life.look(study)
        text = study.export()
    with Study.open_unlocked(life.file, "a") as study:
        life.history(study)
    Study.import_text(folder / "other.db", text, "b")
    with Study.open(folder / "other.db", "b") as study:
        life.rounds(study, 10)
        life.look(study)
        life.history(study)
    return life.lines


def cases():
    """All combinations of the parts of a study; then two with limits."""
    for method, knobs, every, maximise in product(METHODS, KNOBS, (0, 5), (False, True)):
        name = (
            f"{method}, {knobs}, {f'baseline {every}' if every else 'no baseline'}, {'max' if maximise else 'min'}imise"
        )
        yield Case(name, METHODS[method], knobs, every, maximise)
    for knobs, every in (("plain", 5), ("mixed", 0)):
        method = tt.primal_dual(radius=0.05, step=1e-3, limits=len(LIMITS), dual_step=0.02)
        yield Case(f"limits, {knobs}", method, knobs, every, limits=LIMITS)


SERVED = {
    "served, plain": {"baseline": {"every": 0}},
    "served, often": {"baseline": {"every": 3}, "goal": "maximise", "radius": 0.1},
    "served, late": {"max_pending": 3, "baseline": {"every": 6}},
    "served, guarded": {"guard": {"failures": 2, "stop_above": 70.0}},
    "served, limits": {"limits": LIMITS, "method": "primal-dual", "radius": 0.05, "step": 0.001},
}


class Served:
    """A study behind the service, seen through its responses; every result is sent twice."""

    def __init__(self, name, body, http):
        self.name, self.body, self.http, self.lines = name, body, http, []
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def send(self, method, path, body=None, **query):
        answer = self.http.request(method, f"/v1/{path}", json=body, params=query)
        self.lines.append(written([answer.status_code, timeless(answer.json())]))
        return answer

    def rounds(self, count):
        for turn in range(count):
            if turn % 2 and "max_pending" in self.body:
                self.send("POST", "studies/a/trials:ask", another=True)
            trial = self.send("POST", "studies/a/trials:ask").json()
            if "id" not in trial:  # held by the guard
                self.send("POST", "studies/a:resume", {"why": "seen"})
                continue
            height = 10.0 + cost(trial["knobs"], turn) + 0.05 * self.rng.standard_normal()
            failed, result = turn % 7 in (4, 5), {"note": f"turn {turn}" if turn % 9 == 8 else None}
            result["value"] = None if failed else height + 100.0 * (turn % 17 == 13)
            if "limits" in self.body and not failed:
                result["values"] = {"draught": cost(trial["knobs"], 0), "load": self.rng.standard_normal()}
            if turn % 6 == 2 and trial["kind"] == "probe":
                result["applied"] = {"heat": min(trial["knobs"]["heat"] + 1.0, 210.0)}
            path = f"studies/a/trials/{trial['id']}/result"
            self.send("PUT", path, result, **({"next": True} if turn % 3 == 0 else {}))
            batch = {"results": [{"study": "a", "trial": trial["id"], **result}]}
            self.send("POST", "tells", batch)


def run_served(name, folder):
    """Record one study through the service: its responses, and finally every view of it."""
    from trimtab.serve.settings import Settings

    from ..serve.conftest import running

    with running(Settings(store=str(folder / "t.db"), connections=2, access_log=False)) as service:
        served = Served(name, SERVED[name], service.http)
        body = {"knobs": KNOBS["plain"], "seed": 2**63 - zlib.crc32(name.encode()), **SERVED[name]}
        assert served.send("PUT", "studies/a", body).status_code == 201
        served.rounds(25)
        served.send("PATCH", "studies/a", {"changes": {"radius": 0.04, **HIGHER["plain"]}, "why": "it rattles"})
        served.rounds(20)
        served.send("POST", "studies/a:undo", {"why": "it was too narrow"})
        served.rounds(5)
        served.send("POST", "studies/a:undo", {"round": 20, "why": "for a test"})
        served.rounds(5)
        served.send("POST", "studies/a:reset", {"why": "a new pump"})
        served.rounds(5)
        served.send("GET", "studies/a")
        served.send("GET", "studies")
        found = served.send("GET", "events", study="a", limit=1000).json()["events"]
        for event in found:
            served.lines.append(written(timeless(event)))
    return served.lines


CASES = {case.name: case for case in cases()}
NAMES = [*CASES, *SERVED]


def hash_of(name):
    """Return the hash of one study, by its name."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", tt.AdviceWarning)
        found = run(CASES[name], Path(folder)) if name in CASES else run_served(name, Path(folder))
    return digest(found)


if __name__ == "__main__":
    record(FILE, {name: hash_of(name) for name in NAMES})
