"""The program `trimtab`, started in milliseconds: `run` and `start`, as in `subprocess`.

What they start is a process of its own: its folder, environment, pipes, signals and exit status are those of any other.
It is forked from one that has imported NumPy and the rest already, which takes most of a second and which hundreds of
tests would do again. Tests of how the program is started use `subprocess`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import warnings
from functools import cache

MODULES = (
    *("concurrent.futures", "csv", "joblib", "matplotlib.figure", "matplotlib.backends.backend_agg", "numpy", "typer"),
    *("rich.live", "rich.progress", "rich.table", "sqlite3", "tomllib", "trimtab.checks", "trimtab.lab"),
    *("trimtab.study.verify", "trimtab.tune.loop", "trimtab.problems", "trimtab.theory", "trimtab.tuner"),
)
"""Modules that commands import on demand, and that do not read the environment."""
LENGTH = 4  # bytes that say how long a request is


class Started:
    """A process, with what `subprocess.Popen` has of it."""

    def __init__(self, words, cwd=None, env=None):
        out, err = os.pipe(), os.pipe()
        self._told, tell = socket.socketpair()
        asked = {"words": [str(word) for word in words], "cwd": str(cwd or os.getcwd()), "env": dict(env or os.environ)}
        text = json.dumps(asked).encode()
        with _lock, tell:
            length = len(text).to_bytes(LENGTH, "big")
            assert socket.send_fds(_server(), [length], [out[1], err[1], tell.fileno()]) == LENGTH
            _server().sendall(text)
        os.close(out[1])
        os.close(err[1])
        self.stdout, self.stderr = (os.fdopen(pipe[0], encoding="utf-8") for pipe in (out, err))
        self.args, self.returncode, self._said = words, None, b""
        self.pid = int(self._line())

    def _line(self):
        """The server's next message about it; b"" after a timeout."""
        while b"\n" not in self._said:
            try:
                more = self._told.recv(64)
            except TimeoutError:
                return b""
            assert more, "the process that forks has ended"
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line

    def wait(self, timeout=None):
        if self.returncode is None:
            self._told.settimeout(timeout)
            if not (line := self._line()):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = int(line)
            self._told.close()
        return self.returncode

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(1e-6)
        return None

    def communicate(self, timeout=None):
        """All that it prints until it ends; not for ever."""
        texts = [[], []]
        readers = [
            threading.Thread(target=lambda pipe=pipe, text=text: text.append(pipe.read()), daemon=True)
            for pipe, text in zip((self.stdout, self.stderr), texts, strict=True)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout)
        self.wait(timeout)
        return texts[0][0], texts[1][0]

    def send_signal(self, sign):
        if self.poll() is None:
            os.kill(self.pid, sign)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.kill()
        self.stdout.close()
        self.stderr.close()
        self.wait()


def start(*words, cwd=None, env=None):
    """`trimtab WORDS` as a process that runs; stdout and stderr are pipes of text."""
    return Started(words, cwd, env)


def run(*words, cwd=None, env=None, timeout=300):
    """`trimtab WORDS`, until it ends."""
    with start(*words, cwd=cwd, env=env) as running:
        out, err = running.communicate(timeout)
    return subprocess.CompletedProcess(words, running.returncode, out, err)


def trimtab(folder, *words, status=0):
    """Output of `trimtab WORDS` in this folder; checks the status, and that an error is one line."""
    done = run(*words, cwd=folder)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if status:
        assert len(done.stderr.strip().splitlines()) == 1
    return done.stdout + done.stderr


_lock = threading.Lock()


@cache
def _server():
    here, there = socket.socketpair()
    with there:
        words = [sys.executable, __file__, str(there.fileno())]
        serving = subprocess.Popen(
            words, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    @atexit.register
    def end():
        here.close()
        serving.wait()

    return here


def _serve(channel):
    """Fork for each request: the child returns with it, into a program that ends as any other does.

    The process number is said at once, and the exit status when it is known. Ends with who asks.
    """
    _warm()
    children, woken = {}, socket.socketpair()
    for end in woken:
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken[1].fileno())
    wait = selectors.DefaultSelector()
    wait.register(channel, selectors.EVENT_READ)
    wait.register(woken[0], selectors.EVENT_READ)
    while True:
        ready = {key.fileobj for key, _ in wait.select()}
        if woken[0] in ready:
            woken[0].recv(4096)
            while children and (found := os.waitpid(-1, os.WNOHANG))[0]:
                with children.pop(found[0]) as tell, contextlib.suppress(OSError):
                    tell.sendall(b"%d\n" % os.waitstatus_to_exitcode(found[1]))
        if channel in ready:
            head, descriptors, _, _ = socket.recv_fds(channel, LENGTH, 3)
            if not head:
                os._exit(0)
            length, text = int.from_bytes(head, "big"), b""
            while len(text) < length:
                text += channel.recv(length - len(text))
            out, err, told = descriptors
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of threads that BLAS has made
                child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for sign in (signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT):  # those who test may be run by nohup
                    signal.signal(sign, signal.SIG_DFL)
                os.dup2(out, 1)
                os.dup2(err, 2)
                for thing in (wait, channel, *woken, *children.values()):
                    thing.close()
                for descriptor in descriptors:
                    os.close(descriptor)
                return json.loads(text)
            os.close(out)
            os.close(err)
            children[child] = tell = socket.socket(fileno=told)
            with contextlib.suppress(OSError):
                tell.sendall(b"%d\n" % child)


def _warm():
    """Import what the program imports; the console is forgotten, because it looks at the environment."""
    for module in MODULES:
        with contextlib.suppress(ImportError):  # an extra that is not here
            importlib.import_module(module)
    with contextlib.suppress(SystemExit), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        sys.argv = ["trimtab", "list", "--store", "/there/is/none"]
        importlib.import_module("trimtab.cli").main()
    for name in [name for name in sys.modules if name.startswith("trimtab.cli")]:
        del sys.modules[name]
    gc.collect()
    gc.freeze()  # so that children do not copy what they only read


def _become(words, cwd, env):
    """As the script of the entry point does."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["trimtab", *words]
    sys.path.pop(0)  # the folder of this file
    from trimtab.cli import main

    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            _end(end.code)
        raise


def _end(status):
    """As Python ends, but what is in memory is not taken apart first, which takes as long as most commands do."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _become(**_serve(socket.socket(fileno=int(sys.argv[1]))))
