"""Recorded hashes of what users see, which keep it the same while the code behind it is moved and simplified.

The last digits depend on NumPy and on the processor. So numbers count to ten digits, and where they differ all the
same, a canary (what NumPy alone makes of fixed numbers) says whether it is this machine that computes differently.
"""

import hashlib
import json
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

PIECES = 4  # of a hash: the first that differs says where the difference begins


def written(seen):
    """One text for one meaning: numbers to ten digits, mappings in the order of their keys."""
    if isinstance(seen, np.ndarray):
        return f"{seen.shape}{written(seen.tolist())}"
    if isinstance(seen, Mapping):
        return f"{{{','.join(f'{key}:{written(seen[key])}' for key in sorted(seen, key=str))}}}"
    if isinstance(seen, list | tuple):
        return f"[{','.join(map(written, seen))}]"
    if isinstance(seen, float):
        return f"{seen + 0.0:.9e}"  # -0.0 is 0.0
    return repr(seen.item() if isinstance(seen, np.generic) else seen)


def digest(lines):
    """Hash of each quarter of what was seen, one line after another."""
    places = [len(lines) * piece // PIECES for piece in range(PIECES + 1)]
    quarters = ["\n".join(lines[begin:end]) for begin, end in pairwise(places)]
    return "-".join(hashlib.sha256(quarter.encode()).hexdigest()[:6] for quarter in quarters)


def canary():
    """Hash of what NumPy alone makes of fixed numbers, to the last digit."""
    x, rng = np.linspace(0.1, 3.0, 60), np.random.default_rng(1)
    matrix = np.cos(np.outer(x, x))
    found = [
        *(np.exp(x), np.exp(-40 * x), np.log(x), np.power(x, 0.37), np.cos(7 * x), np.sin(9 * x), np.tanh(x)),
        *(matrix @ matrix, matrix[:5] @ x, matrix[:3, :7] @ matrix[:7, :3], np.einsum("ij,ij->i", matrix, matrix)),
        *(np.linalg.solve(matrix[:8, :8] @ matrix[:8, :8].T + np.eye(8), x[:8]), np.linalg.norm(x), matrix.sum(0)),
        *(x.sum(), np.dot(x, x), rng.standard_normal(60), rng.random(60), rng.permuted(x), rng.integers(0, 99, 60)),
    ]
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in found)).hexdigest()[:12]


def record(file, hashes):
    """Write the file anew; the difference in version control says what has changed."""
    document = {"canary": canary(), "numpy": np.__version__, "hashes": dict(sorted(hashes.items()))}
    file.write_text(json.dumps(document, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{file}: {len(hashes)} hashes")


def recorded(file):
    return json.loads(file.read_text(encoding="utf-8"))


def check(file, found, again):
    """Compare with what was recorded; skip where NumPy itself computes differently, and fail otherwise."""
    known = recorded(file)
    changed = [
        f"{name}: {known['hashes'].get(name)} is now {now}"
        for name, now in found.items()
        if known["hashes"].get(name) != now
    ]
    if changed and known["canary"] != canary():
        pytest.skip(
            f"{len(changed)} of {len(found)} hashes differ, but so do the last digits of plain NumPy {np.__version__}"
            f" here from those of {known['numpy']} where {file.name} was recorded"
        )
    assert not changed, f"what users see has changed; if it is meant to, record it with `{again}`:\n" + "\n".join(
        changed
    )
