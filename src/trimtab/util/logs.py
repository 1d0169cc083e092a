"""Logging under the name "trimtab.live", as plain text or one JSON object per line."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

LOG = logging.getLogger("trimtab.live")
FIELDS = "trimtab"  # attribute of a log record with its named fields


def log(level: int, message: str, **fields: object) -> None:
    """Log a message with named fields."""
    LOG.log(level, message, extra={FIELDS: fields})


class JsonLines(logging.Formatter):
    """Format time, level, message and the named fields: round, value, seconds, commit, retries, …"""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line = {"time": when, "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to(stream: Any, form: str) -> logging.Handler:
    """Log everything to a stream; form: "text" or "json"."""
    handler = logging.StreamHandler(stream)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else text)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    return handler
