"""Client of the HTTP service, with the `ask`, `tell` and `skip` of `trimtab.live.Study`. Needs no extra.

Requests are idempotent: the open trial stays the same until it is told, and each value is recorded once. So requests
that fail, whether an answer, a connection or the whole service is lost, are retried until `patience` is over.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from trimtab.context import Context
from trimtab.store.errors import Unavailable
from trimtab.store.retry import delays
from trimtab.study.study import Trial
from trimtab.types import Document
from trimtab.util.files import reason
from trimtab.util.reprs import Brief, Facts

LOG = logging.getLogger("trimtab.client")
AGAIN = (429, 502, 503, 504)
WAIT = 25.0  # seconds that a request may wait for a trial
Level = Any


class Refused(ValueError):
    """A request rejected by the service; `status` and `problem` are its answer (RFC 9457)."""

    def __init__(self, status: int, problem: Document) -> None:
        super().__init__(problem.get("detail") or f"the service answered {status}")
        self.status, self.problem = status, problem


class Client:
    """A connection to a service.

    url: for example http://127.0.0.1:8765. token: created by `trimtab token create`; not needed on the same machine
    until the first one exists. patience: seconds to keep retrying if the service is unreachable or too busy.
    """

    def __init__(self, url: str, token: str | None = None, *, patience: float = 60.0, timeout: float = 35.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url={url!r} is not the address of a service: give for example http://127.0.0.1:8765")
        self.url, self.patience = url.rstrip("/"), patience
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        secure = {"context": ssl.create_default_context()} if parts.scheme == "https" else {}
        kind: Any = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout, **secure)
        self._lock = threading.Lock()

    def study(self, name: str, knobs: Iterable[Mapping[str, Level]] | None = None, **options: object) -> RemoteStudy:
        """Open the study of this name; with knobs, create it if it does not exist.

        knobs, options: as in the body of PUT /v1/studies/NAME (goal, seed, method, radius, guard, context, …).
        """
        path = f"/v1/studies/{quote(name, safe='')}"
        if knobs is None:
            self.request("GET", path)
        else:
            body = {"knobs": [dict(knob) for knob in knobs], **options}
            if isinstance(contexts := options.get("context"), list | tuple):
                body["context"] = [asdict(each) if isinstance(each, Context) else each for each in contexts]
            self.request("PUT", path, body)
        return RemoteStudy(self, name, path)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, method: str, path: str, body: Document | None = None, **query: object) -> tuple[int, Document]:
        """Send a request and return status and answer; retry while the service is unreachable or too busy."""
        target = f"{self._prefix}{path}" + (f"?{urlencode(query)}" if query else "")
        data, end = None if body is None else json.dumps(body, allow_nan=False), time.monotonic() + self.patience
        failed = 0
        for delay in delays(longest=5.0):
            try:
                status, headers, answer = self._send(method, target, data)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
                    raise Unavailable(_distrusted(self.url, error)) from error  # retrying cannot help
                why, pause = f"{self.url} cannot be reached ({reason(error)}): check that the service is running", delay
                failed += 1
                if failed == 2:  # not on the first failure, which may be an expired idle connection
                    LOG.warning("%s; retrying for %g s", why, self.patience)
            else:
                if status < 400:
                    return status, answer
                if status not in AGAIN:
                    raise Refused(status, answer)
                why, pause = str(answer.get("detail", status)), max(delay, float(headers.get("Retry-After") or 0))
            if time.monotonic() + pause > end:
                raise Unavailable(f"{why}; retried for {self.patience:g} s")
            time.sleep(pause)
        raise AssertionError("delays never end")

    def _send(self, method: str, target: str, data: str | None) -> tuple[int, Any, Document]:
        with self._lock:
            try:
                self._connection.request(method, target, data, self._headers)
                answer = self._connection.getresponse()
                text = answer.read()
            except BaseException:
                self._connection.close()  # the next request reconnects
                raise
        try:
            return answer.status, answer.headers, json.loads(text)
        except ValueError:
            return answer.status, answer.headers, {"detail": f"{self.url} is not a trimtab service: check the address"}


class RemoteStudy(Brief):
    """A study of a service. `ask`, `tell` and `skip` are those of `Study`; several clients may use it at once."""

    def __init__(self, client: Client, name: str, path: str) -> None:
        self.client, self.name, self._path = client, name, path
        self._known: dict[str, object] = {}

    def _facts(self) -> Facts:
        """Facts from earlier answers, so that printing a study sends no request."""
        known = [(label, self._known.get(label)) for label in ("round", "centre", "trial", "value")]
        return [("", self.name), ("at", self.client.url.rpartition("@")[2]), *known]

    def ask(
        self,
        wait: float | None = None,
        *,
        another: bool = False,
        context: Mapping[str, float | None] | None = None,
    ) -> Trial:
        """The next trial, the same one until it is told; waits while approval, a hold or quiet hours block it.

        wait: raise TimeoutError with the reason after this many seconds; None waits for ever.
        another: open a further trial in a study with max_pending > 1; rejected if no more are allowed. If the answer
        was lost, that trial is open without being known here: `ask()` returns the oldest open trial.
        context: in a study with contexts, the present numbers by name; None, or left out, where one is not known.
        """
        body = {} if context is None else {"context": dict(context)}
        end = None if wait is None else time.monotonic() + wait
        while True:
            left = WAIT if end is None else min(WAIT, max(end - time.monotonic(), 0.0))
            query = {"wait": left, **({"another": "true"} if another else {})}
            status, found = self.client.request("POST", f"{self._path}/trials:ask", body, **query)
            if status == 200:
                self._known |= {"round": found["round"], "trial": found["knobs"]}
                return Trial(found["id"], found["knobs"], found["round"], found["kind"], found.get("context"))
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"study {self.name!r}: {found['detail']}")

    def tell(
        self,
        trial: Trial | int,
        value: float | None,
        note: str | None = None,
        limits: Mapping[str, float | None] | None = None,
        *,
        applied: Mapping[str, Level] | None = None,
    ) -> None:
        """Report the measured value, or None if the measurement failed; durable when this returns.

        limits: measured numbers that the study has limits on, by name.
        applied: the knobs that were actually set, if they differ from those of the trial.
        """
        given = {"note": note, "applied": applied and dict(applied), "values": limits and dict(limits)}
        body: Document = {"value": None if value is None or value != value else float(value)}
        body |= {key: what for key, what in given.items() if what is not None}
        self.client.request("PUT", f"{self._path}/trials/{getattr(trial, 'id', trial)}/result", body)
        self._known |= {} if body["value"] is None else {"value": body["value"]}

    def skip(self, trial: Trial | int, note: str | None = None) -> None:
        """Report a failed measurement, with the reason as a note: the round passes and the centre stays."""
        self.tell(trial, None, note)

    def summary(self) -> Document:
        """The current state of the study: centre, value, rounds, diagnostics, pending approvals, …"""
        found = self.client.request("GET", self._path)[1]
        self._known |= {"round": found["rounds"], "centre": found["centre"], "value": found["value"]}
        return found

    @property
    def round(self) -> int:
        """The number of the next trial's round."""
        found: int = self.summary()["rounds"]
        return found

    @property
    def centre(self) -> dict[str, Level]:
        """The operating point now."""
        found: dict[str, Level] = self.summary()["centre"]
        return found


def _distrusted(url: str, error: ssl.SSLError) -> str:
    """Explain a failed TLS handshake, with the remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {url} is not trusted ({error.verify_message}): add its issuer to SSL_CERT_FILE"
    plain = f"http{url.removeprefix('https')}"
    return f"{url} failed the TLS handshake ({error.reason}): if it serves plain HTTP, use {plain}"
