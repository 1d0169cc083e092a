"""The program `trimtab`: arguments in, calls out. A command is a module that adds itself to the application."""

from trimtab.cli import compare, paper, plan, studies, tune
from trimtab.cli.console import app, main

__all__ = ["app", "compare", "main", "paper", "plan", "studies", "tune"]
