"""Send `trimtab tune` a signal at each stage of a run: `python signalling.py FOLDER EVERY SIGNAL...`.

A stage is one side of a call: of a statement or a transaction in the store, of asking, measuring, starting the command,
telling or printing. A forked process counts them and sends the signal to itself at the n-th one. The next process goes
on with the same study and gets the signal EVERY stages later, until a run ends before it gets there. One line of JSON
says of each run: the signal, the stage, the exit status and what was printed.
"""

import functools
import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import trimtab.cli
from trimtab.cli.tune_display import Display
from trimtab.live import Runner, Study
from trimtab.store.backends.postgres import PostgresDatabase
from trimtab.store.backends.sqlite import SqliteDatabase
from trimtab.tune import command

ROUNDS = 2


class Stages:
    """Counts stages, and sends the signal at one of them."""

    def __init__(self, at, sign, say):
        self.left, self.sign, self.say = at, sign, say

    def passed(self, stage):
        self.left -= 1
        if self.left == 0:
            os.write(self.say, stage.encode())
            os.kill(os.getpid(), self.sign)

    def around(self, kind, name):
        function = getattr(kind, name)

        @functools.wraps(function)
        def called(*arguments, **options):
            what = arguments[1].split()[0] if name in ("execute", "change") else name
            self.passed(f"before {what}")
            found = function(*arguments, **options)
            self.passed(f"after {what}")
            return found

        setattr(kind, name, called)

    def within(self, kind, name):
        """As `around`, of a context manager."""
        function = getattr(kind, name)

        @contextmanager
        def entered(*arguments):
            self.passed(f"before {name}")
            with function(*arguments):
                self.passed(f"in {name}")
                yield
            self.passed(f"after {name}")

        setattr(kind, name, entered)


def tune(folder, stages, out, err):
    """Become `trimtab tune`."""
    for kind in (SqliteDatabase, PostgresDatabase):
        for name in ("execute", "change", "lock", "close"):
            stages.around(kind, name)
        stages.within(kind, "transaction")
    for kind, name in ((Study, "ask"), (Study, "tell"), (Runner, "measure"), (Display, "show"), (command, "_follow")):
        stages.around(kind, name)
    os.chdir(folder)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.argv = ["trimtab", "tune", "study.toml", "--plain", "--rounds", str(ROUNDS)]
    trimtab.cli.main()


def run(folder, at, sign):
    """The stage at which a process got the signal ("" if it ended before), its exit status and what it printed."""
    hear, say = os.pipe()
    paths = [folder / "out.txt", folder / "err.txt"]
    files = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in paths]
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        status = 0
        try:
            tune(folder, Stages(at, sign, say), *files)
        except SystemExit as end:
            status = end.code or 0
        except BaseException as error:
            os.write(2, f"Traceback: {error!r}\n".encode())
            status = 70
        finally:
            sys.stdout.flush()
            os._exit(status)
    for one in (say, *files):
        os.close(one)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    stage = os.read(hear, 100).decode()
    os.close(hear)
    return stage, status, *(path.read_text() for path in paths)


def main(folder, every, signs):
    for n, sign in enumerate(signs):
        at = 1 + n * every // len(signs)
        while True:
            stage, status, out, err = run(folder, at, sign)
            print(json.dumps([sign.name, stage, status, out, err]), flush=True)
            if not stage:
                break
            at += every


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), [signal.Signals[name] for name in sys.argv[3:]])
