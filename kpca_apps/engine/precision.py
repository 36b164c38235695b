"""Choose float32 or float64 for kernel values and their products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.linalg.gram import about_mean, centre_in_place
from kpca_apps.engine.rows import SampleRows, map_row_blocks
from kpca_apps.engine.subspace import Resolved
from kpca_apps.system.arrays import Index, Matrix
from kpca_apps.system.blas import one_blas_thread

Precision = Literal["auto", "float32", "float64"]

FLOAT64_ROWS = 2000  # up to this number of rows, float64 is always used
# Largest accepted error of a float32 kernel value, as a share of the mean variance.
LARGEST_ERROR = 1e-5
# Share of the largest eigenvalue below which float32 has fewer than three correct digits.
SMALLEST_SHARE = 1e-3
ROUNDING = 1000.0  # smallest eigenvalue kept, in multiples of eps times the trace
LARGEST_CHANGE = 1e-3  # largest accepted relative change of a score by float32
SAMPLE = 192  # number of rows on which float32 is compared with float64
MEAN_ROWS = 2500  # number of rows whose mean approximates the mean of all rows
_FARTHEST, _LARGEST_SAMPLE = 16, 1024


def evenly_drawn(n: int, size: int = SAMPLE) -> Index:
    """Return at most ``size`` of n row numbers, spread evenly."""
    return np.unique(np.linspace(0, n - 1, size).astype(np.intp)) if n else np.arange(0)


def agreeing_precision(
    function: Callable[[Resolved], NDArray[Any]],
    n_rows: int,
    allowed: Callable[[Matrix], Matrix | float] = lambda values: LARGEST_CHANGE * np.abs(values),
) -> Resolved:
    """Return float32 if a function agrees in both precisions on a sample, else float64.

    Float64 up to 2,000 rows. ``allowed`` returns the largest allowed difference of each value, by
    default a thousandth of the value.
    """
    if n_rows <= FLOAT64_ROWS:
        return "float64"
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        single, double = function("float32"), function("float64")
        agree = (np.abs(single - double) <= allowed(double)).all()
    return "float32" if agree and double.size else "float64"


def choose_precision(
    kernel: Kernel,
    X: SampleRows,
    q: int,
    precision: Precision = "auto",
    *,
    center: bool = True,
    n_rows: int | None = None,
) -> Resolved:
    """Choose a precision for q leading eigenpairs.

    ``X`` holds all ``n_rows`` rows or a sample. Above 2,000 rows float32 is chosen after a test on
    some rows, including the farthest from the mean. Their kernel values must be correct to 1e-5 of
    the mean variance, and the q-th eigenvalue must exceed `smallest_eigenvalue`.
    """
    if precision != "auto":
        return precision
    n, size = len(X) if n_rows is None else n_rows, max(SAMPLE, 2 * q)
    if n <= FLOAT64_ROWS or size > _LARGEST_SAMPLE:
        return "float64"
    rows = X[np.union1d(evenly_drawn(len(X), size), _farthest(X))]
    kernel = about_mean(kernel, rows) if center else kernel

    def error_allowed(gram: Matrix) -> float:
        if not np.isfinite(gram).all():
            return -1.0
        centred = gram.copy()
        if center:
            centre_in_place(centred)
        moduli = np.sort(np.abs(np.linalg.eigvalsh(centred)))[::-1]
        trace, largest = float(np.abs(np.diag(gram)).sum()), float(moduli[0])
        least = smallest_eigenvalue(largest, trace, len(gram), "float32")
        is_kept = q == 0 or moduli[q - 1] > least
        return LARGEST_ERROR * abs(float(np.trace(centred))) / len(gram) if is_kept else -1.0

    return agreeing_precision(lambda p: kernel.against(rows, p)(rows), n, error_allowed)


def smallest_eigenvalue(largest: float, trace: float, order: int, precision: Resolved) -> float:
    """Return the modulus above which eigenvalues are correct to three digits and kept."""
    # `trace` sums the absolute diagonal before centring, as centring does not remove rounding
    # errors.
    eps = float(np.finfo(precision).eps)
    share = SMALLEST_SHARE if precision == "float32" else order * eps
    return max(share * largest, ROUNDING * eps * trace)


def _farthest(X: SampleRows) -> Index:
    """Return the numbers of the rows farthest from the mean."""
    mean = X[evenly_drawn(len(X), MEAN_ROWS)].mean(axis=0)
    with np.errstate(over="ignore"):
        distance = map_row_blocks(lambda index: squared_lengths(X[index] - mean), np.arange(len(X)))
    return np.argsort(-distance, kind="stable")[:_FARTHEST]
