"""Digits are misclassified as often as by scikit-learn's kernel PCA and linear classifier."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA
from sklearn.svm import LinearSVC

from kpca_apps.papers.data import PaperData
from kpca_apps.papers.experiments import scholkopf
from kpca_apps.papers.experiments.scholkopf import Digits, errors
from kpca_apps.papers.measuring import smoothed_digits


def errors_by_scikit_learn(degree, digits, counts, fitted_rows) -> list[float]:
    """Return test errors in per cent; NaN beyond the available components."""
    most = fitted_rows - 1
    model = KernelPCA(
        min(max(counts), most), kernel="poly", degree=degree, gamma=1.0 / 256.0, coef0=0.0,
        eigen_solver="dense",
    ).fit(digits.train[:fitted_rows])  # fmt: skip
    train, test = model.transform(digits.train), model.transform(digits.test)
    scale = np.sqrt((train**2).sum(axis=1).mean())
    found = []
    for count in counts:
        if count > train.shape[1]:
            found.append(float("nan"))
            continue
        machine = LinearSVC(C=10.0, dual=False).fit(train[:, :count] / scale, digits.labels)
        found.append(
            100.0 * float(np.mean(machine.predict(test[:, :count] / scale) != digits.truth))
        )
    return found


@dataclass(frozen=True)
class FewDigits(PaperData):
    """USPS data cut to the first images of each file."""

    def usps(self):
        X, y, new, truth = super().usps()
        return X[:600], y[:600], new[:300], truth[:300]


@pytest.mark.parametrize("smooth", [False, True])
def test_errors_on_a_slice_of_the_digits_are_those_of_scikit_learn(papers_folder, smooth):
    digits = Digits(*FewDigits(papers_folder).usps())
    digits = digits.smoothed() if smooth else digits
    found = errors(2, digits, (16, 64), 300)
    assert_allclose(found, errors_by_scikit_learn(2, digits, (16, 64), 300))
    assert found[1] < found[0] < 50.0


def test_virtual_examples_are_judged_by_their_errors(papers_folder, monkeypatch):
    monkeypatch.setattr(scholkopf, "COMPONENTS", 32)
    monkeypatch.setattr(scholkopf, "FITTED_ROWS", 300)
    data = FewDigits(papers_folder)
    (claim,) = scholkopf.run_virtual_examples(data).claims
    with_them, without = (float(words.split()[0]) for words in str(claim.ours).split("them, "))
    (known,) = errors_by_scikit_learn(3, Digits(*data.usps()).smoothed(), (32,), 300)
    assert without == pytest.approx(known, abs=0.005)
    figures = str(claim.why).split("with C = 2 ")[1].split(" %")
    others = [float(words.split()[-1]) for words in figures[:2]]
    better = with_them < min(without, others[1]) - 0.25 and others[0] < others[1] - 0.25
    assert claim.verdict == ("reproduced with a condition" if better else "not reproduced")


def test_smoothing_leaves_an_empty_image_empty():
    assert np.allclose(smoothed_digits(np.full((2, 256), -1.0)), -1.0)
    example = np.full((1, 256), -1.0)
    example[0, 8 * 16 + 8] = 1.0
    smooth = smoothed_digits(example)
    assert smooth.sum() == pytest.approx(example.sum()) and smooth.argmax() == 8 * 16 + 8


def test_a_moved_digit_comes_back():
    rng = np.random.default_rng(0)
    image = np.full((1, 16, 16), -1.0)
    image[0, 3:12, 4:13] = rng.uniform(-1.0, 1.0, (9, 9))
    rows = image.reshape(1, 256)
    for down, right in scholkopf.SHIFTS:
        there = scholkopf.moved(rows, down, right)
        assert np.array_equal(there.reshape(16, 16), np.roll(image[0], (down, right), axis=(0, 1)))
        assert np.array_equal(scholkopf.moved(there, -down, -right), rows)


def test_errors_on_made_digits_are_those_of_scikit_learn():
    """The digits are ten noisy patterns of 256 pixels; more components are requested than exist."""
    rng = np.random.default_rng(0)
    patterns, labels = rng.choice([-1.0, 1.0], size=(10, 256)), np.arange(300) % 10
    rows = patterns[labels] + 2.0 * rng.normal(size=(300, 256))
    digits = Digits(rows[:200], labels[:200], rows[200:], labels[200:])
    found = errors(3, digits, (4, 16, 500), 100)
    assert_allclose(found, errors_by_scikit_learn(3, digits, (4, 16, 500), 100))
    assert np.isnan(found[2]) and not np.isnan(found[:2]).any()
