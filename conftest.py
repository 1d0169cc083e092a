"""Which doctests are collected, and by how many processes the tests are run."""

import os
from importlib.util import find_spec

# An adapter whose host is not installed cannot be imported: `make hosts` runs the doctests of those.
HOSTS = ("bluesky", "optax", "torch")

collect_ignore = [f"src/trimtab/adapters/{host}.py" for host in HOSTS if find_spec(host) is None]


def pytest_xdist_auto_num_workers():
    """Of `-n auto`: one more than there are cores, because many tests wait for processes that they have started."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(items):
    """What takes longest begins first: the paper, end to end."""
    items.sort(key=lambda item: "paper" not in item.path.parts)
