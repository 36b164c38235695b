"""Impulses are detected at their known positions."""

import numpy as np
import pytest
from scipy.ndimage import median_filter

from kpca_apps.denoise.noise.impulse import detect_impulses, fill_from_neighbours, median_of_nine

RNG = np.random.default_rng(0)
SMOOTH = (100 + 60 * np.sin(np.add.outer(np.arange(80) / 9, np.arange(80) / 13))).astype(np.float32)


def hit(share: float) -> np.ndarray:
    return RNG.random(SMOOTH.shape) < share


def test_finds_salt_and_pepper_and_nothing_else() -> None:
    for share in (0.02, 0.2, 0.4):
        places = hit(share)
        noisy = np.where(places, RNG.choice([0.0, 255.0], SMOOTH.shape), SMOOTH)
        found = detect_impulses(noisy.astype(np.float32))
        assert found[places].mean() > 0.99 and not found[~places].any()


def test_finds_most_random_values() -> None:
    places = hit(0.1)
    noisy = np.where(places, RNG.uniform(0, 255, SMOOTH.shape), SMOOTH).astype(np.float32)
    far = np.abs(noisy - SMOOTH) > 40
    found = detect_impulses(noisy)
    assert found[far].mean() > 0.9 and found[~places].mean() < 0.02


def test_other_noise_neither_passes_for_random_values_nor_hides_them() -> None:
    for sigma in (20.0, 25.0):
        places = hit(0.1)
        beside = SMOOTH + sigma * RNG.standard_normal(SMOOTH.shape)
        noisy = np.where(places, RNG.uniform(0, 255, SMOOTH.shape), beside).astype(np.float32)
        found = detect_impulses(noisy)
        assert found[places & (np.abs(noisy - SMOOTH) > 4 * sigma)].mean() > 0.88
        assert found[~places].mean() < 0.03


def test_a_white_area_is_not_an_impulse() -> None:
    plane = SMOOTH.copy()
    plane[20:40, 20:40] = 255
    assert detect_impulses(plane)[22:38, 22:38].sum() == 0


def test_a_line_one_pixel_wide_is_kept() -> None:
    plane = SMOOTH.copy()
    plane[:, 30] = 220
    plane[0, 0], plane[0, -1] = 0, 255
    assert not detect_impulses(plane)[:, 30].any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 2), (30, 41)])
def test_the_median_of_nine_is_that_of_scipy(shape: tuple[int, int]) -> None:
    plane = np.random.default_rng(0).normal(size=shape).round(1).astype(np.float32)
    np.testing.assert_array_equal(median_of_nine(plane), median_filter(plane, 3))


def test_filling_takes_the_median_of_the_good_pixels_around() -> None:
    plane = np.arange(25, dtype=np.float32).reshape(5, 5)
    bad = np.zeros((5, 5), dtype=bool)
    bad[2, 2] = bad[1, 1] = True
    filled = fill_from_neighbours(plane, bad)
    assert filled[2, 2] == np.median([7, 8, 11, 13, 16, 17, 18])
    assert filled[1, 1] == np.median([0, 1, 2, 5, 7, 10, 11])
    np.testing.assert_array_equal(filled[~bad], plane[~bad])


def test_a_pixel_without_good_neighbours_is_unchanged() -> None:
    plane = np.full((4, 4), 9.0, np.float32)
    np.testing.assert_array_equal(fill_from_neighbours(plane, np.ones((4, 4), bool)), plane)
