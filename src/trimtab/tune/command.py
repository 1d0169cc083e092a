"""Run a command with bounded time and output, and make sure that it does not outlive its run.

It runs in a session of its own, so that Ctrl-C in the terminal does not reach it and its whole group can be ended. On
Linux the kernel kills it when the tuner dies (PR_SET_PDEATHSIG). Its orphaned children are ended at the next start
(`end_leftovers`), which recognises them by an environment variable.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

GRACE = 2.0  # seconds between SIGTERM and SIGKILL
TICK = 0.05  # seconds between checks of whether the command has exited or must be ended
KEEP = 64 * 1024  # bytes of output that are kept, from the end
RUN = "TRIMTAB_RUN"  # environment variable of a command: study, event and tuner

_libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


class Ended(NamedTuple):
    """Result of a command."""

    status: int | None
    """Exit status; None after a timeout."""
    out: str
    complaint: str


class Interrupted(Exception):
    """The command was ended on request."""


def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    hurry: Callable[[], bool] = lambda: False,
    given: str = "",
) -> Ended:
    """Run a command until it exits, `timeout` seconds pass or `hurry()` is true; OSError if it cannot be started."""
    # A script may leave a server behind that inherits the pipes, so read until the script exits, not until EOF.
    child = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=partial(_die_with, os.getpid()) if _libc else None,
    )
    try:
        return _follow(child, time.monotonic() + timeout, hurry, given.encode())
    finally:
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _follow(child: subprocess.Popen[bytes], end: float, hurry: Callable[[], bool], given: bytes) -> Ended:
    assert child.stdout is not None
    assert child.stderr is not None
    kept = {child.stdout.fileno(): bytearray(), child.stderr.fileno(): bytearray()}
    out, complaint = kept.values()
    writing = [child.stdin.fileno()] if child.stdin is not None else []
    for pipe in (*kept, *writing):
        os.set_blocking(pipe, False)
    try:
        open_ones = list(kept)
        while child.poll() is None:
            if hurry():
                raise Interrupted
            if time.monotonic() >= end:
                end_group(child)
                return Ended(None, _whole_lines(out), _text(complaint))
            if not open_ones and not writing:  # it closed its output: wait for it to exit
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(TICK)
                continue
            readable, writable, _ = select.select(open_ones, writing, [], TICK)
            open_ones = [pipe for pipe in open_ones if pipe not in readable or _read(pipe, kept[pipe])]
            if writable and not (given := _write(writing[0], given)):
                assert child.stdin is not None
                child.stdin.close()
                writing = []
        for pipe in open_ones:  # read the rest without waiting for a server that still has the pipe
            while select.select([pipe], [], [], 0)[0] and _read(pipe, kept[pipe]):
                pass
        return Ended(child.returncode, _whole_lines(out), _text(complaint))
    except BaseException:
        end_group(child)
        raise


def _read(pipe: int, into: bytearray) -> bool:
    """Read available data; False at the end of the pipe."""
    data = os.read(pipe, KEEP)
    into += data
    if len(into) > 2 * KEEP:
        del into[:-KEEP]
    return bool(data)


def _write(pipe: int, data: bytes) -> bytes:
    """Write some data, and return the rest."""
    try:
        return data[os.write(pipe, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""


def _whole_lines(data: bytearray) -> str:
    """Return the text without a truncated first line: half a number would be a different one."""
    text = _text(data)
    return text if len(data) < KEEP else text.partition("\n")[2] or "…"


def _text(data: bytearray) -> str:
    return bytes(data[-KEEP:]).decode(errors="replace")


def _die_with(parent: int) -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before prctl took effect
        os._exit(1)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a command and everything in its group: SIGTERM first, then SIGKILL."""
    _signal_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    _signal_group(child.pid, signal.SIGKILL)  # also ends members of the group that ignored SIGTERM
    child.wait()


def _signal_group(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


def mark(study: str, seq: int) -> str:
    """Return the value of RUN for commands of this process."""
    return f"{study}/{seq}/{os.getpid()}/{_born(os.getpid())}"


def end_leftovers(study: str, seq: int) -> list[int]:
    """End the processes that a dead tuner's command for event `seq` left behind; return their ids.

    Processes that earlier rounds left running on purpose (a server) and those of a living tuner are not touched.
    Without /proc, none are found.
    """
    processes = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    found = [process for process in processes if _is_left(process, study, seq)]
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, sign)
        end = time.monotonic() + GRACE
        while time.monotonic() < end and any(_is_left(process, study, seq) for process in found):
            time.sleep(TICK)
    return found


def _is_left(process: int, study: str, seq: int) -> bool:
    try:
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    for variable in variables:
        if variable.startswith(f"{RUN}={study}/{seq}/".encode()):
            _, _, tuner, born = variable.decode(errors="replace").split("/", 3)
            return not tuner.isdigit() or _born(int(tuner)) != born
    return False


def _born(process: int) -> str:
    """Return the start time of a process, in ticks since boot; with the process id it identifies the process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "-"
