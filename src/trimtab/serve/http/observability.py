"""What is seen of a service: a line per request, figures for Prometheus, and the headers of every answer."""

from __future__ import annotations

import itertools
import logging
import os
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimtab.serve.settings import Settings
from trimtab.util.text import clean

LOG = logging.getLogger("trimtab.serve")
POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self'; object-src 'none'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Figures:
    """What Prometheus is told."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        self.requests = Counter("trimtab_requests", "Requests answered", ["route", "method", "status"], registry=here)
        self.seconds = Histogram("trimtab_request_seconds", "Seconds until the answer began", ["route"], registry=here)
        self.active = Gauge("trimtab_requests_active", "In progress", multiprocess_mode="livesum", registry=here)
        self.streams = Gauge(
            "trimtab_streams", "Requests that wait for events or trials", multiprocess_mode="livesum", registry=here
        )
        self.conflicts = Gauge(
            "trimtab_conflicts", "Changes that another request made first", multiprocess_mode="livesum", registry=here
        )
        self.value = Gauge(
            "trimtab_study_value", "Running mean", ["study"], multiprocess_mode="mostrecent", registry=here
        )
        self.rounds = Gauge("trimtab_study_rounds", "Rounds", ["study"], multiprocess_mode="mostrecent", registry=here)

    def collected(self) -> CollectorRegistry:
        """Of all workers, where there are several."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self.registry
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return together


class MetricsMiddleware:
    """The application, with somebody who writes down what it does."""

    def __init__(self, app: ASGIApp, figures: Figures, settings: Settings) -> None:
        self._app, self._figures, self._settings = app, figures, settings
        self._name, self._numbers = os.urandom(4).hex(), itertools.count()  # of this worker, and of its requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, sent, took = time.perf_counter(), 0, 0, 0.0
        number = f"{self._name}{next(self._numbers):08x}"

        async def sending(message: Message) -> None:
            nonlocal status, sent, took
            if message["type"] == "http.response.start":
                status, took = message["status"], time.perf_counter() - began
                there = {name.lower() for name, _ in message.get("headers", ())}
                more = [(k.encode(), v.encode()) for k, v in {**HEADERS, "x-request-id": number}.items()]
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), *(pair for pair in more if pair[0] not in there)],
                }
            else:
                sent += len(message.get("body", b""))
            await send(message)

        with self._figures.active.track_inprogress():
            try:
                await self._app(scope, receive, sending)
            finally:
                route = getattr(scope.get("route"), "path", "none")
                self._figures.requests.labels(route, scope["method"][:10], str(status)).inc()
                self._figures.seconds.labels(route).observe(took)
                if self._settings.access_log and LOG.isEnabledFor(logging.INFO):
                    self._log(scope, number, status, sent, time.perf_counter() - began)

    def _log(self, scope: Scope, number: str, status: int, sent: int, seconds: float) -> None:
        about = {
            "request": number,
            "method": clean(scope["method"], 20),
            "path": clean(scope["path"], 300),
            "status": status,
            "bytes": sent,
            "ms": round(seconds * 1e3, 3),
            "peer": (scope.get("client") or ["-"])[0],
            "who": scope.get("state", {}).get("who", "-"),
        }
        LOG.info("%s %s %d", about["method"], about["path"], status, extra={"trimtab": about})
