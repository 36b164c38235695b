"""When seven digits are enough: float32 or float64 for kernel values and their products."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kpca_apps.blas import one_blas_thread
from kpca_apps.engine.blocks import map_row_blocks
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.products import squared_lengths
from kpca_apps.engine.linalg.gram import about_mean, centre_in_place
from kpca_apps.engine.subspace import Resolved

__all__ = [
    "FLOAT64_ROWS",
    "LARGEST_CHANGE",
    "SAMPLE",
    "Precision",
    "Resolved",
    "choose_precision",
    "scores_agree",
    "smallest_eigenvalue",
]

Matrix = NDArray[np.float64]
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

SAMPLE = 256
"""Rows on which float32 is compared with float64 before it is used."""

_FARTHEST, _LARGEST_SAMPLE = 16, 1024


def choose_precision(
    kernel: Kernel, X: Matrix, q: int, precision: Precision = "auto", *, center: bool = True
) -> Resolved:
    """Return the precision that ``"auto"`` stands for, for q leading eigenpairs of ``X``.

    Float64 up to 2,000 rows. Above, float32 if on some rows, the farthest from the mean among them,
    its kernel values are right to 1e-5 of the mean variance, and if it keeps the q-th eigenvalue of
    these.
    """
    if precision != "auto":
        return precision
    n = len(X)
    size = max(SAMPLE, 2 * q)
    if n <= FLOAT64_ROWS or size > _LARGEST_SAMPLE:
        return "float64"
    spread = np.linspace(0, n - 1, size).astype(np.intp)
    rows = X[np.union1d(spread, _farthest(X))]
    kernel = about_mean(kernel, rows) if center else kernel
    with one_blas_thread():
        return "float32" if _is_enough(kernel, rows, q, center) else "float64"


def _is_enough(kernel: Kernel, rows: Matrix, q: int, center: bool) -> bool:
    """Return whether float32 gives the kernel and the leading eigenvalues of some rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        gram, narrow = kernel(rows), kernel.against(rows, np.float32)(rows)
        error, trace = float(np.abs(gram - narrow).max()), float(np.abs(np.diag(gram)).sum())
        if center:
            centre_in_place(gram)
        variance = float(np.trace(gram)) / len(gram)
    if not error <= LARGEST_ERROR * abs(variance):
        return False
    moduli = np.sort(np.abs(np.linalg.eigvalsh(gram)))[::-1]
    return q == 0 or bool(
        moduli[q - 1] > smallest_eigenvalue(float(moduli[0]), trace, len(gram), "float32")
    )


def smallest_eigenvalue(largest: float, trace: float, order: int, precision: Resolved) -> float:
    """Return the modulus above which eigenvalues are kept, as right to three digits."""
    # The trace, of the moduli of the diagonal, is that of the matrix before it is centred: it is
    # kernel values that are rounded, and a mean that is taken away takes none of their rounding
    # with it.
    eps = float(np.finfo(precision).eps)
    share = SMALLEST_SHARE if precision == "float32" else order * eps
    return max(share * largest, ROUNDING * eps * trace)


def scores_agree(single: Matrix, double: Matrix) -> bool:
    """Return whether float32 scores are those of float64 to 1e-3 of each."""
    return bool((np.abs(single - double) <= LARGEST_CHANGE * np.abs(double)).all())


def _farthest(X: Matrix) -> NDArray[np.intp]:
    """Return the numbers of the rows farthest from the mean."""
    mean = X.mean(axis=0)
    with np.errstate(over="ignore"):
        distance = map_row_blocks(lambda rows: squared_lengths(rows - mean), X)
    return np.argsort(-distance, kind="stable")[:_FARTHEST]
