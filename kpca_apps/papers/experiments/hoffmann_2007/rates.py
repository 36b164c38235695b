"""Breast cancer and the digit 0: AUC of novelty detection against its baselines.

Cancer: the first 200 benign rows to train on; uniform noise of up to .05 breaks the ties of the
integers. Digit 0: the 1,194 zeros of the training file, all 2,007 test digits.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from kpca_apps.engine.kernels import RBF, Kernel, Linear
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Table
from kpca_apps.papers.measuring import components
from kpca_apps.papers.result import Experiment, Outcome, close_to, stated
from kpca_apps.system.arrays import Matrix

Flags = NDArray[np.bool_]


# What is judged: the settings of the independent run.
CANCER, DIGIT = "kernel PCA, sigma 2, q 50", "kernel PCA, sigma 8, q 100"
SCALED_BY_ALL = f"{CANCER}, scaled by all rows"

BASELINES = ("one-class SVM, best of 12", "linear PCA, best", "Parzen density, best of 4")
SIGMAS = (1.0, 2.0, 4.0, 8.0)
NUS = (0.02, 0.05, 0.1)
LINEAR_COUNTS = (1, 8, 20, 40, 60, 100)
EQUAL = 0.003
near = partial(close_to, tolerance=EQUAL, origin="another implementation")

CITED = "as told by Aguilera and Antonanzas 2019, VIII"


def run(data: PaperData) -> Outcome:
    """Score both data sets with each method."""
    cancer, zero = _cancer(data), _digit(data)
    claims = (
        near(
            "cancer: AUC, sigma 2, q 50",
            0.9963,
            cancer[CANCER],
            condition=f"scaled by the training rows; {cancer[SCALED_BY_ALL]:.4f} if scaled by all "
            "rows, test rows among them, as the other run seems to have been",
        ),
        stated(
            f"cancer: kernel PCA holds its own: at most {EQUAL} behind each baseline",
            "competitive",
            _against(cancer, CANCER),
            cancer[CANCER] >= max(cancer[baseline] for baseline in BASELINES) - EQUAL,
            source=CITED,
            condition="sigma and q from a run judged on these test rows; the data hardly tell "
            f"methods apart: the distance to the mean has {cancer['distance to the mean']:.4f}",
        ),
        near("digit 0: AUC, sigma 8, q 100", 0.9878, zero[DIGIT]),
        stated(
            f"digit 0: kernel PCA holds its own: at most {EQUAL} behind each baseline",
            "competitive",
            _against(zero, DIGIT),
            zero[DIGIT] >= max(zero[baseline] for baseline in BASELINES) - EQUAL,
            source=CITED,
            condition="on USPS, where the paper had MNIST; sigma and q from a run judged on these "
            "test rows",
        ),
    )
    cells = tuple(
        (task, method, f"{auc:.4f}")
        for task, found in (("cancer", cancer), ("digit 0", zero))
        for method, auc in found.items()
    )
    return Outcome(claims, (), (Table("AUC", ("data", "method", "AUC"), cells),))


def _against(found: dict[str, float], ours: str) -> str:
    rest = ", ".join(f"{baseline.split(',')[0]} {found[baseline]:.4f}" for baseline in BASELINES)
    return f"{found[ours]:.4f}; {rest}"


def _auc(kernel: Kernel, q: int, train: Matrix, test: Matrix, novel: Flags) -> float:
    errors = components(kernel, train, q).reconstruction_error(test)
    return float(roc_auc_score(novel, errors))


def _one_class(sigma: float, nu: float, train: Matrix, test: Matrix, novel: Flags) -> float:
    model = OneClassSVM(gamma=0.5 / sigma**2, nu=nu).fit(train)
    return float(roc_auc_score(novel, -model.decision_function(test)))


def _cancer(data: PaperData) -> dict[str, float]:
    """Train on the first 200 benign rows; noise of .05 breaks ties of the integers."""
    X, malignant = data.cancer()
    X = X + np.random.default_rng(0).uniform(-0.05, 0.05, X.shape)
    order = np.concatenate([np.flatnonzero(~malignant), np.flatnonzero(malignant)])
    X, malignant = X[order], malignant[order]
    own, leaky = (
        (rows[:200], rows[200:], malignant[200:])
        for rows in (X / X[:200].std(axis=0), X / X.std(axis=0))
    )
    return {
        CANCER: _auc(RBF.from_sigma(2.0), 50, *own),
        SCALED_BY_ALL: _auc(RBF.from_sigma(2.0), 50, *leaky),
        "kernel PCA, sigma 8, q 10": _auc(RBF.from_sigma(8.0), 10, *own),
        **_baselines(*own),
    }


def _digit(data: PaperData) -> dict[str, float]:
    """Train on the zeros of the training file; all test digits but 0 are novel."""
    X, y, new, truth = data.usps()
    parts = X[y == 0], new, truth != 0
    return {
        DIGIT: _auc(RBF.from_sigma(8.0), 100, *parts),
        "kernel PCA, sigma 12, q 100": _auc(RBF.from_sigma(12.0), 100, *parts),
        **_baselines(*parts),
    }


def _baselines(train: Matrix, test: Matrix, novel: Flags) -> dict[str, float]:
    """Return the AUC of the baselines at the best of their settings, and of no method at all."""
    parts = train, test, novel
    counts = [q for q in LINEAR_COUNTS if q < train.shape[1]]
    one_class, linear, parzen = BASELINES
    return {
        one_class: max(_one_class(sigma, nu, *parts) for sigma in SIGMAS for nu in NUS),
        linear: max(_auc(Linear(), q, *parts) for q in counts),
        parzen: max(_auc(RBF.from_sigma(sigma), 0, *parts) for sigma in SIGMAS),
        "distance to the mean": _auc(Linear(), 0, *parts),
    }


EXPERIMENT = Experiment(
    "novelty-rates",
    "Hoffmann (2007), breast cancer and digit 0",
    "Novelty detection against one-class SVM, PCA and Parzen",
    ("cancer", "usps"),
    run,
    "The paper's text could not be opened: sigma, q and the cancer split are those of an "
    "independent run, and USPS digits stand in for MNIST. Every baseline gets the best setting "
    "tried, judged on the test rows; the setting of kernel PCA is from a run that was judged on "
    "them too.",
)
