"""USPS digits cleaned by linear and kernel PCA, kernel exp(-|x - y|^2 / (256 c)) with c = 0.5.

The paper's c is twice the average variance of a pixel. That of our copy is nearly twice as large,
and that of the same digits smoothed is the paper's, so smoothed digits are taken.

A number is the mean squared distance to the clean digit. Noise is Gaussian of standard deviation
.5, or speckle: each pixel black or white with probability .4.
"""

from __future__ import annotations

import numpy as np

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import Claims
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Curves, Pictures, Table
from kpca_apps.papers.measuring import components, smoothed_digits
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix

judged = Claims("denoising-digits")

LINEAR_COUNTS = (1, 4, 16, 32, 64, 128, 256)
KERNEL_COUNTS = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
# Best numbers of components, linear and kernel PCA; then linear over kernel, each at its best.
BEST = {"Gaussian": (32, 512), "Speckle": (32, 256)}
FACTORS = {"Gaussian": 1.6, "Speckle": 1.2}

SHOWN_COUNTS = (1, 4, 16, 64, 256, 1024)
SHOWN = 150  # the digit shown at each of them: the first 3 of the test digits
WITHIN = 0.05
C = 0.5
WITHOUT = {"Gaussian": 1.36, "Speckle": 1.03}  # FACTORS, measured on the same digits unsmoothed


def run(data: PaperData) -> Outcome:
    """Clean both kinds of noise with each number of components."""
    raw, test = digits(data)
    train, clean = smoothed_digits(raw), smoothed_digits(test)
    kernel, linear = components(RBF(1.0 / (256 * C)), train, 1024), components(Linear(), train, 256)
    claims = [_width(raw, train)]
    figures: list[Curves | Pictures] = []
    columns: list[list[float]] = []
    rng = np.random.default_rng(0)
    for kind in BEST:
        noisy = spoil(kind, clean, rng)
        flat = {q: _project(linear.leading(q), noisy) for q in LINEAR_COUNTS}
        cleaned = {q: _clean(kernel.leading(q), noisy) for q in KERNEL_COUNTS}
        by_linear = [_distance(flat[q], clean) for q in LINEAR_COUNTS]
        by_kernel = [_distance(cleaned[q], clean) for q in KERNEL_COUNTS]
        claims += _judge(kind, by_linear, by_kernel)
        columns += [by_linear, by_kernel]
        best = LINEAR_COUNTS[int(np.argmin(by_linear))]
        rows = [clean, noisy, flat[best], cleaned[KERNEL_COUNTS[-1]]]
        figures += [
            _curves(kind, by_linear, by_kernel),
            _by_count(kind, flat, cleaned),
            _pictures(kind, [part[::50] for part in rows]),
        ]
    pairs = zip(columns[::2], columns[1::2], strict=True)
    most = max(a / b for pair in pairs for a, b in zip(*pair, strict=False))
    claims.append(judged.near("most", most))
    return Outcome(tuple(claims), tuple(figures), (_table(columns),))


def digits(data: PaperData) -> tuple[Matrix, Matrix]:
    """Return the first 300 training and 50 test digits of each class."""
    X, y, new, truth = data.usps()
    train = [X[y == digit][:300] for digit in range(10)]
    test = [new[truth == digit][:50] for digit in range(10)]
    return np.vstack(train), np.vstack(test)


def spoil(kind: str, clean: Matrix, rng: np.random.Generator) -> Matrix:
    """Return digits with "Gaussian" noise or "Speckle"."""
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


def _judge(kind: str, by_linear: list[float], by_kernel: list[float]) -> tuple[Claim, ...]:
    linear, kernel, factor = min(by_linear), min(by_kernel), FACTORS[kind]
    return (
        judged("better", kernel < linear, kind, kernel, linear, WITHOUT[kind]),
        _best(kind, "linear", LINEAR_COUNTS, by_linear, BEST[kind][0]),
        _best(kind, "kernel", KERNEL_COUNTS, by_kernel, BEST[kind][1]),
        judged.near("factor", linear / kernel, kind, factor, WITHIN * factor, WITHOUT[kind]),
    )


def _best(
    kind: str, method: str, counts: tuple[int, ...], distances: list[float], known: int
) -> Claim:
    best, there = counts[int(np.argmin(distances))], distances[counts.index(known)]
    return judged.near("best count", best, kind, method, known, there, min(distances), best)


def _width(raw: Matrix, train: Matrix) -> Claim:
    """Compare the paper's width with the variance of its pixels, by which it is chosen."""
    return judged.near("width", 2.0 * float(train.var(axis=0).mean()), 2.0 * raw.var(axis=0).mean())


def _table(columns: list[list[float]]) -> Table:
    """Return every distance, a column for each noise and method."""
    heads = ["components"]
    heads += [f"{kind}, {method} PCA" for kind in BEST for method in ("linear", "kernel")]
    rows = []
    for i, count in enumerate(KERNEL_COUNTS):
        cells = [f"{column[i]:.1f}" if i < len(column) else "none" for column in columns]
        rows.append((str(count), *cells))
    return Table("Mean squared distance to the clean digit", tuple(heads), tuple(rows))


def _curves(kind: str, linear: list[float], kernel: list[float]) -> Curves:
    return Curves(
        f"{kind} noise: distance by number of components",
        "components",
        "mean squared distance",
        {
            "linear PCA": (np.array(LINEAR_COUNTS, dtype=float), np.array(linear)),
            "kernel PCA": (np.array(KERNEL_COUNTS, dtype=float), np.array(kernel)),
        },
        log_x=True,
    )


def _pictures(kind: str, shown: list[Matrix]) -> Pictures:
    images = np.clip((np.stack(shown).reshape(4, 10, 16, 16) + 1.0) / 2.0, 0.0, 1.0)
    rows = ("clean", "noisy", "linear PCA at its best", f"kernel PCA, {KERNEL_COUNTS[-1]}")
    return Pictures(f"{kind} noise: digits", images, rows, tuple(str(digit) for digit in range(10)))


def _by_count(kind: str, flat: dict[int, Matrix], cleaned: dict[int, Matrix]) -> Pictures:
    """Return one digit by number of components, linear above kernel PCA, as the paper shows it."""
    images = np.full((2, len(SHOWN_COUNTS), 16, 16), np.nan)
    for row, by in enumerate((flat, cleaned)):
        for column, count in enumerate(SHOWN_COUNTS):
            if count in by:
                image = np.clip((by[count][SHOWN] + 1.0) / 2.0, 0.0, 1.0)
                images[row, column] = image.reshape(16, 16)
    title = f"{kind} noise: one digit by number of components"
    return Pictures(title, images, ("linear PCA", "kernel PCA"), tuple(map(str, SHOWN_COUNTS)))
