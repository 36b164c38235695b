"""What holds for PCA holds in feature space: against other directions of an explicit map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kpca_apps.engine.kernel_pca import KernelPCA
from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from tests.engine.examples import exact, normal_rows

Q = 2


def images(X):
    """Return the images of (x.y + 1)^2 of rows of the plane, less their mean."""
    a, b = X.T
    root = np.sqrt(2.0)
    F = np.column_stack([root * a, root * b, a**2, b**2, root * a * b])
    return F - F.mean(axis=0)


def entropy(variances):
    share = variances / variances.sum()
    return float(-(share * np.log(share)).sum())


@pytest.fixture(scope="module")
def rows():
    return normal_rows(40, 2) * [1.0, 0.4] + [0.5, 0.0]


@pytest.fixture(scope="module")
def frames(rows):
    """Orthonormal bases of feature space: half of them anywhere, half close to the components."""
    rng = np.random.default_rng(1)
    F = images(rows)
    components = np.linalg.eigh(F.T @ F)[1][:, ::-1]
    drawn = [rng.normal(size=(5, 5)) for _ in range(100)]
    drawn += [components + 0.02 * B for B in drawn]
    return [np.linalg.qr(B)[0] for B in drawn]


def test_no_other_directions_carry_more_variance_or_leave_less_error(rows, frames):
    F, subspace = images(rows), exact(Polynomial(2, 1.0, 1.0), rows, n_components=Q)
    error = subspace.reconstruction_error(rows).mean()
    for frame in frames:
        along = F @ frame[:, :Q]
        assert (along**2).sum() / len(rows) < subspace.variances.sum()
        assert ((F - along @ frame[:, :Q].T) ** 2).sum() / len(rows) > error


def test_entropy_is_least_and_volume_largest(rows, frames):
    """Volume is mutual information with the inputs where images are Gaussian, and only there."""
    F, variances = images(rows), exact(Polynomial(2, 1.0, 1.0), rows).variances
    assert len(variances) == 5
    for frame in frames:
        C = frame.T @ F.T @ F @ frame / len(rows)
        assert entropy(np.diag(C)) > entropy(variances)
        assert np.linalg.slogdet(C[:Q, :Q])[1] < np.log(variances[:Q]).sum()


def test_variances_rank_components_and_sum_to_the_total(rows):
    subspace = exact(RBF(0.5), rows)
    about_mean = exact(RBF(0.5), rows, n_components=0).reconstruction_error(rows).mean()
    assert (np.diff(subspace.variances) < 0.0).all()
    assert subspace.variances.sum() == pytest.approx(about_mean, rel=1e-12)


def test_all_components_reconstruct_the_images_completely(rows):
    assert_allclose(exact(RBF(5.0), rows).reconstruction_error(rows), 0.0, atol=1e-12)


def test_components_may_outnumber_columns_by_far():
    """n - 1 of them about the mean, n about the origin; PCA of the same rows has two."""
    X = 10.0 * normal_rows(25, 2)
    assert exact(RBF(20.0), X).n_components == 24
    assert exact(RBF(20.0), X, center=False).n_components == 25
    assert exact(Linear(), X).n_components == 2


def test_standardised_columns_make_components_that_no_unit_changes(rows):
    """Of the linear kernel they are those of the correlation matrix."""
    units = np.array([1000.0, 0.01])
    linear = make_pipeline(StandardScaler(), KernelPCA(kernel="linear")).fit(rows)
    correlations = np.linalg.eigvalsh(np.corrcoef(rows.T))[::-1]
    assert_allclose(linear[-1].subspace_.variances, correlations, rtol=1e-12)
    rbf = make_pipeline(StandardScaler(), KernelPCA(3, gamma=0.5))
    expected = rbf.fit_transform(rows)
    assert_allclose(rbf.fit_transform(rows * units), expected, rtol=0, atol=1e-10)
