"""The same examples every time, however slow the machine is; more of them with TRIMTAB_LONG=1 (`make long`)."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    max_examples=100 if os.environ.get("TRIMTAB_LONG") else 40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
