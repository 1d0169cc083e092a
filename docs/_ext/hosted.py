"""Scripts of `examples` whose hosts are not installed beside Sphinx: the gallery runs them where those are.

That is .venv-hosts, or what TRIMTAB_HOSTS_PYTHON names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

ROOT = Path(__file__).parents[2]
HOSTS = os.environ.get("TRIMTAB_HOSTS_PYTHON", str(ROOT / ".venv-hosts" / "bin" / "python"))
DRAWN = ROOT / "out" / "gallery"


def run(name: str) -> None:
    """Run examples/<name>.py, and print what it prints; its picture becomes that of the page."""
    if not Path(HOSTS).exists():
        raise FileNotFoundError(f"{HOSTS} is not there: `make .venv-hosts/ready` makes it, in some minutes")
    command = [HOSTS, f"examples/{name}.py", "--out", f"out/gallery/{name}.png"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stderr}")
    print(done.stdout, end="")


def pictures(block: object, variables: dict[str, Any], gallery: dict[str, Any]) -> str:
    """What they have drawn since it was last asked, as images of the page."""
    found = []
    for picture in sorted(DRAWN.glob("*.png")):
        found.append(next(variables["image_path_iterator"]))
        shutil.move(picture, found[-1])
    title = variables["example_globals"]["__doc__"].strip().partition("\n")[0]
    return figure_rst(found, gallery["src_dir"], title)
