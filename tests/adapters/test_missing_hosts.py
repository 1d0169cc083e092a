"""Without its host an adapter names the pip command."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("adapter", "host"), [("torch", "torch"), ("optax", "jax"), ("bluesky", "bluesky")])
def test_the_error_names_the_command(adapter, host):
    code = f"import sys; sys.modules[{host!r}] = None; import trimtab.adapters.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: trimtab.adapters.{adapter} needs " in done.stderr
    assert f'[{adapter}]"' in done.stderr
