"""What chance makes of many p-values: the smallest of them."""

from __future__ import annotations

import numpy as np

from kpca_apps.system.arrays import FloatArray

SMALLEST = 1e-12


def of_smallest(log_p: FloatArray, n_tried: int) -> FloatArray:
    """-log of the probability that the smallest of so many p-values is as small (Sidak)."""
    if not n_tried:
        return np.zeros(len(log_p))
    log_p = np.maximum(log_p, np.log(SMALLEST))
    with np.errstate(divide="ignore"):  # of p-values of 1
        log_none = n_tried * np.log1p(-np.exp(log_p))
    surprise: FloatArray = np.maximum(-np.log(-np.expm1(log_none)), 0.0)
    return surprise
