"""Waiting longer and longer, and trying again what may succeed later."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from trimtab.store.errors import Unavailable

FIRST, LONGEST = 0.1, 30.0  # seconds
T = TypeVar("T")


def delays(first: float = FIRST, longest: float = LONGEST) -> Iterator[float]:
    """Seconds to wait, doubling up to the longest, each a little off so that many who wait do not come at once."""
    for n in itertools.count():
        yield min(first * 2 ** min(n, 60), longest) * random.uniform(0.8, 1.2)


def retry_while_unavailable(
    call: Callable[[], T],
    *,
    patience: float,
    wait: Callable[[float], bool],
    say: Callable[[str], None],
) -> tuple[T, int]:
    """What the call gives, and how often it was tried again because the store was unavailable.

    patience: seconds after which the error is raised after all. wait(seconds): True ends the waiting, too.
    """
    end = time.monotonic() + patience
    for retries, delay in enumerate(delays()):
        try:
            found = call()
        except Unavailable as error:
            if time.monotonic() + delay > end:
                raise
            if retries == 0:
                say(f"waiting for the store: {error}")
            if wait(delay):
                raise
        else:
            if retries:
                say(f"the store is back after {'1 retry' if retries == 1 else f'{retries} retries'}")
            return found, retries
    raise AssertionError("delays never end")
