"""A public name that the reference lacks, or that no example shows, is a warning: an error of `make docs`."""

from __future__ import annotations

from typing import Any

from examples import ELSEWHERE, public, without_example
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging


def setup(app: Sphinx) -> dict[str, Any]:
    """Look when all pages are read."""
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True}


def _check(app: Sphinx, env: BuildEnvironment) -> None:
    log = logging.getLogger(__name__)
    for name in sorted(public() - ELSEWHERE - set(env.domains.python_domain.objects)):
        log.warning("%s is public, and not in docs/reference: add it there", name)
    for name in without_example():
        log.warning("%s has no example: add one to its docstring, or to a page", name)
