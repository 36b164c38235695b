"""Types of numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Matrix = NDArray[np.float64]
IntArray = NDArray[np.int64]
Index = NDArray[np.intp]
"""Positions that numpy found or takes."""
BoolArray = NDArray[np.bool_]
Mask = NDArray[np.bool_]
Values = NDArray[Any]
"""Numbers of either precision."""
