"""CI and pre-commit call commands that the Makefile has, on the Pythons that the package is for."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = {target for line in re.findall(r"^([\w. /-]+):(?!=)", MAKEFILE, flags=re.M) for target in line.split()}
CI = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
(LOCAL,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
IN_CI = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in CI["jobs"].items()}
HOOKS = {hook["id"]: hook for hook in LOCAL["hooks"]}


def target(command):
    """The commands of `make TARGET NAME=value …`."""
    program, target, *settings = command.split()
    assert program == "make"
    assert all("=" in setting for setting in settings)
    return target


def test_ci_runs_the_two_commands_of_the_readme_and_builds_the_site():
    block = re.search(r"^## Two commands\n+```console\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S | re.M)
    promised = set(re.findall(r"^\$ make (\w+)", block[1], flags=re.M))
    assert {target(command) for commands in IN_CI.values() for command in commands} == promised | {"docs"}


def test_ci_tests_on_every_python_of_the_package():
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    matrix = CI["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", pyproject)


@pytest.mark.parametrize(
    "command", [hook["entry"] for hook in HOOKS.values()] + [one for commands in IN_CI.values() for one in commands]
)
def test_every_command_is_in_the_makefile(command):
    assert target(command) in TARGETS


def test_the_hooks_are_what_make_check_runs_but_the_tests():
    (needs,) = re.findall(r"^check: (.*)$", MAKEFILE, flags=re.M)
    assert set(HOOKS) == {*needs.split(), "types"}
    assert {target(hook["entry"]) for hook in HOOKS.values()} == set(HOOKS)
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in HOOKS.values())
