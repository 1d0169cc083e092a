"""A sweep in a process of its own, for tests that kill its workers or interrupt it.

    python sweeper.py BACKEND FOLDER LOG [ADDRESS]

Sixteen cells. Each writes a line "n pid" to LOG/begun when it begins. While LOG/hold-N exists, cell N waits. At the
end the numbers that are done are printed as JSON.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

COUNT = 16


@dataclass(frozen=True)
class Square:
    value: int

    def save(self, path: Path) -> None:
        from trimtab.util.files import write_atomically

        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.with_name(path.name + ".json"), json.dumps(self.value).encode())


def load(path: Path) -> Square:
    return Square(json.loads(path.with_name(path.name + ".json").read_text()))


def compute(cell: dict, progress: object = None) -> Square:
    log = Path(cell["log"])
    with (log / "begun").open("a") as file:
        file.write(f"{cell['n']} {os.getpid()}\n")
    while (log / f"hold-{cell['n']}").exists():
        time.sleep(0.02)
    return Square(cell["n"] ** 2)


def main() -> None:
    from trimtab.lab import sweep

    backend, folder, log, *address = sys.argv[1:]
    cells = [{"n": n, "log": log} for n in range(COUNT)]
    found = sweep(
        compute, cells, jobs=2, backend=backend, folder=folder, load=load, cluster=address[0] if address else None
    )
    print(json.dumps([None if square is None else square.value for square in found]))


if __name__ == "__main__":
    main()
