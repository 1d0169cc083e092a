"""HEAD: what GET would answer, without the body."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class HeadMiddleware:
    """The application, for which HEAD is GET; that no body is sent, the server sees to."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # Without what it accepts: a stream has no end to wait for.
            headers = [pair for pair in scope["headers"] if pair[0] != b"accept"]
            scope = {**scope, "method": "GET", "headers": headers}
        await self._app(scope, receive, send)
