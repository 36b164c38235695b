"""Image kernels, iterated kernels and their feature maps equal their definitions."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.linalg import eigvalsh
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.ndimage import gaussian_filter

from kpca_apps.engine.kernels import RBF, Polynomial, Sigmoid
from kpca_apps.papers.kernels import (
    iterated,
    iterated_gaussian,
    mercer_check,
    monomials,
    ordered_products,
    over_regions,
    sampled,
    smoothed,
)
from tests.engine.examples import KERNELS, exact, normal_rows
from tests.papers.comparing import clouds, misc_oracle


def images(n, height, width, seed=0):
    return np.random.default_rng(seed).uniform(0.0, 1.0, size=(n, height * width))


def test_at_half_the_resolution_points_are_means_of_four_pixels():
    X = images(6, 8, 8)
    assert_allclose(sampled(X, 8, 8, 8), X, rtol=1e-12)
    means = X.reshape(6, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(6, -1)
    assert_allclose(sampled(X, 8, 8, 4), 2.0 * means, rtol=1e-12)


def test_at_a_fine_resolution_the_product_is_the_integral():
    """For one row of pixels, the kernel integrates a product of piecewise linear functions."""
    X = images(2, 1, 6)
    centres = (np.arange(6) + 0.5) / 6
    integral, _ = quad(
        lambda u: np.interp(u, centres, X[0]) * np.interp(u, centres, X[1]),
        0.0,
        1.0,
        points=list(centres),
    )
    errors = [abs(np.dot(*sampled(X, 1, 6, q)) / (6 * integral) - 1.0) for q in (12, 24)]
    assert errors[1] < 1e-2 and errors[0] == pytest.approx(4.0 * errors[1], rel=0.05)


def test_smoothed_images_are_compared_through_a_gaussian_of_the_distance():
    X, sigma = images(5, 3, 4), 0.9
    place = np.array([(i, j) for i in range(3) for j in range(4)])
    squared = ((place[:, None] - place) ** 2).sum(axis=2)
    mass = sum(np.exp(-0.5 * (k / sigma) ** 2) for k in range(-50, 51)) ** 2
    expected = X @ (np.exp(-0.5 * squared / sigma**2) / mass) @ X.T
    S = smoothed(X, 3, 4, sigma)
    assert_allclose(S @ S.T, expected, rtol=1e-10)
    # Away from the border, the kernel is the dot product of images filtered with half its variance.
    inner = np.zeros((4, 46, 46))
    inner[:, 20:26, 20:26] = images(4, 6, 6).reshape(4, 6, 6)
    flat = np.stack([gaussian_filter(image, 2.0, truncate=8.0) for image in inner]).reshape(4, -1)
    S = smoothed(inner.reshape(4, -1), 46, 46, 2.0 * np.sqrt(2.0))
    assert_allclose(S @ S.T, flat @ flat.T, rtol=1e-6)


def test_sums_over_regions_are_those_of_the_oracle_and_of_a_sliding_window():
    first, second = np.arange(16.0) / 8.0 - 1.0, np.cos(np.arange(16.0))
    for degree, expected in misc_oracle()["local_kernel_2x2blocks"].items():
        kernel, rows = Polynomial(int(degree)), (first[None], second[None])
        found = over_regions(kernel, *rows, 4, 4, size=2, step=2)
        assert found[0, 0] == pytest.approx(expected, rel=1e-13)
    X = images(2, 4, 5)
    windows = np.lib.stride_tricks.sliding_window_view(X.reshape(2, 4, 5), (3, 3), axis=(1, 2))
    expected = sum(np.dot(a, b) ** 3 for a, b in zip(*windows.reshape(2, -1, 9), strict=True))
    found = over_regions(Polynomial(3), X[:1], X[1:], 4, 5, size=3, step=1)
    assert found[0, 0] == pytest.approx(expected)


def test_iterated_kernels_are_means_over_the_points_and_the_oracles_integral():
    X, Z, points = normal_rows(6), normal_rows(4, seed=1), normal_rows(5, seed=2)
    kernel = Sigmoid(0.2, 0.3)
    expected = sum(kernel(X, p[None]) @ kernel(p[None], Z) for p in points) / 5
    assert_allclose(iterated(kernel, points, X, Z), expected, rtol=1e-12)
    # As the integrand decays, its mean over a grid times the grid's length is its integral.
    oracle = misc_oracle()["iterated_rbf_1d"]
    x, grid = np.array(oracle["x"])[:, None], np.linspace(-12.0, 14.0, 400, endpoint=False)
    gram = 26.0 * iterated(RBF(oracle["g"]), grid[:, None], x, x)
    assert_allclose(gram, oracle["K2"], rtol=1e-12)
    assert_allclose(iterated_gaussian(oracle["g"], 1)(x), oracle["K2"], rtol=1e-14)


def test_the_factor_of_the_iterated_gaussian_scales_projections_alone():
    X, kernel = clouds(30), iterated_gaussian(0.8, 2)
    expected = np.sqrt(kernel.factor) * exact(RBF(0.4), X, 3).project(X)
    assert_allclose(exact(kernel, X, 3).project(X), expected, rtol=0, atol=1e-12)


X = np.random.default_rng(0).normal(size=(7, 3))


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_inner_products_are_the_kernel(degree):
    gram = Polynomial(degree)(X)
    for features in (ordered_products(X, degree), monomials(X, degree)):
        assert_allclose(features @ features.T, gram, rtol=1e-11, atol=1e-12)


def test_coefficients_are_those_of_the_oracle():
    """For a row of ones, the value of a monomial is its coefficient in the feature map."""
    oracle = misc_oracle()["poly_hom_d3_coeffs"]
    columns = list(combinations_with_replacement(range(3), 3))
    found = dict(zip(columns, monomials(np.ones((1, 3)), 3)[0], strict=True))
    places = {"x1^3": (0, 0, 0), "x1^2 x2": (0, 0, 1), "x1 x2 x3": (0, 1, 2)}
    assert set(places) == set(oracle)
    for name, place in places.items():
        squared = str(oracle[name]).removeprefix("sqrt(").removesuffix(")")
        assert found[place] ** 2 == pytest.approx(float(squared), rel=1e-14)


def test_a_square_times_another_factor_has_root_three():
    """In degree 3, x1^2 x2 has the coefficient sqrt(3); B.1 of the 1996 report states sqrt(2)."""
    row = np.array([[1.0, 1.0, 0.0]])
    # x1^3, x1^2 x2, x1 x2^2, x2^3 of (1, 1, 0); every monomial with x3 is 0.
    found = monomials(row, 3)[0]
    assert_allclose(np.sort(found[found > 0.0]), [1.0, 1.0, np.sqrt(3.0), np.sqrt(3.0)])
    assert monomials(np.ones((1, 3)), 3).max() == pytest.approx(np.sqrt(6.0))


def test_eigenvalues_are_those_of_mercers_series():
    """Under a standard normal measure, the eigenvalues of exp(-g (x - y)^2) are known.

    Rasmussen and Williams (2006), Gaussian processes for machine learning, eq. 4.40.
    """
    g, a = 0.8, 0.25
    places, masses = np.polynomial.hermite_e.hermegauss(80)
    root = np.sqrt(masses / masses.sum())
    K = root[:, None] * RBF(g)(places[:, None]) * root
    size = a + g + np.sqrt(a * a + 2.0 * a * g)
    expected = np.sqrt(2.0 * a / size) * (g / size) ** np.arange(12)
    assert_allclose(mercer_check(K).eigenvalues[::-1][:12], expected, rtol=1e-8)


def test_an_indefinite_kernel_is_refuted_by_its_smallest_eigenvalue():
    K = KERNELS["sigmoid"](normal_rows(30))
    check = mercer_check(K)
    assert check.describe().startswith(f"indefinite: smallest eigenvalue {eigvalsh(K)[0]:.4g}")


def test_the_negative_share_is_that_of_the_moduli():
    assert mercer_check(np.diag([3.0, -1.0])).negative_share == pytest.approx(0.25)
