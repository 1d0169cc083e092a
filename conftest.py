"""Adapters whose host is not installed cannot be imported for their doctests: `make hosts` runs those."""

from importlib.util import find_spec

HOSTS = ("bluesky", "optax", "torch")

collect_ignore = [f"src/trimtab/adapters/{host}.py" for host in HOSTS if find_spec(host) is None]
