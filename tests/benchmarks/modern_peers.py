"""Peers of today beside the classics: DTE-NP, KCM, LUNAR and a Gaussian mixture.

All take standardised columns. Without test rows the training rows are scored, each as if it were
not among its own neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

__all__ = ["installed_modern_peers"]

FloatArray = NDArray[np.float64]
# Scores of (training rows, rows to score or None for the training rows themselves, seed).
Method = Callable[[FloatArray, FloatArray | None, int], FloatArray]


def standardised(method: Method) -> Method:
    """Give a method columns of mean 0 and variance 1."""

    def run(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
        scaler = StandardScaler().fit(train)
        others = None if test is None else scaler.transform(test)
        return method(scaler.transform(train), others, seed)

    return run


def dte_np(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    """Mean squared distance to five neighbours (Livernoche et al., ICLR 2024, DTE-NP)."""
    distances, _ = NearestNeighbors(n_neighbors=5).fit(train).kneighbors(test)
    scores: FloatArray = (distances**2).mean(axis=1)
    return scores


def gmm5(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    """Five Gaussians, fewer where there are less than 20 rows for each."""
    n_components = max(1, min(5, len(train) // 20))
    model = GaussianMixture(n_components, reg_covar=1e-3, random_state=seed).fit(train)
    scores: FloatArray = -model.score_samples(train if test is None else test)
    return scores


def kcm(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    """Kernel contraction matching (De Melo Costa et al. 2026): distance to a kernel smoother."""
    from karkcm.estimator import KCM

    model = KCM(random_state=seed).fit(train)
    scores: FloatArray = model.anomaly_score(train if test is None else test)
    if test is None:
        scores[model.reference_indices_] = -model.loo_score_samples_
    return scores


def lunar(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    """A graph neural network on distances to neighbours (Goodge et al., AAAI 2022)."""
    import torch
    from pyod.models.lunar import LUNAR

    np.random.seed(seed)  # noqa: NPY002 (LUNAR draws from the global generators)
    torch.manual_seed(seed)
    model = LUNAR().fit(train)
    scores: FloatArray = model.decision_scores_ if test is None else model.decision_function(test)
    return scores


def installed_modern_peers() -> dict[str, Method]:
    """Return the peers that can run here; say which cannot."""
    found: dict[str, Method] = {"DTE-NP": dte_np, "GMM5": gmm5}
    try:
        import karkcm.estimator  # noqa: F401
    except ImportError:
        print("KCM is left out: pip install kar-kcm to see it.")
    else:
        found["KCM"] = kcm
    try:
        import pyod.models.lunar  # noqa: F401
        import torch  # noqa: F401
    except ImportError:
        print("LUNAR is left out: pip install pyod torch to see it.")
    else:
        found["LUNAR"] = lunar
    return {name: standardised(method) for name, method in found.items()}
