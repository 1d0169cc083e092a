"""Run a command that must not outlive its run, print without end, or hang.

It gets a session of its own, so that a Ctrl-C in the terminal is not for it, and that all it starts can be ended with
it. On Linux the kernel kills it when the tuner dies (PR_SET_PDEATHSIG); what its own children do then is seen to at
the next start (`end_leftovers`), by what they were given in the environment.
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

GRACE = 2.0  # seconds between asking a command to end and ending it
TICK = 0.05  # seconds between two looks at whether the command has exited, or is to be ended
KEEP = 64 * 1024  # bytes of its output that are kept, from the end
RUN = "TRIMTAB_RUN"  # in the environment of a command: which study, which event, which tuner

_libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


class Ended(NamedTuple):
    """How a command ended."""

    status: int | None
    """None if it had to be ended."""
    out: str
    complaint: str


class Interrupted(Exception):
    """It was ended because somebody is in a hurry."""


def run(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    hurry: Callable[[], bool] = lambda: False,
    given: str = "",
) -> Ended:
    """Run it, for no longer than `timeout` seconds, nor than `hurry()` is false; OSError if it cannot be started."""
    # A script may leave a server behind that keeps our end of a pipe: what is read is the pipe, until the script ends.
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
            if not open_ones and not writing:  # it closed its output: what is left is to wait for it
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(TICK)
                continue
            readable, writable, _ = select.select(open_ones, writing, [], TICK)
            open_ones = [pipe for pipe in open_ones if pipe not in readable or _read(pipe, kept[pipe])]
            if writable and not (given := _write(writing[0], given)):
                assert child.stdin is not None
                child.stdin.close()
                writing = []
        for pipe in open_ones:  # what it wrote last; a server that still has the pipe is not waited for
            while select.select([pipe], [], [], 0)[0] and _read(pipe, kept[pipe]):
                pass
        return Ended(child.returncode, _whole_lines(out), _text(complaint))
    except BaseException:
        end_group(child)
        raise


def _read(pipe: int, into: bytearray) -> bool:
    """Take what is there; False at the end."""
    data = os.read(pipe, KEEP)
    into += data
    if len(into) > 2 * KEEP:
        del into[:-KEEP]
    return bool(data)


def _write(pipe: int, data: bytes) -> bytes:
    """What is left to write."""
    try:
        return data[os.write(pipe, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""


def _whole_lines(data: bytearray) -> str:
    """The text without a first line whose beginning is not kept: half a number would be another one."""
    text = _text(data)
    return text if len(data) < KEEP else text.partition("\n")[2] or "…"


def _text(data: bytearray) -> str:
    return bytes(data[-KEEP:]).decode(errors="replace")


def _die_with(parent: int) -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that
        os._exit(1)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a command and everything in its group: first politely."""
    _signal_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    _signal_group(child.pid, signal.SIGKILL)  # also for those of the group that outlived the first
    child.wait()


def _signal_group(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


def mark(study: str, seq: int) -> str:
    """What a command of this process has in its environment, as RUN."""
    return f"{study}/{seq}/{os.getpid()}/{_born(os.getpid())}"


def end_leftovers(study: str, seq: int) -> list[int]:
    """End what is left of the command for event `seq` of a tuner that died; the processes that were ended.

    What commands of earlier rounds left running on purpose (a server) is not touched, nor what belongs to a tuner that
    lives. Looks into /proc, so it finds nothing where there is none.
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
    """When a process began, in ticks since the system did: with its number, its identity."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "-"
