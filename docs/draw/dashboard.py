"""The picture of the dashboard; needs Chromium.

A service on a port of its own, a simulated kiln that is tuned over HTTP, and a browser that looks at it.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

KNOBS = [
    {"name": "heat", "low": 150, "high": 220, "start": 170, "unit": "°C"},
    {"name": "speed", "type": "integer", "low": 1, "high": 60, "start": 20},
]


def tune(http: httpx.Client, name: str, rounds: int) -> None:
    """A system whose best heat wanders."""
    noise = random.Random(name)
    http.put(f"/v1/studies/{name}", json={"knobs": KNOBS, "seed": 1, "baseline": {"every": 10}}).raise_for_status()
    for n in range(rounds):
        trial = http.post(f"/v1/studies/{name}/trials:ask").raise_for_status().json()
        heat, speed = trial["knobs"]["heat"], trial["knobs"]["speed"]
        cost = 20 + ((heat - 195 - n / 40) / 8) ** 2 + ((speed - 35) / 8) ** 2 + noise.gauss(0, 0.5)
        answer = http.put(f"/v1/studies/{name}/trials/{trial['id']}/result", json={"value": cost})
        answer.raise_for_status()


def draw(path: Path) -> None:
    """Look at it."""
    with tempfile.TemporaryDirectory() as folder:
        run = "from trimtab.cli import main; main()"
        command = [sys.executable, "-c", run, "serve", "--quiet", "--port", "8799"]
        environment = {**os.environ, "TRIMTAB_STORE": f"{folder}/trimtab.db"}
        service = subprocess.Popen(command, env=environment)
        try:
            with httpx.Client(base_url="http://127.0.0.1:8799", timeout=30) as http:
                while True:
                    try:
                        http.get("/livez")
                        break
                    except httpx.TransportError:
                        time.sleep(0.1)
                tune(http, "kiln", 400)
            with sync_playwright() as playwright:
                options = ["--no-sandbox"]
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
                page = browser.new_page(viewport={"width": 1280, "height": 1250})
                page.goto("http://127.0.0.1:8799/studies/kiln")
                page.wait_for_selector("#chart[data-drawn] .main-svg")
                page.screenshot(path=path)
                browser.close()
        finally:
            service.terminate()
            service.wait(20)
