"""Collection of tests, and the number of processes that run them."""

import os
from importlib.util import find_spec

import pytest

# An adapter whose host is not installed cannot be imported: `make hosts` runs the doctests of those.
HOSTS = ("bluesky", "optax", "torch")

collect_ignore = [f"src/trimtab/adapters/{host}.py" for host in HOSTS if find_spec(host) is None]


def pytest_configure(config):
    """Turn warnings into errors, except advice on studies, which is not the subject of most tests."""
    config.addinivalue_line("filterwarnings", "ignore::trimtab.util.advice_warning.AdviceWarning")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Number of workers for `-n auto`: one more than cores, because many tests wait for processes they started."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(config, items):
    """Run the longest test first, the paper end to end; leave tests marked long to `make long`."""
    if not os.environ.get("TRIMTAB_LONG"):
        left = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    items.sort(key=lambda item: "paper" not in item.path.parts)
