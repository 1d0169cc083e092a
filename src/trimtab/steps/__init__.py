"""Step rules: the rate η_t in Δx = −η_t·ĝ_t, and the width of the probes."""

from trimtab.steps.adaptive import Adaptive
from trimtab.steps.constant import Constant
from trimtab.steps.normalised import Normalised
from trimtab.steps.schedule import Power, Schedule, StepLike, as_step

__all__ = ["Adaptive", "Constant", "Normalised", "Power", "Schedule", "StepLike", "as_step"]
