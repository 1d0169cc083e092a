"""Access tokens and dashboard sessions. The store holds only hashes.

A token has 256 random bits, so an unsalted SHA-256 is safe. A session is a token that expires and is revoked with its
parent, the token used to sign in.
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
"""Each scope includes those before it."""
MAX_SESSIONS = 20  # per token: a token may be shared, and used on several devices
COLUMNS = "id, scope, study, label, created, expires, revoked, parent"


class Token(NamedTuple):
    """A stored token, without its secret."""

    id: str
    scope: str
    study: str | None
    """The only study it gives access to; None for all."""
    label: str | None
    created: float
    expires: float | None
    revoked: float | None
    parent: str | None
    """Id of the token that a session was started with."""


def create(
    store: SharedStore,
    scope: str,
    study: str | None = None,
    label: str | None = None,
    *,
    expires: float | None = None,
    parent: str | None = None,
) -> str:
    """Create a token and return its text, which cannot be recovered later."""
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
    """Create a session of a token; delete its expired sessions, and the oldest beyond `MAX_SESSIONS`."""
    now = time.time()
    expires = min(now + seconds, token.expires or float("inf"))
    store.execute(
        "DELETE FROM trimtab_tokens WHERE parent = ? AND (expires < ? OR id NOT IN (SELECT id FROM trimtab_tokens"
        " WHERE parent = ? ORDER BY created DESC, id LIMIT ?))",
        *(token.id, now, token.id, MAX_SESSIONS - 1),
    )
    return create(store, token.scope, token.study, token.label, expires=expires, parent=token.id)


def find(store: SharedStore, text: str) -> Token | None:
    """Look up a token; None if it is unknown, expired or revoked."""
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
    """List all tokens except sessions, oldest first."""
    rows = store.execute(f"SELECT {COLUMNS} FROM trimtab_tokens WHERE parent IS NULL ORDER BY created")
    return [Token(*row) for row in rows]


def revoke(store: SharedStore, id: str) -> None:
    """Revoke a token, and end its sessions."""
    if not store.change("UPDATE trimtab_tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", time.time(), id):
        raise ValueError(f"there is no valid token {id!r} to revoke: trimtab token list shows them")
    store.execute("DELETE FROM trimtab_tokens WHERE parent = ?", id)


def end_session(store: SharedStore, id: str) -> None:
    """Delete a session, and every expired one."""
    store.execute("DELETE FROM trimtab_tokens WHERE parent IS NOT NULL AND (id = ? OR expires < ?)", id, time.time())


def has_tokens(store: SharedStore) -> bool:
    """Return whether the store has a token, revoked ones included; if so, every request needs one."""
    return bool(store.execute("SELECT 1 FROM trimtab_tokens LIMIT 1"))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
