"""How far do we go?  The rate η_t that multiplies the estimate, Δx = −η_t·ĝ_t, and how wide we probe."""

from trimtab.steps.adaptive import Adaptive
from trimtab.steps.constant import Constant
from trimtab.steps.normalised import Normalised
from trimtab.steps.schedule import Power, Schedule, StepLike, as_step

__all__ = ["Adaptive", "Constant", "Normalised", "Power", "Schedule", "StepLike", "as_step"]
