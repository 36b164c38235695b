"""How the data range of an image is determined."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from kpca_apps import denoise_kpca, denoise_with_info
from kpca_apps.denoise.denoiser import clean_image
from kpca_apps.denoise.dictionary.pixels import unit_of
from kpca_apps.denoise.image import dtype_range, used_range, value_range
from kpca_apps.denoise.options import Options


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (np.array([[False, True]]), (1.0, 0.0)),
        (np.array([[3, 7]], np.uint8), (255.0, 0.0)),
        (np.array([[3, 7]], np.uint16), (65535.0, 0.0)),
        # The range of signed integers is measured, as scans use a small part of the type's range.
        (np.array([[-1000, 700]], np.int16), (1700.0, -1000.0)),
        (np.array([[-3, 7]], np.int32), (10.0, -3.0)),
        (np.array([[0.25, 0.5]]), (1.0, 0.0)),
        (np.array([[0.0, 2.5e-7]]), (2.5e-7, 0.0)),
        (np.array([[0.5, 0.5625]]), (0.0625, 0.5)),
        (np.array([[-0.25, 0.5]]), (0.75, -0.25)),
        (np.array([[4.0, 4.0]]), (1.0, 4.0)),
    ],
)
def test_range_of_values(pixels: np.ndarray, expected: tuple[float, float]) -> None:
    assert value_range(pixels) == expected
    picture = clean_image(pixels, Options(strength=0.0)).picture
    assert (picture.data_range, picture.lowest) == expected
    assert unit_of(pixels, None) == (dtype_range(pixels.dtype) or 1.0)
    assert value_range(pixels, 500.0) == (500.0, expected[1])


def scene(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a scene in 0..1 with edges, and the scene with noise of deviation 0.05."""
    rng = np.random.default_rng(seed)
    clean = gaussian_filter(rng.standard_normal((96, 96)), 9)
    clean = (clean - clean.min()) / np.ptp(clean)
    clean[20:50, 30:70] *= 0.4
    return clean, clean + 0.05 * rng.standard_normal(clean.shape)


@pytest.mark.parametrize(
    ("unit", "offset"),
    [(2.5e-7, 0.0), (1e-5, 0.0), (1e-9, 1e-6), (1e-30, 0.0), (0.01, 0.0), (1e5, -1e4), (3e12, 0)],
)
@pytest.mark.parametrize("given", [False, True])
def test_units_make_no_difference(unit: float, offset: float, given: bool) -> None:
    clean, noisy = scene()
    image = unit * np.maximum(noisy, 0) + offset
    sigma = 0.05 * unit if given else None
    found, info = denoise_with_info(image, sigma=sigma, quality="fast")
    assert info.established and info.sigma == pytest.approx(0.05 * unit, rel=0.25)
    before, after = (np.std((picture - offset) / unit - clean) for picture in (image, found))
    assert after < 0.5 * before


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "float16"]
)
def test_noise_is_found_in_every_type(dtype: str) -> None:
    """Signed values may start below 0: a CT scan from -1000 to 2000 with noise of 150."""
    clean, noisy = scene(1)
    low, span = {"int8": (-100, 200), "uint8": (20, 200), "float16": (0, 300)}.get(
        dtype, (-1000, 3000) if dtype.startswith("i") else (1000, 3000)
    )
    image = (low + span * np.clip(noisy, 0, 1)).astype(dtype)
    found, info = denoise_with_info(image, quality="fast")
    assert info.established and info.noise == "gaussian"
    after, before = (
        np.std((picture.astype(float) - low) / span - clean) for picture in (found, image)
    )
    assert after < 0.5 * before


def test_a_dim_clean_picture_is_unchanged() -> None:
    clean, _ = scene(2)
    with pytest.warns(UserWarning, match="No noise could be established"):
        same = denoise_kpca(np.round(clean * 3000).astype(np.int16), quality="fast")
    assert np.array_equal(same, np.round(clean * 3000))


@pytest.mark.filterwarnings("ignore:No noise could be established")
@pytest.mark.parametrize("noise", ["gaussian", "auto", "poisson", "speckle", "camera"])
@pytest.mark.parametrize("data_range", [1e12, 1e22, 1e30])
def test_an_image_using_almost_none_of_its_range_is_unchanged(
    noise: str, data_range: float
) -> None:
    image = 100 + 15 * np.random.default_rng(0).standard_normal((14, 16))
    image[0, 0] = -20
    out = denoise_kpca(image, noise=noise, data_range=data_range, quality="draft")
    np.testing.assert_array_equal(out, image)


@pytest.mark.parametrize(("side", "spacing"), [(1024, 16), (1000, 8)])
def test_the_used_range_of_a_large_picture_does_not_depend_on_a_grid_in_it(
    side: int, spacing: int
) -> None:
    plane = np.full((side, side), 250.0, np.float32)
    plane[:, ::spacing] = plane[::spacing] = 20.0
    assert used_range(plane) == used_range(plane[:-1, :-1]) == 230.0
