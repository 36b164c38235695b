"""When seven digits are enough: float32 or float64 for kernel values and their products."""

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

FLOAT64_ROWS = 2000
"""Up to this many rows float64 costs little."""

LARGEST_ERROR = 1e-5
"""Error of a float32 kernel value that is put up with, as a share of the mean variance."""

SMALLEST_SHARE = 1e-3
"""Share of the largest eigenvalue below which float32 gives fewer than three digits of one."""

ROUNDING = 1000.0
"""Eigenvalues below this many eps of the trace are rounding, or lose digits to it: three are left
where it moves one by an eps of the trace."""

LARGEST_CHANGE = 1e-3
"""Relative change of a score that float32 may make."""

SAMPLE = 192
"""Rows on which float32 is compared with float64 before it is used: half a block."""

MEAN_ROWS = 2500
"""Rows whose mean is near enough to that of all."""

_FARTHEST, _LARGEST_SAMPLE = 16, 1024


def evenly_drawn(n: int, size: int = SAMPLE) -> Index:
    """Return the numbers of at most ``size`` of n rows, spread evenly."""
    return np.unique(np.linspace(0, n - 1, size).astype(np.intp)) if n else np.arange(0)


def agreeing_precision(
    function: Callable[[Resolved], NDArray[Any]],
    n_rows: int,
    allowed: Callable[[Matrix], Matrix | float] = lambda values: LARGEST_CHANGE * np.abs(values),
) -> Resolved:
    """Return the precision for work on n_rows rows, of which a function shows numbers of some.

    Float64 up to 2,000 rows; above, float32 where the function gives the same numbers in it, but
    for what is ``allowed`` of each, by default a thousandth.
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
    """Return the precision that ``"auto"`` stands for, for q leading eigenpairs.

    ``X`` are all ``n_rows`` rows, or some. Above 2,000 rows it is float32 if on some of them, the
    farthest from the mean included, kernel values are right to 1e-5 of the mean variance, and if it
    keeps the q-th eigenvalue of these.
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
        kept = q == 0 or moduli[q - 1] > least
        return LARGEST_ERROR * abs(float(np.trace(centred))) / len(gram) if kept else -1.0

    return agreeing_precision(lambda p: kernel.against(rows, p)(rows), n, error_allowed)


def smallest_eigenvalue(largest: float, trace: float, order: int, precision: Resolved) -> float:
    """Return the modulus above which eigenvalues are kept, as right to three digits."""
    # The trace, of the moduli of the diagonal, is that of the matrix before it is centred: it is
    # kernel values that are rounded, and a mean that is taken away takes none of their rounding
    # with it.
    eps = float(np.finfo(precision).eps)
    share = SMALLEST_SHARE if precision == "float32" else order * eps
    return max(share * largest, ROUNDING * eps * trace)


def _farthest(X: SampleRows) -> Index:
    """Return the numbers of the rows farthest from the mean."""
    mean = X[evenly_drawn(len(X), MEAN_ROWS)].mean(axis=0)
    with np.errstate(over="ignore"):
        distance = map_row_blocks(lambda index: squared_lengths(X[index] - mean), np.arange(len(X)))
    return np.argsort(-distance, kind="stable")[:_FARTHEST]
