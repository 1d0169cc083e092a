"""`trimtab paper --quick`, through a real shell, once for all tests that look at what it made."""

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from trimtab.lab.parallel.result_cache import key, load_result, store_at
from trimtab.paper import MODES, experiments
from trimtab.paper.cells import cells, load

PROGRAM = Path(sys.executable).with_name("trimtab")
SEED = 2024
"""One that nothing was tuned on."""


@dataclass(frozen=True)
class Quick:
    """The place where it ran: figures and report in `out/paper`, finished cells in `cache`."""

    place: Path

    def run(self, *words):
        environment = {**os.environ, "TRIMTAB_CACHE": str(self.place / "cache"), "COLUMNS": "120"}
        command = [PROGRAM, "paper", "--quick", "--seed", str(SEED), "--jobs", "2", *words]
        done = subprocess.run(command, cwd=self.place, env=environment, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def cell(self, name):
        """The cached result of a cell."""
        found = load_result(store_at(self.place / "cache"), key(WORK[name]), load)
        assert found is not None, name
        return found


WORK = cells(MODES["quick"], experiments(MODES["quick"]), SEED)


@pytest.fixture(scope="session")
def work():
    """The cells of that run, by name."""
    return WORK


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Whichever process of the tests comes first runs it; the others wait."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    place = place / "quick"
    place.mkdir(exist_ok=True)
    found = Quick(place)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "said").exists():
            (place / "said").write_text(found.run())
    return found
