"""A row's errors by block of features equal those of regressions fitted without the row."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from kpca_apps.engine.blocks import MOST_FREEDOM, MOST_LEVERAGE, RIDGE, BlockPCA, least_ridge
from kpca_apps.engine.exact import fit_exact
from kpca_apps.engine.kernels import Linear
from kpca_apps.engine.nystroem import CovarianceSums

# Number of rows, and the number of features of each block.
TABLES = {
    "single features": (60, (1, 1, 1, 1, 1)),
    "blocks": (60, (3, 1, 4, 3)),
    "fewer rows than features": (30, (3, 1) * 12),
    "as many": (24, (3, 3) * 4),
}


def table_of(name):
    """Correlated features (n, p) of any scale and offset, and their block numbers."""
    n, sizes = TABLES[name]
    p, rng = sum(sizes), np.random.default_rng(len(name))
    features = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) * 10.0 ** rng.integers(-3, 4, p)
    features += 100.0 * rng.normal(size=p)
    # Block numbers have gaps, as columns may have no features.
    return features, np.repeat(2 * np.arange(len(sizes)), sizes)


def regressions(features, block, fitted, rows, ridge):
    """Residuals of ridge regressions of each block on all other blocks.

    As in the closed form, the standard deviations of the features and the penalty (ridge times n)
    are those of all rows, and the constant is not penalised.
    """
    n = len(features)
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    Z, z = (features[fitted] - mean) / deviation, (rows - mean) / deviation
    residuals = np.empty_like(z)
    for g in np.unique(block):
        own = block == g
        model = Ridge(alpha=n * ridge, solver="svd").fit(Z[:, ~own], Z[:, own])
        predicted = model.predict(z[:, ~own]).reshape(len(z), -1)
        residuals[:, own] = (z[:, own] - predicted) * deviation[own]
    return residuals


def leverages(features, block, ridge):
    """Diagonals (n, p) of the hat matrices of each block's regression."""
    n = len(features)
    Z = (features - features.mean(axis=0)) / features.std(axis=0)
    found = np.empty_like(Z)
    for g in np.unique(block):
        others = Z[:, block != g]
        penalised = others.T @ others + n * ridge * np.eye(others.shape[1])
        hat = others @ np.linalg.solve(penalised, others.T) + 1.0 / n
        found[:, block == g] = np.diag(hat)[:, None]
    return found


def residuals(model, features, fitted=None):
    """The model's residuals (n, p) of rows."""
    return model.errors(features.T, fitted).residual.T


def explicit_errors(features, block, fitted, row, ridge):
    """Errors of a whole row and of each block, from an inverse covariance matrix.

    As in the closed form, the deviations and the penalty (ridge times n) are those of all rows.
    """
    n, mean, deviation = len(features), features.mean(axis=0), features.std(axis=0)
    Z, z = (features[fitted] - mean) / deviation, (row - mean) / deviation
    centre = Z.mean(axis=0)
    scatter = (Z - centre).T @ (Z - centre)
    P = np.linalg.inv(scatter + n * ridge * np.eye(len(z)))
    q = P @ (z - centre)
    of_blocks = [
        q[own] @ np.linalg.solve(P[np.ix_(own, own)], q[own])
        for own in (block == b for b in np.unique(block))
    ]
    return n * ridge * ((z - centre) @ q), n * ridge * np.array(of_blocks)


def largest_error(found, expected, features):
    return (np.abs(found - expected) / features.std(axis=0)).max()


@pytest.mark.parametrize("name", TABLES)
def test_residuals_of_new_rows_are_those_of_one_regression_a_block(name):
    features, block = table_of(name)
    new = features[:9] * 1.5 - 3.0
    model = BlockPCA.fit(features, block)
    found, every = residuals(model, new), np.ones(len(features), dtype=bool)
    expected = regressions(features, block, every, new, model.ridge)
    assert largest_error(found, expected, features) < 1e-8


@pytest.mark.parametrize("name", TABLES)
def test_residuals_of_learned_rows_are_those_of_regressions_without_them(name):
    """Residuals are compared where the leverage is below its cap; above it they are not exact."""
    features, block = table_of(name)
    n = len(features)
    model = BlockPCA.fit(features, block)
    found = residuals(model, features, np.ones(n, dtype=bool))
    brute = np.empty_like(found)
    for i in range(n):
        brute[i] = regressions(features, block, np.arange(n) != i, features[[i]], model.ridge)[0]
    exact = leverages(features, block, model.ridge) < MOST_LEVERAGE
    assert exact.mean() > 0.75
    assert largest_error(np.where(exact, found, brute), brute, features) < 1e-8
    # A row left out of the fit is farther from its prediction than a fitted one.
    within = residuals(model, features)
    assert (np.abs(found) >= np.abs(within)).all()


def test_rows_that_were_not_learned_from_keep_their_plain_residual():
    features, block = table_of("blocks")
    learned = np.arange(len(features)) % 3 > 0
    model = BlockPCA.fit(features[learned], block)
    found, plain = residuals(model, features, learned), residuals(model, features)
    np.testing.assert_allclose(found[~learned], plain[~learned], rtol=1e-9, atol=1e-9)
    assert (np.abs(found[learned]) > np.abs(plain[learned])).all()


def test_features_that_repeat_each_other_or_never_vary_have_finite_residuals():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1))
    features = np.hstack([x, x, np.full((50, 1), 7.0), rng.normal(size=(50, 1))])
    block, every = np.arange(4), np.ones(50, dtype=bool)
    model = BlockPCA.fit(features, block)
    errors = residuals(model, features, every)
    assert np.isfinite(errors).all() and np.abs(errors[:, 0]).max() < 0.2 * np.abs(x).max()
    np.testing.assert_allclose(errors[:, 2], 0.0, atol=1e-12)
    assert np.isfinite(residuals(model, features * 1e6)).all()


@pytest.mark.parametrize("name", TABLES)
def test_errors_are_those_of_an_explicit_covariance_with_and_without_the_row(name):
    features, block = table_of(name)
    n = len(features)
    model, every = BlockPCA.fit(features, block), np.ones(n, dtype=bool)
    new = features[:9] * 1.5 - 3.0
    of_new, of_own = model.errors(new.T), model.errors(features.T, every)
    exact = leverages(features, block, model.ridge) < MOST_LEVERAGE
    exact = exact[:, np.r_[True, np.diff(block) > 0]].T
    for i in range(9):
        whole, blocks = explicit_errors(features, block, every, new[i], model.ridge)
        assert of_new.whole[i] == pytest.approx(whole, rel=1e-10)
        np.testing.assert_allclose(of_new.blocks[:, i], blocks, rtol=1e-10)
    for i in range(n):
        others = np.arange(n) != i
        whole, blocks = explicit_errors(features, block, others, features[i], model.ridge)
        if exact[:, i].all():
            assert of_own.whole[i] == pytest.approx(whole, rel=1e-9)
            np.testing.assert_allclose(of_own.blocks[:, i], blocks, rtol=1e-9, atol=1e-12)


def test_the_whole_error_is_that_of_soft_kernel_pca_of_the_sum_of_kernels():
    """The kernel is the inner product of standardised features: a sum of one kernel per block."""
    features, block = table_of("blocks")
    model = BlockPCA.fit(features, block)
    Z = (features - model.mean) / model.deviation
    subspace = fit_exact(Linear(), Z, rng=np.random.default_rng(0)).with_soft_cut(model.ridge)
    found = model.errors(features.T).whole
    np.testing.assert_allclose(found, subspace.reconstruction_error(Z), rtol=1e-9, atol=1e-9)


def test_sums_over_parts_of_a_table_give_the_fit_of_the_whole():
    features, block = table_of("blocks")
    shift = features[:5].mean(axis=0)
    parts = [CovarianceSums.of_values(part.copy(), shift) for part in np.array_split(features, 3)]
    merged = BlockPCA.of_sums(parts[0] + parts[1] + parts[2], block)
    whole = BlockPCA.fit(features, block)
    found, expected = (of.errors(features.T) for of in (merged, whole))
    np.testing.assert_allclose(found.whole, expected.whole, rtol=1e-9)
    np.testing.assert_allclose(found.blocks, expected.blocks, rtol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_a_new_row_gets_the_same_bits_in_any_batch(name):
    features, block = table_of(name)
    model = BlockPCA.fit(features, block)
    rng = np.random.default_rng(1)
    rows = features[rng.integers(0, len(features), 500)] + rng.normal(size=(500, len(block)))
    order, together = rng.permutation(500), model.errors(rows.T)
    for part in (order, *(np.arange(*ends) for ends in ((0, 1), (7, 8), (190, 195), (300, 500)))):
        for found, expected in zip(model.errors(rows[part].T), together, strict=True):
            np.testing.assert_array_equal(found, expected[..., part])


def test_few_rows_are_predicted_with_bounded_freedom() -> None:
    rng = np.random.default_rng(9)
    signal = rng.normal(size=(120, 3)) @ rng.normal(size=(3, 200))
    features = signal + 0.5 * rng.normal(size=signal.shape)
    model = BlockPCA.fit(features, np.arange(200))
    s = np.linalg.eigvalsh(np.corrcoef(features.T))
    s = s[s > 1e-9 * s.max()]
    assert (s / (s + model.ridge)).sum() == pytest.approx(MOST_FREEDOM * 120)
    # The model keeps the 3 relevant components and a few others, fewer than there are rows.
    model = model.without_small()
    assert 3 < len(model.factor) < 60
    new = signal + 0.5 * rng.normal(size=signal.shape)
    new[7, 11] += 6.0
    errors = np.abs(residuals(model, new))
    assert np.unravel_index(errors.argmax(), errors.shape) == (7, 11)
    # Residuals of new rows reflect the noise, not the signal of standard deviation 1.7.
    assert np.median(errors) / 0.6745 < 0.75


def test_the_least_ridge_leaves_the_requested_freedom() -> None:
    s = np.geomspace(100, 0.01, 50)
    assert least_ridge(s, 60.0) == RIDGE
    assert (s / (s + least_ridge(s, 10.0))).sum() == pytest.approx(10.0)
    assert least_ridge(np.full(4, 1e-3), 0.001) == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize(("n", "p"), [(150, 400), (300, 150), (300, 600)])
def test_rows_left_out_of_a_wide_table_are_as_far_off_as_new_ones(n: int, p: int) -> None:
    """Residuals of left-out rows set the limits for new rows, so both must be alike."""
    rng = np.random.default_rng(10)
    loadings = rng.normal(size=(8, p))

    def draw(n_rows: int) -> np.ndarray:
        return rng.normal(size=(n_rows, 8)) @ loadings + rng.normal(size=(n_rows, p))

    features = draw(n)
    model = BlockPCA.fit(features, np.arange(p))
    errors = residuals(model, features, np.ones(n, dtype=bool))
    new = residuals(model.without_small(), draw(1000))
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.sqrt(np.mean(new**2)), rel=0.03)
