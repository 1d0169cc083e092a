"""Settings of a service, passed to its workers through the environment."""

from __future__ import annotations

import ipaddress
import json
import os
from dataclasses import asdict, dataclass
from functools import lru_cache

VARIABLE = "TRIMTAB_SERVE"  # environment variable that holds the settings as JSON


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `trimtab serve`."""

    store: str = "trimtab.db"
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    connections: int = 8
    """Store connections per worker."""
    cache: int = 10_000
    """Studies cached per worker."""
    largest_body: int = 2**20
    """In bytes; larger ones get 413."""
    header_seconds: float = 10.0
    """Time limit for the headers of a request."""
    body_seconds: float = 15.0
    """Time limit for the body of a request."""
    most_requests: int = 256
    """Concurrent requests per worker, and as many bodies being received; beyond that, 429."""
    most_streams: int = 512
    """Concurrent event streams per worker, and as many requests waiting for a trial; beyond that, 429."""
    most_connections: int = 0
    """Connections per worker; beyond that, the one idle longest is closed. 0: as many as open files allow."""
    rate: float = 0.0
    """Requests per second and token, per worker; 0 for no limit."""
    metrics_studies: int = 0
    """Studies that have Prometheus metrics of their own."""
    access_log: bool = True

    def to_environment(self) -> dict[str, str]:
        """Return the environment variable to set for workers."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the settings from the environment."""
        return cls(**json.loads(os.environ.get(VARIABLE, "{}")))


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Return whether a host name or address refers only to this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
