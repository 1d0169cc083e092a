"""All pictures of README and docs, or some: `make pictures`, `.venv/bin/python docs/draw [NAME ...]`.

Two run in the environment of the hosts: .venv-hosts, or what TRIMTAB_HOSTS_PYTHON names. `peers.png` is drawn of
docs/results/peers.json, which `make peers` writes. What is no longer drawn is removed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import auto
import bounds
import dashboard
import matplotlib.pyplot as plt
import moving
import systems

from trimtab import plotting, problems
from trimtab.paper.report.panels import idea, keep

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
HOSTS = os.environ.get("TRIMTAB_HOSTS_PYTHON", str(ROOT / ".venv-hosts" / "bin" / "python"))
METHODS = "residual,one-point,two-point,two-point-forward,auto,still"


def main(names: list[str]) -> None:
    """Draw them, and say what there is if a name is not known."""
    if unknown := set(names) - set(DRAWN):
        raise SystemExit(f"there is no picture {', '.join(sorted(unknown))}: there are {', '.join(DRAWN)}")
    for name in names or DRAWN:
        print(name, flush=True)
        with plotting.style():
            DRAWN[name](PICTURES / name)
        plt.close("all")
    for file in () if names else list(PICTURES.iterdir()):
        if file.name not in DRAWN:
            file.unlink()


def example(name: str, path: Path, python: str = sys.executable) -> None:
    """What an example draws."""
    subprocess.run([python, ROOT / "examples" / f"{name}.py", "--out", path], check=True)


def trimtab(*words: str | Path, folder: str) -> None:
    """The program, in a folder."""
    run = "from trimtab.cli import main; main()"
    subprocess.run([sys.executable, "-c", run, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def demo(path: Path) -> None:
    """300 rounds of the study that `trimtab init` writes, as README and docs/live.md tell."""
    with tempfile.TemporaryDirectory() as folder:
        trimtab("init", folder=folder)
        study = Path(folder, "study.toml")
        study.write_text("seed = 1\n" + study.read_text())
        trimtab("tune", "study.toml", "--rounds", "300", "--plain", folder=folder)
        trimtab("show", "demo", "--plot", path, folder=folder)


def comparison(path: Path) -> None:
    """The regret of all methods on the paper's first problem."""
    with tempfile.TemporaryDirectory() as folder:
        trimtab("compare", "lqr-v1", "--methods", METHODS, "--out", folder, folder=folder)
        shutil.copy(next(Path(folder).rglob("regret.png")), path)


def residual(which: int, path: Path) -> None:
    """What residual feedback is: two rounds, and the estimates of many."""
    keep([idea(seed=0)[which]], path.with_suffix(""), [path.suffix])


def peers(path: Path) -> None:
    """Results of `make peers`."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from peers_shown import draw

    draw(json.loads((ROOT / "docs" / "results" / "peers.json").read_text()), path)


DRAWN: dict[str, Callable[[Path], None]] = {
    "moving.svg": moving.draw,
    "idea-rounds.png": partial(residual, 0),
    "idea-estimates.png": partial(residual, 1),
    "auto-parts.png": auto.draw,
    "theory-bounds.png": bounds.draw,
    **{f"problem-{id}.png": partial(systems.draw, id) for id in sorted(problems.registry)},
    "live-demo.png": demo,
    "compare-lqr-v1.png": comparison,
    "drifting_pendulum.png": partial(example, "drifting_pendulum"),
    "queue_server.png": partial(example, "queue_server"),
    "epics_magnets.png": partial(example, "epics_magnets", python=HOSTS),
    "torch_stream.png": partial(example, "torch_stream", python=HOSTS),
    "dashboard.png": dashboard.draw,
    "peers.png": peers,
}

if __name__ == "__main__":
    main(sys.argv[1:])
