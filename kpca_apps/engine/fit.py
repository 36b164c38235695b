"""Fit kernel PCA to the rows of any source, exactly or through landmarks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.kernels.base import squared_lengths
from kpca_apps.engine.landmarks import draw_landmarks
from kpca_apps.engine.linalg.gram import about_landmarks, about_mean
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, Missed, subspace_from_sums
from kpca_apps.engine.plan import (
    ExactPlan,
    FitOptions,
    NystroemPlan,
    choose_landmarks,
    choose_regime,
)
from kpca_apps.engine.precision import (
    LARGEST_CHANGE,
    MEAN_ROWS,
    SAMPLE,
    agreeing_precision,
    evenly_drawn,
)
from kpca_apps.engine.rows import RowSource, map_row_blocks
from kpca_apps.engine.subspace import KernelSubspace, Resolved
from kpca_apps.errors import MemoryLimitError
from kpca_apps.system.arrays import IntArray, Matrix

_log = logging.getLogger(__name__)

# Largest jitter / (landmarks * ridge) without a warning: at 0.01 the errors differed by 1 to 4 %
# from those of an exact fit, at 1 by a factor of two.
MOST_JITTER = 0.1


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """State of a landmark fit, needed to add rows."""

    basis: LandmarkBasis
    sums: CovarianceSums
    index: IntArray | None  # row numbers; None if landmarks are not rows
    # Estimate for the part outside the span; None if `sums` gives that part exactly.
    outside: Missed | None
    # Number of rows that chose landmarks and kernel; None after a warning that they were too few.
    first_rows: int | None

    @property
    def missed(self) -> float:
        """Share of the rows' squared lengths that is outside the landmarks' span."""
        sums = self.sums
        return sums.missed / sums.norm if self.outside is None else self.outside.share


@dataclass(frozen=True, eq=False)
class SubspaceFit:
    """A fitted subspace with its plan, resolved options and warnings."""

    subspace: KernelSubspace
    plan: ExactPlan | NystroemPlan
    scoring_precision: Resolved
    ridge: float | None  # ridge rho of the Tikhonov filter, a variance in feature space
    warnings: tuple[str, ...]
    landmarks: LandmarkFit | None = None

    def lacks_components_in_float32(self, n_components: int | None) -> bool:
        """Return whether float32 found fewer components than were requested and are possible."""
        wanted = int(n_components or 0)
        if self.landmarks is not None:
            wanted = min(wanted, self.landmarks.basis.transform.shape[1])
        return self.plan.precision == "float32" and self.subspace.n_components < wanted


def fit_subspace(
    source: RowSource, kernel: Kernel, options: FitOptions, rng: np.random.Generator
) -> SubspaceFit:
    """Fit kernel PCA to the rows of a source.

    An exact fit needs all rows in memory. A landmark fit takes landmarks from the source's sample,
    and means and covariances from all rows. Raises ValueError if there are fewer rows than
    components, and MemoryLimitError if the fit would exceed the memory budget.
    """
    n, wanted = source.n_rows, options.n_components
    if wanted is not None and wanted > n:
        raise ValueError(
            f"n_components = {wanted} is more than there are rows, n_samples = {n}: ask for fewer "
            "components, or None for all there are."
        )
    plan = choose_regime(kernel, source.sample, options, n_rows=n)
    if isinstance(plan, NystroemPlan):
        fit = fit_through_landmarks(source, kernel, options, rng, plan)
    else:
        try:
            fit = _fit_exact_rows(source, kernel, options, rng, plan)
        except MemoryLimitError as error:
            if options.method != "auto" or not kernel.is_psd:
                raise
            _log.info("%s Landmarks take over.", error)
            fit = fit_through_landmarks(source, kernel, options, rng)
    if options.precision != "auto" or not fit.lacks_components_in_float32(wanted):
        return fit
    # Refit in float64 if that fits into memory.
    method = "exact" if fit.landmarks is None else "nystroem"
    try:
        return fit_subspace(
            source, kernel, replace(options, method=method, precision="float64"), rng
        )
    except MemoryLimitError as error:
        _log.info("%s The fit in float32 stays.", error)
        return fit


def _fit_exact_rows(
    source: RowSource,
    kernel: Kernel,
    options: FitOptions,
    rng: np.random.Generator,
    plan: ExactPlan,
) -> SubspaceFit:
    rows = np.array(source.sample[:])  # a copy, as the fit stores its rows
    subspace = fit_exact(kernel, rows, rng=rng, options=options, plan=plan)
    length = float(subspace.kernel.diagonal(subspace.points).mean())
    ridge = _absolute_ridge(options, length, subspace.mean_norm)
    if ridge is not None:
        subspace = subspace.with_soft_cut(ridge)
    return _add_warnings(source, options, SubspaceFit(subspace, plan, "float64", ridge, ()))


class DrawnBasis(NamedTuple):
    """Landmarks drawn for a fit, and a basis of their span."""

    basis: LandmarkBasis
    landmarks: IntArray | None  # row numbers in the sample; None if landmarks are not rows
    plan: NystroemPlan
    probe: Matrix  # rows of the sample that are not landmarks
    of_probe: Callable[[Resolved], Matrix]  # returns the features (r, p) of `probe`


def draw_basis(
    source: RowSource,
    kernel: Kernel,
    options: FitOptions,
    rng: np.random.Generator,
    plan: NystroemPlan | None = None,
) -> DrawnBasis:
    """Draw landmarks, and choose the precision of the sums over rows."""
    sample, centred_kernel, index = source.sample, kernel, None
    if plan is None:
        chosen = choose_regime(
            kernel, sample, replace(options, method="nystroem"), n_rows=source.n_rows
        )
        assert isinstance(chosen, NystroemPlan)
        plan = chosen
    if isinstance(options.landmarks, str):
        if options.center and kernel.gains_from_centring:
            centred_kernel = about_mean(kernel, sample[:: 1 + (len(sample) - 1) // MEAN_ROWS])
        kind = choose_landmarks(centred_kernel, sample.shape[1], options.landmarks)
        points, index = draw_landmarks(
            kind, centred_kernel, sample, options.n_landmarks, rng, n_jobs=options.n_jobs
        )
    else:
        points = options.landmarks
    # Centre by the landmarks alone, as rows may be added later.
    kernel = about_landmarks(kernel, points) if options.center else kernel
    from_points = LandmarkBasis.from_cholesky if options.keeps_span else LandmarkBasis.from_eigen
    basis = from_points(kernel, points)
    # Float32 cannot resolve the residual of a landmark, so probe other rows.
    others = np.setdiff1d(evenly_drawn(len(sample)), [] if index is None else index)
    probe = sample[others if options.keeps_span else others[:0]]
    of_probe = cache(lambda p: map_row_blocks(basis.features(p), probe, block=SAMPLE))
    if options.keeps_span and options.precision == "auto":
        lengths = kernel.diagonal(probe)
        precision = agreeing_precision(
            lambda p: lengths - squared_lengths(of_probe(p)), source.n_rows
        )
        plan = replace(plan, precision=precision)
    return DrawnBasis(basis, index, plan, probe, of_probe)


def fit_through_landmarks(
    source: RowSource,
    kernel: Kernel,
    options: FitOptions,
    rng: np.random.Generator,
    plan: NystroemPlan | None = None,
) -> SubspaceFit:
    """Fit kernel PCA in the span of drawn landmarks."""
    basis, index, plan, *_ = draw_basis(source, kernel, options, rng, plan)
    outside = None if options.keeps_span else _estimate_missed(source, basis, options)
    sums = CovarianceSums.of_rows(basis, source, precision=plan.precision)
    positions = None if index is None else source.sample_index[index]
    landmarks = LandmarkFit(basis, sums, positions, outside, source.n_rows)
    return _solve_sums(source, options, plan, landmarks)


def add_rows(fit: SubspaceFit, source: RowSource, options: FitOptions) -> SubspaceFit:
    """Add the rows of a source to a Nystrom fit."""
    before, plan = fit.landmarks, fit.plan
    assert before is not None and isinstance(plan, NystroemPlan)
    more = CovarianceSums.of_rows(before.basis, source, precision=plan.precision)
    sums, outside = before.sums + more, before.outside
    if outside is not None:
        outside += _estimate_missed(source, before.basis, options)
    landmarks = replace(before, sums=sums, outside=outside)
    return _solve_sums(source, options, replace(plan, n=sums.n), landmarks)


def _estimate_missed(source: RowSource, basis: LandmarkBasis, options: FitOptions) -> Missed:
    # The variance outside the landmarks' span is used only to choose the number of components.
    wanted = options.n_components is None
    return Missed.of_rows(basis, source.sample, n_rows=source.n_rows, with_variance=wanted)


def _absolute_ridge(options: FitOptions, length: float, mean_norm: float) -> float | None:
    """Return the ridge as a variance in feature space; None without a ridge."""
    if options.ridge is None:
        return None
    return variance_share(options.ridge, length - (mean_norm if options.center else 0.0))


def variance_share(ridge: float, variance: float) -> float:
    """Return a share `ridge` of `variance`, always positive."""
    # Identical rows have no variance.
    return max(ridge * variance, float(np.finfo(np.float64).tiny))


def jitter_is_large(basis: LandmarkBasis, ridge: float) -> bool:
    """Return whether the jitter of the landmarks' Gram matrix is large relative to the ridge."""
    return basis.jitter > MOST_JITTER * len(basis.points) * ridge


def _solve_sums(
    source: RowSource, options: FitOptions, plan: NystroemPlan, landmarks: LandmarkFit
) -> SubspaceFit:
    """Compute components from sums over rows."""
    basis, sums, doubt = landmarks.basis, landmarks.sums, ""
    ridge = _absolute_ridge(options, sums.norm / sums.n, float(sums.mean @ sums.mean))
    if landmarks.outside is None:
        subspace = subspace_from_sums(basis, sums, rho=ridge, center=options.center)
        if jitter_is_large(basis, ridge or 0.0):
            doubt = (
                "The variance in feature space is so small beside k(x, x) that rounding of the "
                "landmarks' Gram matrix counts like the ridge: scale or centre the columns, "
                "use a narrower kernel, a larger ridge or method='exact'."
            )
    else:
        subspace = subspace_from_sums(
            basis,
            sums,
            n_components=options.n_components,
            center=options.center,
            precision=plan.precision,
        )
        if ridge is not None:
            subspace = subspace.with_soft_cut(ridge)
        elif options.n_components is None:
            subspace, doubt = _keep_determined(subspace, landmarks.outside)
    fit = SubspaceFit(subspace, plan, "float64", ridge, (doubt,) if doubt else (), landmarks)
    return _add_warnings(source, options, fit)


def _keep_determined(subspace: KernelSubspace, outside: Missed) -> tuple[KernelSubspace, str]:
    """Keep components that the landmarks determine; return a warning if any is dropped."""
    # Removing a positive semi-definite part lowers no eigenvalue by more than the part's largest
    # eigenvalue (Weyl).
    is_determined = outside.variance <= LARGEST_CHANGE * subspace.variances
    q, total = int(np.count_nonzero(is_determined)), subspace.n_components
    if not q and total:
        return subspace, (
            f"All {total} components are approximations: what the landmarks miss may have "
            "changed each variance by more than a thousandth. Use more landmarks or "
            "method='exact' for better ones."
        )
    warning = (
        f"{q} of {total} components kept: what the landmarks miss may have changed the "
        "variances of the others by more than a thousandth. Use more landmarks or "
        "method='exact', or give n_components for approximations."
    )
    return subspace.leading(q), warning if q < total else ""


def _add_warnings(source: RowSource, options: FitOptions, fit: SubspaceFit) -> SubspaceFit:
    """Add a warning if components are missing, and choose the precision of scores."""
    warnings, wanted = fit.warnings, options.n_components
    if wanted is not None and fit.subspace.n_components < wanted:
        count = f"{fit.subspace.n_components} of {wanted} components found"
        warnings = (f"{count}: {_explain_missing_components(fit, wanted)}", *warnings)
    return replace(
        fit, warnings=warnings, scoring_precision=_scoring_precision(source, options, fit)
    )


def _explain_missing_components(fit: SubspaceFit, wanted: int) -> str:
    if fit.lacks_components_in_float32(wanted):
        return (
            "in float32 the variances of the others, below 0.1 % of the largest, have less "
            "than three digits right: use precision='float64' for all there are."
        )
    if fit.landmarks is not None and isinstance(fit.plan, NystroemPlan):
        m, span = fit.landmarks.basis.transform.shape
        if fit.plan.n_landmarks <= m == span <= wanted:
            return f"{m} landmarks span no more directions: use more of them."
    return (
        "the others have no variance beyond rounding, as with repeated rows, few columns or a "
        "wide kernel."
    )


def _scoring_precision(source: RowSource, options: FitOptions, fit: SubspaceFit) -> Resolved:
    plan, subspace = fit.plan, fit.subspace
    if options.precision != "auto" or plan.precision == "float64":
        return plan.precision
    # Fits of these two kinds keep directions of almost no variance, which float32 cannot resolve.
    if not subspace.kernel.is_psd or options.keeps_span:
        return "float64"
    rows = source.sample[evenly_drawn(len(source.sample))]
    spread = np.sqrt(subspace.variances)

    def allowed(values: Matrix) -> Matrix:
        sizes: Matrix = np.column_stack([np.tile(spread, (len(rows), 1)), values[:, -1]])
        return np.asarray(LARGEST_CHANGE * np.abs(sizes))

    return agreeing_precision(
        lambda p: np.column_stack(subspace.project_and_error(rows, precision=p)), plan.n, allowed
    )
