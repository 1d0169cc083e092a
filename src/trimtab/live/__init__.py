"""Studies that tune a real system for weeks and survive anything: `Study`, and the loop behind `trimtab tune`.

>>> from trimtab.live import Knob
>>> Knob(name="batch", low=1, high=512, start=32, type="integer", scale="log").unit
''
"""

from trimtab.live.config import Config, Guard, read_config
from trimtab.live.diagnostics import Diagnostics, Finding
from trimtab.live.knobs import Knob, Knobs
from trimtab.live.runner import Report, Runner, Stopped
from trimtab.live.store import Event, Store, StoreError
from trimtab.live.study import Study, Trial

__all__ = [
    "Config",
    "Diagnostics",
    "Event",
    "Finding",
    "Guard",
    "Knob",
    "Knobs",
    "Report",
    "Runner",
    "Stopped",
    "Store",
    "StoreError",
    "Study",
    "Trial",
    "read_config",
]
