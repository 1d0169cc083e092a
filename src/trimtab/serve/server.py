"""Start a service: listening address, workers, limits and logging."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import os
import socket
import sys
import tempfile
from functools import partial

import uvicorn

from trimtab.serve.http import tokens
from trimtab.serve.http.header_timeout import HeaderTimeoutProtocol, IdleConnections
from trimtab.serve.settings import Settings, is_loopback
from trimtab.store.errors import Unavailable
from trimtab.store.pool import Pool
from trimtab.types import Document
from trimtab.util.logs import JsonLines

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

KEEP_ALIVE = 5  # seconds that an idle connection is kept open
BACKLOG = 2048
OPEN_FILES = 65_536  # limit to request; most of it is for connections
NO_TOKEN = (
    "--host {host}: without a token the service can listen on this machine only;"
    " create one first: trimtab token create --scope admin"
)
GC_THRESHOLDS = (20_000, 10, 5)
"""With Python's defaults, garbage collection takes a third of the time. Results leave cyclic garbage in the oldest
generation, which only a full collection frees: one per million new objects."""
SWITCH_INTERVAL = 0.001  # seconds; short, so that computing threads do not delay the event loop


def check_address(settings: Settings) -> None:
    """Refuse to listen beyond this machine while the store has no token.

    If the store is unavailable the service starts anyway, and refuses requests until the store can be reached.
    """
    pool = Pool(settings.store, 1, patient=True)
    try:
        with pool.store() as store:
            if not is_loopback(settings.host) and not tokens.has_tokens(store):
                raise ValueError(NO_TOKEN.format(host=settings.host))
    except Unavailable:
        return
    finally:
        pool.close()


def check_port(host: str, port: int) -> None:
    """Refuse a port that is in use or cannot be bound, before anything is started."""
    try:
        for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # like Uvicorn
                probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ValueError(f"port {port} is in use: stop the other program, or give another --port") from None
        where = f"--host {host} --port {port}: cannot listen there ({error.strerror})"
        raise ValueError(f"{where}: give an address of this machine, and a port from 1024 on") from None


def run(settings: Settings) -> None:
    """Run the service until it is stopped."""
    configure_logging()
    check_address(settings)
    raise_file_limit()
    with contextlib.ExitStack() as stack:
        environment = settings.to_environment()
        if settings.workers > 1:
            environment["PROMETHEUS_MULTIPROC_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ.update(environment)
        uvicorn.run(
            "trimtab.serve.server:worker",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            backlog=BACKLOG,
            timeout_graceful_shutdown=10,
            **protocol_options(settings),
        )


def protocol_options(settings: Settings) -> Document:
    """Return Uvicorn's options for connections and logging."""
    return {
        "http": partial(
            HeaderTimeoutProtocol,
            header_seconds=settings.header_seconds,
            idle=IdleConnections(most_connections(settings)),
        ),
        "ws": "none",
        "timeout_keep_alive": KEEP_ALIVE,
        "access_log": False,
        "log_config": None,
        "server_header": False,
    }


def raise_file_limit(wanted: int = OPEN_FILES) -> None:
    """Raise the limit on open files, for this process and its workers, as far as the system allows."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def most_connections(settings: Settings) -> int:
    """Return the limit on connections; by default three quarters of the open files, the rest is for the store."""
    if settings.most_connections:
        return settings.most_connections
    soft = OPEN_FILES if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (OPEN_FILES if soft < 0 else min(soft, OPEN_FILES)) * 3 // 4


def worker() -> object:
    """Create the application of one worker; called by Uvicorn."""
    from trimtab.serve.app import create

    configure_logging()
    app = create()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL)
    return app


def configure_logging() -> None:
    """Log one JSON object per line to standard error, for all packages."""
    root = logging.getLogger()
    if not any(isinstance(handler.formatter, JsonLines) for handler in root.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        root.addHandler(handler)
    logging.captureWarnings(True)
    for name in ("trimtab.serve", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.INFO)
