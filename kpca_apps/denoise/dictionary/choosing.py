"""Choose bandwidth and number of components of a dictionary by held-out reconstruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.landmarks import uniform_landmarks
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.preimage.fixed_point import fixed_point
from kpca_apps.system.arrays import Matrix

# Noise level, held-out rows with such noise, target of denoising, and mean square of the target's
# own noise.
Trial = tuple[float, Matrix, Matrix, float]

TOLERANCE = 1e-3  # length of a pre-image's last step, as a share of the kernel's width
TRIED_ITER = 50  # maximum number of iterations while bandwidths are compared
LEVELS = (0.125, 0.25, 0.5, 1.0)  # default noise levels, relative to the deviation of the pixels
# Bandwidths compared first, relative to the mean squared distance between examples. While an end
# of the range is best at some level, the range grows, at most to NARROWEST (which acts like the
# nearest example alone) and WIDEST (like linear PCA).
FACTORS, NARROWEST, WIDEST = (1.0, 2.0, 4.0), 2.0**-4, 2.0**6
LARGEST_FIT, LARGEST_HELD_OUT = 1000, 150
INDIFFERENT = 0.01  # choose the fewest components whose relative excess of error is at most this
# Added noise as a share of an example's own noise: less makes inputs cleaner but targets noisier.
RECORRUPTION = 0.5


@dataclass(frozen=True)
class LevelChoice:
    """Bandwidth and number of components for one noise level."""

    level: Annotated[float, Meta(gt=0)]  # noise level, in the units of the examples
    bandwidth: float  # c of exp(-|x - y|^2 / c)
    components: int
    # Mean squared error per pixel, estimated for noisy examples.
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
    """Choose bandwidth and number of components, unless given, for examples (n, d).

    Return one choice for each noise level, increasing: for `sigma`, or `LEVELS` if None. For noisy
    examples, return one choice for a level close to their own.
    """
    n = len(examples)
    held_out, rest = np.split(rng.permutation(n), [min(max(n // 5, 1), LARGEST_HELD_OUT)])
    fitted = examples[rest[uniform_landmarks(len(rest), LARGEST_FIT, rng)]]
    if sigma is None:
        spread = float(np.sqrt(examples.var(axis=0).mean())) or 1.0
        levels = [spread * level for level in LEVELS]
    else:
        levels = [sigma]
    trials = _trials(examples[held_out], rng, levels, examples_sigma)
    if n_components is None:
        largest = max(3 * len(fitted) // 4, 1)
        counts = [*(2**k for k in range(1, 20) if 2**k < largest), largest]
    else:
        counts = [n_components]

    def errors_at(c: float) -> Matrix:
        return _errors(c, fitted, trials, counts, n_jobs)

    if bandwidth is None:
        scale = 2.0 * float(examples.var(axis=0).sum()) or 1.0
        errors = _search(lambda factor: errors_at(factor * scale))
        errors = {factor * scale: by_level for factor, by_level in errors.items()}
    else:
        errors = {bandwidth: errors_at(bandwidth)}
    # The number of components is chosen on at most 1,000 examples, and scaled to all examples.
    raised = n / len(fitted) if n_components is None else 1.0
    chosen = []
    for i, (level, _, _, inherent) in enumerate(trials):
        c = min(errors, key=lambda c: errors[c][i].min())
        first = int((errors[c][i] <= (1.0 + INDIFFERENT) * errors[c][i].min()).argmax())
        error = max(float(errors[c][i][first]) - inherent, 0.0)
        chosen.append(LevelChoice(level, float(c), round(raised * counts[first]), error))
    return tuple(chosen)


def _search(errors_at: Callable[[float], Matrix]) -> dict[float, Matrix]:
    """Return errors by bandwidth factor; find each level's best factor to within sqrt(2)."""
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
    levels = range(len(next(iter(errors.values()))))
    return {min(errors, key=lambda f: errors[f][i].min()) for i in levels}


def _errors(
    c: float, fitted: Matrix, trials: list[Trial], counts: list[int], n_jobs: int | None
) -> Matrix:
    """Return the mean squared errors at one bandwidth, shape ``(levels, counts)``."""
    # Start the eigenvalue iteration in the same way for all bandwidths.
    rng, options = np.random.default_rng(0), FitOptions(max(counts), n_jobs=n_jobs)
    subspace = fit_exact(RBF(1.0 / c), fitted, rng=rng, options=options)
    errors = np.empty((len(trials), len(counts)))
    for row, (_, noisy, target, _) in zip(errors, trials, strict=True):
        T = subspace.project(noisy, n_jobs=n_jobs)
        for column, q in enumerate(counts):
            part = subspace.leading(q)
            kept = np.ascontiguousarray(T[:, : part.n_components])
            found = fixed_point(
                part, kept, noisy, tolerance=TOLERANCE, max_iter=TRIED_ITER, n_jobs=n_jobs
            )
            row[column] = np.mean((found.points - target) ** 2)
    return errors


def _trials(
    held_out: Matrix, rng: np.random.Generator, levels: Sequence[float], examples_sigma: float
) -> list[Trial]:
    noise = rng.standard_normal(held_out.shape)
    if examples_sigma == 0.0:
        return [(level, held_out + level * noise, held_out, 0.0) for level in levels]
    level = examples_sigma * float(np.hypot(1.0, RECORRUPTION))
    added = examples_sigma * noise
    target = held_out - added / RECORRUPTION
    inherent = examples_sigma**2 * (1.0 + RECORRUPTION**-2)
    return [(level, held_out + RECORRUPTION * added, target, inherent)]
