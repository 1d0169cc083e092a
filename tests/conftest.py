"""What tests of several folders need."""

import time

import pytest


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
