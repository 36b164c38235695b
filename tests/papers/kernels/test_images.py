from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.ndimage import gaussian_filter

from kpca_apps.engine.kernels import RBF, Linear, Polynomial
from kpca_apps.papers.kernels.images import ImageIntensity, OverRegions, SmoothedImage
from tests.engine.examples import ORACLES


def images(n, height, width, seed=0):
    return np.random.default_rng(seed).uniform(0.0, 1.0, size=(n, height * width))


class TestImageIntensity:
    @pytest.mark.parametrize("degree", [1, 3])
    def test_at_its_own_resolution_it_is_the_product_of_pixels(self, degree):
        X = images(6, 5, 5)
        kernel = ImageIntensity(Polynomial(degree), 5, 5, 5)
        assert_allclose(kernel(X), (X @ X.T) ** degree, rtol=1e-12)

    def test_at_half_the_resolution_it_sees_means_of_four_pixels(self):
        X = images(6, 8, 8)
        means = X.reshape(6, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(6, -1)
        assert_allclose(ImageIntensity(Linear(), 8, 8, 4)(X), 4 * means @ means.T, rtol=1e-12)

    def test_at_a_fine_resolution_it_is_the_integral(self):
        """One row of pixels: the integral of the product of two broken lines, by quadrature."""
        X = images(2, 1, 6)
        centres = (np.arange(6) + 0.5) / 6
        integral, _ = quad(
            lambda u: np.interp(u, centres, X[0]) * np.interp(u, centres, X[1]),
            0.0,
            1.0,
            points=list(centres),
        )
        errors = [
            abs(ImageIntensity(Linear(), 1, 6, q)(X)[0, 1] / (6 * integral) - 1.0) for q in (12, 24)
        ]
        assert errors[1] < 1e-2
        assert errors[0] == pytest.approx(4.0 * errors[1], rel=0.05)

    def test_a_flat_image_weighs_the_same_at_every_resolution(self):
        X = np.full((1, 12), 3.0)
        values = [ImageIntensity(Linear(), 3, 4, q)(X)[0, 0] for q in (1, 2, 5, 13)]
        assert_allclose(values, 12 * 9.0, rtol=1e-12)

    def test_a_signal_is_an_image_of_equal_lines(self):
        """Along a side of one pixel one point tells as much as q: no columns are made for more."""
        X = images(4, 1, 7)
        signal = ImageIntensity(Linear(), 1, 7, 12)
        assert signal.map_rows(X).shape == (4, 12)
        repeated = np.tile(X, 7)
        assert_allclose(signal(X), ImageIntensity(Linear(), 7, 7, 12)(repeated) / 7, rtol=1e-12)

    @pytest.mark.parametrize(
        ("height", "width", "q"), [(4, 4, 17), (4, 4, 10**9), (2, 32, 33), (1, 6, 25)]
    )
    def test_refuses_points_that_add_nothing(self, height, width, q):
        with pytest.raises(ValueError, match="resolution must be at most"):
            ImageIntensity(Linear(), height, width, q)


class TestSmoothedImage:
    def test_is_the_product_through_a_gaussian_of_the_distance(self):
        X, sigma = images(5, 3, 4), 0.9
        place = np.array([(i, j) for i in range(3) for j in range(4)])
        squared = ((place[:, None] - place) ** 2).sum(axis=2)
        mass = sum(np.exp(-0.5 * (k / sigma) ** 2) for k in range(-50, 51)) ** 2
        expected = X @ (np.exp(-0.5 * squared / sigma**2) / mass) @ X.T
        assert_allclose(SmoothedImage(Linear(), 3, 4, sigma)(X), expected, rtol=1e-10)

    def test_away_from_the_border_it_compares_filtered_images(self):
        inner = np.zeros((4, 46, 46))
        inner[:, 20:26, 20:26] = images(4, 6, 6).reshape(4, 6, 6)
        filtered = np.stack([gaussian_filter(image, 2.0, truncate=8.0) for image in inner])
        kernel = SmoothedImage(Polynomial(2), 46, 46, 2.0 * np.sqrt(2.0))
        flat = filtered.reshape(4, -1)
        assert_allclose(kernel(inner.reshape(4, -1)), (flat @ flat.T) ** 2, rtol=1e-6)

    @pytest.mark.parametrize("sigma", [3.9999, 4.0])
    def test_weights_of_an_inner_pixel_sum_to_one(self, sigma):
        """Both ways to find the mass: as a sum, and as an integral."""
        pixel = np.zeros((1, 101))
        pixel[0, 50] = 1.0
        total = SmoothedImage(Linear(), 1, 101, sigma)(pixel, np.ones((1, 101)))[0, 0]
        assert total == pytest.approx(1.0, rel=1e-9)

    def test_without_smoothing_it_is_the_kernel_inside(self):
        X = images(5, 3, 3)
        assert_allclose(SmoothedImage(RBF(0.4), 3, 3, 0.05)(X), RBF(0.4)(X), rtol=1e-10)

    @pytest.mark.parametrize("sigma", [1e-300, 5e-324])
    def test_hardly_any_smoothing_is_none(self, sigma):
        X = images(5, 3, 3)
        assert_allclose(SmoothedImage(Linear(), 3, 3, sigma)(X), X @ X.T, rtol=1e-14)


class TestOverRegions:
    def test_agrees_with_the_oracle(self):
        oracle = json.loads((ORACLES / "misc_exact.json").read_text(encoding="utf-8"))
        first, second = np.arange(16.0) / 8.0 - 1.0, np.cos(np.arange(16.0))
        for degree, expected in oracle["local_kernel_2x2blocks"].items():
            kernel = OverRegions(Polynomial(int(degree)), 4, 4, 2, 2)
            found = kernel(first[None], second[None])[0, 0]
            assert found == pytest.approx(expected, rel=1e-13)

    def test_of_first_degree_side_by_side_is_the_global_product(self):
        X = images(5, 4, 6)
        assert_allclose(OverRegions(Linear(), 4, 6, 2, 2)(X), X @ X.T, rtol=1e-12)

    def test_overlapping_regions_are_those_of_a_sliding_window(self):
        X = images(2, 4, 5)
        windows = np.lib.stride_tricks.sliding_window_view(X.reshape(2, 4, 5), (3, 3), axis=(1, 2))
        windows = windows.reshape(2, -1, 9)
        expected = sum(np.dot(a, b) ** 3 for a, b in zip(*windows, strict=True))
        assert OverRegions(Polynomial(3), 4, 5, 3, 1)(X)[0, 1] == pytest.approx(expected)

    @pytest.mark.parametrize(("size", "step"), [(5, 5), (3, 2), (2, 3), (4, 3)])
    def test_refuses_regions_that_leave_pixels_out(self, size, step):
        with pytest.raises(ValueError, match="do not cover images of 4 x 6"):
            OverRegions(Linear(), 4, 6, size, step)


@pytest.mark.parametrize(
    "kernel",
    [
        ImageIntensity(Linear(), 2, 3, 4),
        SmoothedImage(Linear(), 2, 3, 1.0),
        OverRegions(Linear(), 2, 3, 1, 1),
    ],
)
def test_rows_must_hold_the_pixels_of_one_image(kernel):
    with pytest.raises(ValueError, match="have 6 pixels, but the rows have 5"):
        kernel(np.zeros((2, 5)))
    with pytest.raises(ValueError):
        kernel.diagonal(np.zeros((2, 5)))


def test_what_is_inside_must_be_a_kernel():
    for make in (
        lambda: ImageIntensity("rbf", 2, 2, 2),
        lambda: SmoothedImage("rbf", 2, 2, 1.0),
        lambda: OverRegions("rbf", 2, 2, 1, 1),
    ):
        with pytest.raises(ValueError):
            make()


@pytest.mark.parametrize(("height", "width"), [(10**8, 10**8), (15_000, 1), (1, 10**400)])
def test_a_side_is_bounded_before_anything_is_made(height, width):
    for make in (ImageIntensity, SmoothedImage):
        with pytest.raises(ValueError, match="height and width must be at most 2048"):
            make(Linear(), height, width, 1)


def test_columns_are_counted_before_the_sides_are_mapped(monkeypatch):
    monkeypatch.setattr(np.linalg, "eigh", None)
    with pytest.raises(ValueError, match="1999 pixels"):
        SmoothedImage(Linear(), 1, 1999, 1.0)(np.zeros((2, 16)))


def test_huge_pixels_are_no_warning_of_their_own():
    mapped = ImageIntensity(Linear(), 4, 4, 1).map_rows(np.full((1, 16), 1e308))
    assert not np.isfinite(mapped).any()
