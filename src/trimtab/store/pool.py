"""A pool of connections to one store, for a service: one connection per request."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from trimtab.store.errors import Moved, StoreError, Unavailable
from trimtab.store.shared_store import SharedStore
from trimtab.util.extras import pip_install

PATIENCE = 5.0  # seconds to wait for a connection


class Pool:
    """Pool of stores; `where` as for `Store`. Tables are created or migrated when it is opened.

    patient: tolerate an unavailable store, and connect on the next use. After its file was deleted or replaced, the
    pool raises `Moved` for good, because cached studies no longer match the file.
    """

    def __init__(self, where: str, size: int = 8, *, patient: bool = False) -> None:
        self.where, self._url, self._size = "the store", where, size
        self._files: queue.LifoQueue[SharedStore] | None = None
        self._server: Any = None
        self._lock = threading.Lock()
        self._moved: str | None = None  # the message of `Moved`, once the file was replaced
        with suppress(*(Unavailable,) if patient else ()):
            self._open()

    def _open(self) -> None:
        """Connect once; other threads give up after PATIENCE, since connecting may take longer."""
        if not self._lock.acquire(timeout=PATIENCE):
            raise Unavailable(f"{self.where}: still connecting: try again")
        try:
            if self._server is not None or self._files is not None:
                return
            first = SharedStore(self._url, "create")
            self.where = first.where
            if "://" in self._url and not self._url.startswith("sqlite"):
                first.close()
                self._server = _server_pool(self._url, self._size)
                return
            files: queue.LifoQueue[SharedStore] = queue.LifoQueue()
            for store in (first, *(SharedStore(self._url, "write") for _ in range(self._size - 1))):
                files.put(store)
            self._files = files
        finally:
            self._lock.release()

    @contextmanager
    def store(self) -> Iterator[SharedStore]:
        """Borrow a store for exclusive use."""
        if self._server is None and self._files is None:
            self._open()
        if self._server is not None:
            yield from self._from_server()
            return
        assert self._files is not None
        if self._moved is not None:
            raise Moved(self._moved)
        try:
            store = self._files.get(timeout=PATIENCE)
        except queue.Empty:
            raise Unavailable(f"{self.where}: all connections are in use: retry, or raise --connections") from None
        try:
            store.verify()  # otherwise a value in a deleted file could be acknowledged
            yield store
        except Moved as error:
            self._moved = self._moved or str(error)
            raise
        finally:
            self._files.put(store)

    def _from_server(self) -> Iterator[SharedStore]:
        from psycopg_pool import PoolTimeout, TooManyRequests

        from trimtab.store.backends.postgres import PooledPostgres

        try:
            connection = self._server.getconn()
        except (PoolTimeout, TooManyRequests) as error:
            raise Unavailable(f"{self.where}: no connection to the server ({error}): retry") from None
        try:
            yield SharedStore.on(PooledPostgres(connection, self.where))
        except StoreError:
            if connection.closed:  # the other connections are probably lost too
                self._server.check()
            raise
        finally:
            self._server.putconn(connection)

    def close(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
        while self._files is not None and not self._files.empty():
            self._files.get().close()


def _server_pool(where: str, size: int) -> Any:
    try:
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise ImportError(f"serving from PostgreSQL needs psycopg_pool: {pip_install('serve', 'postgres')}") from error
    from trimtab.store.backends.postgres import OPTIONS, Connection

    return ConnectionPool(
        "postgresql://" + where.partition("://")[2],
        connection_class=Connection,
        kwargs={"autocommit": True, **OPTIONS},
        min_size=1,
        max_size=size,
        timeout=PATIENCE,
        open=True,
    )
