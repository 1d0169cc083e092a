"""What several tests of live studies need: a PostgreSQL server of their own, and patience."""

import glob
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from trimtab.live import Store, schema
from trimtab.live.checksums import checksum


def binaries():
    for folder in [
        os.path.dirname(shutil.which("pg_ctl") or ""),
        *sorted(glob.glob("/usr/lib/postgresql/*/bin"))[::-1],
    ]:
        if folder and os.path.exists(os.path.join(folder, "initdb")):
            return folder
    pytest.skip("no PostgreSQL server here: initdb and pg_ctl are neither on the PATH nor in /usr/lib/postgresql")


@pytest.fixture(scope="session")
def server():
    """A server on a socket in a folder of its own; root runs it as another user, because it refuses to be root."""
    pytest.importorskip("psycopg", reason="no psycopg: it comes with the extra postgres")
    programs, folder = binaries(), Path(tempfile.mkdtemp(prefix="trimtab-pg-"))
    user = None
    if os.geteuid() == 0:
        user = "nobody"
        shutil.chown(folder, user)

    def call(program, *words):
        command = [os.path.join(programs, program), *map(str, words)]
        with open(folder / "said", "ab") as said:  # no pipe: the server would keep it open
            done = subprocess.run(command, user=user, cwd="/", stdout=said, stderr=said, timeout=300)
        assert done.returncode == 0, (folder / "said").read_text()

    data = folder / "data"
    call("initdb", "-D", data, "-U", "me", "-A", "trust", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c max_connections=40"

    def control(*words):
        call("pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", *words)

    control("start")
    try:
        yield f"postgresql://me@/postgres?host={folder}", control
    finally:
        call("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def url(server):
    return server[0]


NEW = {  # version → what it has that those before do not
    3: ("ALTER TABLE trimtab_events DROP COLUMN limits", "DROP TABLE trimtab_requests"),
    4: (
        "ALTER TABLE trimtab_studies DROP COLUMN paused",
        "ALTER TABLE trimtab_studies DROP COLUMN archived",
        "DROP TABLE trimtab_tokens",
    ),
    5: tuple(f"ALTER TABLE trimtab_studies DROP COLUMN {name}" for name in ("failures", "advised", "told")),
    6: ("ALTER TABLE trimtab_studies DROP COLUMN state",),
    7: (),
}
SEALED = "SELECT id, uid, name, created, setup, seq, status FROM trimtab_studies"


@pytest.fixture
def made_old():
    """A store, a file or on a server, as an older version made it; gives the tables that are there then."""
    assert max(NEW) == schema.VERSION

    def make(where, version=2):
        with Store(where, "write") as store, store._db.transaction():
            for id, *about in store._db.execute(SEALED) if version < 7 else ():
                store._db.execute("UPDATE trimtab_studies SET checksum = ? WHERE id = ?", checksum(about), id)
            for number in range(schema.VERSION, version, -1):
                for statement in NEW[number]:
                    store._db.execute(statement)
            store._db.execute("UPDATE trimtab_meta SET version = ?", version)
            return store._db.tables()

    return make
