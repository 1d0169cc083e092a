"""What a service is told when it starts, and hands on to its workers."""

from __future__ import annotations

import ipaddress
import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache

PLACE = "TRIMTAB_SERVE"  # the environment variable by which workers get them


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `trimtab serve`."""

    store: str = "trimtab.db"
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    connections: int = 8
    """To the store, of each worker."""
    cache: int = 10_000
    """Studies that a worker remembers."""
    largest_body: int = 2**20
    """Bytes."""
    header_seconds: float = 10.0
    """In which the headers of a request have to be there."""
    body_seconds: float = 15.0
    """In which a body has to be there."""
    most_requests: int = 256
    """At once, in a worker, and as many bodies that are still coming; beyond, 429."""
    most_streams: int = 512
    """Of events, at once in a worker, and as many who wait for a trial; beyond, 429."""
    most_connections: int = 0
    """At once, in a worker; beyond, the one that has been silent for longest is closed. 0: as open files allow."""
    rate: float = 0.0
    """Requests per second of one token, in a worker; 0 for any number."""
    metrics_studies: int = 0
    """How many studies have metrics of their own."""
    access_log: bool = True

    def to_environment(self) -> dict[str, str]:
        """For workers."""
        return {PLACE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Settings:
        """What `to_environment` gave."""
        return cls(**json.loads(os.environ.get(PLACE, "{}")))


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this machine and nothing else.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
