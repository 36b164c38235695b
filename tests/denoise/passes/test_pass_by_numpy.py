"""A denoising pass over an image gives the result of plain numpy code in double precision."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kpca_apps.denoise.passes.groups import RADIUS
from kpca_apps.denoise.passes.one_pass import Piece, patch_means, run_pass
from kpca_apps.denoise.passes.plan import Pass
from kpca_apps.engine.groups.operator import RIDGE_FACTOR

Image = NDArray[np.floating]
Places = NDArray[np.intp]
Group = tuple[Image, Image | Sequence[float], Image | Sequence[float]]
SETTINGS = Pass(size=5, group=20, tie=0.0, stride=4)
SHAPE = (31, 46)
WINDOW = ((0, SHAPE[0]), (0, SHAPE[1]))
GROUPS = pytest.mark.parametrize("group", [20, 30])
"""Fewer patches than a patch has pixels, and more."""
WHOLE = Piece(WINDOW, SHAPE, WINDOW)


def scene(planes: int = 2) -> tuple[Image, Image]:
    """Edges and stripes, clean and noisy."""
    y, x = np.indices(SHAPE)
    clean = 100 + 60 * (x > y) + 20 * np.sin(x * 0.8)
    rng = np.random.default_rng(2)
    noisy = np.stack([clean * (1 - 0.3 * i) for i in range(planes)])
    return noisy, noisy + 10 * rng.standard_normal(noisy.shape)


def references(length: int, size: int, stride: int) -> list[int]:
    return sorted({*range(0, length - size + 1, stride), length - size})


def np_pass(
    planes: Image, guide: Image, variance: Image, group: int = SETTINGS.group, **known: Image
) -> tuple[Image, Image]:
    """Run one pass over planes (c, h, w) of one page."""
    paged = {name: np.expand_dims(values, -3) for name, values in known.items()}
    settings = replace(SETTINGS, group=group)
    found = run_pass(planes[:, None], guide[None], variance[:, None], settings, WHOLE, **paged)
    return found[0][:, 0], found[1][:, 0]


def smoothed(
    guide: Image, estimate_of_group: Callable[[Places], Group], count: int = SETTINGS.group
) -> tuple[Image, Image]:
    """Return the averages of all estimates of each pixel, and of the estimates' leverages.

    The weight of a pixel of an estimated patch is the patch's weight times a Kaiser window.
    """
    size = SETTINGS.size
    window = np.outer(np.kaiser(size, 2.0), np.kaiser(size, 2.0))
    patches = sliding_window_view(guide.astype(float), (size, size))
    rows, columns = np.indices(patches.shape[:2])
    sums = np.zeros((3, *guide.shape))
    for y in references(guide.shape[0], size, SETTINGS.stride):
        for x in references(guide.shape[1], size, SETTINGS.stride):
            d = ((patches - patches[y, x]) ** 2).sum((2, 3))
            d[(abs(rows - y) > RADIUS) | (abs(columns - x) > RADIUS)] = np.inf
            d[y, x] = -1
            group = np.argsort(d, axis=None, kind="stable")[:count]
            places = np.column_stack(np.unravel_index(group, d.shape))
            estimates, weights, leverages = estimate_of_group(places)
            for (i, j), patch, w, lev in zip(places, estimates, weights, leverages, strict=True):
                here = (slice(i, i + size), slice(j, j + size))
                sums[0][here] += w * window * patch.reshape(size, size)
                sums[1][here] += w * window
                sums[2][here] += w * window * lev
    return sums[0] / sums[1], sums[2] / sums[1]


def group_of(plane: Image, places: Places) -> tuple[Image, Image]:
    size = SETTINGS.size
    rows = np.array([plane[i : i + size, j : j + size].ravel() for i, j in places], float)
    return rows - rows.mean(0), rows.mean(0)


@GROUPS
def test_a_projection_pass_is_truncated_svd_of_the_nearest_patches(group: int) -> None:
    noisy = scene()[1].astype(np.float32)
    variance = np.full(noisy.shape, 100.0, np.float32)
    variance[:, :, 20:] = 150.0
    estimate, leverage = np_pass(noisy, noisy[0], variance, group=group, guide_variance=variance[0])
    spread = patch_means(variance[:, None], (1, 5, 5))[:, 0]
    counts = set()
    for c, plane in enumerate(noisy):

        def projected(places: Places, c: int = c, plane: Image = plane) -> Group:
            z, mean = group_of(plane, places)
            k, n = z.shape
            level = spread[c][tuple(places.T)].mean()
            u, s, vt = np.linalg.svd(z, full_matrices=False)
            q = int((s**2 > 0.95 * level * (np.sqrt(k) + np.sqrt(n)) ** 2).sum())
            counts.add(q)
            return (u[:, :q] * s[:q]) @ vt[:q] + mean, [1 / (1 + q)] * k, [(1 + q) / k] * k

        expected, left = smoothed(noisy[0], projected, group)
        np.testing.assert_allclose(estimate[c], expected, atol=0.01)
        np.testing.assert_allclose(leverage[c], left, rtol=1e-4)
    assert counts >= {0, 1, 2}


@GROUPS
def test_a_soft_pass_is_kernel_ridge_regression_on_the_pilot(group: int) -> None:
    pilot, noisy = (planes.astype(np.float32) for planes in scene())
    pilot = pilot + np.float32(0.1) * noisy
    variance = np.array([100.0, 200.0], np.float32)
    estimate, leverage = np_pass(noisy, pilot[0], variance[:, None, None], group=group, pilot=pilot)
    for c, plane in enumerate(noisy):

        def regressed(places: Places, c: int = c, plane: Image = plane) -> Group:
            (x, _), (z, mean) = group_of(pilot[c], places), group_of(plane, places)
            k, n = x.shape
            theta = np.linalg.solve(x @ x.T + RIDGE_FACTOR * n * variance[c] * np.eye(k), x @ x.T)
            own = np.diag(theta) + 1 / k
            return theta @ z + mean, 1 / own, own

        expected, left = smoothed(pilot[0], regressed, group)
        np.testing.assert_allclose(estimate[c], expected, atol=0.02)
        np.testing.assert_allclose(leverage[c], left, atol=2e-4)


def test_leverage_is_the_derivative_of_an_estimate_by_its_pixel() -> None:
    """With the pilot (first estimate) fixed, estimates are linear: finite differences are exact."""
    pilot, noisy = (planes.astype(np.float32) for planes in scene(1))
    variance = np.full((1, 1, 1), 100.0, np.float32)
    pilot += np.float32(0.1) * noisy

    def smooth(planes: Image) -> tuple[Image, Image]:
        return np_pass(planes, pilot[0], variance, pilot=pilot)

    before, leverage = smooth(noisy)
    for y, x in [(0, 0), (15, 14), (15, 16), (20, 40), (30, 45)]:
        moved = noisy.copy()
        moved[0, y, x] += 64
        slope = (smooth(moved)[0][0, y, x] - before[0, y, x]) / 64
        assert leverage[0, y, x] == pytest.approx(slope, abs=1e-4)
