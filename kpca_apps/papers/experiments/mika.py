"""Mika et al. (1998): denoised rows and digits."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from kpca_apps.engine.kernels import RBF, Linear
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.engine.subspace import KernelSubspace
from kpca_apps.papers.claims import compare, judge
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.figures import Curves, Pictures, Table
from kpca_apps.papers.measuring import components, smoothed_digits
from kpca_apps.papers.result import Claim, Outcome
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.blas import one_blas_thread

COUNTS = tuple(range(1, 10))
D = 10  # number of columns
# Ratios in Table 1 for 1 to 9 components, by standard deviation of the noise.
PAPER = {
    0.05: (2058.42, 1238.36, 846.14, 565.41, 309.64, 170.36, 125.97, 104.40, 92.23),
    0.1: (10.22, 31.32, 21.51, 29.24, 27.66, 23.53, 29.64, 40.07, 63.41),
    0.2: (0.99, 1.12, 1.18, 1.50, 2.11, 2.73, 3.72, 5.09, 6.32),
    0.4: (1.07, 1.26, 1.44, 1.64, 1.91, 2.08, 2.22, 2.34, 2.47),
    0.8: (1.23, 1.39, 1.54, 1.70, 1.80, 1.96, 2.10, 2.25, 2.39),
}

MUCH = 100.0  # ratio of errors, linear to kernel PCA, above which kernel PCA is much better
DRAWS = 5
THREADS = 2


def run_denoising_toy(data: PaperData) -> Outcome:
    """Denoise eleven Gaussians in ten dimensions (Table 1), kernel exp(-|x - y|^2 / (d c)).

    d = 10, and the width follows the noise: c = 2 sigma^2. A number is the summed squared distance
    to the true centres after linear PCA, divided by that after kernel PCA. Each centre has 100
    training rows and 33 test rows.
    """
    sigmas = tuple(PAPER)
    jobs = (delayed(ratios)(draw, sigma) for sigma in sigmas for draw in range(DRAWS))
    with one_blas_thread():
        results = Parallel(n_jobs=THREADS, require="sharedmem")(jobs)
    values, tries, restarts = zip(*results, strict=True)
    median = np.median(np.reshape(values, (len(sigmas), DRAWS, len(COUNTS))), axis=1)
    rows = tuple(
        (f"{sigma:g}", who, *map(_cell, values))
        for sigma, ours in zip(sigmas, median, strict=True)
        for who, values in (("paper", PAPER[sigma]), ("ours", ours))
    )
    heads = ("sigma", "", *(f"n = {count}" for count in COUNTS))
    n_tries, n_restarts = int(np.sum(tries)), int(np.sum(restarts))
    note = f"None of {n_tries:,} fixed points had to be begun again."
    if n_restarts:
        note = (
            f"Of {n_tries:,} fixed points {n_restarts:,} were begun again: the denominator had "
            "vanished, or they had ended farther off than they began."
        )
    table = Table("Squared distance, linear over kernel", heads, rows)
    return Outcome(_judge_toy(median), (), (table,), (note,))


def _cell(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _judge_toy(median: Matrix) -> tuple[Claim, ...]:
    paper, wide = np.array(list(PAPER.values())), median[-1]
    alike = int(np.count_nonzero(np.abs(np.log(median / paper)) < np.log(2.0)))
    below = [count for count, ratio in zip(COUNTS, wide, strict=True) if ratio < 1.0]
    middle = paper[1:3], median[1:3]  # ratios of the paper and ours, at noise 0.1 and 0.2
    ranges = ["; ".join(f"{_cell(row[0])} to {_cell(row[-1])}" for row in rows) for rows in middle]
    return (
        judge("to 0.4", (median[:-1] > 1.0).all(), median[:-1].min()),
        judge("smallest width", median[0, 0] > MUCH, median[0, 0], MUCH),
        judge("growth", all(row[-1] > row[0] for row in middle[1]), *ranges),
        judge("0.8", not below, wide.min(), wide.max(), " or ".join(map(str, below))),
        judge("every number", alike == paper.size, paper.size, alike),
    )


def drawn(draw: int, sigma: float) -> tuple[Matrix, Matrix, Matrix]:
    """Return training rows (1100, 10), noisy rows (363, 10) and their centres."""
    rng = np.random.default_rng(draw)
    centres = rng.uniform(-1.0, 1.0, size=(11, D))
    train = np.repeat(centres, 100, axis=0) + sigma * rng.normal(size=(1100, D))
    truth = np.repeat(centres, 33, axis=0)
    return train, truth + sigma * rng.normal(size=truth.shape), truth


def ratios(draw: int, sigma: float) -> tuple[list[float], int, int]:
    """Return error ratios, linear over kernel PCA, and numbers of pre-images and restarts."""
    train, noisy, truth = drawn(draw, sigma)
    kernel = components(RBF(1.0 / (D * 2.0 * sigma**2)), train, max(COUNTS))
    linear = components(Linear(), train, max(COUNTS))
    results, restarts = [], 0
    for count in COUNTS:
        part, flat = kernel.leading(count), linear.leading(count)
        cleaned = fixed_point(part, part.project(noisy), noisy, tolerance=1e-3)
        after_linear, after_kernel = (
            ((points - truth) ** 2).sum() for points in (_project(flat, noisy), cleaned.points)
        )
        results.append(float(after_linear / after_kernel))
        restarts += int(cleaned.restarted.sum())
    return results, len(COUNTS) * len(noisy), restarts


LINEAR_COUNTS = (1, 4, 16, 32, 64, 128, 256)
KERNEL_COUNTS = (1, 4, 16, 32, 64, 128, 256, 512, 1024)
# From the paper: best numbers of components (linear, kernel PCA); linear error / kernel error.
BEST = {"Gaussian": (32, 512), "Speckle": (32, 256)}
FACTORS = {"Gaussian": 1.6, "Speckle": 1.2}

SHOWN_COUNTS = (1, 4, 16, 64, 256, 1024)
SHAPE = 4, 10, 16, 16  # 4 rows of 10 pictures of 16 x 16 pixels
SHOWN = 150  # index of the digit shown: the first picture of a "3" among the test digits
WITHIN = 0.05
C = 0.5
WITHOUT = {"Gaussian": 1.36, "Speckle": 1.03}  # our linear error / kernel error on raw digits


def run_denoising_digits(data: PaperData) -> Outcome:
    """Denoise USPS digits by linear and kernel PCA, kernel exp(-|x - y|^2 / (256 c)), c = 0.5.

    The paper's c is twice the average variance of a pixel. In our copy of the data, this variance
    is nearly twice as large. After smoothing, it equals the paper's, so smoothed digits are used.

    A number is the mean squared distance to the clean digit. Noise is Gaussian with standard
    deviation .5, or speckle: each pixel turns black or white with probability .4.
    """
    raw, test = digits(data)
    train, clean = smoothed_digits(raw), smoothed_digits(test)
    kernel, linear = components(RBF(1.0 / (256 * C)), train, 1024), components(Linear(), train, 256)
    # The paper's width c is twice the pixel variance. Compute it from smoothed and from raw digits.
    claims = [compare("width", 2.0 * float(train.var(axis=0).mean()), 2.0 * raw.var(axis=0).mean())]
    figures: list[Curves | Pictures] = []
    columns: list[list[float]] = []
    rng = np.random.default_rng(0)
    for kind in BEST:
        noisy = spoil(kind, clean, rng)
        flat = {q: _project(linear.leading(q), noisy) for q in LINEAR_COUNTS}
        kernels = {q: kernel.leading(q) for q in KERNEL_COUNTS}
        cleaned = {
            q: fixed_point(subspace, subspace.project(noisy), noisy).points
            for q, subspace in kernels.items()
        }
        by_linear = [_distance(flat[q], clean) for q in LINEAR_COUNTS]
        by_kernel = [_distance(cleaned[q], clean) for q in KERNEL_COUNTS]
        claims += _judge_noise(kind, by_linear, by_kernel)
        columns += [by_linear, by_kernel]
        best = LINEAR_COUNTS[int(np.argmin(by_linear))]
        rows = [clean, noisy, flat[best], cleaned[KERNEL_COUNTS[-1]]]
        figures += [
            _distance_curves(kind, by_linear, by_kernel),
            _by_count(kind, flat, cleaned),
            Pictures(
                f"{kind} noise: digits",
                np.clip((np.stack([part[::50] for part in rows]) + 1) / 2, 0, 1).reshape(SHAPE),
                ("clean", "noisy", "linear PCA at its best", f"kernel PCA, {KERNEL_COUNTS[-1]}"),
                tuple(map(str, range(10))),
            ),
        ]
    pairs = zip(columns[::2], columns[1::2], strict=True)
    most = max(a / b for pair in pairs for a, b in zip(*pair, strict=False))
    claims.append(compare("most", most))
    return Outcome(tuple(claims), tuple(figures), (_distance_table(columns),))


def digits(data: PaperData) -> tuple[Matrix, Matrix]:
    """Return the first 300 training and 50 test digits of each class."""
    X, y, new, truth = data.usps()
    train = [X[y == digit][:300] for digit in range(10)]
    return np.vstack(train), np.vstack([new[truth == digit][:50] for digit in range(10)])


def spoil(kind: str, clean: Matrix, rng: np.random.Generator) -> Matrix:
    """Return digits with added "Gaussian" noise or "Speckle"."""
    if kind == "Gaussian":
        return clean + 0.5 * rng.normal(size=clean.shape)
    hit, white = rng.random(clean.shape) < 0.4, rng.random(clean.shape) < 0.5
    return np.where(hit, np.where(white, 1.0, -1.0), clean)


def _project(subspace: KernelSubspace, noisy: Matrix) -> Matrix:
    return np.asarray(subspace.expansion(subspace.project(noisy)) @ subspace.points)


def _distance(X: Matrix, clean: Matrix) -> float:
    return float(((X - clean) ** 2).sum(axis=1).mean())


def _judge_noise(kind: str, by_linear: list[float], by_kernel: list[float]) -> tuple[Claim, ...]:
    linear, kernel, factor = min(by_linear), min(by_kernel), FACTORS[kind]
    return (
        judge("better", kernel < linear, kind, kernel, linear, WITHOUT[kind]),
        _best(kind, "linear", LINEAR_COUNTS, by_linear, BEST[kind][0]),
        _best(kind, "kernel", KERNEL_COUNTS, by_kernel, BEST[kind][1]),
        compare("factor", linear / kernel, kind, factor, WITHIN * factor, WITHOUT[kind]),
    )


def _best(
    kind: str, method: str, counts: tuple[int, ...], distances: list[float], known: int
) -> Claim:
    best, there = counts[int(np.argmin(distances))], distances[counts.index(known)]
    return compare("best count", best, kind, method, known, there, min(distances), best)


def _distance_table(columns: list[list[float]]) -> Table:
    heads = ["components"]
    heads += [f"{kind}, {method} PCA" for kind in BEST for method in ("linear", "kernel")]
    rows = []
    for i, count in enumerate(KERNEL_COUNTS):
        cells = [f"{column[i]:.1f}" if i < len(column) else "none" for column in columns]
        rows.append((str(count), *cells))
    return Table("Mean squared distance to the clean digit", tuple(heads), tuple(rows))


def _distance_curves(kind: str, linear: list[float], kernel: list[float]) -> Curves:
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


def _by_count(kind: str, flat: dict[int, Matrix], cleaned: dict[int, Matrix]) -> Pictures:
    images = np.full((2, len(SHOWN_COUNTS), 16, 16), np.nan)
    for row, by in enumerate((flat, cleaned)):
        for column, count in enumerate(SHOWN_COUNTS):
            if count in by:
                image = np.clip((by[count][SHOWN] + 1.0) / 2.0, 0.0, 1.0)
                images[row, column] = image.reshape(16, 16)
    title = f"{kind} noise: one digit by number of components"
    return Pictures(title, images, ("linear PCA", "kernel PCA"), tuple(map(str, SHOWN_COUNTS)))
