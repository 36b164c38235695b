"""What the detector's parameters mean for one table: checks and defaults that need its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kpca_apps.engine.kernels import RBF, Kernel
from kpca_apps.engine.kernels.bandwidth import median_squared_distance
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.novelty.detector.surprise.combined import LARGEST, CombinedScore
from kpca_apps.novelty.magnitudes import LARGEST_TO_SQUARE, refuse_larger

if TYPE_CHECKING:
    from kpca_apps.novelty.detector.estimator import KernelPCANovelty

__all__ = [
    "calibration_of",
    "column_groups",
    "column_indices",
    "finite_offset",
    "kernel_of",
    "refuse_contradictions",
    "training_positions",
]

IntArray = NDArray[np.int64]


def refuse_contradictions(detector: KernelPCANovelty) -> None:
    """Refuse parameters of which one would be ignored."""
    if detector.gamma is not None and detector.kernel != "rbf":
        raise ValueError(
            f"gamma={detector.gamma} needs kernel='rbf', got kernel={detector.kernel!r}."
        )
    if detector.ridge is not None and detector.n_components is not None:
        raise ValueError(
            f"ridge={detector.ridge} belongs to the soft cut; use n_components=None, or leave "
            "ridge out."
        )
    if detector.calibration != "auto" and detector.contaminated:
        raise ValueError(
            f"calibration={detector.calibration!r} needs rows known to be normal: "
            "contaminated=False."
        )


def column_indices(as_is: ArrayLike | None, n_columns: int) -> IntArray:
    """Return `as_is` in increasing order, each column once."""
    given = np.asarray([] if as_is is None else as_is)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"as_is must hold whole numbers, got {given.tolist()}.")
    indices = np.unique(given.astype(np.int64))
    if indices.size and (indices[0] < 0 or indices[-1] >= n_columns):
        raise ValueError(
            f"as_is must name columns from 0 to {n_columns - 1}, got {indices.tolist()}."
        )
    return indices


def column_groups(groups: Sequence[Sequence[int]] | None, n_columns: int) -> list[IntArray]:
    """Return the groups as arrays; each column alone where none are given."""
    if groups is None:
        return [np.array([j]) for j in range(n_columns)]
    arrays = [np.asarray(group, dtype=np.int64) for group in groups]
    members = np.concatenate([np.empty(0, dtype=np.int64), *arrays])
    if not np.array_equal(np.sort(members), np.arange(n_columns)):
        raise ValueError(
            f"groups must hold each of the {n_columns} columns once, got {members.tolist()}."
        )
    return arrays


def training_positions(
    training_rows: ArrayLike | None, n_rows: int, n_training_rows: int
) -> IntArray:
    """Return the positions of rows among the training rows, -1 for new ones."""
    if training_rows is None:
        return np.full(n_rows, -1)
    positions = np.asarray(training_rows, dtype=np.int64)
    if (
        positions.shape != (n_rows,)
        or not ((-1 <= positions) & (positions < n_training_rows)).all()
    ):
        raise ValueError(
            f"training_rows must hold {n_rows} positions from 0 to {n_training_rows - 1}, or -1 "
            "for new rows."
        )
    return positions


def finite_offset(
    threshold: float, subspace: KernelSubspace, combined: CombinedScore | None
) -> float:
    """Return minus the threshold, or minus a bound of the scores where it is infinite.

    An error is at most the squared distance of phi(x) to the mean in feature space, hence at most
    the square of the sum of both lengths.
    """
    if np.isfinite(threshold):
        return -threshold
    if combined is not None:
        return -LARGEST
    longest = subspace.kernel.diagonal(subspace.points).max()
    return -float((np.sqrt(longest) + np.sqrt(max(subspace.mean_norm, 0.0))) ** 2)


def calibration_of(calibration: str, *, contaminated: bool, hard: bool) -> str | None:
    """Return what the threshold is calibrated on; ``None`` where no rate can be known."""
    if contaminated:
        return None
    if calibration == "auto":
        return "split" if hard else "leave-one-out"
    if calibration == "leave-one-out" and hard:
        raise ValueError(
            "calibration='leave-one-out' has a closed form for the soft cut only; "
            "use calibration='split' with n_components, or n_components=None."
        )
    return calibration


def kernel_of(
    kernel: str | Kernel | None,
    gamma: float | None,
    X: NDArray[np.float64],
    rng: np.random.Generator,
) -> Kernel:
    """Return the user's kernel, or the RBF kernel with a width taken from the rows `X`."""
    refuse_larger(
        X,
        LARGEST_TO_SQUARE,
        "whose squares no float can hold, and kernel= takes columns as they come",
    )
    if not isinstance(kernel, Kernel):
        return RBF(gamma if gamma is not None else 1.0 / median_squared_distance(X, rng))
    if not kernel.is_psd:
        raise ValueError(
            f"kernel {kernel.describe()} is indefinite and has no reconstruction error; use a "
            "positive semi-definite kernel."
        )
    return kernel
