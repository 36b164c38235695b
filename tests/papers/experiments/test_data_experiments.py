"""Experiments on data that are not in the repository, where ``KPCA_PAPERS`` names their folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.preprocessing import PolynomialFeatures

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import (
    denoising_digits,
    novelty_rates,
    segmentation,
    usps,
)
from kpca_apps.papers.experiments.usps import Digits, errors, smoothed_digits
from kpca_apps.papers.measuring import components
from kpca_apps.papers.registry import all_experiments

from ..comparing import ORACLES
from .digit_errors import errors_by_scikit_learn


@dataclass(frozen=True)
class FewDigits(PaperData):
    """The first digits of each file."""

    def usps(self):
        X, y, new, truth = super().usps()
        return X[:600], y[:600], new[:300], truth[:300]


def claims_of(name, papers_folder):
    outcome = all_experiments()[name].run(PaperData(papers_folder))
    return {claim.what: claim for claim in outcome.claims}, outcome


def test_the_published_table_of_segmentation_comes_out(papers_folder):
    small, small_names, large, large_names = PaperData(papers_folder).segmentation()
    split = segmentation._Split(large, large_names, small, small_names)
    for name, count, paper in (("linear", None, 8 / 210), ("Laplace", 50, 7 / 210)):
        features = split.features(segmentation.KERNELS[name])
        assert split.error(features, count) == pytest.approx(paper, abs=1e-9)
    known = {row.tobytes() for row in large}
    assert all(row.tobytes() in known for row in small)


def test_errors_on_new_test_rows_are_those_without_the_repeated_rows(papers_folder):
    """Those of an independent implementation; 0.0048 is one row."""
    small, small_names, large, large_names = PaperData(papers_folder).segmentation()
    known = {row.tobytes() for row in small}
    new = np.array([row.tobytes() not in known for row in large])
    split = segmentation._Split(large[new], large_names[new], small, small_names)
    for name, count, error in (("linear", None, 0.0429), ("Laplace", 50, 0.0381)):
        features = split.features(segmentation.KERNELS[name])
        assert split.error(features, count) == pytest.approx(error, abs=1e-4)


def test_the_last_components_of_the_polynomial_kernel_are_those_of_its_monomials(papers_folder):
    """scikit-learn's monomials, weighted by hand: their singular values say how many there are."""
    small, small_names, large, large_names = PaperData(papers_folder).segmentation()
    for rows, names, count in ((large, large_names, 113), (small, small_names, 106)):
        split = segmentation._Split(rows, names, small, small_names)
        train, test = split.features(segmentation.KERNELS["polynomial"])
        powers = PolynomialFeatures(2, include_bias=False).fit(rows)
        # 1 for x^2, root 2 for x and for x y.
        weights = np.where(powers.powers_.max(axis=1) == 2, 1.0, np.sqrt(2.0))
        columns = powers.transform(rows) * weights
        columns -= columns.mean(axis=0)
        variances = np.linalg.svd(columns, compute_uv=False) ** 2 / len(rows)
        assert np.count_nonzero(variances > 1e-4) == train.shape[1] == count
        covariance = train.T @ train / len(train)
        assert_allclose(covariance, np.eye(count), atol=1e-6)
        known = components(Polynomial(2, 1.0, 1.0), rows, 20)
        for part, given in ((train, rows), (test, small)):
            leading = known.project(given) / np.sqrt(known.variances)
            signs = np.sign((train[:, :20] * known.project(rows)).sum(axis=0))
            assert_allclose(part[:, :20] * signs, leading, atol=1e-5)


def test_the_estimated_width_is_that_of_every_pair():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[1] = X[0]
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    pairs = [squared[i, j] for i in range(40) for j in range(i) if squared[i, j] > 0.0]
    low, high = np.quantile(pairs, [0.1, 0.9])
    assert segmentation.estimated_sigma(X) == pytest.approx((1.0 / low + 1.0 / high) / 2.0)


def test_hoffmanns_sets_have_the_errors_of_another_implementation(papers_folder):
    claims, outcome = claims_of("novelty-sets", papers_folder)
    assert {claim.verdict for claim in claims.values()} == {"reproduced with a condition"}
    assert all(claim.origin != "the paper" for claim in claims.values())
    rows = {row[0]: row for row in outcome.tables[0].rows}
    with np.load(ORACLES / "hoffmann_train_reconstruction_errors.npz") as oracle:
        for name, row in rows.items():
            known = oracle[f"{name}|sigma{row[2]}|q{row[3]}"]
            assert row[4:6] == (f"{known.max():.4f}", f"{known.mean():.4f}")


def test_novelty_rates_are_those_of_another_implementation(papers_folder):
    claims, outcome = claims_of("novelty-rates", papers_folder)
    assert {claim.verdict for claim in claims.values()} == {"reproduced with a condition"}
    areas = {row[:2]: float(row[2]) for row in outcome.tables[0].rows}
    assert areas["digit 0", "one-class SVM, best of 12"] == pytest.approx(0.9875, abs=2e-4)
    assert areas["digit 0", "linear PCA, best"] == pytest.approx(0.9861, abs=2e-4)
    X, malignant = PaperData(papers_folder).cancer()
    X = X + np.random.default_rng(0).uniform(-0.05, 0.05, X.shape)
    train = X[~malignant][:200]
    far = (((X - train.mean(axis=0)) / train.std(axis=0)) ** 2).sum(axis=1)
    higher = far[malignant][:, None] > far[~malignant][200:]
    assert areas["cancer", "distance to the mean"] == pytest.approx(higher.mean(), abs=1e-4)
    for method in (novelty_rates.CANCER, novelty_rates.SCALED_BY_ALL):
        assert areas["cancer", method] == pytest.approx(0.9963, abs=novelty_rates.EQUAL)


@pytest.mark.parametrize("smooth", [False, True])
def test_errors_on_a_slice_of_the_digits_are_those_of_scikit_learn(papers_folder, smooth):
    digits = Digits(*FewDigits(papers_folder).usps())
    digits = digits.smoothed() if smooth else digits
    found = errors(2, digits, (16, 64), 300)
    assert_allclose(found, errors_by_scikit_learn(2, digits, (16, 64), 300))
    assert found[1] < found[0] < 50.0


def test_noise_and_linear_pca_of_the_digits_are_as_far_off_as_elsewhere(papers_folder):
    train, clean = denoising_digits.digits(PaperData(papers_folder))
    assert (train.shape, clean.shape) == ((3000, 256), (500, 256))
    linear, rng = components(Linear(), train, 64), np.random.default_rng(1)
    pca = PCA(64).fit(train)
    for kind, known in denoising_digits.NOISY.items():
        noisy = denoising_digits.spoil(kind, clean, rng)
        assert denoising_digits._distance(noisy, clean) == pytest.approx(known, rel=0.05)
        cleaned = denoising_digits._project(linear, noisy)
        assert_allclose(cleaned, pca.inverse_transform(pca.transform(noisy)), atol=1e-8)
        distance = denoising_digits._distance(cleaned, clean)
        known_at_64 = denoising_digits.LINEAR[kind][denoising_digits.LINEAR_COUNTS.index(64)]
        assert distance == pytest.approx(known_at_64, rel=denoising_digits.WITHIN)


def test_cleaned_digits_are_fixed_points(papers_folder):
    """At z the weighted mean of the training digits, weights g_i k(z, x_i), is z itself."""
    train, clean = (rows[::25] for rows in denoising_digits.digits(PaperData(papers_folder)))
    gamma = 2.0 / 256.0
    subspace = components(RBF(gamma), train, 16)
    noisy = denoising_digits.spoil("Gaussian", clean, np.random.default_rng(0))
    cleaned = denoising_digits._clean(subspace, noisy)
    weights = subspace.project(noisy) @ subspace.weights.T + 1.0 / len(train)
    distances = ((cleaned[:, None] - train) ** 2).sum(axis=2)
    terms = weights * np.exp(-gamma * distances)
    again = terms @ train / terms.sum(axis=1)[:, None]
    assert_allclose(again, cleaned, atol=1e-4)


def test_virtual_examples_are_judged_by_their_errors(papers_folder, monkeypatch):
    monkeypatch.setattr(usps, "COMPONENTS", 32)
    monkeypatch.setattr(usps, "FITTED_ROWS", 300)
    data = FewDigits(papers_folder)
    (claim,) = usps.run_virtual_examples(data).claims
    with_them, without = (float(words.split()[0]) for words in str(claim.ours).split("them, "))
    (known,) = errors_by_scikit_learn(3, Digits(*data.usps()).smoothed(), (32,), 300)
    assert without == pytest.approx(known, abs=0.005)
    told = str(claim.why).split("with C = 2 ")[1].split(" %")
    others = [float(words.split()[-1]) for words in told[:2]]
    better = with_them < min(without, others[1]) - 0.25 and others[0] < others[1] - 0.25
    assert claim.verdict == ("reproduced with a condition" if better else "not reproduced")


def test_smoothing_leaves_an_empty_image_empty():
    assert np.allclose(smoothed_digits(np.full((2, 256), -1.0)), -1.0)
    one = np.full((1, 256), -1.0)
    one[0, 8 * 16 + 8] = 1.0
    smooth = smoothed_digits(one)
    assert smooth.sum() == pytest.approx(one.sum())
    assert smooth.argmax() == 8 * 16 + 8


def test_a_moved_digit_comes_back():
    rng = np.random.default_rng(0)
    image = np.full((1, 16, 16), -1.0)
    image[0, 3:12, 4:13] = rng.uniform(-1.0, 1.0, (9, 9))
    rows = image.reshape(1, 256)
    for down, right in usps.SHIFTS:
        there = usps.moved(rows, down, right)
        assert np.array_equal(there.reshape(16, 16), np.roll(image[0], (down, right), axis=(0, 1)))
        assert np.array_equal(usps.moved(there, -down, -right), rows)


def test_errors_on_made_digits_are_those_of_scikit_learn():
    """Ten patterns of 256 pixels with noise, and more components asked for than there are."""
    rng = np.random.default_rng(0)
    patterns, labels = rng.choice([-1.0, 1.0], size=(10, 256)), np.arange(300) % 10
    rows = patterns[labels] + 2.0 * rng.normal(size=(300, 256))
    digits = Digits(rows[:200], labels[:200], rows[200:], labels[200:])
    found = errors(3, digits, (4, 16, 500), 100)
    assert_allclose(found, errors_by_scikit_learn(3, digits, (4, 16, 500), 100))
    assert np.isnan(found[2]) and not np.isnan(found[:2]).any()
