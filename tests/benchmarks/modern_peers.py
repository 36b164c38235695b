"""Define our detector and recent baselines (DTE-NP, KCM, LUNAR, a Gaussian mixture).

Baselines take standardised columns. Without test rows the training rows are scored, each excluded
from its own neighbours.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from kpca_apps.novelty.detector.estimator import KernelPCANovelty

FloatArray = NDArray[np.float64]
# (training rows, rows to score or None for the training rows, seed) -> scores
Method = Callable[[FloatArray, FloatArray | None, int], FloatArray]


OURS = "kpca_apps"


class SkippedError(Exception):
    """A baseline is skipped because it would take too long."""


def ours(train: FloatArray, test: FloatArray | None, seed: int) -> FloatArray:
    """Score with our detector; without test rows, the training rows may hold outliers."""
    detector = KernelPCANovelty(contaminated=test is None, random_state=seed).fit(train)
    return detector.novelty_scores_ if test is None else -detector.score_samples(test)


def areas(
    method: Method, train: FloatArray, test: FloatArray | None, seed: int, y: NDArray, task: str
) -> tuple[float, float]:
    """Return AUROC and AUPRC; a failing baseline gets the values of random scores."""
    try:
        scores = method(train, test, seed)
        return float(roc_auc_score(y, scores)), float(average_precision_score(y, scores))
    except SkippedError:
        raise
    except Exception as failure:  # baselines may raise anything
        if method is ours:
            raise
        print(f"failed: {task}: {failure}")
        return 0.5, float(y.mean())


def pyod_class(name: str) -> Callable[..., Any]:
    """Return a pyod detector class; raise ImportError without pyod."""
    found: Callable[..., Any] = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    return found


def standardised(method: Method) -> Method:
    """Return a method that standardises the columns, then calls `method`."""

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
    """Mixture of at most five Gaussians, and at most one Gaussian per 20 training rows."""
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
    """Return the installed baselines; print the missing ones."""
    found: dict[str, Method] = {"DTE-NP": dte_np, "GMM5": gmm5}
    try:
        import karkcm.estimator  # noqa: F401
    except ImportError:
        print("KCM is skipped: pip install kar-kcm")
    else:
        found["KCM"] = kcm
    try:
        import pyod.models.lunar  # noqa: F401
        import torch  # noqa: F401
    except ImportError:
        print("LUNAR is skipped: pip install pyod torch")
    else:
        found["LUNAR"] = lunar
    return {name: standardised(method) for name, method in found.items()}
