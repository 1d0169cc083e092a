"""Create `kept/version-N.db`, a small store of the current version with everything that a store may contain.

Later versions must be able to use it, so it is created once per version: `python -m tests.store.kept_stores`. Studies
with context have a store of their own, `kept/context/`, and those with limits with a risk, `kept/risk/`.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import trimtab as tt
from trimtab.live import Study
from trimtab.serve.http import tokens
from trimtab.spec.constraints import Limits
from trimtab.store import tables as schema
from trimtab.store.shared_store import SharedStore
from trimtab.study import create
from trimtab.study.changes.pause import paused
from trimtab.study.unlocked import UnlockedStudy, load

FOLDER = Path(__file__).with_name("kept")
NUMBERS = [
    {"name": "heat", "low": 150, "high": 220, "start": 180},
    {"name": "gain", "low": 0.5, "high": 100.0, "start": 2.0, "scale": "log"},
]
MIXED = [
    {"name": "size", "type": "integer", "low": 1, "high": 256, "start": 8},
    {"name": "codec", "choices": ["gzip", "zstd", "lz4"], "start": "gzip"},
    {"name": "cache", "type": "bool", "start": True},
    {"name": "rate", "low": 0.0, "high": 1.0, "start": 0.5, "step": 0.1},
]
LIMITS = {"load": {"max": 80.0}}
RISKS = {"load": {"max": 80.0, "risk": 0.02}, "value": {"min": -1000.0}}
CONTEXT = (tt.Context("load"),)
CONTEXT_KNOBS = [{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}]


def fill(where):
    """Fill a new store with studies of all kinds and events of all kinds."""
    with Study.open(where, "numbers", NUMBERS, seed=1, baseline=4) as study:
        go_on(study, 12)
        study.skip(study.ask(), "no value")
        study.set({"radius": 0.02, "knobs.heat.high": 210.0}, who="anna", why="the pump rattles")
        go_on(study, 3)
        study.undo()
        study.undo(5)
        go_on(study, 2)
    method = tt.primal_dual(radius=0.05, step=0.01, limits=1)
    with Study.open(where, "limits", NUMBERS, method, seed=2, limits=LIMITS, baseline=0) as study:
        go_on(study, 8)
    with Study.open(where, "mixed", MIXED, tt.residual(radius=0.05, step=1e-3), seed=3, maximise=True) as study:
        go_on(study, 8)
        study.reset()
    with SharedStore(where) as store:
        given = (tt.Knobs.of(MIXED), None, False, 4, {}, 0, Limits())
        create.create(store, "late", *given, None, 3)
        create.create(store, "service", tt.Knobs.of(NUMBERS), None, False, 5, {}, 3, Limits())
        for _ in range(3):
            changed(store, "late", lambda study: study.hand_out())
        changed(store, "late", lambda study: study.tell(study.pending[1], 2.0))
        for n in range(10):
            changed(store, "service", lambda study, n=n: study.tell(study.ask(), float(n % 4), "a note"))
        changed(
            store, "service", lambda study: study.tell_at(study.ask()._replace(knobs={"heat": 170.0, "gain": 3.0}), 1.0)
        )
        changed(store, "service", lambda study: study.proposed(study.ask()))
        store.pause(store.load("service"), paused("anna", "tea"))
        store.mark(store.load("mixed"), {"archived": 1.7e9})
        store.request(store.load("numbers"), json.dumps({"changes": {}, "who": "anna", "why": None}))
        tokens.create(store, "read", "numbers")


def fill_context(where):
    """Fill a new store with two studies with context, one of them of a service, with an open trial."""
    with Study.open(where, "held", CONTEXT_KNOBS, seed=6, baseline=4, context=CONTEXT) as study:
        go_on_context(study, 14)
        study.skip(study.ask({"load": 0.5}))
    with SharedStore(where) as store:
        given = (tt.Knobs.of(CONTEXT_KNOBS), None, False, 7, {}, 0, Limits())
        create.create(store, "served", *given, None, 1, contexts=CONTEXT)
        for n in range(3):
            changed(store, "served", lambda study, n=n: study.hand_out(context={"load": n / 4}))
            changed(store, "served", lambda study, n=n: study.tell(study.pending[0], float(n)))
        changed(store, "served", lambda study: study.hand_out(context={"load": None}))


def fill_risk(where):
    """Fill a new store with two studies that promise a risk: one held, and one of a service with late values."""
    with Study.open(where, "held", NUMBERS, seed=8, baseline=4, limits=RISKS) as study:
        go_on_risk(study, 14)
        study.tell(study.ask(), None, limits={"load": 70.0})
        study.skip(study.ask())
    with SharedStore(where) as store:
        given = (tt.Knobs.of(MIXED), None, True, 9, {}, 0, Limits.with_risk(RISKS))
        create.create(store, "served", *given, None, 2)
        for n in range(3):
            changed(store, "served", lambda study: study.hand_out())
            changed(store, "served", lambda study, n=n: study.tell(study.pending[0], float(n), limits={"load": 60 + n}))
        changed(store, "served", lambda study: study.hand_out())


def go_on_risk(study, rounds):
    """Run some rounds; in some of them, the limited number is not measured."""
    for n in range(rounds):
        trial = study.ask()
        load = trial.knobs["heat"] / 2 - 20
        study.tell(trial, 220 - trial.knobs["heat"], limits=None if n % 4 == 1 else {"load": load})


def go_on_context(study, rounds):
    """Run some rounds for a context; it is missing in some."""
    for n in range(rounds):
        trial = study.ask({"load": None if n % 5 == 3 else n / 8})
        study.tell(trial, 3 * trial.knobs["x"] + (trial.context["load"] or 0.0))


def go_on(study, rounds):
    """Run some rounds of a study that this process holds."""
    for _ in range(rounds):
        trial = study.ask()
        told = dict.fromkeys(study.limits.names, 81.0)
        study.tell(trial, float(study.seq % 5), limits=told or None)


def changed(store, name, act):
    """Change a study as the service does."""
    (known,) = load(store, [name])
    study = UnlockedStudy(store, known)
    act(study)
    assert study.stored()


def shape(where):
    """Return the format that a version denotes: the tables, and the keys of every document in them."""
    with closing(sqlite3.connect(where)) as db:
        tables = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'trimtab%'"))
        found = {"tables": tables}
        for name in tables:
            select = db.execute(f"SELECT * FROM {name}")
            for column, *values in zip((about[0] for about in select.description), *select.fetchall(), strict=False):
                found[f"{name}.{column}"] = sorted({str(_keys(value)) for value in values})
        return found


def _keys(value):
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return "text"
    if isinstance(value, dict):
        return {key: _keys(value[key]) for key in sorted(value)}
    return sorted({str(_keys(one)) for one in value}) if isinstance(value, list) else "one"


def keep(path, fill):
    """Fill a store once, and leave a single small file."""
    assert not path.exists(), f"{path} already exists: never replace a kept store"
    path.parent.mkdir(exist_ok=True)
    fill(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA page_size = 1024")
        db.execute("VACUUM")
    for lock in path.parent.glob("*.lock"):
        lock.unlink()


if __name__ == "__main__":
    for folder, contents in ((FOLDER / "context", fill_context), (FOLDER / "risk", fill_risk), (FOLDER, fill)):
        if not (path := folder / f"version-{schema.VERSION}.db").exists():
            keep(path, contents)
