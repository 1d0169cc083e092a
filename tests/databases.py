"""What several tests of live studies need: a PostgreSQL server of their own, and patience."""

import glob
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


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
