"""How a service starts, and where it does not."""

import json
import socket
import subprocess
import sys

import pytest

from ..program import run


@pytest.mark.parametrize("more", [[], ["--demo"], ["--workers", "2"]])
def test_a_port_in_use_is_said_before_anything_is_started(tmp_path, more):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("serve", "--port", port, *more, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"error: port {port} is in use: stop the other one, or give --port\n"
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_not_of_this_machine(tmp_path):
    done = run("serve", "--host", "192.0.2.1", cwd=tmp_path)
    assert done.returncode == 2
    assert "--host 192.0.2.1" in done.stderr
    assert "give an address of this machine" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_whatever_is_logged_is_a_line_of_json():
    """Also by the packages that are used, by Python's own warnings, and in a worker that has begun twice."""
    say = """
import logging, warnings
from trimtab.serve.running import log_lines
log_lines()
log_lines()
logging.getLogger("psycopg.pool").warning("error connecting")
logging.getLogger("uvicorn.error").info("started")
logging.getLogger("trimtab.serve").info("GET")
warnings.warn("old")
"""
    done = subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"][:16] for line in said[:3]] == ["error connecting", "started", "GET"]
    assert len(said) == 4
