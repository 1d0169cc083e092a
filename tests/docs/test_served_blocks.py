"""The pages on HTTP, tried against a service that runs: what is typed for curl, and the Python blocks."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
import typer
from pages import ROOT, SERVED, blocks, typed

from trimtab.cli import app

pytest.importorskip("uvicorn", reason='no service: pip install "trimtab[serve]"')
PLACE = "http://127.0.0.1:8765"
CURL = 'curl() { command curl -sS --max-time 20 -o /dev/null -w "%{http_code}\\n" "$@"; }\n'


@pytest.fixture
def url(tmp_path, until):
    """A service in an empty folder, on a port that is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = "from trimtab.cli import main; main()"
    service = subprocess.Popen(
        [sys.executable, "-c", run, "serve", "--quiet", "--port", str(port)],
        cwd=tmp_path,
        env={**os.environ, "TRIMTAB_STORE": "trimtab.db"},
        stderr=subprocess.DEVNULL,
    )

    def ready():
        assert service.poll() is None, "the service ended"
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
        except OSError:
            return False

    try:
        until(ready)
        yield f"http://127.0.0.1:{port}"
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.parametrize("name", sorted(SERVED))
def test_the_page_works(name, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(blocks(name, "sh")).replace(PLACE, url)
    lines = re.sub(r"^curl -N .*\n", "", text, flags=re.M)  # the stream of events has no end
    done = subprocess.run(["bash", "-c", CURL + lines], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    asked = list(zip(done.stdout.split(), lines.split("curl ")[1:], strict=True))
    assert all(code in ("200", "201") or f"# {code}" in line for code, line in asked), asked
    names = {"__name__": "__main__"}
    for block in blocks(name, "python"):
        exec(compile(block.replace(PLACE, url), str(ROOT / name), "exec"), names)


@pytest.mark.parametrize("name", sorted(SERVED))
def test_what_is_typed_exists(name):
    commands = typer.main.get_group(app).commands
    for line in typed(name):
        program, *words = line.split()
        if program == "trimtab" and words[0] != "token":
            commands[words[0]].make_parser(typer.Context(commands[words[0]])).parse_args(words[1:])
        else:
            assert program in ("pip", "trimtab")
