"""Choose the method of a fit, and estimate its memory before anything is allocated."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

from kpca_apps.engine.kernels import Kernel
from kpca_apps.engine.landmarks import drawing_bytes
from kpca_apps.engine.linalg.eigen import (
    Solver,
    block_width,
    choose_solver,
    krylov_basis_limit,
    lapack_vectors,
)
from kpca_apps.engine.linalg.panels import PANEL
from kpca_apps.engine.precision import Precision, choose_precision
from kpca_apps.engine.rows import SUMMED, SampleRows
from kpca_apps.engine.subspace import Resolved
from kpca_apps.errors import MemoryLimitError
from kpca_apps.system.arrays import Matrix
from kpca_apps.system.memory import available_bytes

LARGEST_EXACT = 5000  # most rows for an exact fit of many components (seconds on one core)
LARGEST_ITERATED = 100_000  # most rows for an exact fit of few components (minutes on one core)
# Most columns for which drawn rows are better landmarks than cluster centres. Number of eigenvalues
# correct to a thousandth, of 3,000 normal rows with 500 landmarks, with centres and with rows drawn
# by residual: 20 and 100 in 2 columns, 34 and 255 in 3, 21 and 56 in 5, but 10 and 0 in 10.
FEW_COLUMNS = 5
_ITEMS = {"float32": 4, "float64": 8}
_ITEM = _ITEMS["float64"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExactPlan:
    """Solver, precision, storage and memory of an exact fit."""

    n: int  # number of rows
    q: int  # maximum number of components
    solver: Solver
    precision: Resolved
    stored: bool  # whether to store the Gram matrix
    n_bytes: int  # peak memory without the rows
    # Budget in bytes; None for a quarter of the available memory.
    memory_budget: int | None = field(default=None, repr=False)

    def describe(self) -> str:
        """Return the plan in one line."""
        storage = "stored" if self.stored else "recomputed for every product"
        return (
            f"exact, n = {self.n}, q = {self.q}: {self.solver} in {self.precision}, "
            f"Gram matrix {storage}, {self.n_bytes / 1e6:.0f} MB"
        )


@dataclass(frozen=True)
class NystroemPlan:
    """Landmarks, precision and memory of a Nystrom fit."""

    n: int  # number of rows
    n_landmarks: int
    landmarks: str  # one of `LANDMARKS`, or "given"
    precision: Resolved  # of kernel values; sums are float64
    n_bytes: int  # peak memory without the rows

    def describe(self) -> str:
        """Return the plan in one line."""
        return (
            f"nystroem, n = {self.n}, {self.n_landmarks} landmarks ({self.landmarks}), kernel "
            f"values in {self.precision}, {self.n_bytes / 1e6:.0f} MB"
        )


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Options of a fit: the parameters of `KernelPCA` under the same names."""

    n_components: int | None = None
    center: bool = True
    ridge: float | None = None
    method: str = "auto"
    solver: Solver = "auto"
    precision: Precision = "auto"
    n_landmarks: int = 1000
    landmarks: str | Matrix = "auto"  # how to draw landmarks, or the points themselves
    memory_budget: int | None = None
    n_jobs: int | None = None

    @property
    def keeps_span(self) -> bool:
        """Whether a landmark fit keeps all directions of the landmarks' span."""
        return self.ridge is not None and self.n_components is None


def choose_regime(
    kernel: Kernel, X: SampleRows, options: FitOptions, *, n_rows: int | None = None
) -> ExactPlan | NystroemPlan:
    """Choose the method of a fit, and log its plan.

    ``X`` holds all ``n_rows`` rows or a sample. Raises MemoryLimitError if no allowed method stays
    within the budget.
    """
    # A fit is exact up to LARGEST_EXACT rows, and up to LARGEST_ITERATED rows for few components,
    # if the budget allows. A fit with an indefinite kernel is always exact.
    n, d, method = n_rows or len(X), X.shape[1], options.method
    q = n if options.n_components is None else min(options.n_components, n)
    has_few_components = n <= LARGEST_ITERATED and choose_solver(n, q, options.solver) == "krylov"
    must_be_exact = method == "exact" or not kernel.is_psd
    # A fit that keeps the landmarks' whole span chooses its precision after landmarks are drawn.
    is_decided_later = options.keeps_span and options.precision == "auto"
    precision: Precision = "float64" if is_decided_later else options.precision
    if len(X) < n and method != "nystroem" and must_be_exact:
        raise ValueError(
            f"An exact fit needs all rows in memory, and of these {n} only {len(X)} are: use "
            "method='nystroem' and a positive semi-definite kernel."
        )
    if method != "nystroem" and (
        must_be_exact or (len(X) == n and (n <= LARGEST_EXACT or has_few_components))
    ):
        try:
            return plan_exact(kernel, X[:], replace(options, precision=precision))
        except MemoryLimitError:
            if must_be_exact:
                raise
    kind, m, budget = "given", options.n_landmarks, options.memory_budget
    if isinstance(options.landmarks, str):
        kind = choose_landmarks(kernel, d, options.landmarks)
    else:
        m = len(options.landmarks)
    m = min(m, n)
    require_nystroem(m, d, budget)
    drawing = drawing_bytes(kind, n, m, d)
    require(drawing, budget, f"Drawing {m} landmarks ({kind})", "use landmarks='uniform'")
    resolved = choose_precision(kernel, X, min(q, m), precision, center=options.center, n_rows=n)
    plan = NystroemPlan(n, m, kind, resolved, max(nystroem_bytes(m, d), drawing))
    _log.info("%s", plan.describe())
    return plan


def choose_landmarks(kernel: Kernel, n_features: int, landmarks: str = "auto") -> str:
    """Return the method of drawing landmarks that ``"auto"`` stands for."""
    # Cluster centres suit kernels that fall with distance. For other kernels, a mean of rows may
    # resemble no row.
    if landmarks != "auto":
        return landmarks
    if not kernel.falls_with_distance:
        return "residual"
    return "rpcholesky" if n_features <= FEW_COLUMNS else "kmeans"


def plan_exact(kernel: Kernel, X: Matrix, options: FitOptions) -> ExactPlan:
    """Return solver, precision and storage of an exact fit within the budget, or raise."""
    n, d = X.shape
    q = n if options.n_components is None else min(options.n_components, n)
    resolved = choose_precision(kernel, X, q, options.precision, center=options.center)
    plans = [
        ExactPlan(n, q, "krylov", resolved, stored, _krylov_bytes(n, d, q, resolved, stored))
        for stored in (True, False)
    ]
    if choose_solver(n, q, options.solver) == "lapack":
        # For many components of many rows, Krylov takes less memory than LAPACK and as much time.
        krylov_plans = plans if options.solver == "auto" and 2 * q < n else []
        plans = [_lapack_plan(n, q, resolved, indefinite=not kernel.is_psd), *krylov_plans]
    budget = default_budget() if options.memory_budget is None else options.memory_budget
    for plan in plans:
        if plan.n_bytes <= budget:
            _log.info("%s", plan.describe())
            return replace(plan, memory_budget=options.memory_budget)
    least = min(plan.n_bytes for plan in plans)
    what = f"An exact fit of n = {n} rows"
    require(least, options.memory_budget, what, "use method='nystroem'")
    return plans[-1]


def lapack_after_krylov(plan: ExactPlan, *, indefinite: bool) -> ExactPlan:
    """Return a LAPACK plan, for rows on which Krylov does not converge."""
    lapack = _lapack_plan(plan.n, plan.q, plan.precision, indefinite=indefinite)
    what = f"{plan.q} leading eigenvalues of n = {plan.n} rows lie too close together to iterate"
    advice = "use method='nystroem', or ask for fewer components"
    require(lapack.n_bytes, plan.memory_budget, f"LAPACK, as {what},", advice)
    return lapack


def require(needed: int, budget: int | None, what: str, advice: str) -> None:
    """Raise MemoryLimitError if ``what`` needs more bytes than the budget."""
    if budget is None:
        allowed, bound = default_budget(), "a quarter of the available memory"
    else:
        allowed, bound, advice = budget, "the budget", f"{advice}, or raise memory_budget"
    if needed > allowed:
        raise MemoryLimitError(
            f"{what} needs {_size_text(needed)}, {bound} is {_size_text(allowed)}: {advice}."
        )


def require_nystroem(n_landmarks: int, n_features: int, budget: int | None = None) -> None:
    """Raise MemoryLimitError if a Nystrom fit of this size exceeds the budget."""
    needed = nystroem_bytes(n_landmarks, n_features)
    require(needed, budget, f"A Nystrom fit with {n_landmarks} landmarks", "use fewer landmarks")


def default_budget() -> int:
    """Return the default budget of a fit: a quarter of the available memory, in bytes."""
    return available_bytes() // 4


def _lapack_plan(n: int, q: int, precision: Resolved, *, indefinite: bool) -> ExactPlan:
    item, vectors = _ITEMS[precision], lapack_vectors(n, q, by_modulus=indefinite)
    needed = item * n * (n + vectors) + _ITEM * n * vectors
    return ExactPlan(n, q, "lapack", precision, True, needed)


def _krylov_bytes(n: int, d: int, q: int, precision: str, stored: bool) -> int:
    # Count half a Gram matrix if it is stored, the basis and its products, and the larger of two
    # needs: those of one product, and those of refining the final vectors.
    item, b = _ITEMS[precision], block_width(q)
    gram = item * n * (n + PANEL) // 2 if stored else 0
    kernel = item * n * (d + 2)
    basis = krylov_basis_limit(n, q)
    iteration = item * n * 6 * b
    refinement = item * n * 2 * q + _ITEM * n * q
    small = _ITEM * 4 * basis * basis
    return gram + kernel + 2 * item * n * basis + max(iteration, refinement) + small


def nystroem_bytes(n_landmarks: int, n_features: int) -> int:
    """Return the bytes of a Nystrom fit, without those of the rows."""
    # Count about three m x m matrices, and one block of kernel values with some copies.
    return n_landmarks * (24 * n_landmarks + 12 * SUMMED + 2 * _ITEM * n_features)


def _size_text(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.3g} MB"
