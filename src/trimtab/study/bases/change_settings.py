"""Change settings of a running study, by the rules of `trimtab.study.changes.rules`."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

from trimtab.recipes import BaseMethod
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
    """Study whose settings can be changed while it runs."""

    _asked: list[str]
    _news: list[str]

    def set(self, changes: Fields, *, who: str | None = None, why: str | None = None) -> Changes:
        """Change settings while the study runs, by their dotted names in a study.toml; what was learnt is kept.

        Allowed are radius, narrowest, widest, keep, pause, timeout, knobs.NAME.low, .high and .radius, and the fields
        of [guard] and [baseline]. Either all changes are made, or none. Return {field: (old, new)} of those that
        differ. An open trial stays open unless its probe is affected; then `ask` returns a new one. If another process
        holds the study (`look` with mode="write"), the change is requested, and made before its next trial.

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
        """Return the present value of every field that `set` can change."""
        return present(self._position)

    def refresh(self) -> None:
        """Apply the changes that others requested; call it while nothing is being measured."""
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
        """Whether changes can be made directly, rather than requested from a holder."""
        return self._held

    def _apply_requests_if_available(self) -> None:
        """Apply requested changes; if the store is unavailable, try again next time."""
        with suppress(Unavailable):
            self._asked = self._asked or self._store.requests(self._saved)
        if self._asked:
            self.refresh()

    def asked(self) -> bool:
        """Whether requests to the holder are still waiting."""
        with self._lock:
            return bool(self._store.requests(self._saved))

    def news(self) -> list[str]:
        """Return messages on the changes since the last call."""
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

    def _apply_definition(self, knobs: Knobs | None, method: BaseMethod | None, settings: Fields, source: str) -> None:
        """Apply the fields that differ from the last definition; fields that were changed by `set` meanwhile stay."""
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
            del fresh["max_move"]  # it is derived from guard.largest_move
        stays = {name: (v, now[name]) for name, v in present(self._position).items() if name in given}
        stays = {name: pair for name, pair in stays.items() if pair[0] != pair[1] and name not in (*fresh, "max_move")}
        for name, (value, other) in stays.items():
            self._news.append(f"{name} stays {value}, as it was last changed; {source} says {other}")
        if fresh:
            self._apply_fresh(fresh, given, source)
        if knobs is not None:
            self._report_starts(knobs, source)

    def _report_starts(self, knobs: Knobs, source: str) -> None:
        """Report starts that differ from both the original start and its nearest allowed value."""
        for knob, wanted in zip(self.knobs.all, knobs.all, strict=True):
            began = self.settings.starts.get(knob.name, knob.start)
            if wanted.start not in (began, knob.start):
                self._news.append(
                    f"knobs.{knob.name}.start is {began}, but {source} says {wanted.start}: the start of a knob cannot"
                    f" change once the study has begun; {remedy(self.name)}"
                )

    def _apply_fresh(self, fresh: Fields, given: Fields, source: str) -> None:
        """Change the fields in `fresh`, and remember the whole definition."""
        before = self._position
        definition = {**before.terms.said, **given}
        self._position = before._replace(terms=replace(before.terms, said=definition))
        try:
            changed = self._set(fresh, f"{person()}: {source}")
            if not changed:
                self._store.snapshot(self._saved, self._position.snapshot(self.seq))
                self._snapshot_at = self.seq
        except BaseException:
            self._position = before
            raise

    def _undo_change(self) -> None:
        """Undo the last change of settings; without a round since, restore the state before it exactly."""
        terms, seq = self.settings, self.settings.since
        snapshot = None if seq is None else self._store.last_snapshot(self._saved, seq - 1)
        if seq is None or snapshot is None:
            raise ValueError(f"study {self.name!r} has no change to undo: give a round to return to")
        there = read_snapshot(snapshot, f"study {self.name!r}")
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
