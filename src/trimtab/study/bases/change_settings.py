"""What of a study is how it is corrected while it runs; `trimtab.study.changes.rules` says what may be, and how."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

from trimtab.recipes import Method
from trimtab.spec.knob_encoding import Knobs
from trimtab.store.errors import Unavailable
from trimtab.store.store import person
from trimtab.study.bases.write import StudyWrites
from trimtab.study.changes.queue import read_request, requested
from trimtab.study.changes.rules import (
    Changes,
    corrected,
    differences,
    fields_of,
    moved,
    present,
    remedy,
    sentence,
    with_parts,
)
from trimtab.study.position import read_snapshot
from trimtab.types import Document, Fields

LOG = logging.getLogger("trimtab.live")


class StudySettingChanges(StudyWrites):
    """A position in a store that a person may correct."""

    _asked: list[str]
    _news: list[str]

    def set(self, changes: Fields, *, who: str | None = None, why: str | None = None) -> Changes:
        """Correct fields while the study runs, by their dotted names as in a study.toml; what was learnt is kept.

        They may be: radius, narrowest, widest, keep, pause, timeout, knobs.NAME.low, .high and .radius, and the fields
        of [guard] and [baseline]. All or none: refused where one cannot be. Gives {field: (old, new)} of those that
        change. A trial
        that is open stays open where only the run is corrected; where the probes are, it is asked for anew. Where
        somebody else holds the study (`look` with mode="write"), it is asked of them, before their next trial.

        >>> from trimtab.live import Study
        >>> knobs = [dict(name="x", low=0, high=1, start=0.5)]
        >>> with Study.open(":memory:", "a", knobs, seed=0) as study:
        ...     study.set({"radius": 0.02, "knobs.x.high": 0.75}, who="anna", why="the pump rattles")
        {'radius': (0.05, 0.02), 'knobs.x.high': (1, 0.75)}
        """
        with self._lock:
            if self._is_ours():
                return self._set(changes, f"{who or person()}{f': {why}' if why else ''}")
            _, changed = corrected(self.name, self._position, changes)
            if changed:
                self._store.request(self._saved, requested(changes, who or person(), why))
            return changed

    def fields(self) -> Document:
        """Every field that `set` may correct, as it is now."""
        return present(self._position)

    def refresh(self) -> None:
        """Take the corrections that others asked for, where nothing is being measured."""
        with self._lock:
            self._asked = self._asked or self._store.requests(self._saved)
            while self._asked:
                text = self._asked[0]
                try:
                    changes, who = read_request(text)
                    answered = self._set(changes, who, text)
                except (ValueError, TypeError) as error:
                    LOG.warning("a requested change was refused: %s", error)
                    self._news.append(f"change refused: {error}")
                    answered = {}
                if not answered:
                    self._store.answer(self._saved, text)
                self._asked = self._asked[1:]

    def _is_ours(self) -> bool:
        """Whether nobody else has to be asked."""
        return self._held

    def _overhear(self) -> None:
        """The same, but a store that is away is no reason not to go on: it is looked at again next time."""
        with suppress(Unavailable):
            self._asked = self._asked or self._store.requests(self._saved)
        if self._asked:
            self.refresh()

    def asked(self) -> bool:
        """Whether corrections are asked of the holder that are not taken yet."""
        with self._lock:
            return bool(self._store.requests(self._saved))

    def news(self) -> list[str]:
        """The corrections since this was asked last, for people to read."""
        with self._lock:
            found, self._news = self._news, []
            return found

    def _set(self, changes: Fields, who: str, request: str | None = None) -> Changes:
        after, changed = corrected(self.name, self._position, changes)
        if changed:
            after = after._replace(terms=replace(after.terms, since=self.seq + 1))
            note = f"{sentence(changed)} ({who})"
            self._record("set", after, self.round, note=note, request=request)
            self._news.append(f"set: {note}")
        return changed

    def _hear(self, knobs: Knobs | None, method: Method | None, settings: Fields, source: str) -> None:
        """What is said now and was not last time is a correction; what somebody set meanwhile stays."""
        own = self.setup.method if method is None else method
        now = fields_of(self.knobs if knobs is None else knobs, own, settings)
        given = {
            name: value
            for name, value in now.items()
            if name in settings or (knobs if name.startswith("knobs.") else method) is not None
        }
        terms = self.settings
        fresh = {name: v for name, v in given.items() if name not in terms.said or terms.said[name] != v}
        if "max_move" in fresh and (given.get("guard.largest_move") or terms["guard.largest_move"]) is not None:
            del fresh["max_move"]  # which follows from it
        stays = {name: (v, now[name]) for name, v in present(self._position).items() if name in given}
        stays = {name: pair for name, pair in stays.items() if pair[0] != pair[1] and name not in (*fresh, "max_move")}
        for name, (value, other) in stays.items():
            self._news.append(f"{name} stays {value}, as it was last changed; {source} says {other}")
        if fresh:
            self._take(fresh, given, source)
        if knobs is not None:
            self._hear_starts(knobs, source)

    def _hear_starts(self, knobs: Knobs, source: str) -> None:
        """Say where a start is neither where the study began nor the nearest place that is allowed now."""
        for knob, wanted in zip(self.knobs.all, knobs.all, strict=True):
            began = self.settings.starts.get(knob.name, knob.start)
            if wanted.start not in (began, knob.start):
                self._news.append(
                    f"knobs.{knob.name}.start is {began}, but {source} says {wanted.start}: the start of a knob cannot"
                    f" change once the study has begun; {remedy(self.name)}"
                )

    def _take(self, fresh: Fields, given: Fields, source: str) -> None:
        """Correct what is fresh of all that is said now."""
        before = self._position
        said = {**before.terms.said, **given}
        self._position = before._replace(terms=replace(before.terms, said=said))
        try:
            changed = self._set(fresh, f"{person()}: {source}")
            if not changed:
                self._store.snapshot(self._saved, self._position.snapshot(self.seq))
                self._snapshot_at = self.seq
        except BaseException:
            self._position = before
            raise

    def _take_back(self) -> None:
        """The last correction; exactly, where nothing has happened since."""
        terms, seq = self.settings, self.settings.since
        snapshot = None if seq is None else self._store.last_snapshot(self._saved, seq - 1)
        if seq is None or snapshot is None:
            raise ValueError(f"study {self.name!r} has no change to undo: give a round to return to")
        there = read_snapshot(self.knobs, snapshot, f"study {self.name!r}")
        old = there.terms
        after = moved(self._position, old.knobs, there.setup.method)
        if self._turn == seq:
            with suppress(LookupError):
                _, there = self._position_after(seq - 1)
                running = replace(there.diagnostics, failures=self.diagnostics.failures)
                after = there._replace(diagnostics=running)
        was = present(self._position)
        after = with_parts(after._replace(terms=replace(old, said=terms.said)), present(there))
        note = f"{sentence(differences(was, present(after)))} (undoes the change of event {seq})"
        self._record("undo", after, self.round, note=note)
        self._news.append(f"undo: {note}")
