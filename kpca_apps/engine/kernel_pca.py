"""KernelPCA: the scikit-learn estimator of `fit_subspace`, with pre-images."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from kpca_apps.engine.checked_rows import Number, as_given, checked_rows, fit_context
from kpca_apps.engine.compress import ReducedSet, reduced_set
from kpca_apps.engine.fit import (
    LandmarkFit,
    SubspaceFit,
    add_rows,
    fit_subspace,
    fit_through_landmarks,
)
from kpca_apps.engine.kernels import RBF, Kernel, Precomputed
from kpca_apps.engine.kernels.by_name import (
    COMPARED_ROWS,
    KERNEL_NAMES,
    KernelLike,
    resolved_kernel,
)
from kpca_apps.engine.landmarks import LANDMARKS
from kpca_apps.engine.linalg.eigen import Solver
from kpca_apps.engine.linalg.gram import overflow
from kpca_apps.engine.nystroem import CovarianceSums
from kpca_apps.engine.plan import FitOptions
from kpca_apps.engine.precision import Precision
from kpca_apps.engine.preimage.fixed_point import PreImages, fixed_point
from kpca_apps.engine.preimage.gradient import gradient_descent
from kpca_apps.engine.preimage.ridge import LearnedPreImage, learn_preimage
from kpca_apps.engine.rows import ArrayRows, RowSource
from kpca_apps.engine.seeding import Seed, seeded_generator
from kpca_apps.errors import KpcaWarning
from kpca_apps.options import MOST_JOBS, RIDGES
from kpca_apps.system.arrays import Matrix

PreimageName = Literal["auto", "fixed-point", "gradient", "ridge"]


def _supports_partial_fit(model: KernelPCA) -> bool:
    """Return True if method is "nystroem", else raise AttributeError."""
    if model.method != "nystroem":
        raise AttributeError(
            "partial_fit adds rows to a fit through landmarks: use "
            f"KernelPCA(method='nystroem'), not method={model.method!r}."
        )
    return True


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Kernel principal component analysis, exact or through landmarks.

    Parameters
    ----------
    n_components : int >= 0, optional
        Number of components, by decreasing variance; 0 keeps the mean alone. None keeps all
        components whose variance is correct to a thousandth, limited by rounding and, with
        landmarks, by the part of the rows outside the landmarks' span (``missed_``); a warning
        states the number. If landmarks miss too much for any component (many columns), all are
        kept, with a warning that they are approximations. A given number may also include
        approximations.
    kernel : str, Kernel or callable
        One of scikit-learn's names ("rbf", "laplacian", "poly", "linear", "cosine", "sigmoid"), an
        object of `kpca_apps.engine.kernels`, a function of two rows, or a kernel of
        `sklearn.gaussian_process.kernels`. With "precomputed", ``X`` is the square kernel matrix in
        `fit`, and the kernel between new and fitted rows in `transform`. A matrix that is not
        symmetric is replaced by its symmetric part, with a warning.
    gamma : float > 0, optional
        Parameter of a kernel given by name. None: for "rbf" 1 / (median squared distance between
        rows), for "laplacian" 1 / (median Manhattan distance), for "poly" and "sigmoid"
        1 / (number of columns).
    sigma : float > 0, optional
        Width of "rbf" instead of ``gamma``: ``exp(-|x - y|^2 / (2 sigma^2))``.
    degree : int >= 1
        Degree of "poly".
    coef0 : float
        Constant term of "poly" (>= 0) and "sigmoid".
    center : bool
        Whether to measure from the mean in feature space instead of the origin.
    ridge : float, optional
        Share of the total variance in feature space, from 1e-12 to 1e12. Components then enter
        `reconstruction_error` with gain variance / (variance + ``ridge_``), a Tikhonov filter.
        None: truncation. With landmarks, a ridge and no ``n_components``, all directions of the
        landmarks' span are kept.
    method : {"auto", "exact", "nystroem"}
        "auto" is exact if the kernel is indefinite, or if memory suffices and there are at most
        5,000 rows, or at most 100,000 rows and fewer components than an eighth of the rows.
    solver : {"auto", "lapack", "krylov"}
        Eigenvalue solver of the exact method.
    precision : {"auto", "float32", "float64"}
        Precision of kernel values and their products. "float32" drops components below a
        thousandth of the largest variance. "auto" uses float32 above 2,000 rows if that drops no
        requested component, and in scores only if training rows agree to 1e-3.
    n_landmarks : int >= 1
        Number of landmarks of the Nystrom method; ignored if ``landmarks`` are points.
    landmarks : {"auto", "kmeans", "rpcholesky", "residual", "uniform", "greedy"} or array-like
        How to draw landmarks, or the landmarks themselves, shape (m, d). For kernels of a distance,
        "auto" is "kmeans": cluster centres of at most 20,000 rows, which give scores nearest to
        those of an exact fit. Up to five columns "auto" is "rpcholesky": rows drawn one by one by
        their residual, which give eigenvalues nearest to exact ones. For other kernels "auto" is
        "residual": rows drawn by their residual in two rounds.
    preimage : {"auto", "fixed-point", "gradient", "ridge"}
        Method of `inverse_transform`: the fixed-point iteration of the RBF kernel, gradient
        descent for differentiable kernels, or kernel ridge regression for any kernel, as in
        scikit-learn, fitted at the first `inverse_transform`. "auto" is the first method that
        the kernel allows.
    alpha : float >= 0
        Regularisation of the ridge regression, as in scikit-learn's ``KernelPCA``.
    memory_budget : int > 0, optional
        Largest number of bytes for a fit; None: a quarter of the available memory.
    n_jobs : int, optional
        Number of threads; results do not depend on it.
    random_state : int, RandomState, Generator or None
        Seed for landmarks, for the rows compared for ``gamma`` and for the Krylov solver's start.
        None is a fixed seed: a repeated fit gives the same model.

    Attributes
    ----------
    fitted_ : SubspaceFit
        The complete result of the fit.
    subspace_ : KernelSubspace
        The fitted mean and components.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centred Gram matrix (with landmarks, of its projection on their span):
        n times the variances.
    method_ : {"exact", "nystroem"}
        The method used.
    plan_ : ExactPlan or NystroemPlan
        Solver, precision, storage and estimated bytes of the fit.
    scoring_precision_ : {"float32", "float64"}
        Precision of `transform` and `reconstruction_error`.
    kernel_ : Kernel
        The kernel with all parameters resolved.
    preimage_ : {"fixed-point", "gradient", "ridge"}
        Method of `inverse_transform`.
    ridge_ : float or None
        The ridge rho as an absolute variance in feature space.
    missed_ : float
        Nystrom fits only: mean share of a row's squared length in feature space outside the
        landmarks' span, over all fitted or added rows except the landmarks. If all directions
        are kept: the share of the total squared length.
    landmark_index_ : ndarray of int or None
        Nystrom fits only: row positions of the landmarks; None if they were given or are not rows.
    warnings_ : tuple of str
        Warnings about the components, as issued by `fit` and `partial_fit`.
    sums_ : CovarianceSums
        Nystrom fits only: the sums over rows. Sums of models with the same landmarks can be added.
    reduced_set_ : ReducedSet
        Only of a model returned by `compress`.
    learned_preimage_ : LearnedPreImage
        Only if ``preimage_`` is "ridge". The regression is fitted on first access, also by
        ``hasattr``; test ``preimage_`` instead.
    n_features_in_ : int
        Number of columns seen in `fit`.

    See Also
    --------
    sklearn.decomposition.KernelPCA : Same scale of the projections; signs may differ.

    Notes
    -----
    Standardise columns with different units first, for example with ``StandardScaler`` in a
    pipeline. Otherwise the columns of largest variance dominate.

    Results for float32 rows are returned as float32, whatever ``precision`` is.

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

    fitted_: SubspaceFit
    _learned: LearnedPreImage | None
    _reduced: ReducedSet | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Number(Integral, 0, None, closed="left"), None],
        "kernel": [StrOptions(KERNEL_NAMES), Kernel, callable],
        "gamma": [Number(Real, 0, None, closed="neither"), None],
        "sigma": [Number(Real, 0, None, closed="neither"), None],
        "degree": [Number(Integral, 1, None, closed="left")],
        "coef0": [Number(Real, None, None, closed="neither")],
        "center": ["boolean"],
        "ridge": [Number(Real, *RIDGES, closed="both"), None],
        "method": [StrOptions({"auto", "exact", "nystroem"})],
        "solver": [StrOptions({"auto", "lapack", "krylov"})],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "n_landmarks": [Number(Integral, 1, None, closed="left")],
        "landmarks": [StrOptions({"auto", *LANDMARKS}), "array-like"],
        "preimage": [StrOptions({*get_args(PreimageName)})],
        "alpha": [Number(Real, 0, None, closed="left")],
        "memory_budget": [Number(Integral, 1, None, closed="left"), None],
        "n_jobs": [Number(Integral, -MOST_JOBS, MOST_JOBS, closed="both"), None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: KernelLike = "rbf",
        gamma: float | None = None,
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        center: bool = True,
        ridge: float | None = None,
        method: Literal["auto", "exact", "nystroem"] = "auto",
        solver: Solver = "auto",
        precision: Precision = "auto",
        n_landmarks: int = 1000,
        landmarks: str | ArrayLike = "auto",
        preimage: PreimageName = "auto",
        alpha: float = 1.0,
        memory_budget: int | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
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
        self.precision = precision
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.preimage = preimage
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit the components to rows and return the estimator.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, finite numbers.
        y : object, optional
            Ignored.

        Returns
        -------
        KernelPCA
            The estimator.

        Raises
        ------
        ValueError
            If ``X`` or a parameter cannot be used, or there are fewer rows than components.
        MemoryLimitError
            If the fit would exceed the memory budget; raised before memory is allocated.
        """
        rows = checked_rows(self, X)
        if self.kernel == "precomputed":
            return self._set_fitted(*self._fit_gram(rows), warn=True)
        return self._set_fitted(*self._fit(ArrayRows(rows, n_jobs=self.n_jobs)), warn=True)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_rows(self, source: RowSource) -> Self:
        """Fit the components to rows that need not be in memory and return the estimator.

        Parameters
        ----------
        source : RowSource
            The rows, finite numbers. An exact fit needs all rows in memory. A landmark fit takes
            landmarks and kernel width from the source's sample, means and covariances from all
            rows.

        Returns
        -------
        KernelPCA
            The estimator.

        Raises
        ------
        ValueError, MemoryLimitError
            As for `fit`.
        """
        if isinstance(source.sample, np.ndarray):
            validate_data(self, source.sample, dtype=np.float64)
        else:
            self.n_features_in_ = source.sample.shape[1]
        return self._set_fitted(*self._fit(source))

    def _fit_gram(self, gram: Matrix) -> tuple[Kernel, SubspaceFit]:
        """Fit to the Gram matrix of all rows; the subspace's points are row numbers."""
        if gram.shape[0] != gram.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix: X is the kernel of all pairs of rows, "
                f"and has shape {gram.shape}."
            )
        numbers = np.arange(len(gram), dtype=np.float64)[:, np.newaxis]
        source, means = ArrayRows(numbers, n_jobs=self.n_jobs), gram.mean(axis=0)
        if np.array_equal(gram, gram.T):
            return self._fit(source, kernel=Precomputed(gram))
        symmetric = (gram + gram.T) / 2
        kernel, fit = self._fit(source, kernel=Precomputed(symmetric))
        if self.center:
            # Centre new rows by the given matrix, not by its symmetric part.
            subspace = fit.subspace
            row_means = means[subspace.points[:, 0].astype(np.intp)]
            fit = replace(fit, subspace=replace(subspace, offset=row_means @ subspace.weights))
        if not np.allclose(gram, symmetric, rtol=0, atol=1e-8 * np.abs(gram).max()):
            more = (
                "The precomputed matrix is not symmetric, as that of a kernel is: its symmetric "
                "part (K + K.T) / 2 is taken."
            )
            fit = replace(fit, warnings=(*fit.warnings, more))
        return kernel, fit

    def _fit(
        self,
        source: RowSource,
        kernel: Kernel | None = None,
        fit: Callable[..., SubspaceFit] = fit_subspace,
    ) -> tuple[Kernel, SubspaceFit]:
        rng = seeded_generator(self.random_state)
        kernel = kernel or resolved_kernel(
            self.kernel,
            source.sample,
            rng,
            gamma=self.gamma,
            sigma=self.sigma,
            degree=int(self.degree),
            coef0=float(self.coef0),
        )
        self._resolve_preimage(kernel)
        return kernel, fit(source, kernel, self._options(source), rng)

    def _options(self, source: RowSource) -> FitOptions:
        landmarks = self.landmarks
        if not isinstance(landmarks, str):
            landmarks = check_array(landmarks, dtype=np.float64, order="C", copy=True)
            found, expected = landmarks.shape[1], source.sample.shape[1]
            if found != expected:
                raise ValueError(f"landmarks has {found} features, but X has {expected}.")
        options = {field.name: getattr(self, field.name) for field in fields(FitOptions)}
        return FitOptions(
            **options | {"landmarks": landmarks, "n_landmarks": int(self.n_landmarks)}
        )

    def _set_fitted(self, kernel: Kernel, fit: SubspaceFit, *, warn: bool = False) -> Self:
        self.fitted_, self.kernel_, self.plan_ = fit, kernel, fit.plan
        self.method_ = "exact" if fit.landmarks is None else "nystroem"
        self.subspace_, self.ridge_, self.warnings_ = fit.subspace, fit.ridge, fit.warnings
        self.scoring_precision_ = fit.scoring_precision
        self.eigenvalues_ = fit.subspace.n * fit.subspace.variances
        self.preimage_ = self._resolve_preimage(kernel)
        self._learned, self._reduced, self._alpha = None, None, float(self.alpha)
        for sentence in fit.warnings if warn else ():
            # Point to the caller, past scikit-learn's decorator.
            warnings.warn(sentence, KpcaWarning, stacklevel=4)
        return self

    @property
    def _landmark_fit(self) -> LandmarkFit:
        fit: SubspaceFit | None = getattr(self, "fitted_", None)
        if fit is None or fit.landmarks is None:
            raise AttributeError("Only a model fitted through landmarks has this attribute.")
        return fit.landmarks

    @property
    def missed_(self) -> float:
        """Share of the rows' squared length in feature space that lies outside landmarks' span."""
        return self._landmark_fit.missed

    @property
    def landmark_index_(self) -> NDArray[np.int64] | None:
        """Row positions of the landmarks; None if they were given or are not rows."""
        return self._landmark_fit.index

    @property
    def sums_(self) -> CovarianceSums:
        """Sums of features, and of their products, over the rows of a landmark fit."""
        return self._landmark_fit.sums

    @property
    def reduced_set_(self) -> ReducedSet:
        """Reduced set of a model from `compress`."""
        if getattr(self, "_reduced", None) is None:
            raise AttributeError("Only a model that compress returned has a reduced set.")
        assert self._reduced is not None
        return self._reduced

    @available_if(_supports_partial_fit)  # type: ignore[untyped-decorator]
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Add rows to a landmark fit and return the estimator.

        Only with ``method="nystroem"``. The first call chooses kernel width, precision and
        landmarks from its rows. Later calls, and calls after `fit`, keep these choices, and warn
        once if those rows were too few.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, finite numbers.
        y : object, optional
            Ignored.

        Returns
        -------
        KernelPCA
            The estimator.
        """
        if hasattr(self, "reduced_set_"):
            raise ValueError(
                "A compressed model keeps no sums: add rows to the one it was made of."
            )
        is_fitted = hasattr(self, "sums_")
        rows = checked_rows(self, X, reset=not is_fitted)
        source = ArrayRows(rows, n_jobs=self.n_jobs)
        if not is_fitted:
            return self._set_fitted(*self._fit(source, fit=fit_through_landmarks), warn=True)
        fit = add_rows(self.fitted_, source, self._options(source))
        if warning := self._warn_few_rows():
            assert fit.landmarks is not None
            landmarks = replace(fit.landmarks, first_rows=None)
            fit = replace(fit, landmarks=landmarks, warnings=(*warning, *fit.warnings))
        return self._set_fitted(self.kernel_, fit, warn=True)

    def transform(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Return the projections of rows on the components.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows; with ``kernel="precomputed"``, the kernel between them and the fitted rows.

        Returns
        -------
        ndarray of shape (n, q)
            The projections.

        Raises
        ------
        ValueError
            If the kernel overflows on a row.
        """
        check_is_fitted(self)
        return self._map_rows(X, self.subspace_.project)

    def reconstruction_error(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Return the squared distances of rows to the subspace in feature space.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Squared distances, in units of k(x, x).

        Raises
        ------
        ValueError
            If the kernel is indefinite, or overflows on a row.
        """
        check_is_fitted(self)
        return self._map_rows(X, self.subspace_.reconstruction_error)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters and return the estimator; ``kernel__gamma`` sets the kernel's gamma.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        KernelPCA
            The estimator.
        """
        own = {name: value for name, value in params.items() if not name.startswith("kernel__")}
        super().set_params(**own)
        if len(own) < len(params) and isinstance(self.kernel, Kernel):
            nested = {name[8:]: value for name, value in params.items() if name not in own}
            self.kernel = self.kernel.with_params(**nested)
        elif len(own) < len(params):
            super().set_params(**params)  # raises a ValueError that names the unknown parameter
        return self

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Return rows of input space whose feature vectors are near given projections.

        Parameters
        ----------
        X : array-like of shape (n, q)
            Projections, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n, d)
            Pre-images, in the units of the fitted rows.

        See Also
        --------
        preimages : Iterates from given starts and reports the convergence of each row.
        """
        if isinstance(self.kernel_, Precomputed):
            raise ValueError(
                "With kernel='precomputed' there are no rows to go back to: give the rows and a "
                "kernel, or a function."
            )
        T = self._projections(X)
        if self.preimage_ == "ridge":
            return as_given(X, self.learned_preimage_(T, n_jobs=self.n_jobs))
        return as_given(X, self._iterate(T, None).points)

    def preimages(self, X: ArrayLike, start: ArrayLike | None = None) -> PreImages:
        """Return pre-images by iteration, with the convergence of each row.

        Parameters
        ----------
        X : array-like of shape (n, q)
            Projections, as `transform` returns them.
        start : array-like of shape (n, d), optional
            Where to start; for denoising, the noisy rows. None: the stored point whose feature
            vector is nearest to each projection.

        Returns
        -------
        PreImages
            Points of shape (n, d), steps, convergence and residual of each row.

        Raises
        ------
        ValueError
            If pre-images are learned (``preimage_ == "ridge"``), without iteration.
        """
        T = self._projections(X)
        begin = None if start is None else self._checked_rows(start)
        if begin is not None and len(begin) != len(T):
            raise ValueError(f"start has {len(begin)} rows, but there are {len(T)} projections.")
        return self._iterate(T, begin)

    def compress(self, n_points: int) -> Self:
        """Return a copy of the model with fewer stored points, which is faster on new rows.

        ``reduced_set_`` of the copy holds the distances by which components and mean moved.

        Parameters
        ----------
        n_points : int
            From the number of components to the number of stored points.

        Returns
        -------
        KernelPCA
            A new model; `partial_fit` cannot add rows to it.

        Raises
        ------
        ValueError
            If the kernel is indefinite or ``n_points`` is out of range.

        References
        ----------
        .. [1] Burges (1996), Simplified support vector decision rules, ICML 1996, 71-77.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> smaller = KernelPCA(2, gamma=0.1).fit(X).compress(20)
        >>> len(smaller.subspace_.points), bool(smaller.reduced_set_.component_distances[0] < 0.01)
        (20, True)
        """
        check_is_fitted(self)
        smaller = copy(self)
        smaller._reduced = reduced_set(self.subspace_, n_points, n_jobs=self.n_jobs)
        smaller.subspace_, smaller._learned = smaller._reduced.subspace, None
        return smaller

    @property
    def learned_preimage_(self) -> LearnedPreImage:
        """Regression from projections to rows, fitted on first access."""
        if getattr(self, "preimage_", None) != "ridge":
            raise AttributeError("Pre-images are learned by a model fitted with preimage='ridge'.")
        if self._learned is None:
            self._learned = learn_preimage(self.subspace_, self._alpha, n_jobs=self.n_jobs)
        return self._learned

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns, for `get_feature_names_out`."""
        return self.subspace_.n_components

    def _checked_rows(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        return np.asarray(checked_rows(self, X, reset=False))

    def _map_rows(self, X: ArrayLike, function: Callable[..., Matrix]) -> NDArray[np.floating[Any]]:
        """Apply a function of the subspace to rows; raise if the result is not finite."""
        rows = self._checked_rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            values = as_given(
                X, function(rows, precision=self.scoring_precision_, n_jobs=self.n_jobs)
            )
        if not np.isfinite(values).all():
            raise overflow(self.kernel_)
        return values

    def _warn_few_rows(self) -> tuple[str, ...]:
        """Return a warning if the first fit had too few rows to choose gamma or the landmarks."""
        enough = {}
        if isinstance(self.landmarks, str):
            enough["landmarks"] = int(self.n_landmarks)
        if self.kernel in ("rbf", "laplacian") and self.gamma is None and self.sigma is None:
            enough["gamma"] = COMPARED_ROWS
        first_rows = self._landmark_fit.first_rows
        short = [name for name, rows in enough.items() if first_rows and rows > first_rows]
        if not short:
            return ()
        called = {"landmarks": "the landmarks", "gamma": "the width of the kernel"}
        what = " and ".join(called[name] for name in short).capitalize()
        return (
            f"{what} come{'s' * (short == ['gamma'])} from the first {first_rows} rows and "
            f"stay{'s' * (short == ['gamma'])} so: begin with at least "
            f"{max(enough[name] for name in short)} rows, or give {' and '.join(short)}.",
        )

    def _iterate(self, T: Matrix, start: Matrix | None) -> PreImages:
        if self.preimage_ == "ridge":
            raise ValueError("A learned pre-image iterates nothing: use inverse_transform.")
        search = fixed_point if self.preimage_ == "fixed-point" else gradient_descent
        return search(self.subspace_, T, start, n_jobs=self.n_jobs)

    def _projections(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        q = self.subspace_.n_components
        T: Matrix = check_array(X, dtype=np.float64, order="C", ensure_min_features=min(q, 1))
        if T.shape[1] != q:
            raise ValueError(
                f"X has {T.shape[1]} columns, but the model has {q} components; give projections, "
                "as transform returns them."
            )
        return T

    def _resolve_preimage(self, kernel: Kernel) -> str:
        """Return the pre-image method for the kernel; raise if the parameters conflict."""
        if self.ridge is not None:
            kernel.require_psd("ridge", "leave it out, or choose another kernel")
        chosen = self.preimage
        descends = kernel.is_psd and kernel.is_differentiable
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
