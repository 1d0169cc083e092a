"""Everything that can be found wrong with a stored study."""

from __future__ import annotations

from trimtab.live.errors import StoreError
from trimtab.live.history import follow
from trimtab.live.knobs import read_knobs
from trimtab.live.schema import Saved
from trimtab.live.store import Store


def check_study(store: Store, saved: Saved) -> list[str]:
    """Checksums of all events and states; that states can be read, and that what was told leads to what is recorded."""
    wrong: list[str] = []
    try:
        knobs = read_knobs(saved.setup)
        events = store.events(saved, until=saved.seq)
        snapshots = store.snapshots(saved, until=saved.seq)
    except (StoreError, ValueError, KeyError, TypeError) as error:
        return [str(error)]
    if not events or events[-1].seq != saved.seq:
        wrong.append(f"event {saved.seq}, the last one, is missing")
    if not snapshots:
        wrong.append("it has no state")
    kept = {event.seq: event for event in events}
    for snapshot, following in zip(snapshots, [*snapshots[1:], None], strict=True):
        until = saved.seq + 1 if following is None else following.seq
        path = [kept[seq] for seq in range(snapshot.seq + 1, until) if seq in kept]
        whole = len(path) == until - snapshot.seq - 1
        if following is None and not whole:
            wrong.append(f"events after {snapshot.seq} are missing")
        try:
            follow(knobs, snapshot, path if whole else [], f"the state after event {snapshot.seq}")
        except StoreError as error:
            wrong.append(str(error))
    return wrong
