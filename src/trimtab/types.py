"""The types that every layer speaks of; by name only, so that a program which shows a help text needs no NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Value: TypeAlias = "float | NDArray[np.float64]"
"""One number, or one per lane."""
Mask: TypeAlias = "bool | NDArray[np.bool_]"
"""A yes or no, or one per lane."""
Json = Any
"""What JSON can say; what a file says is for its reader to check."""
Document = dict[str, Json]
"""An object of JSON."""
Fields = Mapping[str, Json]
"""An object of JSON that is only read."""
Memory = Any
"""What a part remembers: () or a NamedTuple of values and arrays, whose names only that part knows."""
Arrays: TypeAlias = "dict[str, NDArray[Any]]"
"""Of whatever numbers, by name, beside a document."""
