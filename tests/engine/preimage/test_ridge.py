import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA as ReferenceKernelPCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kpca_apps.engine import kernel_pca
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Kernel, OnColumns, Sigmoid
from kpca_apps.engine.preimage.ridge import learn_preimage
from tests.engine.examples import normal_rows


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        ("rbf", {"gamma": 0.3}),
        ("linear", {}),
        ("poly", {"gamma": 0.1, "degree": 2}),
        ("cosine", {}),
        ("sigmoid", {"gamma": 0.01}),
    ],
)
def test_agrees_with_scikit_learn(kernel, options):
    X, new = normal_rows(80), normal_rows(20, seed=1)
    ours = KernelPCA(3, kernel=kernel, preimage="ridge", alpha=0.5, **options).fit(X)
    reference = ReferenceKernelPCA(
        3, kernel=kernel, fit_inverse_transform=True, alpha=0.5, eigen_solver="dense", **options
    )
    expected = reference.fit(X).inverse_transform(reference.transform(new))
    assert_allclose(ours.inverse_transform(ours.transform(new)), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "chosen"),
    [
        ("rbf", "fixed-point"),
        ("laplacian", "gradient"),
        ("poly", "gradient"),
        ("sigmoid", "ridge"),
        (OnColumns(RBF(1.0), 0, 2), "gradient"),
    ],
)
def test_auto_chooses_a_method_the_kernel_allows(kernel, chosen):
    X = normal_rows(30)
    model = KernelPCA(3, kernel=kernel).fit(X)
    assert model.preimage_ == chosen
    assert model.inverse_transform(model.transform(X)).shape == X.shape
    assert clone(model).set_params(preimage=chosen).fit(X).preimage_ == chosen


@pytest.mark.parametrize("preimage", ["fixed-point", "gradient", "ridge"])
def test_parameters_are_searched_by_the_error_of_reconstruction(preimage):
    X = np.random.default_rng(0).permutation(load_iris().data)[:60]
    steps = make_pipeline(StandardScaler(), KernelPCA(gamma=0.1, preimage=preimage, alpha=0.01))

    def negative_error(model, X, y=None):
        return -np.mean((model.inverse_transform(model.transform(X)) - X) ** 2)

    search = GridSearchCV(
        steps, {"kernelpca__n_components": [0, 1, 3]}, scoring=negative_error, cv=3
    ).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert (np.diff(scores) > 0.0).all()
    # Three components leave less than half of the squared error that zero components leave.
    assert scores[-1] > 0.5 * scores[0]


def test_rows_come_back_from_all_components():
    X = normal_rows(25)
    model = KernelPCA(gamma=0.3).fit(X)
    assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-6)
    found = model.preimages(model.transform(X), start=X + 0.01)
    assert_allclose(found.points, X, atol=1e-4)
    assert_allclose(found.residual, 0.0, atol=1e-8)


def test_landmarks_are_learned_from_where_rows_are_too_many():
    X = normal_rows(200)
    model = KernelPCA(5, method="nystroem", n_landmarks=30, preimage="ridge").fit(X)
    assert model.learned_preimage_.projections.shape == (30, 5)
    assert_array_equal(
        model.inverse_transform(model.transform(X[:5])),
        model.inverse_transform(model.transform(X))[:5],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "linear", "preimage": "fixed-point"}, "is for the RBF kernel"),
        ({"kernel": "sigmoid", "preimage": "gradient"}, "needs a positive semi-definite kernel"),
        ({"preimage": "guess"}, "'preimage' parameter of KernelPCA must be"),
        ({"alpha": -1.0}, "'alpha' parameter of KernelPCA must be"),
    ],
)
def test_impossible_arguments_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(3, **options).fit(np.repeat(normal_rows(10), 2, axis=0))


def test_an_unsolvable_regression_is_reported_when_used():
    X = np.repeat(normal_rows(10), 2, axis=0)
    model = KernelPCA(3, kernel="linear", preimage="ridge", alpha=0.0).fit(X)
    with pytest.raises(ValueError, match="use a larger alpha"):
        model.inverse_transform(model.transform(X))


@dataclass(frozen=True)
class Intersection(Kernel):
    """Histogram intersection, sum_j min(x_j, y_j): positive semi-definite on positive rows only."""

    def against(self, Z, dtype=np.float64):
        return lambda X: np.minimum(X[:, None, :], Z[None]).sum(axis=2).astype(dtype)

    def diagonal(self, X):
        return X.sum(axis=1)

    def describe(self):
        return "sum min(x, y)"


@pytest.mark.parametrize(
    "kernel",
    [
        OnColumns(Sigmoid(0.1), 0, 2),
        OnColumns(RBF(0.2), 0, 4),
        Intersection(),
        RBF(0.2) + Intersection(),
    ],
    ids=lambda kernel: kernel.describe(),
)
@pytest.mark.parametrize("method", ["exact", "auto"])
def test_rows_come_back_by_regression_whatever_the_kernel(kernel, method):
    X, new = np.abs(normal_rows(150)), np.abs(normal_rows(30, seed=1))
    model = KernelPCA(8, kernel=kernel, method=method, preimage="ridge", alpha=1e-3).fit(X)
    error = ((model.inverse_transform(model.transform(new)) - new) ** 2).sum()
    spread = ((new - X.mean(axis=0)) ** 2).sum()
    if isinstance(kernel, OnColumns):
        # This kernel depends on some columns only, and the pre-image recovers those columns.
        columns = slice(kernel.start, kernel.stop)
        error = ((model.inverse_transform(model.transform(new)) - new)[:, columns] ** 2).sum()
        spread = ((new - X.mean(axis=0))[:, columns] ** 2).sum()
    assert error < 0.3 * spread


def test_a_fit_learns_only_what_is_requested(monkeypatch):
    calls = []

    def counted(*given, **options):
        calls.append(given)
        return learn_preimage(*given, **options)

    monkeypatch.setattr(kernel_pca, "learn_preimage", counted)
    X = normal_rows(40)
    model = KernelPCA(3, kernel="sigmoid", gamma=0.01, alpha=0.1).fit(X)
    T = model.transform(X)
    assert model.preimage_ == "ridge" and not calls
    first = model.inverse_transform(T)
    # Changing a parameter after the fit does not change the fit.
    model.set_params(alpha=100.0)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.inverse_transform(T), first)
    assert_array_equal(again.inverse_transform(T), first)
    assert len(calls) == 1
    unlearned = pickle.loads(pickle.dumps(KernelPCA(3, kernel="sigmoid", gamma=0.01).fit(X)))
    assert unlearned.inverse_transform(T).shape == X.shape
    model.set_params(alpha=0.1).fit(X[:20])
    assert model.learned_preimage_.projections.shape == (20, 3)
    with pytest.raises(AttributeError, match="preimage='ridge'"):
        _ = KernelPCA(3).fit(X).learned_preimage_


def test_projections_and_starts_of_another_shape_are_refused():
    X = normal_rows(20)
    model = KernelPCA(3).fit(X)
    with pytest.raises(ValueError, match=r"X has 4 columns.*3 components; give projections"):
        model.inverse_transform(X)
    with pytest.raises(ValueError, match="start has 19 rows, but there are 20 projections"):
        model.preimages(model.transform(X), start=X[1:])
    learned = KernelPCA(3, preimage="ridge").fit(X)
    with pytest.raises(ValueError, match="iterates nothing"):
        learned.preimages(learned.transform(X))


def test_a_regression_in_place_of_another_kernel_shrinks_towards_the_mean():
    X = normal_rows(80, 3)
    kernel = OnColumns(RBF(0.2), 0, 3)
    near, far = (
        KernelPCA(4, kernel=kernel, preimage="ridge", alpha=5.0, random_state=0).fit(rows)
        for rows in (X, X + 100.0)
    )
    back, moved = (
        near.inverse_transform(near.transform(X)),
        far.inverse_transform(far.transform(X + 100.0)),
    )
    assert_allclose(moved, back + 100.0, atol=1e-6)
    lost = far.inverse_transform(np.full((1, 4), 1e6))
    assert_allclose(lost[0], X.mean(axis=0) + 100.0, rtol=1e-12)
