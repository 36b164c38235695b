"""Baselines: Hoffmann's method, the methods he compared with his own, and two current methods.

References
----------
Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.svm import OneClassSVM

from kpca_apps.engine.kernels.by_name import median_distance
from kpca_apps.engine.rows import ArrayRows
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.hoffmann import NAME
from kpca_apps.system.arrays import FloatArray

MAX_FIT_ROWS = 5_000  # maximum number of training rows for methods with quadratic cost


@dataclass(frozen=True)
class Baseline:
    """A method to compare our detector with."""

    name: str
    settings: str  # parameters of the method in words
    # ``scores(fit_rows, scored_rows, seed)``: higher = more novel. If both arrays are the same
    # object, its rows are scored as training rows.
    scores: Callable[[FloatArray, FloatArray, int], FloatArray]
    quadratic: bool = True  # whether the cost is quadratic in the number of training rows

    def run(self, fit: FloatArray, scored: FloatArray, seed: int) -> tuple[FloatArray, str]:
        """Return scores of rows (m, d) after a fit on rows (n, d), and the settings in words."""
        if not self.quadratic or len(fit) <= MAX_FIT_ROWS:
            return self.scores(fit, scored, seed), self.settings
        drawn = np.random.default_rng(seed).choice(len(fit), MAX_FIT_ROWS, replace=False)
        scores = self.scores(fit[np.sort(drawn)], scored, seed)
        return scores, f"{self.settings}; fitted on {MAX_FIT_ROWS:,} drawn rows"


def _linear_pca(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    pca = PCA(svd_solver="full", random_state=seed).fit(fit)
    kept = np.cumsum(pca.explained_variance_ratio_)
    # At least one direction must be left out, or there is no residual.
    q = min(int(np.searchsorted(kept, 0.9)) + 1, len(kept) - 1)
    centred = scored - pca.mean_
    coordinates = centred @ pca.components_[:q].T
    residual: FloatArray = (centred**2).sum(axis=1) - (coordinates**2).sum(axis=1)
    return residual


def _hoffmann(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    standardised = range(fit.shape[1])  # all columns
    detector = KernelPCANovelty(method="hoffmann", as_is=standardised, random_state=seed)
    detector.fit_rows(ArrayRows(fit))
    return detector.novelty_scores_ if scored is fit else detector.novelty_scores(scored)


def _one_class_svm(fit: FloatArray, scored: FloatArray, seed: int) -> FloatArray:
    gamma = 1.0 / median_distance(fit, np.random.default_rng(seed))
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


BASELINES = (
    Baseline(
        NAME,
        "RBF, 2 sigma^2 = median squared distance, components of 80 % of the variance",
        _hoffmann,
        quadratic=False,
    ),
    Baseline("Linear PCA", "residual beyond 90 % of the variance", _linear_pca, quadratic=False),
    Baseline("One-class SVM", "RBF, gamma = 1 / median squared distance, nu = 0.1", _one_class_svm),
    Baseline("Parzen density", "Gaussian, Silverman's width", _parzen),
    Baseline("Isolation forest", "100 trees", _isolation_forest, quadratic=False),
    Baseline("Local outlier factor", "20 neighbours", _local_outlier_factor),
)
