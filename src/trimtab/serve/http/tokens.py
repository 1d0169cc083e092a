"""Tokens: who may do what with the studies of a store, over HTTP. Only the hash of one is stored.

A token is 256 random bits, so that a plain SHA-256 of it can be stored: there is nothing to guess from. A session of
the dashboard is a token that ends by itself, and with the one that it came from.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from typing import NamedTuple

from trimtab.store.shared_store import SharedStore
from trimtab.study.create import check_name
from trimtab.util.text import clean

SCOPES = ("read", "tell", "operate", "admin")
"""Each includes those before it."""
SESSIONS = 20  # of one token at a time: devices of those who share it
COLUMNS = "id, scope, study, label, created, expires, revoked, parent"


class Token(NamedTuple):
    """What is known of a token; the token itself is not."""

    id: str
    scope: str
    study: str | None
    """The only study it is for."""
    label: str | None
    created: float
    expires: float | None
    revoked: float | None
    parent: str | None
    """The token that a session was begun with."""


def create(
    store: SharedStore,
    scope: str,
    study: str | None = None,
    label: str | None = None,
    *,
    expires: float | None = None,
    parent: str | None = None,
) -> str:
    """A new token, as text: this is the only time that it is there."""
    if scope not in SCOPES:
        raise ValueError(f"scope={scope!r} is unknown: choose one of {', '.join(SCOPES)}")
    if study is not None:
        check_name(study)
    id, secret = os.urandom(6).hex(), secrets.token_hex(32)
    row = (id, _hash(secret), scope, study, None if label is None else clean(label, 100), time.time(), expires, parent)
    store.execute(
        "INSERT INTO trimtab_tokens (id, hash, scope, study, label, created, expires, parent)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *row,
    )
    return f"tt_{id}_{secret}"


def begin_session(store: SharedStore, token: Token, seconds: float) -> str:
    """A session of a token, in place of its oldest one if it has many, and of those that are over."""
    now = time.time()
    expires = min(now + seconds, token.expires or float("inf"))
    store.execute(
        "DELETE FROM trimtab_tokens WHERE parent = ? AND (expires < ? OR id NOT IN (SELECT id FROM trimtab_tokens"
        " WHERE parent = ? ORDER BY created DESC, id LIMIT ?))",
        *(token.id, now, token.id, SESSIONS - 1),
    )
    return create(store, token.scope, token.study, token.label, expires=expires, parent=token.id)


def find(store: SharedStore, text: str) -> Token | None:
    """What a token is good for; None if it is none, or no longer one."""
    start, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    if start != "tt" or not (id.isalnum() and secret.isalnum() and text.isascii() and len(text) < 200):
        return None
    rows = store.execute(f"SELECT {COLUMNS}, hash FROM trimtab_tokens WHERE id = ?", id)
    if not rows or not hmac.compare_digest(rows[0][-1], _hash(secret)):
        return None
    token = Token(*rows[0][:-1])
    if token.revoked is not None or (token.expires is not None and token.expires < time.time()):
        return None
    if token.parent is not None:
        rows = store.execute("SELECT revoked FROM trimtab_tokens WHERE id = ?", token.parent)
        if not rows or rows[0][0] is not None:
            return None
    return token


def listed(store: SharedStore) -> list[Token]:
    """All but sessions, the oldest first."""
    rows = store.execute(f"SELECT {COLUMNS} FROM trimtab_tokens WHERE parent IS NULL ORDER BY created")
    return [Token(*row) for row in rows]


def revoke(store: SharedStore, id: str) -> None:
    """From now on it is none, and neither are the sessions that came from it."""
    if not store.change("UPDATE trimtab_tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", time.time(), id):
        raise ValueError(f"there is no valid token {id!r} to revoke: trimtab token list shows them")
    store.execute("DELETE FROM trimtab_tokens WHERE parent = ?", id)


def end(store: SharedStore, id: str) -> None:
    """A session, and all that are over."""
    store.execute("DELETE FROM trimtab_tokens WHERE parent IS NOT NULL AND (id = ? OR expires < ?)", id, time.time())


def any_there(store: SharedStore) -> bool:
    """Whether a token was ever made: from then on one is needed."""
    return bool(store.execute("SELECT 1 FROM trimtab_tokens LIMIT 1"))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
