"""Run a study in forked processes and kill -9 each at a random moment: `python killing.py FOLDER KILLS SEED`.

The study is run by the same `Runner` as `trimtab tune`, with a real command. Each process says over a pipe which phase
it enters: asking, the command, the commit. The killer waits for a randomly chosen phase, then a random moment
longer, and kills. Every acknowledged value is written to acks.txt. Prints how many were killed in each phase.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from trimtab.live import Runner, Study, read_config
from trimtab.store.backends.sqlite import SqliteDatabase

PHASES = b"acm"


def live(folder: Path, say: int, until: int | None) -> None:
    """Run rounds, reporting phases and recording acknowledged values."""

    def telling(phase, function):
        def told(*arguments, **options):
            os.write(say, phase)
            return function(*arguments, **options)

        return told

    execute = SqliteDatabase.execute

    def executing(self, sql, *values):
        if sql == "COMMIT":
            os.write(say, b"m")
        return execute(self, sql, *values)

    SqliteDatabase.execute = executing
    Study.ask = telling(b"a", Study.ask)
    Runner.measure = telling(b"c", Runner.measure)
    config = read_config(folder / "study.toml")
    with config.open() as study, open(folder / "acks.txt", "a") as acks:
        rounds = None if until is None else until - study.baseline.slot
        for report in Runner(config, study).rounds(rounds):
            if report.kind in ("tell", "baseline"):
                acks.write(json.dumps([report.kind, report.round, report.value]) + "\n")
                acks.flush()


def start(folder: Path, until: int | None = None) -> tuple[int, int]:
    """A forked process that runs the study, and the pipe on which it reports."""
    hear, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(hear)
        try:
            live(folder, say, until)
        except BaseException as error:
            (folder / "errors.txt").open("a").write(f"{error!r}\n")
        os._exit(0)
    os.close(say)
    return child, hear


def kill_in(phase: int, child: int, hear: int, chance: random.Random) -> None:
    """Wait until the process enters the phase for the n-th time, plus a delay."""
    for _ in range(chance.randint(1, 4)):
        while (heard := os.read(hear, 1)) and heard[0] != phase:
            pass
    if chance.random() < 0.8:
        time.sleep(chance.random() * 0.0015)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(hear)


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    counted: Counter[str] = Counter()
    for _ in range(kills):
        phase = chance.choice(PHASES)
        kill_in(phase, *start(folder), chance)
        counted[chr(phase)] += 1
    config = read_config(folder / "study.toml")
    with Study.open_unlocked(config.where, config.name) as study:
        until = study.baseline.slot + 5
    child, hear = start(folder, until)
    while os.read(hear, 4096):
        pass
    os.waitpid(child, 0)
    print(json.dumps({"rounds": until, "kills": counted}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
