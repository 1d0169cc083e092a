"""The service as a process of its own, to be killed."""

import contextlib
import socket
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("trimtab")


def workers(supervisor):
    """The processes that answer: the children that multiprocessing has spawned."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    found = []
    for pid in map(int, children):
        with contextlib.suppress(OSError):  # it ended just now
            found += [pid] if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def service(where, count, *more):
    """A service on a port of its own, and its address."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    words = [PROGRAM, "serve", "--store", where, "--port", str(port), "--workers", str(count), "--quiet", *more]
    return subprocess.Popen(words, stderr=subprocess.DEVNULL), f"http://127.0.0.1:{port}"


def end(running):
    running.terminate()
    try:
        running.wait(30)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait(300)
