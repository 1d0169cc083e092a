"""A wheel in empty environments does what the README says: `python wheel.py WHEEL FOLDER PYTHON...`, by `make package`.

Each Python that is there gets an environment of its own under the folder: bare at first, where the program names the
command that is missing; then what that command brings; then `[all]`. Where a Python is not there, that is said.
"""

import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

CLONE = Path(__file__).parents[2]
USE = """
import pathlib, sys
import trimtab as tt

tuner = tt.Tuner([0.2, 30.0], bounds=[(0, 1), (1, 100)], seed=0)
for _ in range(500):
    trial = tuner.ask()
    tuner.tell(trial, (trial.x[0] - 0.6) ** 2 + (trial.x[1] / 100 - 0.7) ** 2)
assert abs(tuner.centre[0] - 0.6) < 0.1 and abs(tuner.centre[1] - 70) < 10, tuner.centre
home = pathlib.Path(tt.__file__).parent
assert (home / "py.typed").exists(), f"no py.typed in {home}"
print(home)
"""
ADAPTERS = "import trimtab.adapters.gest, trimtab.adapters.gymnasium, trimtab.adapters.optuna, trimtab.adapters.scipy"


class Environment:
    """A fresh one: nothing of the clone is importable in it but what is installed."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.programs = folder, folder / "venv" / "bin"
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.variables["PATH"] = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        self.variables["TRIMTAB_CACHE"] = str(folder / "cache")
        folder.mkdir(parents=True)
        subprocess.run([python, "-m", "venv", folder / "venv"], env=self.variables, check=True)

    def run(self, *words: object, status: int = 0) -> str:
        """Run a command and return its output and errors; exit if the status is unexpected."""
        command = [str(word) for word in words]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True)
        if done.returncode != status:
            sys.exit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}\nstatus {done.returncode}, not {status}")
        return done.stdout + done.stderr

    def install(self, *words: object) -> None:
        """By pip, and what is there then fits together."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)
        self.run("python", "-m", "pip", "check")

    def follow(self) -> None:
        """The bare program names a command; that command mends it."""
        said = self.run("trimtab", status=2)
        (command,) = re.findall(r"pip install .*", said)
        print(f"  {command}")
        self.install(*shlex.split(command)[2:])
        self.run("trimtab", "--help")


def serves(environment: Environment) -> None:
    """The service starts, and says that it lives."""
    words = ["trimtab", "serve", "--port", "0", "--quiet"]
    with (
        open(environment.folder / "served", "w+") as said,
        subprocess.Popen(words, cwd=environment.folder, env=environment.variables, stdout=said, stderr=said) as running,
    ):
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", (environment.folder / "served").read_text())):
                if running.poll() is not None:
                    sys.exit(f"trimtab serve ended: {(environment.folder / 'served').read_text()}")
                time.sleep(0.1)
            with urllib.request.urlopen(f"{found[0]}/livez") as answer:
                assert b"alive" in answer.read()
        finally:
            running.terminate()


def try_out(environment: Environment, wheel: Path) -> None:
    """All that the README does first."""
    environment.install(wheel)
    environment.run("python", "-c", USE)
    environment.follow()
    environment.install(f"{wheel}[all]")
    version = wheel.name.split("-")[1]
    assert environment.run("trimtab", "--version").split()[-1] == version
    environment.run("trimtab", "init")
    assert environment.run("trimtab", "tune", "study.toml", "--rounds", "5", "--plain").count("tell") >= 4
    environment.run("trimtab", "show", "demo")
    environment.run("trimtab", "check")
    environment.run("trimtab", "compare", "lqr-v1", "--methods", "residual,still", "--rounds", "20", "--trials", "2")
    environment.run("python", "-c", ADAPTERS)
    home = environment.run("python", "-c", USE).strip()
    assert Path(home).is_relative_to(environment.folder.resolve()), f"{home} is not in {environment.folder}"
    serves(environment)


def main(wheel: Path, folder: Path, pythons: list[str]) -> None:
    """Every Python that runs; one at least."""
    tried, missing = [], []
    for python in pythons:
        asked = [python, "-c", "import platform; print(platform.python_version())"]
        try:
            version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            missing.append(python)
            continue
        print(f"{python} ({version})", flush=True)
        try_out(Environment(folder / python.replace("/", "_"), python), wheel)
        if not tried:
            clone = Environment(folder / "clone", python)
            clone.install("--editable", CLONE)
            clone.follow()
            assert Path(clone.run("python", "-c", USE).strip()).is_relative_to(CLONE)
        tried.append(python)
    print(f"{wheel.name}: works with {', '.join(tried) or 'none'}; not tried, because not here: {', '.join(missing)}")
    sys.exit(not tried)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:])
