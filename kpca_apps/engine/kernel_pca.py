"""KernelPCA: the scikit-learn transformer over the engine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kpca_apps.engine.bandwidth import median_squared_distance
from kpca_apps.engine.eigen import Solver
from kpca_apps.engine.exact import bytes_needed, fit_exact
from kpca_apps.engine.kernel_gradients import is_differentiable
from kpca_apps.engine.kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from kpca_apps.engine.landmarks import residual_landmarks, uniform_landmarks
from kpca_apps.engine.memory import default_budget, require_nystroem
from kpca_apps.engine.nystroem import CovarianceSums, LandmarkBasis, subspace_from_sums
from kpca_apps.engine.preimage import PreImages, fixed_point
from kpca_apps.engine.preimage_gradient import gradient_descent
from kpca_apps.engine.preimage_ridge import learn_preimage
from kpca_apps.engine.seeding import seeded_generator
from kpca_apps.engine.subspace import KernelSubspace

__all__ = ["KernelPCA"]

Matrix = NDArray[np.float64]

LARGEST_EXACT = 5000
"""Rows up to which ``method="auto"`` stays exact, memory permitting: seconds on one core."""

_KERNEL_NAMES = {"rbf", "laplacian", "poly", "linear", "cosine", "sigmoid"}
_PREIMAGES = ("fixed-point", "gradient", "ridge")


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel principal component analysis, exact or through landmarks.

    Parameters
    ----------
    n_components : int >= 0, optional
        Components kept, by decreasing variance; all that rounding leaves if None. 0 keeps the
        mean alone.
    kernel : str or Kernel
        A name ("rbf", "laplacian" with the Euclidean distance, "poly", "linear", "cosine",
        "sigmoid"), or any object of `kpca_apps.engine.kernels`.
    gamma : float > 0, optional
        Of a kernel given by name. If None: for "rbf" one over the median squared distance
        between rows, for "laplacian" one over the root of it, for "poly" and "sigmoid" one over
        the number of columns.
    sigma : float > 0, optional
        Instead of ``gamma``, for "rbf": exp(-|x - y|^2 / (2 sigma^2)).
    degree : int >= 1
        Of "poly".
    coef0 : float
        Of "poly" (not negative) and "sigmoid".
    center : bool
        Measure from the mean in feature space; otherwise from its origin.
    ridge : float > 0, optional
        rho, an absolute variance in feature space: components count in `reconstruction_error`
        with gain variance / (variance + rho), a soft cut. None: all or nothing, a hard cut.
    method : {"auto", "exact", "nystroem"}
        "auto" is exact up to 5,000 rows if the memory suffices or the kernel is indefinite.
    solver : {"auto", "lapack", "krylov"}
        Eigenvalue solver of the exact method.
    n_landmarks : int >= 1
        Landmarks of the Nystrom method; ignored where ``landmarks`` gives the points.
    landmarks : {"residual", "uniform"} or array-like of shape (m, d)
        How landmarks are drawn, or the landmarks themselves.
    preimage : {"auto", "fixed-point", "gradient", "ridge"}
        How `inverse_transform` goes back: the fixed-point iteration of the RBF kernel, gradient
        descent for differentiable kernels, or kernel ridge regression learned at ``fit`` for any
        kernel, as scikit-learn has it. "auto" takes the first of them that the kernel allows.
    alpha : float >= 0
        The ridge of the regression.
    memory_budget : int > 0, optional
        Bytes a fit may take; a quarter of the available memory if None.
    n_jobs : int, optional
        Threads; results do not depend on it.
    random_state : int, RandomState instance or None
        Draws landmarks, the rows compared for ``gamma``, the start of the Krylov solver.

    Attributes
    ----------
    subspace_ : KernelSubspace
        The fitted form.
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred Gram matrix: n times the variances.
    method_ : {"exact", "nystroem"}
        What was used.
    kernel_ : Kernel
        The kernel with all parameters resolved.
    preimage_ : {"fixed-point", "gradient", "ridge"}
        How `inverse_transform` goes back.
    learned_preimage_ : LearnedPreImage
        Only if that is "ridge".
    n_features_in_ : int

    See Also
    --------
    sklearn.decomposition.KernelPCA : Projections scale as here; signs may differ.

    References
    ----------
    .. [1] Scholkopf, Smola and Muller (1998), Nonlinear component analysis as a kernel
       eigenvalue problem, Neural Computation 10, 1299-1319.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = KernelPCA(2, kernel="linear").fit(X)
    >>> model.eigenvalues_
    array([1., 1.])
    >>> model.transform(X).shape
    (4, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 0, None, closed="left"), None],
        "kernel": [StrOptions(_KERNEL_NAMES), Kernel],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "sigma": [Interval(Real, 0, None, closed="neither"), None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "center": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="neither"), None],
        "method": [StrOptions({"auto", "exact", "nystroem"})],
        "solver": [StrOptions({"auto", "lapack", "krylov"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "landmarks": [StrOptions({"residual", "uniform"}), "array-like"],
        "preimage": [StrOptions({"auto", *_PREIMAGES})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "memory_budget": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: str | Kernel = "rbf",
        gamma: float | None = None,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        center: bool = True,
        ridge: float | None = None,
        method: str = "auto",
        solver: Solver = "auto",
        n_landmarks: int = 1000,
        landmarks: str | ArrayLike = "residual",
        preimage: str = "auto",
        alpha: float = 1.0,
        memory_budget: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.center = center
        self.ridge = ridge
        self.method = method
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.preimage = preimage
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit the components to rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If ``X`` or a parameter cannot be used.
        MemoryLimitError
            Before anything is allocated, if the fit would exceed the memory budget.
        """
        rows = validate_data(self, X, dtype=np.float64, order="C")
        rng = seeded_generator(self.random_state)
        self.kernel_ = self._resolve_kernel(rows, rng)
        self.method_ = self._resolve_method(len(rows))
        fit = self._fit_exact if self.method_ == "exact" else self._fit_nystroem
        self.subspace_ = fit(rows, rng)
        self.eigenvalues_ = self.subspace_.n * self.subspace_.variances
        self.preimage_ = self._resolve_preimage()
        if self.preimage_ == "ridge":
            self.learned_preimage_ = learn_preimage(
                self.subspace_, float(self.alpha), n_jobs=self.n_jobs
            )
        return self

    def transform(self, X: ArrayLike) -> Matrix:
        """Return the projections of rows on the components, shape ``(n, q)``."""
        rows = self._rows(X)
        return self.subspace_.project(rows, n_jobs=self.n_jobs)

    def reconstruction_error(self, X: ArrayLike) -> Matrix:
        """Return the squared distances of rows to the subspace in feature space, shape ``(n,)``.

        Raises
        ------
        ValueError
            If the kernel is indefinite.
        """
        rows = self._rows(X)
        return self.subspace_.reconstruction_error(rows, n_jobs=self.n_jobs)

    def inverse_transform(self, X: ArrayLike) -> Matrix:
        """Return rows of input space whose images are near the given projections.

        Parameters
        ----------
        X : array-like of shape (n, q)
            Projections, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, d)

        See Also
        --------
        preimages : With a start of one's own, and with what became of each row.
        """
        T = self._projections(X)
        if self.preimage_ == "ridge":
            return self.learned_preimage_(T, n_jobs=self.n_jobs)
        return self._iterate(T, None).points

    def preimages(self, X: ArrayLike, start: ArrayLike | None = None) -> PreImages:
        """Return pre-images by iteration, and how each was found.

        Parameters
        ----------
        X : array-like of shape (n, q)
            Projections, as `transform` returns them.
        start : array-like of shape (n, d), optional
            Where to begin: for denoising the noisy rows. If None, the stored point whose image
            is nearest to each projection.

        Returns
        -------
        PreImages

        Raises
        ------
        ValueError
            If pre-images are learned (``preimage_ == "ridge"``), so that nothing iterates.
        """
        T = self._projections(X)
        begin = None if start is None else self._rows(start)
        if begin is not None and len(begin) != len(T):
            raise ValueError(f"start has {len(begin)} rows, but there are {len(T)} projections.")
        return self._iterate(T, begin)

    def _iterate(self, T: Matrix, start: Matrix | None) -> PreImages:
        if self.preimage_ == "ridge":
            raise ValueError("A learned pre-image iterates nothing: use inverse_transform.")
        search = fixed_point if self.preimage_ == "fixed-point" else gradient_descent
        return search(self.subspace_, T, start, n_jobs=self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        """Number of columns `transform` returns, for `get_feature_names_out`."""
        return self.subspace_.n_components

    def _rows(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        rows: Matrix = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return rows

    def _projections(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        q = self.subspace_.n_components
        T: Matrix = check_array(X, dtype=np.float64, order="C", ensure_min_features=min(q, 1))
        if T.shape[1] != q:
            raise ValueError(f"X has {T.shape[1]} columns, but the model has {q} components.")
        return T

    def _resolve_preimage(self) -> str:
        kernel, chosen = self.kernel_, self.preimage
        descends = kernel.is_psd and is_differentiable(kernel)
        if chosen == "auto":
            if isinstance(kernel, RBF):
                return "fixed-point"
            return "gradient" if descends else "ridge"
        if chosen == "fixed-point" and not isinstance(kernel, RBF):
            raise ValueError(
                f"preimage='fixed-point' is for the RBF kernel, not {kernel.describe()}: use "
                "'gradient' or 'ridge'."
            )
        if chosen == "gradient" and not descends:
            raise ValueError(
                f"preimage='gradient' needs a positive semi-definite kernel with a known "
                f"gradient, and {kernel.describe()} is none: use 'ridge'."
            )
        return chosen

    def _resolve_kernel(self, X: Matrix, rng: np.random.Generator) -> Kernel:
        if self.sigma is not None and (self.kernel != "rbf" or self.gamma is not None):
            raise ValueError("sigma is for kernel='rbf', and instead of gamma: give one of them.")
        if isinstance(self.kernel, Kernel):
            if self.gamma is not None:
                raise ValueError("gamma is part of the kernel object: do not give it twice.")
            return self.kernel
        if self.sigma is not None:
            return RBF.from_sigma(self.sigma)
        gamma, coef0 = self.gamma, float(self.coef0)
        if self.kernel in ("rbf", "laplacian"):
            if gamma is None:
                power = 1.0 if self.kernel == "rbf" else 0.5
                gamma = median_squared_distance(X, rng) ** -power
            return RBF(float(gamma)) if self.kernel == "rbf" else Laplacian(float(gamma))
        gamma = 1.0 / X.shape[1] if gamma is None else float(gamma)
        if self.kernel == "poly":
            return Polynomial(int(self.degree), gamma, coef0)
        if self.kernel == "sigmoid":
            return Sigmoid(gamma, coef0)
        return Linear() if self.kernel == "linear" else Cosine()

    def _resolve_method(self, n: int) -> str:
        if self.method != "auto":
            return self.method
        if not self.kernel_.is_psd:
            return "exact"
        needed = bytes_needed(n, self.n_components, solver=self.solver)
        fits = needed <= (self.memory_budget or default_budget())
        return "exact" if n <= LARGEST_EXACT and fits else "nystroem"

    def _fit_exact(self, X: Matrix, rng: np.random.Generator) -> KernelSubspace:
        return fit_exact(
            self.kernel_,
            X.copy(),  # The fit keeps its rows; the caller's array stays the caller's.
            rng=rng,
            n_components=self.n_components,
            center=self.center,
            ridge=self.ridge,
            solver=self.solver,
            memory_budget=self.memory_budget,
            n_jobs=self.n_jobs,
        )

    def _fit_nystroem(self, X: Matrix, rng: np.random.Generator) -> KernelSubspace:
        points = self._given_landmarks(X)
        m = min(self.n_landmarks, len(X)) if points is None else len(points)
        require_nystroem(m, X.shape[1], self.memory_budget)
        if points is None:
            points = self._drawn_landmarks(X, rng)
        basis = LandmarkBasis.from_eigen(self.kernel_, points)
        sums = CovarianceSums.of_rows(basis, X, n_jobs=self.n_jobs)
        return subspace_from_sums(
            basis, sums, n_components=self.n_components, ridge=self.ridge, center=self.center
        )

    def _given_landmarks(self, X: Matrix) -> Matrix | None:
        if isinstance(self.landmarks, str):
            return None
        points: Matrix = check_array(self.landmarks, dtype=np.float64, order="C", copy=True)
        if points.shape[1] != X.shape[1]:
            raise ValueError(f"landmarks has {points.shape[1]} features, but X has {X.shape[1]}.")
        return points

    def _drawn_landmarks(self, X: Matrix, rng: np.random.Generator) -> Matrix:
        if self.landmarks == "uniform":
            return X[uniform_landmarks(len(X), self.n_landmarks, rng)]
        return X[residual_landmarks(self.kernel_, X, self.n_landmarks, rng, n_jobs=self.n_jobs)]
