"""Scores judged against known labels: ROC and precision-recall curves, thinned for drawing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.novelty.result import Curves

__all__ = ["judge"]

FloatArray = NDArray[np.float64]

MAX_POINTS = 400


def judge(
    name: str,
    is_outlier: NDArray[np.bool_],
    scores: FloatArray,
    *,
    ours: bool = False,
    seconds: float = 0.0,
    note: str = "",
) -> Curves:
    """Judge one method against labels.

    Parameters
    ----------
    name : str
        The method, as a reader would call it.
    is_outlier : (n,) bool array
        Known labels, both values present.
    scores : (n,) array
        Its scores, higher = more novel.
    ours : bool
        Whether it is the detector of this toolkit.
    seconds : float
        Fit and score.
    note : str
        What a reader must know.

    Returns
    -------
    Curves
        Areas from all rows; curves thinned to at most 400 points.

    Examples
    --------
    >>> import numpy as np
    >>> curves = judge("all right", np.array([False, True]), np.array([1.0, 2.0]))
    >>> curves.auroc, curves.auprc
    (1.0, 1.0)
    """
    # Most tables have no labels, and this takes as long to import as a small one to score.
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_curve

    false_positive, true_positive, _ = roc_curve(is_outlier, scores)
    precision, recall, _ = precision_recall_curve(is_outlier, scores)
    fpr, tpr = _thinned(false_positive, true_positive)
    recalls, precisions = _thinned(recall[::-1], precision[::-1])
    return Curves(
        name=name,
        ours=ours,
        auroc=float(np.trapezoid(true_positive, false_positive)),
        auprc=float(average_precision_score(is_outlier, scores)),
        false_positive_rate=fpr,
        true_positive_rate=tpr,
        recall=recalls,
        precision=precisions,
        seconds=seconds,
        note=note,
    )


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """At most 400 points of a curve from left to right, evenly along its length, ends kept."""
    if len(x) <= MAX_POINTS:
        return x, y
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    wanted = np.linspace(0.0, length[-1], MAX_POINTS)
    kept = np.unique(np.searchsorted(length, wanted).clip(max=len(x) - 1))
    kept[-1] = len(x) - 1
    return x[kept], y[kept]
