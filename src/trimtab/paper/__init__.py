"""Reproduce the paper's experiments and claims: `trimtab paper`, or `reproduce(folder)`."""

from trimtab.paper.experiments import MODES, Experiment, Mode, experiments
from trimtab.paper.pipeline import Reproduction, reproduce

__all__ = ["MODES", "Experiment", "Mode", "Reproduction", "experiments", "reproduce"]
