"""Type aliases of numpy arrays, and dataclasses that hold arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Matrix = NDArray[np.float64]
IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]
Index = NDArray[np.intp]  # row numbers and other positions
BoolArray = NDArray[np.bool_]
Mask = NDArray[np.bool_]
Values = NDArray[Any]  # numbers in float32 or float64


class Uncached:
    """A dataclass whose pickles hold its fields only, without cached values."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}


def scalar_of(kind: Any) -> Any:
    """Return the scalar type of an array annotation, None for any other type.

    >>> scalar_of(FloatArray).__name__
    'float64'
    """
    if get_origin(kind) not in (np.ndarray, NDArray):
        return None
    parts = get_args(kind)  # From numpy 2.5, NDArray[X] is an alias whose only argument is X.
    return (get_args(parts[-1]) or parts)[0]
