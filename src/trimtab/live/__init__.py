"""Studies that tune a real system for weeks and survive anything: `Study`, and the loop behind `trimtab tune`.

>>> from trimtab.live import Knob
>>> Knob(name="batch", low=1, high=512, start=32, type="integer", scale="log").unit
''
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimtab.monitor.baseline import Baseline
    from trimtab.monitor.diagnostics import Diagnostics
    from trimtab.monitor.planning import Planned
    from trimtab.monitor.savings import Saving
    from trimtab.spec.constraints import Limits
    from trimtab.spec.guard import Guard
    from trimtab.spec.knob_encoding import Knob, Knobs
    from trimtab.store.errors import Damaged, Moved, NoStore, StoreError, Taken, Unavailable
    from trimtab.store.store import Store
    from trimtab.store.tables import Event
    from trimtab.study.advice import Finding
    from trimtab.study.study import Study, Trial
    from trimtab.study.why import StudyExplanation
    from trimtab.tune.config import Config, read_config
    from trimtab.tune.loop import Report, Runner, Stopped

_WHERE = {
    **dict.fromkeys(("Config", "read_config"), "trimtab.tune.config"),
    "Diagnostics": "trimtab.monitor.diagnostics",
    "Finding": "trimtab.study.advice",
    **dict.fromkeys(("Damaged", "Moved", "NoStore", "StoreError", "Taken", "Unavailable"), "trimtab.store.errors"),
    **dict.fromkeys(("Knob", "Knobs"), "trimtab.spec.knob_encoding"),
    **dict.fromkeys(("Report", "Runner", "Stopped"), "trimtab.tune.loop"),
    "Baseline": "trimtab.monitor.baseline",
    "Event": "trimtab.store.tables",
    "Guard": "trimtab.spec.guard",
    "Limits": "trimtab.spec.constraints",
    "Planned": "trimtab.monitor.planning",
    "Saving": "trimtab.monitor.savings",
    "Store": "trimtab.store.store",
    "Study": "trimtab.study.study",
    "StudyExplanation": "trimtab.study.why",
    "Trial": "trimtab.study.study",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: `trimtab list` needs no NumPy."""
    if name not in _WHERE:
        raise AttributeError(f"module 'trimtab.live' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


__all__ = [
    "Baseline",
    "Config",
    "Damaged",
    "Diagnostics",
    "Event",
    "Finding",
    "Guard",
    "Knob",
    "Knobs",
    "Limits",
    "Moved",
    "NoStore",
    "Planned",
    "Report",
    "Runner",
    "Saving",
    "Stopped",
    "Store",
    "StoreError",
    "Study",
    "StudyExplanation",
    "Taken",
    "Trial",
    "Unavailable",
    "read_config",
]
