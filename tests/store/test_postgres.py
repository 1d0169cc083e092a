"""The same guarantees in PostgreSQL, on a server that the tests start."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.live import Store, StoreError, Study, Unavailable
from trimtab.store import tables

from ..factories import KNOBS, run

pytest.importorskip("psycopg", reason='no psycopg: pip install "trimtab[postgres]"')


def path(where, name):
    with Study.open_unlocked(where, name) as study:
        return [event._replace(time=0.0) for event in study.events()]


def test_the_same_path_as_in_sqlite(url, tmp_path):
    for where in (url, tmp_path / "t.db"):
        for _ in range(4):
            with Study.open(where, "same", KNOBS, seed=1) as study:
                run(study, 30)
        with Study.open(where, "same") as study:
            study.undo(70)
            study.reset()
            run(study, 10)
    assert path(url, "same") == path(tmp_path / "t.db", "same")


def test_a_study_moves_between_stores(url, tmp_path):
    with Study.open(tmp_path / "t.db", "moves", KNOBS, seed=1) as study:
        run(study, 20)
        Study.import_text(url, study.export())
    with Study.open(url, "moves") as study:
        assert study.baseline.slot == 20
        Study.import_text(tmp_path / "u.db", study.export())
        run(study, 5)
        ahead = study.centre
    with Study.open(tmp_path / "u.db", "moves") as study:
        run(study, 5)
        assert study.centre == ahead


WORK = """
import sys
from trimtab.live import Study
with Study.open(sys.argv[1], "killed") as study:
    while True:
        trial = study.ask()
        value = (trial.knobs["gain"] - 6) ** 2 + trial.knobs["size"] % 7
        study.tell(trial, value)
        print(trial.id, repr(value), flush=True)
"""


def test_kills_and_a_second_writer(url, tmp_path):
    acknowledged = []
    for where in (url, tmp_path / "t.db"):
        Study.open(where, "killed", KNOBS, seed=3).close()
    for rounds in (3, 17, 40):
        with subprocess.Popen([sys.executable, "-c", WORK, url], stdout=subprocess.PIPE, text=True) as worker:
            acknowledged += [worker.stdout.readline() for _ in range(rounds)]
            with pytest.raises(StoreError, match=f"'killed' is in use by .*, process {worker.pid}, since"):
                Study.open(url, "killed")
            worker.send_signal(signal.SIGKILL)
            acknowledged += [line for line in worker.stdout.readlines() if line.endswith("\n")]
        assert _free(url)
    killed = path(url, "killed")
    with Study.open(tmp_path / "t.db", "killed") as study:
        for _ in range(killed[-1].seq):
            trial = study.ask()
            study.tell(trial, (trial.knobs["gain"] - 6) ** 2 + trial.knobs["size"] % 7)
    assert killed == path(tmp_path / "t.db", "killed")
    stored = {event.seq: event.value for event in killed}
    assert {event.kind for event in killed} == {"start", "tell", "baseline"}
    assert all(stored[int(line.split()[0])] == float(line.split()[1]) for line in acknowledged)


def _free(url):
    """Wait until the server notices that a client was killed."""
    for _ in range(200):
        try:
            Study.open(url, "killed").close()
            return True
        except StoreError:
            signal.sigtimedwait([], 0.02)
    return False


def test_a_server_that_goes_away_and_comes_back(server):
    url, control = server
    with Study.open(url, "restart", KNOBS, seed=1) as study:
        run(study, 5)
        study.ask()
        control("-m", "immediate", "restart")  # as after a crash
        state = study.state
        with pytest.raises(Unavailable, match="nothing that was acknowledged is lost"):
            run(study, 1)
        assert study.state is state
        run(study, 1)  # it reconnects and takes its lock again
        with pytest.raises(StoreError, match="'restart' is in use by"):
            Study.open(url, "restart")
    with Study.open(url, "restart") as study:
        assert study.round == 6
        run(study, 5)


def test_a_newer_store_is_refused(url):
    store = Store(url)
    store._db.execute("UPDATE trimtab_meta SET version = 99")
    try:
        with pytest.raises(StoreError, match="has version 99, but this trimtab reads up to"):
            Study.open(url, "newer", KNOBS)
    finally:
        store._db.execute("UPDATE trimtab_meta SET version = ?", tables.VERSION)
        store.close()


def test_a_batch_is_stored_with_one_join(url):
    """Each study is looked up once: a second join may be planned as a nested loop over all pairs."""
    from trimtab.store.backends.postgres import COLUMNS, MOVE

    with Store(url) as store:
        ((plan,),) = store._db.execute(f"EXPLAIN (FORMAT JSON) {MOVE}", *([] for _ in COLUMNS))
    kinds, nodes = [], [plan[0]["Plan"]]
    while nodes:
        node = nodes.pop()
        kinds.append(node["Node Type"])
        nodes += node.get("Plans", [])
    assert sum(kind in ("Nested Loop", "Hash Join", "Merge Join") for kind in kinds) == 1
    assert kinds.count("Function Scan") == 1


def test_the_program(url, tmp_path):
    study = 'name = "shell"\nstore = "{}"\ncommand = ["echo", "{{x}}"]\n[knobs.x]\nlow = 0\nhigh = 1\nstart = 0.5\n'
    study += "[baseline]\nevery = 0\n"
    (tmp_path / "study.toml").write_text(study.format(url))
    program = Path(sys.executable).with_name("trimtab")
    for words in (["tune", "study.toml", "--rounds", "5"], ["show", "shell", "--store", url, "--csv"]):
        done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("tell") == 5
    assert [file.name for file in tmp_path.iterdir()] == ["study.toml"]


def test_text_that_cannot_be_stored_is_distinguished_from_an_unavailable_server(url):
    from trimtab.serve.http.errors import as_problem
    from trimtab.store.errors import Unstorable
    from trimtab.store.pool import Pool
    from trimtab.store.study_filter import StudyFilter

    pool = Pool(url, 1)
    with pool.store() as store:
        for ask in (
            lambda: store.numbers(["a\0b"], 1),
            lambda: store.page("", 1, StudyFilter("\0", set(), None, False)),
            lambda: store.execute("SELECT ?::integer", "99999999999"),
        ):
            with pytest.raises(Unstorable) as raised:
                ask()
            problem = as_problem(raised.value)
            assert problem.status == 422
            assert "postgresql" not in problem.detail
    pool.close()
