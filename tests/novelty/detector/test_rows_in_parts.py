"""Fits that read rows in parts equal plain formulas over all rows."""

import pickle

import numpy as np
import pytest

from kpca_apps.engine import nystroem
from kpca_apps.engine import rows as engine_rows
from kpca_apps.engine.kernels import RBF
from kpca_apps.engine.nystroem import FeatureSums, LandmarkBasis
from kpca_apps.engine.rows import ArrayRows, sample_positions
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.views import OfViews
from tests.system.model_parts import parts_of
from tests.system.parts import row_parts

KERNEL = RBF(0.3)


class Parts:
    """A row source that runs pickled functions on one part at a time."""

    def __init__(self, X, rows):
        self.X, self.parts, self.n_rows = X, row_parts(len(X), rows), len(X)
        self.sample_index = sample_positions(len(X), 0)
        self.sample = X[self.sample_index]

    def map(self, function, in_use=None):
        used = np.zeros(self.n_rows, dtype=bool) if in_use is None else in_use
        return np.concatenate(
            [
                ArrayRows(self.X[p.start : p.stop]).map(sent(function), used[p.start : p.stop])
                for p in self.parts
            ]
        )

    def sum(self, function, in_use=None):
        used = np.ones(self.n_rows, dtype=bool) if in_use is None else in_use
        total, *others = [
            ArrayRows(self.X[p.start : p.stop]).sum(sent(function), used[p.start : p.stop])
            for p in self.parts
        ]
        for part in others:
            total += part
        return total


def sent(function):
    return pickle.loads(pickle.dumps(function))


@pytest.fixture
def rows(monkeypatch):
    """Limit samples to 400 rows, and return a table of 1,500 rows."""
    monkeypatch.setattr(engine_rows, "SAMPLE_ROWS", 400)
    return np.random.default_rng(5).normal(size=(1500, 3))


def test_sums_made_where_numbers_round_otherwise_still_add_up(rows, monkeypatch):
    function = FeatureSums(LandmarkBasis.from_cholesky(KERNEL, rows[:40]))
    expected, here = (ArrayRows(X).sum(function) for X in (rows[:900], rows[:400]))
    # A slightly different mean stands for another machine's rounding.
    monkeypatch.setattr(nystroem, "SHIFT_ROWS", 39)
    total = here + ArrayRows(rows[400:900]).sum(sent(function))
    np.testing.assert_allclose(total.mean, expected.mean, rtol=1e-9)
    assert total.norm == pytest.approx(900.0)


@pytest.mark.parametrize("contaminated", [True, False])
def test_mean_and_covariance_come_from_all_rows_in_use(rows, contaminated, monkeypatch):
    in_use = np.ones(len(rows), dtype=bool)
    if contaminated:
        in_use = np.random.default_rng(1).random(len(rows)) < 0.6
        monkeypatch.setattr("kpca_apps.novelty.detector.fit.trim", lambda *a, **k: in_use)
    options = {"kernel": KERNEL, "ridge": 0.05, "n_landmarks": 40, "random_state": 0}
    fit = KernelPCANovelty(contaminated=contaminated, **options).fit(rows)
    z = LandmarkBasis.from_cholesky(KERNEL, rows[fit.detector_.landmarks]).features()(rows)
    used, n = z[in_use], np.count_nonzero(in_use)
    y = z - used.mean(axis=0)
    A = np.cov(used.T, bias=True) + fit.detector_.ridge * np.eye(z.shape[1])
    M = np.einsum("ij,ji->i", y, np.linalg.solve(A, y.T))
    r = 1.0 - (z * z).sum(axis=1)
    a = M / n
    left_out = r + n * fit.detector_.ridge * (n / (n - 1)) ** 2 * a / (1 - n * a / (n - 1))
    expected = np.where(in_use, left_out, r + fit.detector_.ridge * M)
    others = np.setdiff1d(np.arange(len(rows)), fit.detector_.landmarks)
    np.testing.assert_allclose(fit.novelty_scores_[others], expected[others], rtol=1e-9)
    tau = 1.0 - used.mean(axis=0) @ used.mean(axis=0)
    assert fit.detector_.ridge == pytest.approx(0.05 * tau, rel=1e-9)
    # Landmarks are sampled rows that are in use.
    sampled = sample_positions(len(rows), 0)
    assert np.isin(fit.detector_.landmarks, sampled[in_use[sampled]]).all()
    np.testing.assert_array_equal(fit.subspace_.points, rows[fit.detector_.landmarks])


@pytest.mark.parametrize("kernel", [KERNEL, None], ids=["one kernel", "default"])
@pytest.mark.parametrize("contaminated", [True, False])
def test_rows_in_parts_are_fitted_like_rows_in_memory(rows, contaminated, kernel):
    def detector():
        return KernelPCANovelty(
            contaminated=contaminated, kernel=kernel, n_landmarks=50, random_state=0
        )

    whole = detector().fit(rows)
    parted = detector().fit_rows(Parts(rows, 256))
    np.testing.assert_allclose(parted.novelty_scores_, whole.novelty_scores_, rtol=1e-10)
    np.testing.assert_array_equal(parted.detector_.landmarks, whole.detector_.landmarks)
    if kernel is None:
        of_one, of_other = (parts_of(fit.combined_)[1] for fit in (whole, parted))
        for name, array in of_one.items():
            np.testing.assert_allclose(of_other[name], array, rtol=1e-7, err_msg=name)
    assert parted.threshold_ == pytest.approx(whole.threshold_, rel=1e-10)
    new = np.random.default_rng(2).normal(size=(20, 3))
    np.testing.assert_allclose(
        ArrayRows(new).map(sent(parted.detector_.row_scores())),
        -whole.score_samples(new),
        rtol=1e-10,
    )


def test_clean_thresholds_are_calibrated_on_the_rows_in_memory(rows):
    detector = KernelPCANovelty(contaminated=False, random_state=0).fit(rows)
    assert len(detector.calibration_scores_) == 400
    expected = np.sort(detector.novelty_scores_[sample_positions(len(rows), 0)])
    np.testing.assert_array_equal(detector.calibration_scores_, expected)


def test_sorted_rows_of_which_whole_parts_are_left_out_are_fitted_like_rows_in_memory(monkeypatch):
    monkeypatch.setattr(engine_rows, "SUMMED", 128)
    # Sorted prices: the dense half is contiguous, and the outer parts have no row in use.
    X = np.sort(np.random.default_rng(0).lognormal(sigma=1.5, size=(1500, 1)), axis=0)
    parts = Parts(X, 256)
    whole = KernelPCANovelty(random_state=0).fit(X)
    parted = KernelPCANovelty(random_state=0).fit_rows(parts)
    np.testing.assert_allclose(parted.novelty_scores_, whole.novelty_scores_, rtol=1e-10)
    views, none = whole.detector_.views, np.zeros(len(X), dtype=bool)
    basis = LandmarkBasis.from_cholesky(views.kernel, views.transform(X[::30]))
    assert ArrayRows(X).sum(OfViews(views, FeatureSums(basis)), none).n == 0
