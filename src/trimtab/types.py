"""Shared type aliases; as strings, so that the help text of a program does not import NumPy."""

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
"""A bool, or one per lane."""
Json = Any
"""Any JSON value; the code that reads a file checks its content."""
Document = dict[str, Json]
"""A JSON object."""
Fields = Mapping[str, Json]
"""A read-only JSON object."""
Memory = Any
"""The state of a part: () or a NamedTuple of values and arrays, private to that part."""
Arrays: TypeAlias = "dict[str, NDArray[Any]]"
"""Arrays of any type by name, stored with a document."""
