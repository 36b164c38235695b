"""USPS digits cleaned by linear and kernel PCA (Mika et al. 1998).

300 digits of each class to train on, 50 to clean, Gaussian noise of standard deviation .5 or
speckle (each pixel black or white with probability .4), kernel exp(-|x - y|^2 / c) with
c = 0.5 * 256. A number is the mean squared distance to the clean digit. For few components linear
PCA is better: kernel PCA wins by having more of them to use than there are pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.preimage import fixed_point
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.measuring import components
from kpca_apps.papers.registry import Experiment
from kpca_apps.papers.result import Claim, Curves, Outcome, Pictures, close_to

__all__ = ["EXPERIMENT"]

Matrix = NDArray[np.float64]

LINEAR_COUNTS = (1, 4, 16, 32, 64, 128, 256)
KERNEL_COUNTS = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
ELSEWHERE = {
    "Gaussian": (63.74, 27.0, 19.8),
    "speckle": (187.66, 68.3, 65.8),
}
"""Noisy, best linear, best kernel: an independent implementation's; the paper tells factors."""

PAPER_FACTORS = {"Gaussian": 1.6, "speckle": 1.1}


def run(data: PaperData) -> Outcome:
    """Clean both kinds of noise with each number of components."""
    train, clean = _digits(data)
    kernel, linear = components(RBF(2.0 / 256.0), train, 1024), components(Linear(), train, 256)
    claims: list[Claim] = []
    figures: list[Curves | Pictures] = []
    rng = np.random.default_rng(0)
    for kind in ("Gaussian", "speckle"):
        noisy = _spoil(kind, clean, rng)
        by_linear = [_distance(_project(linear.leading(q), noisy), clean) for q in LINEAR_COUNTS]
        cleaned = {q: _clean(kernel.leading(q), noisy) for q in KERNEL_COUNTS}
        by_kernel = [_distance(cleaned[q], clean) for q in KERNEL_COUNTS]
        claims += _judge(kind, _distance(noisy, clean), min(by_linear), min(by_kernel))
        figures.append(_curves(kind, by_linear, by_kernel))
        best = LINEAR_COUNTS[int(np.argmin(by_linear))]
        few = slice(0, 500, 50)
        shown = [clean[few], noisy[few], _project(linear.leading(best), noisy[few])]
        figures.append(_pictures(kind, [*shown, cleaned[KERNEL_COUNTS[-1]][few]]))
    return Outcome(tuple(claims), tuple(figures))


def _digits(data: PaperData) -> tuple[Matrix, Matrix]:
    """Return the first 300 training and 50 test digits of each class."""
    X, y, new, truth = data.usps()
    train = [X[y == digit][:300] for digit in range(10)]
    test = [new[truth == digit][:50] for digit in range(10)]
    return np.vstack(train), np.vstack(test)


def _spoil(kind: str, clean: Matrix, rng: np.random.Generator) -> Matrix:
    if kind == "Gaussian":
        return clean + 0.5 * rng.normal(size=clean.shape)
    hit, white = rng.random(clean.shape) < 0.4, rng.random(clean.shape) < 0.5
    return np.where(hit, np.where(white, 1.0, -1.0), clean)


def _project(subspace: KernelSubspace, noisy: Matrix) -> Matrix:
    projected: Matrix = subspace.expansion(subspace.project(noisy)) @ subspace.points
    return projected


def _clean(subspace: KernelSubspace, noisy: Matrix) -> Matrix:
    return fixed_point(subspace, subspace.project(noisy), noisy).points


def _distance(X: Matrix, clean: Matrix) -> float:
    return float(((X - clean) ** 2).sum(axis=1).mean())


def _judge(kind: str, noisy: float, linear: float, kernel: float) -> list[Claim]:
    known = ELSEWHERE[kind]
    claims = [
        close_to(
            f"{kind} noise: {what}", there, here, 0.05 * there, origin="another implementation"
        )
        for what, there, here in zip(
            ("noisy", "best linear PCA", "best kernel PCA"),
            known,
            (noisy, linear, kernel),
            strict=True,
        )
    ]
    factor = close_to(
        f"{kind} noise: linear over kernel, each at its best",
        PAPER_FACTORS[kind],
        linear / kernel,
        0.3,
        origin="quoted from memory",
    )
    return [*claims, factor]


def _curves(kind: str, linear: list[float], kernel: list[float]) -> Curves:
    return Curves(
        f"{kind} noise",
        "components",
        "mean squared distance to the clean digit",
        {
            "linear PCA": (np.array(LINEAR_COUNTS, dtype=float), np.array(linear)),
            "kernel PCA": (np.array(KERNEL_COUNTS, dtype=float), np.array(kernel)),
        },
        log_x=True,
    )


def _pictures(kind: str, shown: list[Matrix]) -> Pictures:
    images = np.clip((np.stack(shown).reshape(4, 10, 16, 16) + 1.0) / 2.0, 0.0, 1.0)
    rows = ("clean", "noisy", "linear PCA at its best", f"kernel PCA, {KERNEL_COUNTS[-1]}")
    return Pictures(f"{kind} noise", images, rows, tuple(str(digit) for digit in range(10)))


EXPERIMENT = Experiment(
    "denoising-digits",
    "Mika et al. (1998), USPS digits",
    "Digits cleaned by linear and kernel PCA",
    ("usps",),
    run,
)
