"""Fixtures for tests of studies: a PostgreSQL server of their own, and patience."""

import glob
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

USER = "nobody"


def binaries():
    for folder in [
        os.path.dirname(shutil.which("pg_ctl") or ""),
        *sorted(glob.glob("/usr/lib/postgresql/*/bin"))[::-1],
    ]:
        if folder and os.path.exists(os.path.join(folder, "initdb")):
            return folder
    pytest.skip("no PostgreSQL server here: initdb and pg_ctl are neither on the PATH nor in /usr/lib/postgresql")


def made_folder(within=None):
    """A folder for a server's files, or its socket: with a path that is short enough for one."""
    binaries()  # or skip
    folder = Path(tempfile.mkdtemp(prefix="trimtab-pg-" if within is None else "s", dir=within))
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    return folder


def caller(folder):
    """Run PostgreSQL's programs; as root as another user, because the server refuses to be run by root."""
    programs = os.pathsep.join([binaries(), os.environ.get("PATH", "")])

    def call(program, *words):
        command = [shutil.which(program, path=programs), *map(str, words)]
        with open(folder / "said", "ab") as said:  # no pipe: the server would keep it open
            user = USER if os.geteuid() == 0 else None
            done = subprocess.run(command, user=user, cwd="/", stdout=said, stderr=said, timeout=300)
        assert done.returncode == 0, "".join(
            path.read_text() for path in (folder / "said", folder / "log") if path.exists()
        )

    return call


@pytest.fixture(scope="session")
def server():
    """A server on a socket in a folder of its own; root runs it as another user, because it refuses to be root."""
    pytest.importorskip("psycopg", reason="no psycopg: it comes with the extra postgres")
    folder = made_folder()
    call = caller(folder)
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
