"""Hosts that take minutes to install have an environment of their own: `make hosts` builds it and runs these."""

import os
import re
from pathlib import Path

import pytest

# There a host that is missing is an error, not a skip; `make test` does not collect these at all.
collect_ignore_glob = [] if os.environ.get("TRIMTAB_HOSTS") else ["test_*.py"]

PAGES = Path(__file__).parents[2] / "docs" / "adapters"


@pytest.fixture
def example():
    """Run the Python blocks of docs/adapters/<name>.md, and give the names they leave behind."""

    def run(name):
        names = {"__name__": "__main__"}
        blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{name}.md").read_text(), re.S)
        assert blocks, f"docs/adapters/{name}.md has no example"
        for block in blocks:
            exec(compile(block, f"docs/adapters/{name}.md", "exec"), names)
        return names

    return run
