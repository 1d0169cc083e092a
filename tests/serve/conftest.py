"""A service that runs in this process, on a port of its own, and what tests ask of it."""

import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("fastapi", reason='no FastAPI: pip install "trimtab[serve]"')

import httpx
import uvicorn

from trimtab.serve.app import create
from trimtab.serve.http import tokens
from trimtab.serve.server import protocol_options
from trimtab.serve.settings import Settings
from trimtab.store.shared_store import SharedStore

from ..factories import KNOBS


class Service:
    """A running service, and a client of it."""

    def __init__(self, settings, port):
        self.settings, self.store, self.url = settings, settings.store, f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, timeout=300)

    def make(self, name="a", **more):
        answer = self.http.put(
            f"/v1/studies/{name}", json={"knobs": KNOBS, "seed": 1, "baseline": {"every": 0}, **more}
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def ask(self, name="a", **query):
        return self.http.post(f"/v1/studies/{name}/trials:ask", params=query)

    def tell(self, id, value, name="a", **more):
        return self.http.put(f"/v1/studies/{name}/trials/{id}/result", json={"value": value, **more})

    def act(self, action, name="a", headers=None, **body):
        return self.http.post(f"/v1/studies/{name}:{action}", json=body, headers=headers)

    def get(self, name="a"):
        return self.http.get(f"/v1/studies/{name}").json()

    def run(self, rounds, name="a"):
        for _ in range(rounds):
            trial = self.ask(name).json()
            assert self.tell(trial["id"], (trial["knobs"]["gain"] - 6) ** 2, name).status_code == 200
        return trial["id"]

    def events(self, name="a", **query):
        return self.http.get("/v1/events", params={"study": name, **query}).json()["events"]

    def token(self, scope, study=None):
        with SharedStore(self.store) as store:
            return {"Authorization": f"Bearer {tokens.create(store, scope, study)}"}


@contextlib.contextmanager
def running(settings):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        server = uvicorn.Server(
            uvicorn.Config(create(settings), timeout_graceful_shutdown=1, **protocol_options(settings))
        )
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        found = Service(settings, port)
        try:
            yield found
        finally:
            found.http.close()
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def start(tmp_path):
    """Services with other settings."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            running(Settings(**{"store": str(tmp_path / "t.db"), "connections": 3, **options}))
        )


@pytest.fixture
def service(start):
    return start()
