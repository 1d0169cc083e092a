"""Observability: access log, Prometheus metrics and security headers."""

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


class Metrics:
    """Prometheus metrics of a worker."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.requests = Counter(
            "trimtab_requests", "Requests answered", ["route", "method", "status"], registry=registry
        )
        self.seconds = Histogram(
            "trimtab_request_seconds", "Seconds until the answer began", ["route"], registry=registry
        )
        self.active = Gauge("trimtab_requests_active", "In progress", multiprocess_mode="livesum", registry=registry)
        self.streams = Gauge(
            "trimtab_streams", "Requests waiting for events or trials", multiprocess_mode="livesum", registry=registry
        )
        self.conflicts = Gauge(
            "trimtab_conflicts",
            "Changes retried because another request came first",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.study_value = Gauge(
            "trimtab_study_value", "Running mean", ["study"], multiprocess_mode="mostrecent", registry=registry
        )
        self.study_rounds = Gauge(
            "trimtab_study_rounds", "Rounds", ["study"], multiprocess_mode="mostrecent", registry=registry
        )

    def combined_registry(self) -> CollectorRegistry:
        """Return the registry, combined over all workers if there are several."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return self.registry
        combined = CollectorRegistry()
        multiprocess.MultiProcessCollector(combined)  # type: ignore[no-untyped-call]
        return combined


class MetricsMiddleware:
    """Log each request, measure it, and add security headers and a request id."""

    def __init__(self, app: ASGIApp, metrics: Metrics, settings: Settings) -> None:
        self._app, self._metrics, self._settings = app, metrics, settings
        self._worker, self._numbers = os.urandom(4).hex(), itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, sent, took = time.perf_counter(), 0, 0, 0.0
        request_id = f"{self._worker}{next(self._numbers):08x}"

        async def send_with_headers(message: Message) -> None:
            nonlocal status, sent, took
            if message["type"] == "http.response.start":
                status, took = message["status"], time.perf_counter() - began
                present = {name.lower() for name, _ in message.get("headers", ())}
                added = [(k.encode(), v.encode()) for k, v in {**HEADERS, "x-request-id": request_id}.items()]
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), *(pair for pair in added if pair[0] not in present)],
                }
            else:
                sent += len(message.get("body", b""))
            await send(message)

        with self._metrics.active.track_inprogress():
            try:
                await self._app(scope, receive, send_with_headers)
            finally:
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.requests.labels(route, scope["method"][:10], str(status)).inc()
                self._metrics.seconds.labels(route).observe(took)
                if self._settings.access_log and LOG.isEnabledFor(logging.INFO):
                    self._log(scope, request_id, status, sent, time.perf_counter() - began)

    def _log(self, scope: Scope, request_id: str, status: int, sent: int, seconds: float) -> None:
        record = {
            "request": request_id,
            "method": clean(scope["method"], 20),
            "path": clean(scope["path"], 300),
            "status": status,
            "bytes": sent,
            "ms": round(seconds * 1e3, 3),
            "peer": (scope.get("client") or ["-"])[0],
            "who": scope.get("state", {}).get("who", "-"),
        }
        LOG.info("%s %s %d", record["method"], record["path"], status, extra={"trimtab": record})
