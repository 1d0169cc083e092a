"""Gallery scripts whose hosts (PyTorch, EPICS) are not installed beside Sphinx.

`make docs` shows their stored picture from docs/pictures. `make docs-all` sets TRIMTAB_HOSTS_PYTHON, the interpreter of
the environment that has the hosts, and the scripts run there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

ROOT = Path(__file__).parents[2]
DRAWN = ROOT / "out" / "gallery"


def run(name: str) -> None:
    """Run examples/<name>.py where its host is installed, else take its stored picture; both go onto the page."""
    DRAWN.mkdir(parents=True, exist_ok=True)
    python = os.environ.get("TRIMTAB_HOSTS_PYTHON")
    if not python:
        shutil.copy(ROOT / "docs" / "pictures" / f"{name}.png", DRAWN)
        print(f"A stored picture. `make docs-all` runs examples/{name}.py and draws it again.")
        return
    if not (ROOT / python).exists():
        raise FileNotFoundError(
            f"TRIMTAB_HOSTS_PYTHON={python} does not exist: `make docs-all` installs the hosts first"
        )
    command = [python, f"examples/{name}.py", "--out", f"out/gallery/{name}.png"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stderr}")
    print(done.stdout, end="")


def pictures(block: object, variables: dict[str, Any], gallery: dict[str, Any]) -> str:
    """Scrape the pictures drawn since the last call, as images of the page."""
    found = []
    for picture in sorted(DRAWN.glob("*.png")):
        found.append(next(variables["image_path_iterator"]))
        shutil.move(picture, found[-1])
    title = variables["example_globals"]["__doc__"].strip().partition("\n")[0]
    return figure_rst(found, gallery["src_dir"], title)
