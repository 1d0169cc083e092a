"""Fixtures for tests in several folders."""

import signal
import time

import pytest

from .databases import server, url  # noqa: F401

# In the background of a shell Ctrl-C is ignored, and so it would be by all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """For kernels: those who run tests share the cores, and the form for several is compiled where it is tested."""
    try:
        from numba import set_num_threads
    except ImportError:
        return
    set_num_threads(1)


@pytest.fixture
def until():
    """Wait for something; not for ever."""

    def wait(true, seconds=300):
        end = time.monotonic() + seconds
        while not (found := true()):
            assert time.monotonic() < end, "it never came"
            time.sleep(0.02)
        return found

    return wait
