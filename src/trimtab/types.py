"""The types that every layer speaks of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Value = float | Array
"""One number, or one per lane."""
Mask = bool | NDArray[np.bool_]
"""A yes or no, or one per lane."""
Json = Any
"""What JSON can say; what a file says is for its reader to check."""
Document = dict[str, Json]
"""An object of JSON."""
Memory = Any
"""What a part remembers: () or a NamedTuple of values and arrays, whose names only that part knows."""
Arrays = dict[str, NDArray[Any]]
"""Of whatever numbers, by name, beside a document."""
