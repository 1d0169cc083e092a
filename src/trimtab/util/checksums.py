"""Checksums of stored and exported data: blake2b over canonical JSON, as a signed 64-bit integer or in hexadecimal.

They detect damage and accidental edits; they are not signatures.
"""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring_ascii as quoted

__all__ = ["canonical", "checksum", "digest", "hashed", "quoted"]


canonical = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False).encode
"""Canonical JSON: no spaces, sorted keys, no NaN."""


def checksum(document: object) -> int:
    """Return the checksum of a JSON document.

    >>> checksum({"a": 1, "b": 2.5}) == checksum({"b": 2.5, "a": 1}) != checksum({"a": 1, "b": 2})
    True
    """
    return hashed(canonical(document).encode())


def hashed(data: bytes) -> int:
    """Return the checksum of bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def digest(data: bytes) -> str:
    """Return a short fingerprint to detect changes.

    >>> digest(b"trimtab")
    '47eb20e12134681d'
    """
    return hashlib.blake2b(data, digest_size=8).hexdigest()
