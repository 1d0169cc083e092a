"""Logging by the standard library, under the name "trimtab.live": plain, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

LOG = logging.getLogger("trimtab.live")
FIELDS = "trimtab"  # the name under which a record carries its fields


def log(level: int, message: str, **fields: object) -> None:
    """A message with named fields, for people and for machines."""
    LOG.log(level, message, extra={FIELDS: fields})


class JsonLines(logging.Formatter):
    """time, level, message, and the fields: round, value, seconds, commit, retries, …"""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line = {"time": when, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to(stream: Any, form: str) -> logging.Handler:
    """Send everything to a stream: "text" or "json"."""
    handler = logging.StreamHandler(stream)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else text)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    return handler
