"""Check the input of estimators as scikit-learn does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from kpca_apps.errors import InputError, MemoryLimitError
from kpca_apps.options import is_number
from kpca_apps.system.memory import available_bytes

Method = TypeVar("Method", bound=Callable[..., Any])
# Validates parameters before a method runs: scikit-learn's decorator, with its type.
fit_context: Callable[..., Callable[[Method], Method]] = _fit_context


class Number(Interval):
    """Interval of finite numbers; booleans are refused."""

    def is_satisfied_by(self, val: object) -> bool:
        """Return whether a value lies in the interval."""
        return is_number(val) and bool(super().is_satisfied_by(val))


def checked_rows(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> NDArray[np.float64]:
    """Return X as dense float64 rows in C order."""
    try:
        # validate_data sums all values to test for finiteness, and the sum may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            rows: Any = validate_data(
                estimator, X, accept_sparse="csr", dtype=np.float64, order="C", **options
            )
    except (TypeError, ValueError):
        columns: Any = X if hasattr(X, "columns") and hasattr(X, "__getitem__") else None
        for name in () if columns is None else columns.columns:
            if invalid := _describe_invalid_cell(np.asarray(columns[name])):
                raise InputError(
                    f"Column {str(name)!r:.60} holds {invalid}; {type(estimator).__name__} takes "
                    "finite numbers alone: encode, fill or drop it; kpca_apps.screen_table takes "
                    "tables as they come."
                ) from None
        raise
    if issparse(rows):
        needed = 8 * rows.shape[0] * rows.shape[1]
        if needed > available_bytes():
            raise MemoryLimitError(
                f"X is sparse and takes {needed / 1e9:.1f} GB as the dense rows that kernels are "
                "computed from, more than there is: reduce its columns first, for example with "
                "sklearn.decomposition.TruncatedSVD."
            )
        rows = rows.toarray()
    return np.asarray(rows)


def as_given(X: ArrayLike, values: NDArray[np.float64]) -> NDArray[np.floating[Any]]:
    """Return values computed from X as float32 if X is float32."""
    kinds = {str(kind).lower() for kind in getattr(X, "dtypes", [getattr(X, "dtype", None)])}
    return values.astype(np.float32) if kinds == {"float32"} else values


def _describe_invalid_cell(cells: NDArray[Any]) -> str:
    """Describe a column's first invalid cell; empty if there is none."""
    kind = cells.dtype.kind
    if kind in "cMm":
        return {"c": "complex numbers", "M": "dates", "m": "durations"}[kind]
    if kind == "f":
        return "missing values" * bool(np.isnan(cells).any())
    if kind not in "OUS":
        return ""
    for cell in cells.ravel():
        if cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType"):
            return "missing values"
        try:
            float(cell)
        except (TypeError, ValueError):
            is_text = isinstance(cell, str)
            return f"text ({str(cell)!r:.20})" if is_text else f"a {type(cell).__name__}"
    return ""
