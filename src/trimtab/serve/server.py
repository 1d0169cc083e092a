"""Starting a service: the address it may listen on, its workers, its logs."""

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
from trimtab.serve.http.header_timeout import HeaderTimeoutProtocol, Silent
from trimtab.serve.settings import Settings, is_loopback
from trimtab.store.errors import Unavailable
from trimtab.store.pool import Pool
from trimtab.types import Document
from trimtab.util.logs import JsonLines

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

SECONDS = 5  # for which a connection may say nothing between two requests
BACKLOG = 2048
FILES = 65_536  # open files that are asked for, of which connections take most
NO_TOKEN = (
    "--host {host}: without any token the service listens on this machine alone;"
    " make one first: trimtab token create --scope admin"
)
SELDOM = (
    20_000,
    20,
    20,
)  # when to look for garbage in circles, as gc.set_threshold has it: a third of the work otherwise
SWITCH = 0.001  # seconds after which a thread that computes lets the one in that answers


def check_address(settings: Settings) -> None:
    """Without tokens nobody else is answered, so the service does not even listen to them.

    A store that is away is no reason to end: the service waits for it, and answers nobody before it is there.
    """
    pool = Pool(settings.store, 1, patient=True)
    try:
        with pool.store() as store:
            if not is_loopback(settings.host) and not tokens.any_there(store):
                raise ValueError(NO_TOKEN.format(host=settings.host))
    except Unavailable:
        return
    finally:
        pool.close()


def check_port(host: str, port: int) -> None:
    """Refuse a port that somebody else listens on, before anything is started."""
    try:
        for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the service has it
                one.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ValueError(f"port {port} is in use: stop the other program, or give another --port") from None
        where = f"--host {host} --port {port}: cannot listen there ({error.strerror})"
        raise ValueError(f"{where}: give an address of this machine, and a port from 1024 on") from None


def run(settings: Settings) -> None:
    """Until it is stopped."""
    log_lines()
    check_address(settings)
    raise_files()
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
            **connecting(settings),
        )


def connecting(settings: Settings) -> Document:
    """How Uvicorn treats connections."""
    return {
        "http": partial(
            HeaderTimeoutProtocol, header_seconds=settings.header_seconds, silent=Silent(most_connections(settings))
        ),
        "ws": "none",
        "timeout_keep_alive": SECONDS,
        "access_log": False,
        "log_config": None,
        "server_header": False,
    }


def raise_files(wanted: int = FILES) -> None:
    """Allow this process, and its workers, as many open files as the system lets it have."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_connections(settings: Settings) -> int:
    """Connections at once that leave a quarter of the open files to the store, and to those who come meanwhile."""
    if settings.most_connections:
        return settings.most_connections
    soft = FILES if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (FILES if soft < 0 else min(soft, FILES)) * 3 // 4


def worker() -> object:
    """The application of one worker."""
    from trimtab.serve.app import create

    log_lines()
    app = create()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    sys.setswitchinterval(SWITCH)
    return app


def log_lines() -> None:
    """Write one JSON object a line to the standard error, whichever package says something."""
    root = logging.getLogger()
    if not any(isinstance(handler.formatter, JsonLines) for handler in root.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        root.addHandler(handler)
    logging.captureWarnings(True)
    for name in ("trimtab.serve", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.INFO)
