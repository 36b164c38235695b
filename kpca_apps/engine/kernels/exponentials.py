"""Powers of exponentials in one pass over memory, compiled."""

from __future__ import annotations

import numpy as np

from kpca_apps.system.arrays import Values
from kpca_apps.system.compiling import compiled_as_written

ONE, BIAS, MANTISSA_BITS = np.float32(1.0), np.int32(127), np.int32(23)
LOG2_E = np.float32(1.4426950408889634)
# ln 2 as a sum of two numbers. The first has nine bits, so 7-bit integers times it are exact.
LN_2, LN_2_REST = np.float32(0.693359375), np.float32(0.6931471805599453 - 0.693359375)
# Polynomial coefficients of exp(r), relative error below 4e-9 for |r| <= ln 2 / 2.
C2, C3, C4 = np.float32(0.4999999341), np.float32(0.1666652011), np.float32(0.0416683942)
C5, C6 = np.float32(0.0083687804), np.float32(0.0013814467)


@compiled_as_written
def add_first_and_third(
    exponents: Values, lowest: np.float32, factor: np.float32, total: Values, is_first: bool
) -> None:
    """Add factor * u + u^3, u = exp(x), to `total`, for exponents x <= 0; both (b, m) float32.

    Exponents are clipped below at `lowest` >= -87. If `is_first`, `total` is overwritten.

    exp(x) = 2^n exp(r), with n the integer nearest to x / ln 2, written to the exponent bits. The
    relative error of the exponential is 1e-7 (numpy's: 2e-7) and of the sum 4e-7.
    """
    for i in range(len(exponents)):
        line, sums = exponents[i], total[i]
        for j in range(len(line)):
            x = lowest if line[j] < lowest else line[j]
            n = np.rint(x * LOG2_E)
            r = (x - n * LN_2) - n * LN_2_REST
            series = ((((C6 * r + C5) * r + C4) * r + C3) * r + C2) * r * r + r + ONE
            u = series * np.int32((np.int32(n) + BIAS) << MANTISSA_BITS).view(np.float32)
            value = (u * u + factor) * u
            sums[j] = value if is_first else sums[j] + value
