"""User-supplied kernels give the same results as our kernels and scikit-learn's."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import KernelPCA as Peer
from sklearn.gaussian_process.kernels import RBF as GaussianProcessRBF
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from kpca_apps import KernelPCA, KpcaWarning
from kpca_apps.engine.kernels import RBF, FromFunction, Laplacian, Linear, Precomputed, supplied
from kpca_apps.engine.nystroem import LandmarkBasis

RNG = np.random.default_rng(0)
ROWS, NEW = RNG.normal(size=(60, 4)), RNG.normal(size=(7, 4))


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-5)


def test_a_function_of_two_rows_is_a_kernel() -> None:
    def alike(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.exp(-0.3 * np.sum((x - y) ** 2)))

    model = KernelPCA(3, kernel=alike, precision="float64").fit(ROWS)
    expected = Peer(3, kernel=alike).fit(ROWS)
    same(model.transform(NEW), expected.transform(NEW))
    assert model.kernel_.describe() == "alike" and model.reconstruction_error(NEW).shape == (7,)


def test_a_kernel_of_gaussian_processes_is_a_kernel() -> None:
    model = KernelPCA(3, kernel=GaussianProcessRBF(1.5), precision="float64").fit(ROWS)
    own = KernelPCA(3, kernel=RBF.from_sigma(1.5), precision="float64").fit(ROWS)
    same(model.transform(NEW), own.transform(NEW))
    np.testing.assert_allclose(model.reconstruction_error(NEW), own.reconstruction_error(NEW))
    np.testing.assert_allclose(FromFunction(WhiteKernel(2.0)).diagonal(NEW), 2.0)


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_a_gram_matrix_stands_for_rows(method: str) -> None:
    options = {"method": method, "precision": "float64", "random_state": 0}
    own = KernelPCA(3, kernel=RBF(0.3), **options).fit(ROWS)
    model = KernelPCA(3, kernel="precomputed", **options).fit(RBF(0.3)(ROWS))
    same(model.transform(RBF(0.3)(NEW, ROWS)), own.transform(NEW))
    with pytest.raises(ValueError, match="of a new row with itself is not known"):
        model.reconstruction_error(RBF(0.3)(NEW, ROWS))
    with pytest.raises(ValueError, match="no rows to go back to"):
        model.inverse_transform(model.transform(RBF(0.3)(NEW, ROWS)))


def test_a_gram_matrix_is_square_and_may_be_indefinite() -> None:
    with pytest.raises(ValueError, match="must be a square matrix"):
        KernelPCA(2, kernel="precomputed").fit(ROWS)
    assert Precomputed(Linear()(ROWS)).is_psd
    assert not Precomputed(Linear()(ROWS) - np.eye(60)).is_psd


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_an_asymmetric_gram_matrix_is_symmetrised(method: Any) -> None:
    """Centring makes this K symmetric (for other matrices, solvers of scikit-learn disagree)."""
    gram = RBF(0.3)(ROWS)
    ramp = np.linspace(0, 0.5, 60)
    skew = gram + ramp - ramp[:, np.newaxis]
    options: dict[str, Any] = {"method": method, "precision": "float64", "random_state": 0}
    options |= {"n_landmarks": 60, "landmarks": "uniform"} if method == "nystroem" else {}
    with pytest.warns(KpcaWarning, match="not symmetric"):
        model = KernelPCA(3, kernel="precomputed", **options).fit(skew)
    theirs = Peer(3, kernel="precomputed").fit(skew)
    np.testing.assert_allclose(model.eigenvalues_, theirs.eigenvalues_, rtol=1e-6)
    same(model.transform(skew), theirs.transform(skew))


def test_other_asymmetric_matrices_have_eigenvalues_of_the_symmetric_part() -> None:
    skew = RBF(0.3)(ROWS) + 0.1 * np.random.default_rng(0).normal(size=(60, 60))
    with pytest.warns(KpcaWarning):
        model = KernelPCA(3, kernel="precomputed").fit(skew)
    half = (skew + skew.T) / 2
    centring = np.eye(60) - 1 / 60
    values = np.linalg.eigvalsh(centring @ half @ centring)
    np.testing.assert_allclose(model.eigenvalues_, values[np.argsort(-abs(values))[:3]], rtol=1e-6)


def test_asymmetry_from_rounding_is_ignored() -> None:
    gram = RBF(0.3)(ROWS)
    rounded = gram * (1 + 1e-15 * np.arange(60))
    model = KernelPCA(3, kernel="precomputed").fit(rounded)
    same(model.transform(gram), KernelPCA(3, kernel="precomputed").fit(gram).transform(gram))


def test_a_gram_matrix_is_judged_once_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*args: Any, **options: Any) -> np.ndarray:
        calls.append(args)
        return eigvalsh(*args, **options)

    monkeypatch.setattr(supplied, "eigvalsh", counted)
    gram = RBF(0.3)(ROWS)
    KernelPCA(3, kernel="precomputed", ridge=0.1).fit(gram).transform(gram)
    assert len(calls) == 1


def test_sparse_rows_are_rows() -> None:
    sparse = np.where(np.abs(ROWS) > 1, ROWS, 0)
    model = KernelPCA(3, kernel="rbf", gamma=0.1).fit(csr_array(sparse))
    same(model.transform(csr_array(NEW)), KernelPCA(3, gamma=0.1).fit(sparse).transform(NEW))


def test_parameters_of_a_kernel_are_searched() -> None:
    kernel = 0.5 * RBF(0.1) + Laplacian(0.2)
    assert RBF(0.1).get_params() == {"gamma": 0.1}
    assert (0.5 * RBF(0.1)).with_params(kernel__gamma=2.0) == 0.5 * RBF(2.0)
    assert clone(KernelPCA(kernel=kernel)).kernel == kernel
    with pytest.raises(ValueError, match="no parameter 'width'"):
        RBF(0.1).with_params(width=1)
    labels = (ROWS[:, 0] > 0).astype(int)
    pipeline = Pipeline([("kpca", KernelPCA(2, kernel=RBF(1.0))), ("knn", KNeighborsClassifier())])
    search = GridSearchCV(pipeline, {"kpca__kernel__gamma": [1e-3, 0.1]}, cv=3).fit(ROWS, labels)
    assert search.best_estimator_["kpca"].kernel in (RBF(1e-3), RBF(0.1))
    assert pipeline["kpca"].kernel == RBF(1.0)  # the search works on clones


def test_cached_values_of_a_function_are_not_overwritten() -> None:
    class Keeping(GaussianProcessRBF):
        """A kernel that returns the same array for the same rows."""

        def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
            key = (X.tobytes(), None if Y is None else Y.tobytes())
            kept = self.__dict__.setdefault("kept", {})
            if key not in kept:
                kept[key] = super().__call__(X, Y)
            return kept[key]

    features = LandmarkBasis.from_cholesky(FromFunction(Keeping(2.0)), ROWS[:20]).features()
    first = features(NEW).copy()
    np.testing.assert_array_equal(features(NEW), first)
