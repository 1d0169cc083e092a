"""HEAD requests, answered by the routes of GET."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class HeadMiddleware:
    """Route HEAD requests to GET; the server drops the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            # Without Accept, or a request for the event stream would never end.
            headers = [pair for pair in scope["headers"] if pair[0] != b"accept"]
            scope = {**scope, "method": "GET", "headers": headers}
        await self._app(scope, receive, send)
