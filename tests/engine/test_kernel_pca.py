import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from kpca_apps.engine import fit as fitting
from kpca_apps.engine import precision as precision_module
from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Laplacian, Linear
from kpca_apps.engine.plan import LARGEST_EXACT
from kpca_apps.engine.rows import ArrayRows
from kpca_apps.errors import KpcaWarning, MemoryLimitError
from tests.engine.examples import curved_rows, normal_rows

ESTIMATORS = [
    KernelPCA(),
    KernelPCA(3, ridge=0.1, solver="krylov"),
    KernelPCA(2, method="nystroem", n_landmarks=20),
    KernelPCA(kernel="sigmoid"),
    KernelPCA(ridge=1e-3, method="nystroem", n_landmarks=20),
    KernelPCA(2, kernel="poly", method="nystroem", landmarks="residual", n_landmarks=15),
    KernelPCA(kernel="laplacian", center=False, preimage="ridge"),
]


@parametrize_with_checks(ESTIMATORS[:1])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.release
@parametrize_with_checks(ESTIMATORS[1:])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_estimator_checks_of_other_parameters(estimator, check):
    check(estimator)


def test_landmarks_may_be_given_or_drawn():
    X = normal_rows(100)
    given = KernelPCA(3, method="nystroem", landmarks=X[:30], gamma=0.2).fit(X)
    assert_array_equal(given.subspace_.points, X[:30])
    drawn = KernelPCA(3, method="nystroem", landmarks="uniform", n_landmarks=25).fit(X)
    assert len(drawn.subspace_.points) == 25
    with pytest.raises(ValueError, match="landmarks has 2 features, but X has 4"):
        KernelPCA(method="nystroem", landmarks=X[:, :2]).fit(X)


@pytest.mark.parametrize(
    ("kernel", "d", "way"),
    [
        (RBF(0.1) + 0.5 * Laplacian(0.1), 6, "kmeans"),
        (RBF(0.1) + 0.5 * Laplacian(0.1), 5, "rpcholesky"),
        (RBF(0.1) + Linear(), 6, "residual"),
    ],
)
def test_landmarks_are_centres_where_alike_means_near_and_columns_are_many(kernel, d, way):
    X = normal_rows(150, d)
    options = {"kernel": kernel, "method": "nystroem", "n_landmarks": 20, "random_state": 0}
    usual, named = (KernelPCA(3, landmarks=kind, **options).fit(X) for kind in ("auto", way))
    assert usual.plan_.landmarks == way
    assert_array_equal(usual.subspace_.points, named.subspace_.points)
    rows = {row.tobytes() for row in X}
    assert all(point.tobytes() in rows for point in usual.subspace_.points) == (way != "kmeans")


def test_scores_through_landmarks_order_rows_as_exact_ones_do():
    X = curved_rows(1600, 10)
    X, new = X[:1200], X[1200:]
    exact = KernelPCA(20, gamma=0.1, method="exact").fit(X).reconstruction_error(new)
    few = KernelPCA(20, gamma=0.1, method="nystroem", n_landmarks=500, random_state=0).fit(X)
    assert spearmanr(few.reconstruction_error(new), exact).statistic > 0.999


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 1.0, "gamma": 1.0}, "give one of them"),
        ({"sigma": 1.0, "kernel": "linear"}, "sigma is for kernel='rbf'"),
        ({"gamma": 1.0, "kernel": RBF(1.0)}, "do not give it twice"),
        ({"kernel": "unknown"}, "'kernel' parameter of KernelPCA must be"),
        ({"n_components": -1}, "'n_components' parameter of KernelPCA must be"),
        ({"ridge": 0.0}, "'ridge' parameter of KernelPCA must be"),
        ({"kernel": "sigmoid", "method": "nystroem"}, "indefinite"),
        ({"kernel": "sigmoid", "ridge": 0.1}, "positive semi-definite"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0"),
    ],
)
def test_options_that_contradict_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(**options).fit(normal_rows(10))


def test_fewer_rows_than_components_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"n_components = 9 .* n_samples = 8: ask for fewer"):
        KernelPCA(9).fit(normal_rows(8))
    with pytest.warns(KpcaWarning, match="7 of 8 components found"):
        assert KernelPCA(8).fit(normal_rows(8)).eigenvalues_.shape == (7,)


@pytest.mark.parametrize("method", ["exact", "nystroem"])
@pytest.mark.parametrize("solver", ["lapack", "krylov"])
@pytest.mark.parametrize(
    ("kernel", "X", "rank"),
    [
        (RBF(0.1), np.repeat(normal_rows(6), 30, axis=0), 5),
        (Linear(), normal_rows(180, 2) @ normal_rows(2, 5, seed=1), 2),
        (Linear(), np.ones((180, 3)), 0),
    ],
    ids=["duplicates", "rank-deficient", "constant"],
)
def test_components_without_variance_are_dropped_with_a_warning(kernel, X, rank, method, solver):
    options = {"method": method, "solver": solver, "n_landmarks": 60, "random_state": 0}
    with pytest.warns(KpcaWarning, match=f"{rank} of 10 components found.* no variance beyond"):
        model = KernelPCA(10, kernel=kernel, **options).fit(X)
    assert model.transform(X).shape == (180, rank)
    expected = np.linalg.eigvalsh(centred(kernel(X)))
    assert_allclose(model.eigenvalues_, expected[::-1][:rank], rtol=1e-6)
    assert model.reconstruction_error(X).max() < 1e-6


def centred(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


@pytest.mark.parametrize("method", ["exact", "nystroem"])
@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_values_a_kernel_overflows_on_are_refused(method, kernel):
    X = normal_rows(50) * 1e160
    with pytest.raises(ValueError, match=r"overflows on these rows: scale the columns first\.$"):
        KernelPCA(kernel=kernel, method=method, n_landmarks=10, gamma=1.0).fit(X)


def test_new_rows_a_kernel_overflows_on_are_refused():
    far = np.array([[1e200, -1e200, 1e200, 1e200], [0.0, 0.0, 0.0, 0.0]])
    models = {name: KernelPCA(2, kernel=name).fit(normal_rows(30)) for name in ("poly", "linear")}
    for score in (
        models["poly"].transform,
        models["poly"].reconstruction_error,
        models["linear"].reconstruction_error,
    ):
        with pytest.raises(ValueError, match="overflows on these rows: scale the columns first"):
            score(far)
    assert np.isfinite(models["linear"].transform(far)).all()


def test_method_follows_size_memory_and_kernel():
    X = normal_rows(400)
    assert KernelPCA(5).fit(X).method_ == "exact"
    assert KernelPCA(5, memory_budget=10**6, n_landmarks=5).fit(X).method_ == "nystroem"
    large = normal_rows(LARGEST_EXACT + 1, 2)
    assert KernelPCA(20, n_landmarks=20, solver="lapack").fit(large).method_ == "nystroem"
    few = KernelPCA(2, gamma=0.05, random_state=0).fit(large)
    assert few.method_ == "exact" and few.plan_.stored
    options = {"gamma": 0.05, "random_state": 0, "memory_budget": few.plan_.n_bytes - 1}
    recomputed = KernelPCA(2, **options).fit(large)
    assert recomputed.method_ == "exact" and not recomputed.plan_.stored
    assert_array_equal(recomputed.eigenvalues_, few.eigenvalues_)
    with pytest.raises(MemoryLimitError, match="'nystroem'"):
        KernelPCA(kernel="sigmoid", memory_budget=1000).fit(X)
    with pytest.raises(MemoryLimitError, match="fewer landmarks"):
        KernelPCA(method="nystroem", memory_budget=1000).fit(X)


def test_the_seed_decides():
    X = normal_rows(300)
    model = KernelPCA(4, method="nystroem", n_landmarks=40, random_state=7)
    first = model.fit_transform(X)
    assert_array_equal(clone(model).fit_transform(X), first)
    assert not np.array_equal(clone(model).set_params(random_state=8).fit_transform(X), first)


def test_without_a_seed_the_bandwidth_is_the_same_every_time():
    X = normal_rows(900)
    assert KernelPCA(2).fit(X).kernel_ == KernelPCA(2).fit(X).kernel_
    assert KernelPCA(2, random_state=1).fit(X).kernel_ != KernelPCA(2).fit(X).kernel_


def test_given_landmarks_are_counted_against_the_memory_whatever_n_landmarks_says():
    X = normal_rows(200)
    with pytest.raises(MemoryLimitError, match="200 landmarks"):
        KernelPCA(method="nystroem", landmarks=X, n_landmarks=5, memory_budget=10**6).fit(X)
    few = KernelPCA(2, method="nystroem", landmarks=X[:5], n_landmarks=200, memory_budget=10**6)
    assert len(few.fit(X).subspace_.points) == 5


@pytest.mark.parametrize("method", ["exact", "nystroem"])
@pytest.mark.parametrize("landmarks", ["uniform", "given"])
def test_the_fit_keeps_nothing_of_the_callers_arrays(method, landmarks):
    X, points, new = normal_rows(30), normal_rows(9, seed=1), normal_rows(5, seed=2)
    given = points if landmarks == "given" else landmarks
    model = KernelPCA(2, gamma=0.2, method=method, landmarks=given, random_state=0).fit(X)
    before = model.transform(new)
    X[:], points[:] = 0.0, 0.0
    assert_array_equal(model.transform(new), before)


@pytest.mark.parametrize(("factor", "size"), [(1e200, "large"), (1e-200, "small")])
def test_default_widths_of_values_that_cannot_be_squared_are_refused(factor, size):
    with pytest.raises(ValueError, match=f"too {size}"):
        KernelPCA(kernel="rbf").fit(normal_rows(30) * factor)


def test_parameter_checks_follow_scikit_learns_configuration():
    with config_context(skip_parameter_validation=True):
        assert KernelPCA(2, memory_budget=1e9).fit(normal_rows(9)).eigenvalues_.shape == (2,)
    with pytest.raises(ValueError, match="'memory_budget' parameter"):
        KernelPCA(2, memory_budget=1e9).fit(normal_rows(9))


def test_rows_may_come_in_parts():
    X = normal_rows(600, 3)
    options = {"gamma": 0.1, "method": "nystroem", "landmarks": X[:50]}
    whole = KernelPCA(4, **options).fit(X)
    parts = KernelPCA(4, **options)
    for start in range(0, 600, 200):
        parts.partial_fit(X[start : start + 200])
    assert parts.sums_.n == 600
    assert_allclose(parts.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    assert_allclose(parts.transform(X), whole.transform(X), rtol=0, atol=1e-8)
    more = KernelPCA(4, **options).fit(X[:200]).partial_fit(X[200:])
    assert_allclose(more.eigenvalues_, whole.eigenvalues_, rtol=1e-10)
    assert not hasattr(KernelPCA(4), "partial_fit")
    with pytest.raises(AttributeError) as missing:
        KernelPCA(4).partial_fit(X)
    assert "method='nystroem'" in str(missing.value.__cause__)


def test_the_plan_of_a_fit_is_reported(caplog):
    X = curved_rows(2100)
    with caplog.at_level("INFO", logger="kpca_apps.engine"):
        few = KernelPCA(5, gamma=0.05, method="nystroem", n_landmarks=100).fit(X)
        exact = KernelPCA(5, gamma=0.05).fit(X)
    assert [record.message.split(",")[0] for record in caplog.records] == ["nystroem", "exact"]
    assert few.plan_.n_landmarks == 100 and 0.0 < few.missed_ < 1.0
    assert exact.plan_.precision == exact.scoring_precision_ == "float32"
    wide = KernelPCA(5, gamma=0.05, precision="float64").fit(X)
    assert wide.scoring_precision_ == "float64"
    assert_allclose(exact.reconstruction_error(X), wide.reconstruction_error(X), rtol=2e-3)


def test_float32_scores_are_refused_where_they_would_be_rounding():
    X = normal_rows(2100, 2)
    flat = normal_rows(2100, 3) * [1.0, 1.0, 1e-4]
    for method in ("exact", "nystroem"):
        model = KernelPCA(2, kernel="linear", method=method, random_state=0).fit(flat)
        assert model.plan_.precision == "float32" and model.scoring_precision_ == "float64"
    near = KernelPCA(90, gamma=0.3, method="nystroem", n_landmarks=300, random_state=0).fit(X)
    assert near.scoring_precision_ == "float64"


@pytest.mark.release
def test_landmarks_take_over_where_auto_finds_eigenvalues_too_close_and_memory_too_short():
    # Each row is similar only to the two rows beside it, so almost all of the 1,600 eigenvalues lie
    # between 0.98 and 1.02.
    X = np.arange(1600.0)[:, None]
    options = {"gamma": 4.6, "memory_budget": 15 * 2**20, "n_landmarks": 50, "random_state": 0}
    model = KernelPCA(5, **options).fit(X)
    assert (model.method_, model.subspace_.n_components) == ("nystroem", 5)
    assert model.sums_.n == 1600
    with pytest.raises(MemoryLimitError, match="too close together to iterate"):
        KernelPCA(5, method="exact", **options).fit(X)


def test_added_rows_count_in_all_reported_figures():
    X = np.vstack([normal_rows(400, 3), 3.0 + normal_rows(600, 3, seed=1)])
    options = {"gamma": 0.1, "method": "nystroem", "landmarks": normal_rows(40, 3, seed=2)}
    model = KernelPCA(4, **options).fit(X[:400])
    before = model.missed_
    model.partial_fit(X[400:700]).partial_fit(X[700:])
    whole = KernelPCA(4, **options).fit(X)
    assert whole.missed_ > 1.2 * before
    assert model.missed_ == pytest.approx(whole.missed_, rel=1e-12)
    assert model.plan_.n == whole.plan_.n == 1000 and "n = 1000" in model.plan_.describe()
    assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    assert_array_equal(model.fit(X[:400]).missed_, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"The landmarks and the width .* first 30 rows .* at least 500 rows"),
        ({"n_landmarks": 700}, r"at least 700 rows, or give landmarks and gamma"),
        ({"gamma": 0.1}, r"The landmarks come from the first 30 rows .* at least 100 rows"),
        ({"landmarks": normal_rows(20)}, r"The width of the kernel come.*, or give gamma"),
    ],
)
def test_partial_fit_warns_if_few_rows_set_its_parameters(options, message):
    options = {"n_landmarks": 100, "method": "nystroem", "random_state": 0, **options}
    X = normal_rows(900)
    for first in ("fit", "partial_fit"):
        model = getattr(KernelPCA(2, **options), first)(X[:30])
        with pytest.warns(KpcaWarning, match=message):
            model.partial_fit(X[30:])
    # partial_fit keeps landmarks and width, on which the sums over earlier rows depend.
    assert len(model.subspace_.points) <= 30
    KernelPCA(2, **options).fit(X[:800]).partial_fit(X[800:])
    KernelPCA(2, **{**options, "gamma": 0.1, "landmarks": X[:20]}).fit(X[:30]).partial_fit(X[30:])


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_the_ridge_is_a_share_of_the_total_variance(method, center):
    X, new, kernel = normal_rows(90, 3), normal_rows(20, 3, seed=1), RBF(0.5)
    options = {"kernel": kernel, "method": method, "center": center, "landmarks": X}
    model = KernelPCA(ridge=0.05, **options).fit(X)
    variance = 1.0 - (kernel(X).mean() if center else 0.0)
    assert model.ridge_ == pytest.approx(0.05 * variance, rel=1e-5)
    # Expected: k(x, x) - k'(K + n rho I)^-1 k with centred values.
    K, k, own = kernel(X), kernel(new, X), np.ones(20)
    if center:
        mean = K.mean(axis=0)
        own = 1.0 - 2.0 * k.mean(axis=1) + K.mean()
        k = k - mean - k.mean(axis=1, keepdims=True) + K.mean()
        K = K - mean - mean[:, None] + K.mean()
    expected = own - (k * np.linalg.solve(K + 90 * model.ridge_ * np.eye(90), k.T).T).sum(axis=1)
    assert_allclose(model.reconstruction_error(new), expected, rtol=0, atol=2e-6)
    assert KernelPCA(method=method).fit(X).ridge_ is None


def test_rows_of_a_source_give_what_rows_in_memory_give():
    X = normal_rows(900)
    for options in ({}, {"method": "nystroem", "n_landmarks": 50}, {"ridge": 0.1}):
        model = KernelPCA(3, gamma=0.1, random_state=0, **options)
        whole, of_source = clone(model).fit(X), clone(model).fit_rows(ArrayRows(X))
        assert_array_equal(of_source.transform(X), whole.transform(X))


def test_landmarks_come_from_the_sample_and_sums_from_all_rows():
    X, index = normal_rows(900), np.arange(0, 900, 3)
    options = {"gamma": 0.1, "landmarks": "residual", "n_landmarks": 50, "random_state": 0}
    model = KernelPCA(3, method="nystroem", **options).fit_rows(ArrayRows(X, index))
    assert np.isin(model.landmark_index_, index).all()
    assert_array_equal(model.subspace_.points, X[model.landmark_index_])
    given = {"gamma": 0.1, "landmarks": model.subspace_.points, "method": "nystroem"}
    assert_allclose(model.eigenvalues_, KernelPCA(3, **given).fit(X).eigenvalues_, rtol=1e-12)
    assert KernelPCA(3, **options).fit_rows(ArrayRows(X, index)).method_ == "nystroem"
    for exact in (KernelPCA(3, method="exact"), KernelPCA(3, kernel="sigmoid")):
        with pytest.raises(ValueError, match="of these 900 only 300 are: use method='nystroem'"):
            exact.fit_rows(ArrayRows(X, index))


def test_a_soft_cut_leaves_out_what_a_hard_one_does():
    X = np.repeat(normal_rows(2), 30, axis=0)
    hard, soft = (KernelPCA(kernel=RBF(0.01), ridge=ridge).fit(X) for ridge in (None, 0.01))
    assert hard.subspace_.n_components == 1
    assert_array_equal(soft.eigenvalues_, hard.eigenvalues_)
    assert (soft.eigenvalues_ > 0.0).all()


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.2) + Linear()])
def test_sums_of_models_with_the_same_landmarks_add_up(kernel):
    X = normal_rows(300, 3) + 5.0
    options = {"kernel": kernel, "method": "nystroem", "landmarks": X[:40]}
    first, second, whole = (KernelPCA(3, **options).fit(rows) for rows in (X[:100], X[100:], X))
    total = first.sums_ + second.sums_
    assert_allclose(np.linalg.eigvalsh(total.covariance)[::-1][:3] * 300, whole.eigenvalues_)
    assert first.subspace_.kernel == second.subspace_.kernel


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_first_batch_of_few_rows_keeps_all_the_directions_it_has(k, offset):
    X = normal_rows(60, 3) + offset
    model = KernelPCA(kernel="linear", method="nystroem")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KpcaWarning)
        model.partial_fit(X[:k]).partial_fit(X[k:])
    assert model.fitted_.landmarks.basis.transform.shape[1] == min(k, 3)
    if k >= 3:
        expected = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
        assert_allclose(model.eigenvalues_, expected, rtol=1e-8)


@pytest.mark.release
@pytest.mark.parametrize("method", ["exact", "auto"])
def test_a_fit_in_float32_stays_where_float64_takes_too_much_memory(method, monkeypatch):
    monkeypatch.setattr(precision_module, "agreeing_precision", lambda *given: "float32")
    X = normal_rows(2500, 2)
    options = {"gamma": 0.25, "solver": "lapack", "method": method, "random_state": 0}
    single = KernelPCA(60, precision="float32", **options)
    with pytest.warns(KpcaWarning, match="in float32"):
        single.fit(X)
    options["memory_budget"] = single.plan_.n_bytes
    with pytest.warns(KpcaWarning, match=r"of 60 components .*use precision='float64'"):
        model = KernelPCA(60, **options).fit(X)
    assert (model.method_, model.plan_.precision) == ("exact", "float32")
    assert_array_equal(model.eigenvalues_, single.eigenvalues_)


def test_a_fit_is_not_repeated_where_landmarks_span_no_more(monkeypatch):
    fits = []
    solve = fitting.fit_through_landmarks
    monkeypatch.setattr(
        fitting, "fit_through_landmarks", lambda *given: fits.append(1) or solve(*given)
    )
    monkeypatch.setattr(precision_module, "agreeing_precision", lambda *given: "float32")
    X = normal_rows(2500, 10)
    with pytest.warns(KpcaWarning, match="50 landmarks span no more directions"):
        model = KernelPCA(100, n_landmarks=50, method="nystroem", random_state=0).fit(X)
    assert len(model.eigenvalues_) == 50
    assert model.plan_.precision == "float32" and len(fits) == 1


def test_a_ridge_below_the_jitter_gives_a_warning():
    X = normal_rows(200)
    with pytest.warns(KpcaWarning, match="rounding of the landmarks' Gram matrix"):
        KernelPCA(gamma=1e-9, method="nystroem", landmarks=X, ridge=0.1).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_a_source_of_other_numbers_is_fitted_in_float64(dtype):
    X = np.round(4 * normal_rows(60)).astype(dtype)
    model = KernelPCA(3, gamma=0.1).fit_rows(ArrayRows(X))
    assert model.subspace_.points.dtype == np.float64
    assert_array_equal(model.eigenvalues_, KernelPCA(3, gamma=0.1).fit(X).eigenvalues_)


def test_nan_outside_the_sample_is_refused():
    X = normal_rows(60)
    X[-1, 0] = np.nan
    source = ArrayRows(X, np.arange(50))
    with pytest.raises(ValueError, match="leave out rows with NaN"):
        KernelPCA(2, gamma=0.1, method="nystroem", n_landmarks=10).fit_rows(source)
