"""Noise level of small images, from the energy that a dictionary's examples do not explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from msgspec import Meta
from scipy.linalg import eigh

from kpca_apps.denoise.dictionary.choosing import LARGEST_FIT
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

MOST_DIRECTIONS = 256
LOWEST = 1e-3  # least noise level, relative to the range
LARGEST = 1e100  # largest modulus of a number in a dictionary file


@dataclass(frozen=True, eq=False)
class ResidualLevel:
    """Leading directions of the examples, and the energy of a clean example outside them."""

    mean: Annotated[Matrix, "d", Meta(gt=-LARGEST, lt=LARGEST)]
    directions: Annotated[Matrix, "d r", Meta(gt=-2, lt=2)]  # (d, r), orthonormal; r <= d / 2
    # Mean squared length of the part of held-out examples orthogonal to the directions.
    clean_energy: Annotated[float, Meta(ge=0)]

    def validate(self) -> None:
        """Raise ValueError unless there are fewer directions than dimensions."""
        if self.directions.shape[1] >= len(self.mean):
            raise ValueError(f"{self.directions.shape[1]} directions")

    @classmethod
    def fit(cls, examples: Matrix, rng: np.random.Generator, examples_sigma: float = 0.0) -> Self:
        """Fit directions to 3/4 of the examples; measure the energy outside them in the rest."""
        order = rng.permutation(len(examples))
        rest, used = np.split(examples[order], [max(len(examples) // 4, 1)])
        used = used[:LARGEST_FIT]
        mean = used.mean(axis=0)
        r = min(examples.shape[1] // 2, len(used) // 2, MOST_DIRECTIONS)
        level = cls(mean, _leading_directions(used - mean, r), 0.0)
        noise = (examples.shape[1] - level.directions.shape[1]) * examples_sigma**2
        return cls(mean, level.directions, max(level._energy(rest) - noise, 0.0))

    def of_rows(self, rows: Matrix) -> float:
        """Return the noise level of noisy rows, at least `LOWEST`."""
        dimensions = self.directions.shape[0] - self.directions.shape[1]
        variance = (self._energy(rows) - self.clean_energy) / dimensions
        return float(np.sqrt(max(variance, LOWEST**2)))

    def _energy(self, rows: Matrix) -> float:
        """Return the mean squared length of the part of rows orthogonal to the directions."""
        centred = rows - self.mean
        with one_blas_thread():
            inside = centred @ self.directions
        return float(((centred**2).sum(axis=1) - (inside**2).sum(axis=1)).mean())


def _leading_directions(centred: Matrix, r: int) -> Matrix:
    """Return the r leading principal directions, or fewer if the rows span fewer."""
    if r == 0:
        return np.empty((centred.shape[1], 0))
    with one_blas_thread():
        wide = centred.shape[1] > len(centred)
        moment = centred @ centred.T if wide else centred.T @ centred
        order = len(moment)
        values, vectors = eigh(moment, subset_by_index=(order - r, order - 1))
        keep = values > 1e-12 * max(float(np.trace(moment)), np.finfo(np.float64).tiny)
        vectors = vectors[:, keep]
        if wide:
            vectors = (centred.T @ vectors) / np.sqrt(values[keep])
    return np.ascontiguousarray(vectors)
