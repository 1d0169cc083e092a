"""A study: knobs, a tuner and its history, in a store. Every value is on the disk before `tell` returns."""

from __future__ import annotations

import json
import math
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from trimtab import core, storage
from trimtab.live.diagnostics import Diagnostics, Finding
from trimtab.live.knobs import Knob, Knobs, Setting, rounding
from trimtab.live.store import Event, NoStore, Saved, Store
from trimtab.methods import Method
from trimtab.setup import Setup
from trimtab.state import State
from trimtab.state import Trial as Point
from trimtab.tuner import Tuner

KEEP = 10_000
FILE_FORMAT = "trimtab.study"


class Trial(NamedTuple):
    """What to set, and the `id` to tell the value under."""

    id: int
    knobs: Setting


class Study:
    """A tuner that lives in a store under a name; made with `Study.open`.

    `ask`, `tell` and `skip` are those of `Tuner`, with named knobs, and may be called from several threads: all who
    ask before a value is told get the same trial, and the first to tell it is taken. `tell` returns when the value
    and the new state are on the disk, together; if it raises, neither is, and the trial is still open. Killed at any
    moment and opened again, a study asks the interrupted trial again, with the same knobs.
    """

    def __init__(self, store: Store, saved: Saved, *, keep: int = KEEP, held: bool = True) -> None:
        if held:
            store.hold(saved)
            saved = store.load(saved.name)
        self._store, self._saved, self._keep, self._held = store, saved, keep, held
        self._lock = threading.RLock()
        self.name, self.seq = saved.name, saved.seq
        self.knobs = Knobs.of(saved.setup["knobs"])
        self.setup, self.state = _revive(saved)
        self.diagnostics = Diagnostics.from_dict(saved.diagnostics)
        self._draws = rounding(self.setup.seed)
        self._open: Trial | None = None

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        name: str,
        knobs: Iterable[Knob | Mapping[str, Any]] | None = None,
        method: Method | None = None,
        *,
        maximise: bool | None = None,
        seed: int | None = None,
        keep: int = KEEP,
    ) -> Study:
        """The study of that name; with knobs, a new one if there is none yet.

        where: a path of a SQLite file, or a URL (`postgresql://user@host/database`).
        method, maximise, seed: as for `Tuner`. For a study that exists they, and knobs, are checked against it: only
        the method's `max_move` may differ, and is taken over.
        keep: how many of the last rounds are kept in full; see docs/live.md for the rule.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> knobs = [dict(name="workers", low=1, high=64, start=4, type="integer", scale="log")]
        >>> with Study.open(folder.name + "/trimtab.db", "queue", knobs, seed=0) as study:
        ...     trial = study.ask()
        ...     study.tell(trial, 12.5)
        >>> with Study.open(folder.name + "/trimtab.db", "queue") as study:
        ...     study.round
        1
        >>> folder.cleanup()
        """
        _check_name(name)
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1000:
            raise ValueError(f"keep={keep!r} is too few: give a whole number of rounds, at least 1000")
        wanted = None if knobs is None else Knobs.of(knobs)
        store = Store(where, create=wanted is not None)
        try:
            if wanted is None or (saved := store.find(name)) is not None:
                saved = store.load(name)
                _compare(saved, wanted, method, maximise, seed)
            else:
                saved = _create(store, name, wanted, method, maximise, seed)
            study = cls(store, saved, keep=keep)
            if method is not None and study.setup.method != method:
                study._take_over(method)
            return study
        except BaseException:
            store.close()
            raise

    @classmethod
    def look(cls, where: str | os.PathLike[str], name: str) -> Study:
        """The study as it is now, to read only: whoever holds it goes on undisturbed."""
        store = Store(where, create=False)
        try:
            return cls(store, store.load(name), held=False)
        except BaseException:
            store.close()
            raise

    @staticmethod
    def exists(where: str | os.PathLike[str], name: str) -> bool:
        """Whether there is a study of that name; makes nothing."""
        try:
            store = Store(where, create=False)
        except NoStore:
            return False
        try:
            return store.find(name) is not None
        finally:
            store.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others have the study."""
        with self._lock:
            self._store.close()

    @property
    def round(self) -> int:
        """The number of the next trial."""
        return self.state.round

    @property
    def centre(self) -> Setting:
        """The operating point now: the nearest setting the system can take."""
        return self.knobs.setting(self.setup.outward(self.state.centre))

    @property
    def start(self) -> Setting:
        """Where the system was when the study began."""
        return self.knobs.setting(self.knobs.start)

    def ask(self) -> Trial:
        """The next trial; the same one until it is told or skipped."""
        with self._lock:
            if self._open is None:
                query = core.ask(self.setup, self.state).x
                self._open = Trial(self.round, self.knobs.probe(query, self._draws, self.round))
            return Trial(self._open.id, dict(self._open.knobs))

    def tell(self, trial: Trial | int, value: float | None, note: str | None = None) -> None:
        """The measured value; None or NaN if there is none. On the disk when this returns."""
        with self._lock:
            asked = self.ask()
            state = core.tell(self.setup, self.state, value, trial.id if isinstance(trial, Trial | Point) else trial)
            number = None if value is None or math.isnan(value) else float(value)
            diagnostics = self.diagnostics.missed() if number is None else self._measured(number, state)
            kind = "skip" if number is None else "tell"
            self._record(kind, state, diagnostics, asked.id, number, list(asked.knobs.values()), note)

    def skip(self, trial: Trial | int, note: str | None = None) -> None:
        """There is no value: the round passes and nothing moves. The note says why."""
        self.tell(trial, None, note)

    def held(self, setting: Setting, value: float | None, note: str | None = None) -> None:
        """A measurement at rest instead of a probe: recorded, but nothing is learnt; ends a row of failures."""
        with self._lock:
            diagnostics = self.diagnostics.missed() if value is None else replace(self.diagnostics, failures=0)
            self._record("hold", self.state, diagnostics, self.round, value, list(setting.values()), note)

    def undo(self, round: int) -> None:
        """Back to the state in which `round` was the next one; recorded, and itself to be undone."""
        with self._lock:
            event = self._store.before_round(self._saved, round)
            if event is None:
                raise ValueError(
                    f"the state before round {round} is not kept: of {self.round} rounds so far the last {self._keep}"
                    f" are, and every 10th, 100th, … before; trimtab show {self.name} --csv lists them"
                )
            state = storage.state_from_json(self.setup, event.state)
            self._record("undo", state, Diagnostics(), round, note=f"from round {self.round}")

    def reset(self, failures: int = 0) -> None:
        """Back to where the system was at first, with nothing learnt; the round numbers go on."""
        with self._lock:
            fresh = core.init(self.setup, self.knobs.start)
            state = fresh._replace(round=self.round, skipped=self.state.skipped)
            self._record("reset", state, Diagnostics(failures=failures), self.round, note="to start")

    def events(self, after: int = -1) -> Iterator[Event]:
        """The history, oldest first; thinned where it is old."""
        with self._lock:
            yield from list(self._store.events(self._saved, after))

    def propose(self, setting: Setting) -> None:
        """Say what would be set next, for a person to decide on."""
        with self._lock:
            self._store.note(self._saved, proposal=json.dumps([self.seq, self.round, setting]))

    def decision(self) -> bool | None:
        """Whether a person approved what is proposed, or rejected it, or has not decided yet."""
        with self._lock:
            seq, word = json.loads(self._store.load(self.name).decision or "[null, null]")
        return bool(word) if seq == self.seq else None

    def decide(self, *, approve: bool) -> Trial:
        """A person's word on what is proposed; whoever runs the study waits for it."""
        with self._lock:
            saved = self._store.load(self.name)
            seq, round, setting = json.loads(saved.proposal or "[null, null, null]")
            if seq != saved.seq:
                raise ValueError(
                    f"study {self.name!r} proposes nothing now: it does while trimtab tune runs it,"
                    " with approval = true under [guard]"
                )
            self._store.note(saved, decision=json.dumps([seq, approve]))
            return Trial(round, setting)

    def findings(self) -> dict[str, Finding]:
        """The diagnostics, with advice where it is wanted."""
        names = [knob.name for knob in self.knobs.all]
        return self.diagnostics.findings(self.setup.probe_length, names, maximise=self.setup.maximise)

    def summary(self) -> dict[str, Any]:
        """What `trimtab list --json` says of the study."""
        values = self.diagnostics.values
        return {
            "name": self.name,
            "rounds": self.round,
            "centre": self.centre,
            "value": values[-1] if values else None,
            "mean": self.diagnostics.fast if values else None,
            "trend": self.diagnostics.trend if values else None,
            "skipped": int(self.state.skipped),
            "failures": self.diagnostics.failures,
            "goal": "maximise" if self.setup.maximise else "minimise",
            "holder": self._saved.holder,
            "created": self._saved.created,
        }

    def export(self) -> str:
        """The whole study as it was when it was opened, or told last, as one JSON text; for `adopt` elsewhere."""
        with self._lock:
            document = {
                "format": FILE_FORMAT,
                "version": 1,
                "name": self.name,
                "created": self._saved.created,
                "setup": self._saved.setup,
                "state": storage.state_to_json(self.state),
                "diagnostics": self.diagnostics.to_dict(),
                "events": [event._asdict() for event in self.events() if event.seq <= self.seq],
            }
            return json.dumps(document)

    @staticmethod
    def adopt(where: str | os.PathLike[str], text: str, name: str | None = None) -> str:
        """Put what `export` wrote into another store; gives the study's name there."""
        try:
            document = json.loads(text)
            if document["format"] != FILE_FORMAT or document["version"] != 1:
                raise ValueError(f"it says {document['format']!r}, version {document['version']!r}")
            events = [Event(**event) for event in document["events"]]
            found = Saved(
                id=0,
                name=name or document["name"],
                setup=document["setup"],
                state=document["state"],
                diagnostics=document["diagnostics"],
                seq=events[-1].seq,
                proposal=None,
                decision=None,
                holder=None,
                created=document["created"],
            )
            setup, state = _revive(found)
            Diagnostics.from_dict(found.diagnostics)
            centre = Knobs.of(found.setup["knobs"]).values(setup.outward(state.centre))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"this is not an exported study, or is damaged ({error}): export it again") from None
        _check_name(found.name)
        came = Event(found.seq + 1, state.round, "import", None, None, centre, time.time(), None, found.state)
        store = Store(where)
        try:
            if store.find(found.name) is not None:
                raise ValueError(
                    f"there is a study {found.name!r} in {store.where} already: import it --as another name"
                )
            store.add(found.name, found.setup, found.diagnostics, [*events, came], found.state, found.created)
        finally:
            store.close()
        return found.name

    def _measured(self, value: float, state: State) -> Diagnostics:
        method = self.setup.method
        cap = math.inf if method.max_move is None else method.max_move * self.setup.probe_length
        near = 1e-9 + self.setup.method.radius * min(self.setup.directions.reach(self.setup.dim)[0], 2.0)
        sides = (state.centre >= 1 - near).astype(float) - (state.centre <= near)
        return self.diagnostics.after(value, state.centre - self.state.centre, cap, sides)

    def _record(
        self,
        kind: str,
        state: State,
        diagnostics: Diagnostics,
        round: int,
        value: float | None = None,
        query: list[float] | None = None,
        note: str | None = None,
        setup: dict[str, Any] | None = None,
    ) -> None:
        """Everything that changes goes through here: first the disk, then the memory."""
        if not self._held:
            raise ValueError(f"study {self.name!r} was opened to look at: use Study.open to change it")
        centre = self.knobs.values(state.centre.tolist())  # with bounds of 0 and 1, scaled coordinates are shares
        event = Event(self.seq + 1, round, kind, value, query, centre, time.time(), note, storage.state_to_json(state))
        self._store.record(self._saved, event, json.dumps(diagnostics.to_dict()), self._keep, setup)
        self.state, self.diagnostics, self.seq, self._open = state, diagnostics, event.seq, None

    def _take_over(self, method: Method) -> None:
        """The same method with another cap on its moves."""
        self.setup = replace(self.setup, method=method)
        document = _document(self.knobs, self.setup, self.state)
        note = f"max_move={method.max_move}"
        self._record("setup", self.state, self.diagnostics, self.round, note=note, setup=document)
        self._saved = self._saved._replace(setup=document)


def _check_name(name: str) -> None:
    """It becomes part of the name of a file."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ValueError(f"name={name!r} is no name for a study: use letters, digits, - and _, at most 64")


def _create(
    store: Store, name: str, knobs: Knobs, method: Method | None, maximise: bool | None, seed: int | None
) -> Saved:
    tuner = Tuner(knobs.start, method, bounds=[(0.0, 1.0)] * len(knobs.all), maximise=bool(maximise), seed=seed)
    if tuner.setup.method.queries != 1:
        raise ValueError(
            "two-point methods query the same moment twice, which a live system cannot: use another method"
        )
    document = _document(knobs, tuner.setup, tuner.state)
    storage.from_json(json.dumps(document["tuner"]))  # a method that cannot be read back is refused here
    centre = knobs.values(tuner.centre)
    state = storage.state_to_json(tuner.state)
    start = Event(0, 0, "start", None, None, centre, time.time(), None, state)
    return store.add(name, document, Diagnostics().to_dict(), [start], state)


def _document(knobs: Knobs, setup: Setup, state: State) -> dict[str, Any]:
    return {"knobs": knobs.to_list(), "tuner": json.loads(storage.to_json(setup, state))}


def _revive(saved: Saved) -> tuple[Setup, State]:
    setup, _ = storage.from_json(json.dumps(saved.setup["tuner"]))
    return setup, storage.state_from_json(setup, saved.state)


def _compare(saved: Saved, knobs: Knobs | None, method: Method | None, maximise: bool | None, seed: int | None) -> None:
    """Refuse to go on with a study that is not the one described."""
    setup, _ = _revive(saved)
    stored = Knobs.of(saved.setup["knobs"])
    differs = ""
    if knobs is not None and _ranges(knobs) != _ranges(stored):
        differs = "its knobs"
    elif maximise is not None and maximise != setup.maximise:
        differs = "its goal"
    elif seed is not None and seed != setup.seed:
        differs = f"its seed ({setup.seed})"
    elif method is not None and replace(method, max_move=None) != replace(setup.method, max_move=None):
        differs = f"its method ({setup.method})"
    if differs:
        raise ValueError(
            f"study {saved.name!r} exists with another setup: {differs} cannot change on the way; put it back, or give"
            " the study a new name, with start where the system is now (trimtab show tells)"
        )


def _ranges(knobs: Knobs) -> list[Knob]:
    """Where a study started, and units, do not matter later."""
    return [replace(knob, start=knob.low, unit="") for knob in knobs.all]
