"""Retries with exponential backoff."""

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
    """Yield delays in seconds, doubling up to the longest, with jitter so that clients do not retry in step."""
    for n in itertools.count():
        yield min(first * 2 ** min(n, 60), longest) * random.uniform(0.8, 1.2)


def retry_while_unavailable(
    call: Callable[[], T],
    *,
    patience: float,
    wait: Callable[[float], bool],
    say: Callable[[str], None],
) -> tuple[T, int]:
    """Return the result of the call and the number of retries that it took while the store was unavailable.

    patience: seconds after which the error is raised. wait(seconds): sleeps; True if the caller wants to give up.
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
