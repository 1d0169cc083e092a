"""Checksums of what is stored and exported: blake2b over canonical JSON, 8 bytes as one signed whole number.

They tell damage and mutation from what was written; they are no signature.
"""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring_ascii as quoted

__all__ = ["canonical", "checksum", "hashed", "quoted"]


canonical = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False).encode
"""One text for one document: no spaces, keys in order, no NaN."""


def checksum(document: object) -> int:
    """Of anything that JSON can hold.

    >>> checksum({"a": 1, "b": 2.5}) == checksum({"b": 2.5, "a": 1}) != checksum({"a": 1, "b": 2})
    True
    """
    return hashed(canonical(document).encode())


def hashed(data: bytes) -> int:
    """Of what has only one way to be written."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)
