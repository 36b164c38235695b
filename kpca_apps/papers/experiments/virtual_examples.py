"""USPS digits: virtual examples (6.3).

Five times the rows weigh as a larger C would, so they are tried with a smaller one, too.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import Polynomial
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments.usps import FITTED_ROWS, machine_error, scaled
from kpca_apps.papers.measuring import components, smoothed_digits
from kpca_apps.papers.result import Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("virtual-examples")

DEGREE, COMPONENTS = 3, 512
LEAST_GAIN = 0.25  # per cent, five digits
MACHINE_C = (10.0, 2.0)
SHIFTS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def run(data: PaperData) -> Outcome:
    """Train with and without the moved digits; test on the same 2,007."""
    X, y, new, truth = data.usps()
    rows = [smoothed_digits(part) for part in (X, new, *(moved(X, *shift) for shift in SHIFTS))]
    subspace = components(Polynomial(DEGREE, 1.0 / 256.0), rows[0][:FITTED_ROWS], COMPONENTS)
    plain, test, *copies = scaled(subspace, *rows)
    more, many = np.vstack([plain, *copies]), np.tile(y, 1 + len(SHIFTS))

    (with_them, without), other = (
        (machine_error(C, more, many, test, truth), machine_error(C, plain, y, test, truth))
        for C in MACHINE_C
    )
    better = with_them < min(without, other[1]) - LEAST_GAIN and other[0] < other[1] - LEAST_GAIN
    settings = (DEGREE, COMPONENTS, *MACHINE_C)
    return Outcome((judged("virtual", better, with_them, without, *settings, *other),))


def moved(X: Matrix, down: int, right: int) -> Matrix:
    """Return images of 16 x 16 pixels moved by whole pixels, paper (-1) coming in."""
    wide = np.pad(X.reshape(-1, 16, 16), ((0, 0), (1, 1), (1, 1)), constant_values=-1.0)
    part = wide[:, 1 - down : 17 - down, 1 - right : 17 - right]
    return part.reshape(len(X), 256)
