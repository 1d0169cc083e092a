"""Which tests are collected, and by how many processes they are run."""

import os
from importlib.util import find_spec

import pytest

# An adapter whose host is not installed cannot be imported: `make hosts` runs the doctests of those.
HOSTS = ("bluesky", "optax", "torch")

collect_ignore = [f"src/trimtab/adapters/{host}.py" for host in HOSTS if find_spec(host) is None]


def pytest_configure(config):
    """Warnings are errors, but for advice on how a study goes, which many tests are not about."""
    config.addinivalue_line("filterwarnings", "ignore::trimtab.util.advice_warning.AdviceWarning")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Of `-n auto`: one more than there are cores, because many tests wait for processes that they have started."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(config, items):
    """What takes longest begins first: the paper, end to end. What is marked long is left to `make long`."""
    if not os.environ.get("TRIMTAB_LONG"):
        left = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    items.sort(key=lambda item: "paper" not in item.path.parts)
