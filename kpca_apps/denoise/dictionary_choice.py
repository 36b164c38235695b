"""Bandwidth and number of components of a dictionary, chosen by held-out reconstruction.

A fifth of the examples is held out, noise of a known level is added to them, and what denoises
them best is taken: a bandwidth and a number of components for each noise level, for both grow
as the noise falls.

Where the examples are noisy themselves, with deviation s, no clean held-out image exists. Then
more noise e ~ N(0, s^2) is drawn, y + a e is denoised, and the result is compared with y - e / a:
the two noises are uncorrelated, so the comparison ranks results as the clean image would.

References
----------
.. [1] Pang, Zheng, Quan and Ji (2021), Recorrupted-to-recorrupted: unsupervised deep learning for
   image denoising, CVPR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.preimage import fixed_point

__all__ = ["LevelChoice", "choose"]

Matrix = NDArray[np.float64]
Trial = tuple[float, Matrix, Matrix, float]
"""A noise level, held-out rows with such noise, what their denoised form is compared with, and
the noise of that comparison as a mean square."""

LEVELS = (0.125, 0.25, 0.5, 1.0)
"""Noise levels tried where none is expected, in standard deviations of the examples' pixels."""

FACTORS = (1.0, 2.0, 4.0)
"""Bandwidths tried first, in mean squared distances between examples; the row is continued while
an end of it is best at some level."""

NARROWEST, WIDEST = 2.0**-4, 2.0**6
"""Where the row ends in any case: the nearest example alone, and linear PCA."""

TOLERANCE = 1e-3
"""Of the pre-images, in widths of the kernel."""

LARGEST_FIT, LARGEST_HELD_OUT = 1000, 150
INDIFFERENT = 0.01
"""Relative difference of errors that is not worth more components."""

RECORRUPTION = 0.5
"""a of the module's text; smaller: an input nearer to the examples, a noisier comparison."""


@dataclass(frozen=True)
class LevelChoice:
    """What held-out reconstruction chose for one noise level.

    Attributes
    ----------
    level : float
        The noise level, in the units of the examples.
    bandwidth : float
        c of exp(-|x - y|^2 / c).
    components : int
        Number of components.
    error : float
        Mean squared error a pixel; where the examples are noisy, an estimate.
    """

    level: Annotated[float, Meta(gt=0)]
    bandwidth: float
    components: int
    error: Annotated[float, Meta(ge=0)]


def choose(
    examples: Matrix,
    rng: np.random.Generator,
    *,
    sigma: float | None = None,
    examples_sigma: float = 0.0,
    bandwidth: float | None = None,
    n_components: int | None = None,
    n_jobs: int | None = None,
) -> tuple[LevelChoice, ...]:
    """Choose what was not given.

    Parameters
    ----------
    examples : ndarray of shape (n, d), n >= 2
        Rows of pixels.
    rng : numpy.random.Generator
        Draws what is held out, and the noise.
    sigma : float > 0, optional
        The noise level to be ready for; several if None (`LEVELS`).
    examples_sigma : float >= 0
        Noise level of the examples themselves; if not 0 the level is about that one, whatever
        ``sigma`` says.
    bandwidth, n_components : optional
        Taken as given.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    tuple of LevelChoice
        By increasing level, for ``len(examples)`` examples: components are chosen with at most
        1,000 of them, and their number raised in proportion.
    """
    fitted, held_out = _split(examples, rng)
    trials = _trials(held_out, rng, _levels(examples, sigma), examples_sigma)
    counts = _counts(len(fitted)) if n_components is None else [n_components]

    def errors_at(c: float) -> Matrix:
        return _errors(c, fitted, trials, counts, n_jobs)

    if bandwidth is None:
        scale = 2.0 * float(examples.var(axis=0).sum()) or 1.0
        errors = _search(lambda factor: errors_at(factor * scale))
        errors = {factor * scale: by_level for factor, by_level in errors.items()}
    else:
        errors = {bandwidth: errors_at(bandwidth)}
    raised = len(examples) / len(fitted) if n_components is None else 1.0
    return tuple(
        _cheapest(trial, {c: by_level[i] for c, by_level in errors.items()}, counts, raised)
        for i, trial in enumerate(trials)
    )


def _search(errors_at: Callable[[float], Matrix]) -> dict[float, Matrix]:
    """Return the errors at factors among which each level has its best, to a root of 2."""
    errors = {factor: errors_at(factor) for factor in FACTORS}
    while True:
        best, low, high = _best(errors), min(errors), max(errors)
        ends = {low: low / 2.0, high: high * 2.0}
        further = [f for end, f in ends.items() if end in best and NARROWEST <= f <= WIDEST]
        if not further:
            break
        errors |= {factor: errors_at(factor) for factor in further}
    between = sorted({f * step for f in _best(errors) for step in (0.5**0.5, 2.0**0.5)})
    return errors | {factor: errors_at(factor) for factor in between}


def _best(errors: dict[float, Matrix]) -> set[float]:
    """Return the factors that are best at some level."""
    levels = range(len(next(iter(errors.values()))))
    return {min(errors, key=lambda f: errors[f][i].min()) for i in levels}


def _errors(
    c: float, fitted: Matrix, trials: list[Trial], counts: list[int], n_jobs: int | None
) -> Matrix:
    """Return the mean squared errors at one bandwidth, shape ``(levels, counts)``."""
    # The iteration that finds the components starts anywhere; the same place for all bandwidths.
    subspace = fit_exact(
        RBF(1.0 / c),
        fitted,
        rng=np.random.default_rng(0),
        n_components=max(counts),
        n_jobs=n_jobs,
    )
    errors = np.empty((len(trials), len(counts)))
    for row, (_, noisy, target, _) in zip(errors, trials, strict=True):
        T = subspace.project(noisy, n_jobs=n_jobs)
        for column, q in enumerate(counts):
            part = subspace.leading(q)
            kept = np.ascontiguousarray(T[:, : part.n_components])
            found = fixed_point(part, kept, noisy, tolerance=TOLERANCE, max_iter=50, n_jobs=n_jobs)
            row[column] = np.mean((found.points - target) ** 2)
    return errors


def _cheapest(
    trial: Trial, errors: dict[float, Matrix], counts: list[int], raised: float
) -> LevelChoice:
    """Return the best bandwidth with the fewest components that do as well: errors are flat."""
    c = min(errors, key=lambda c: errors[c].min())
    as_good = errors[c] <= (1.0 + INDIFFERENT) * errors[c].min()
    first = int(as_good.argmax())
    level, _, _, inherent = trial
    error = max(float(errors[c][first]) - inherent, 0.0)
    return LevelChoice(level, float(c), round(raised * counts[first]), error)


def _split(examples: Matrix, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    n = len(examples)
    n_held_out = min(max(n // 5, 1), LARGEST_HELD_OUT)
    order = rng.permutation(n)
    rest = order[n_held_out:]
    fitted = rest[uniform_landmarks(len(rest), LARGEST_FIT, rng)]
    return examples[fitted], examples[order[:n_held_out]]


def _levels(examples: Matrix, sigma: float | None) -> tuple[float, ...]:
    if sigma is not None:
        return (sigma,)
    spread = float(np.sqrt(examples.var(axis=0).mean())) or 1.0
    return tuple(spread * level for level in LEVELS)


def _trials(
    held_out: Matrix, rng: np.random.Generator, levels: tuple[float, ...], examples_sigma: float
) -> list[Trial]:
    noise = rng.standard_normal(held_out.shape)
    if examples_sigma == 0.0:
        return [(level, held_out + level * noise, held_out, 0.0) for level in levels]
    level = examples_sigma * float(np.hypot(1.0, RECORRUPTION))
    added = examples_sigma * noise
    target = held_out - added / RECORRUPTION
    inherent = examples_sigma**2 * (1.0 + RECORRUPTION**-2)
    return [(level, held_out + RECORRUPTION * added, target, inherent)]


def _counts(n: int) -> list[int]:
    """Return the numbers of components tried: 2, 4, 8 and so on up to three quarters of n."""
    largest = max(3 * n // 4, 1)
    powers = [2**k for k in range(1, 20) if 2**k < largest]
    return [*powers, largest]
