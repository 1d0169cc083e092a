"""The paper's experiments and claims, reproduced: `trimtab paper`, or `reproduce(folder)`."""

from trimtab.paper.experiments import MODES, Experiment, Mode, experiments
from trimtab.paper.pipeline import Reproduction, reproduce

__all__ = ["MODES", "Experiment", "Mode", "Reproduction", "experiments", "reproduce"]
