"""Stores of other versions: those that can be migrated remain usable, and those that cannot are left unchanged."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from trimtab.live import Damaged, Store, StoreError, Study
from trimtab.store import tables
from trimtab.store.shared_store import SharedStore
from trimtab.study.unlocked import of_row
from trimtab.study.verify import check_study

from ..factories import one_knob_store
from .kept_stores import (
    CONTEXT,
    FOLDER,
    RISKS,
    changed,
    fill,
    fill_context,
    fill_risk,
    go_on,
    go_on_context,
    go_on_risk,
    shape,
)

KEPT = sorted(FOLDER.glob("*.db"))
KEPT_CONTEXT = sorted(FOLDER.glob("context/*.db"))
KEPT_RISK = sorted(FOLDER.glob("risk/*.db"))


@pytest.fixture
def file(tmp_path):
    return one_knob_store(tmp_path / "t.db")


def wrong(where):
    """Return the problems that `trimtab check` finds in the store and all its studies."""
    with Store(where) as store:
        return store.check() + [why for saved in store.all().values() for why in check_study(store, saved)]


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_a_kept_store_of_each_version_remains_usable(kept, tmp_path):
    where = tmp_path / "t.db"
    shutil.copy(kept, where)
    assert wrong(where) == []
    with SharedStore(where) as store:
        (row,) = store.rows(["service"])
        alone = of_row(tables.read_study(row, where), row.state)
        assert (alone is None) == (kept.stem != f"version-{tables.VERSION}")  # until it is written in this version
        for _ in range(3):
            changed(store, "late", lambda study: study.tell(study.pending[0], 1.0))
            changed(store, "service", lambda study: study.tell(study.ask(), 1.0))
            changed(store, "late", lambda study: study.hand_out())
        (row,) = store.rows(["service"])
        assert (
            of_row(tables.read_study(row, where), row.state) is not None
        )  # from its row alone, once its configuration is cached
    for name in ("numbers", "limits", "mixed"):
        with Study.open(where, name) as study:
            before = study.seq
            go_on(study, 3)
            assert study.seq == before + 3
    assert wrong(where) == []


@pytest.mark.parametrize("kept", KEPT_CONTEXT, ids=lambda path: path.stem)
def test_a_kept_store_with_context_remains_usable(kept, tmp_path):
    where = tmp_path / "t.db"
    shutil.copy(kept, where)
    assert wrong(where) == []
    with Study.open(where, "held", context=CONTEXT) as study:
        assert {event.context[0] for event in study.events() if event.query} == {
            None,
            0.5,
            *(n / 8 for n in range(14) if n % 5 != 3),
        }
        before = study.seq
        go_on_context(study, 3)
        assert study.seq == before + 3
    with SharedStore(where) as store:
        changed(store, "served", lambda study: study.tell(study.pending[0], 1.0))
        changed(store, "served", lambda study: study.hand_out(context={"load": 0.25}))
    with Study.open(where, "served") as study:
        assert study.ask().context == {"load": 0.25}
        assert [event.context for event in study.events() if event.kind == "tell"][-1] == [None]
    assert wrong(where) == []


@pytest.mark.parametrize("kept", KEPT_RISK, ids=lambda path: path.stem)
def test_a_kept_store_with_risks_remains_usable(kept, tmp_path):
    where = tmp_path / "t.db"
    shutil.copy(kept, where)
    assert wrong(where) == []
    with Study.open(where, "held", limits=RISKS) as study:
        counts, before = study.limits.counts, study.seq
        assert counts == ((8, 0), (10, 0))
        go_on_risk(study, 3)
        assert study.seq == before + 3
        assert study.limits.counts > counts
    with SharedStore(where) as store:
        changed(store, "served", lambda study: study.tell(study.pending[0], 1.0, limits={"load": 90}))
        changed(store, "served", lambda study: study.hand_out())
    with Study.open(where, "served") as study:
        assert study.limits.counts == ((4, 1), (4, 0))
        assert study.limits.last == (90.0, 1.0)
    assert wrong(where) == []


def test_a_changed_format_needs_a_new_version(tmp_path):
    fill(tmp_path / "t.db")
    kept = FOLDER / f"version-{tables.VERSION}.db"
    why = "the stored format has changed: increment tables.VERSION, add to MIGRATIONS, and run tests.store.kept_stores"
    assert kept.exists(), why
    assert shape(tmp_path / "t.db") == shape(kept), why
    fill_context(tmp_path / "c.db")
    kept = FOLDER / "context" / f"version-{tables.VERSION}.db"
    assert kept.exists(), why
    assert shape(tmp_path / "c.db") == shape(kept), why
    fill_risk(tmp_path / "r.db")
    kept = FOLDER / "risk" / f"version-{tables.VERSION}.db"
    assert kept.exists(), why
    assert shape(tmp_path / "r.db") == shape(kept), why


def test_a_store_older_than_the_first_kept_one_is_refused_in_one_line(file):
    first = min(int(path.stem.rpartition("-")[2]) for path in KEPT)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE trimtab_meta SET version = ?", [first - 1])
    before = file.read_bytes()
    for mode in ("create", "write", "read"):
        with pytest.raises(StoreError) as error:
            Store(file, mode)
        said = str(error.value)
        assert f"has version {first - 1}, but this trimtab reads versions from {first} on" in said
        assert "with the trimtab that made it (trimtab export)" in said
        assert "\n" not in said
    assert file.read_bytes() == before


@pytest.mark.parametrize("version", ["NULL", "'8'", "-1", "8.5"])
def test_an_invalid_version_is_reported_as_damage(file, version):
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DROP TABLE trimtab_meta")
        db.execute("CREATE TABLE trimtab_meta (version)")
        db.execute(f"INSERT INTO trimtab_meta VALUES ({version})")
    with pytest.raises(Damaged, match=r"is damaged \(its version is"):
        Store(file)


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE trimtab_studies SET setup = setup || ' '",
        "UPDATE trimtab_events SET value = 7 WHERE seq = 3",
        "UPDATE trimtab_snapshots SET state = substr(state, 1, 40)",
        "DELETE FROM trimtab_snapshots",
        "ALTER TABLE trimtab_studies DROP COLUMN marked",
    ],
)
def test_a_migration_with_an_unreadable_result_is_rolled_back(file, monkeypatch, spoil):
    before = tables.VERSION
    with monkeypatch.context() as later:
        later.setattr(tables, "VERSION", before + 1)
        later.setattr(tables, "MIGRATIONS", {before + 1: (spoil,)})
        with pytest.raises(StoreError) as error:
            Store(file)
        assert f"stays at version {before}, because it cannot be read as one of version {before + 1}" in str(
            error.value
        )
        assert "\n" not in str(error.value)
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT version FROM trimtab_meta").fetchall() == [(before,)]
    assert wrong(file) == []  # by the version that wrote it
    with Study.open(file, "a") as study:
        go_on(study, 1)
