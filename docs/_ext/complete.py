"""A public name that the reference lacks is a warning, which `make docs` takes for an error."""

from __future__ import annotations

import importlib
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import trimtab

ELSEWHERE = {"trimtab.live.Knob", "trimtab.live.Knobs", "trimtab.problems.CheckError", "trimtab.problems.check_problem"}
"""Documented once, where they are made."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Look when all pages are read."""
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True}


def _check(app: Sphinx, env: BuildEnvironment) -> None:
    for name in sorted(public() - ELSEWHERE - set(env.domains.python_domain.objects)):
        logging.getLogger(__name__).warning("%s is public, and not in docs/reference: add it there", name)


def public() -> set[str]:
    """Every name that a user may rely on."""
    names = {f"trimtab.{name}" for name in dir(trimtab) if name not in trimtab.MODULES}
    for module in ("checks", "lab", "live", "problems", "theory"):
        names |= {f"trimtab.{module}.{name}" for name in importlib.import_module(f"trimtab.{module}").__all__}
    return names
