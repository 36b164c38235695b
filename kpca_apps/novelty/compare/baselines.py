"""The methods Hoffmann compared kernel PCA with, and two of today's, behind one small face.

References
----------
Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007, section 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

from kpca_apps.engine.kernels.bandwidth import median_squared_distance
from kpca_apps.novelty.compare.evaluation import judge
from kpca_apps.novelty.magnitudes import mean_and_sd, varies
from kpca_apps.novelty.result import Curves

__all__ = ["RIVALS", "Rival", "judge_rivals", "standardise"]

FloatArray = NDArray[np.float64]

# Methods whose cost grows with the square of the rows are fitted on at most this many.
MAX_FIT_ROWS = 5_000


@dataclass(frozen=True)
class Rival:
    """A method to compare with.

    Attributes
    ----------
    name : str
        As a reader would call it.
    settings : str
        The parameters it runs with.
    scores : callable
        ``scores(fit_rows, scored_rows, seed)``: higher = more novel; where both are the same
        object, the rows are scored as members of the rows fitted.
    quadratic : bool
        Whether its cost grows with the square of the rows fitted.
    """

    name: str
    settings: str
    scores: Callable[[FloatArray, FloatArray, int], FloatArray]
    quadratic: bool = True


def judge_rivals(
    fit: FloatArray,
    scored: FloatArray,
    is_outlier: NDArray[np.bool_],
    known: NDArray[np.bool_],
    seed: int,
) -> tuple[Curves, ...]:
    """Fit every rival on some rows and judge it on others.

    Parameters
    ----------
    fit : (n, d) array
        Rows to fit on, scaled.
    scored : (m, d) array
        Rows to score; the same object where the rows fitted are scored.
    is_outlier, known : (m,) bool array
        Their labels, and which of them are known: only those rows are judged.
    seed : int
        Of every random draw.

    Returns
    -------
    tuple of Curves
        In the order of `RIVALS`.
    """
    return tuple(_judge(rival, fit, scored, is_outlier, known, seed) for rival in RIVALS)


def standardise(
    fit: FloatArray, scored: FloatArray, as_is: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Scale columns to mean 0 and standard deviation 1 on the rows fitted, indicators excepted.

    Indicators of categories come scaled as our own model sees them, so rivals get the same. Where
    both are the same object, so are the results.
    """
    mean, sd = mean_and_sd(fit)
    plain = np.isin(np.arange(fit.shape[1]), as_is) | ~varies(fit)
    mean, sd = np.where(plain, 0.0, mean), np.where(plain, 1.0, sd)
    scaled = (fit - mean) / sd
    return scaled, scaled if scored is fit else (scored - mean) / sd


def _judge(
    rival: Rival,
    fit: FloatArray,
    scored: FloatArray,
    is_outlier: NDArray[np.bool_],
    known: NDArray[np.bool_],
    seed: int,
) -> Curves:
    note = rival.settings
    if rival.quadratic and len(fit) > MAX_FIT_ROWS:
        rng = np.random.default_rng(seed)
        fit = fit[np.sort(rng.choice(len(fit), MAX_FIT_ROWS, replace=False))]
        note += f"; fitted on {MAX_FIT_ROWS:,} drawn rows"
    start = time.perf_counter()
    scores = rival.scores(fit, scored, seed)
    seconds = time.perf_counter() - start
    return judge(rival.name, is_outlier[known], scores[known], seconds=seconds, note=note)


def _linear_pca(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    pca = PCA(svd_solver="full", random_state=seed).fit(fit)
    kept = np.cumsum(pca.explained_variance_ratio_)
    # At least one direction must be left out, or nothing remains to measure.
    q = min(int(np.searchsorted(kept, 0.9)) + 1, len(kept) - 1)
    centred = scored - pca.mean_
    coordinates = centred @ pca.components_[:q].T
    residual: FloatArray = (centred**2).sum(axis=1) - (coordinates**2).sum(axis=1)
    return residual


def _one_class_svm(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    gamma = 1.0 / median_squared_distance(fit, np.random.default_rng(seed))
    svm = OneClassSVM(kernel="rbf", gamma=gamma, nu=0.1).fit(fit)
    return -np.asarray(svm.decision_function(scored))


def _parzen(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    density = KernelDensity(bandwidth="silverman", rtol=1e-4).fit(fit)
    return -np.asarray(density.score_samples(scored))


def _isolation_forest(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    forest = IsolationForest(n_estimators=100, random_state=seed).fit(fit)
    return -np.asarray(forest.score_samples(scored))


def _local_outlier_factor(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    neighbours = min(20, len(fit) - 1)
    if scored is fit:
        model = LocalOutlierFactor(n_neighbors=neighbours).fit(fit)
        return -np.asarray(model.negative_outlier_factor_)
    model = LocalOutlierFactor(n_neighbors=neighbours, novelty=True).fit(fit)
    return -np.asarray(model.score_samples(scored))


RIVALS = (
    Rival("Linear PCA", "residual beyond 90 % of the variance", _linear_pca, quadratic=False),
    Rival("One-class SVM", "RBF, gamma = 1 / median squared distance, nu = 0.1", _one_class_svm),
    Rival("Parzen density", "Gaussian, Silverman's width", _parzen),
    Rival("Isolation forest", "100 trees", _isolation_forest, quadratic=False),
    Rival("Local outlier factor", "20 neighbours", _local_outlier_factor),
)
