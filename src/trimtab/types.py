"""The types that every layer speaks of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Value = float | Array
"""One number, or one per lane."""
Memory = Any
"""What a part remembers: () or a NamedTuple of values and arrays, whose names only that part knows."""
