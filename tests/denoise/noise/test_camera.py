"""Correlated noise is detected and removed better than by a white-noise model."""

import io

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import convolve1d, gaussian_filter
from skimage import data
from skimage.metrics import peak_signal_noise_ratio

from kpca_apps.denoise.denoiser import denoise_kpca, denoise_with_info, measure_noise
from kpca_apps.denoise.estimate.law import blurred_spectrum
from kpca_apps.denoise.noise.camera import measure_camera, with_lowest, with_texture_back
from kpca_apps.denoise.noise.gaussian import measure_white
from tests.quick import quick

CLEAN = data.astronaut()[20:132, 150:262].astype(float)


def shared_noise(shape: tuple[int, ...], width: float = 0.8, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).standard_normal(shape)
    smooth = gaussian_filter(raw, (width, width, 0)[: len(shape)])
    return smooth / smooth.std()


def db(image: np.ndarray) -> float:
    return float(peak_signal_noise_ratio(CLEAN, np.clip(image, 0, 255), data_range=255))


@pytest.mark.filterwarnings("ignore:No noise could be established")
def test_correlated_noise_is_removed_better_than_by_white_noise_mode() -> None:
    noisy = CLEAN + 15 * shared_noise(CLEAN.shape)
    image = np.clip(np.round(noisy), 0, 255).astype(np.uint8)
    camera, info = denoise_with_info(image, noise="camera", channel_axis=-1, quality="fast")
    # The estimate includes texture and is too high, as no part of this small picture is smooth.
    assert 15 < info.sigma < 27
    assert (
        db(camera)
        > db(denoise_kpca(image, channel_axis=-1, quality="fast", noise="gaussian")) + 1.5
    )
    assert db(camera) > db(image) + 1.5


@pytest.mark.release
def test_auto_chooses_camera_for_correlated_noise_and_gaussian_for_white() -> None:
    white = np.random.default_rng(1).standard_normal(CLEAN.shape)
    for noise, expected in ((shared_noise(CLEAN.shape), "camera"), (white, "gaussian")):
        image = CLEAN + 15 * noise
        out, info = denoise_with_info(
            image, noise="auto", channel_axis=-1, data_range=255, quality="fast"
        )
        assert info.noise == expected
        assert measure_noise(image, data_range=255, channel_axis=-1) == info
        named = denoise_kpca(image, noise=expected, channel_axis=-1, data_range=255, quality="fast")
        np.testing.assert_array_equal(out, named)


def test_level_given_in_camera_mode_is_the_one_used() -> None:
    image = CLEAN[..., 0] + 15 * shared_noise(CLEAN.shape[:2])
    out, info = denoise_with_info(image, sigma=12, noise="camera", data_range=255, quality="fast")
    assert info.sigma == pytest.approx(12, rel=1e-3)
    assert out.shape == image.shape


@pytest.mark.release
def test_white_noise_after_jpeg_is_called_correlated_for_its_smoothed_colours() -> None:
    noisy = CLEAN + 20 * np.random.default_rng(2).standard_normal(CLEAN.shape)
    image = np.clip(np.round(noisy), 0, 255).astype(np.uint8)
    assert not denoise_with_info(image, strength=0, channel_axis=-1)[1].correlated
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=90, subsampling="4:2:0")
    photograph = np.array(Image.open(stream))
    camera, info = denoise_with_info(photograph, noise="auto", channel_axis=-1, quality="fast")
    assert info.correlated and info.noise == "camera"
    assert (
        db(camera)
        > db(denoise_kpca(photograph, channel_axis=-1, quality="fast", noise="gaussian")) + 0.5
    )


@pytest.mark.release
def test_noise_common_to_all_channels_is_called_correlated_and_noise_of_one_is_not() -> None:
    noise = 15 * np.random.default_rng(4).standard_normal(CLEAN.shape)
    for kept, shared in (([1, 1, 1], False), ([1, 0, 0], False), ([0, 1, 0], False)):
        image = CLEAN + noise * kept
        info = denoise_with_info(image, strength=0, data_range=255, channel_axis=-1)[1]
        assert info.correlated == shared
    alike = denoise_with_info(CLEAN + noise[..., :1], strength=0, data_range=255, channel_axis=-1)
    assert alike[1].correlated


@pytest.mark.parametrize("sigma", [4.0, 12.0])
def test_the_spectrum_of_filtered_noise_is_estimated_at_each_frequency(sigma: float) -> None:
    # Averaging two pixels multiplies frequency k of 8 by cos(pi k / 16), down and across.
    raw = np.random.default_rng(6).standard_normal((3, 256, 256))
    noise = convolve1d(convolve1d(raw, [0.5, 0.5], axis=1), [0.5, 0.5], axis=2)
    noise *= sigma / noise.std()
    scene = data.astronaut()[:256, :256].transpose(2, 0, 1) * 0.6 + 40.0
    found = measure_camera((scene + noise).astype(np.float32))
    # The estimates include texture, so they are too high, above all if the noise is faint.
    assert all(0.8 * sigma < level < 2 * sigma for level in found.levels)
    response = np.cos(np.pi * np.arange(8) / 16)
    shape = np.outer(response, response)
    expected = sigma * shape / np.sqrt(np.mean(shape**2))
    # Compare the spectra where they are not negligible, in luminance and in colours.
    for spectrum in found.spectra:
        assert 0.7 < np.sqrt(np.mean((spectrum / expected)[1:5, 1:5] ** 2)) < 2.5
        assert spectrum[7, 7] < 0.6 * spectrum[1, 1]


@pytest.mark.parametrize(
    "picture",
    quick(["astronaut", "chelsea", "coffee", "rocket", "page", "coins"], "coffee", "page"),
)
def test_clean_pictures_are_left_alone(picture: str) -> None:
    clean = getattr(data, picture)()
    axis = -1 if clean.ndim == 3 else None
    info = measure_noise(clean, channel_axis=axis)
    assert not info.established or info.sigma < 1


@pytest.mark.parametrize(
    ("side", "contrast", "correlated"), [(80, 12.0, False), (200, 1.0, False), (200, 12.0, True)]
)
def test_grey_saved_as_three_colours_is_called_correlated_only_if_the_grey_image_is(
    side: int, contrast: float, correlated: bool
) -> None:
    even = (128 + contrast * shared_noise((side, side), 1.2)).astype(np.float32)
    for count in (1, 3):
        assert measure_white(np.stack([even] * count)).correlated == correlated


def test_a_small_colour_image_is_never_called_correlated_for_its_even_texture() -> None:
    even = (128 + 12 * shared_noise((80, 80), 1.2)).astype(np.float32)
    assert not measure_white(np.stack([even, even[::-1], even[:, ::-1]])).correlated


def in_grey_by_a_camera(scene: np.ndarray, level: float) -> np.ndarray:
    """Return what a camera makes of a scene: mosaic, noise, demosaicking, grey, and JPEG."""
    rows, columns = np.indices(scene.shape[:2]) % 2
    sites = np.stack([rows + columns == 0, rows + columns == 1, rows + columns == 2], axis=-1)
    raw = scene + level * np.random.default_rng(0).standard_normal(scene.shape)
    seen, weights = (raw * sites).astype(float), sites.astype(float)
    for axis in (0, 1):
        seen, weights = (convolve1d(x, [1, 2, 1], axis) for x in (seen, weights))
    grey = np.clip(np.round((seen / weights) @ [0.299, 0.587, 0.114]), 0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(grey).save(stream, "JPEG", quality=90)
    return np.array(Image.open(stream))


def test_the_noise_of_a_camera_is_removed_in_grey_too() -> None:
    scene = data.rocket()[:256, :256].astype(float)
    clean, noisy = (in_grey_by_a_camera(scene, level) for level in (0, 4))
    unchanged, _ = denoise_with_info(clean, quality="fast")
    np.testing.assert_array_equal(unchanged, clean)
    cleaned, info = denoise_with_info(noisy, quality="fast")
    assert info.noise == "camera" and info.established
    errors = [np.sqrt(np.mean(np.square(x - clean.astype(float)))) for x in (noisy, cleaned)]
    assert errors[1] < 0.8 * errors[0]


def halves(kept: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an image textured on the right, its noisy version, and a fraction of its texture."""
    texture = 9 * shared_noise((192, 320), 0.6, seed=5)
    texture[:, :128] = 0.0
    given = texture + 3 * shared_noise(texture.shape, seed=6)
    clean, given, left = (image.astype(np.float32) for image in (texture, given, kept * texture))
    return clean, given, left


@pytest.mark.parametrize("kept", [0.5, 0.7])
def test_texture_removed_with_the_noise_is_restored(kept: float) -> None:
    clean, given, left = halves(kept)
    restored = with_texture_back(given, left)
    # Fraction of the texture kept, by least squares.
    where = np.s_[:, 208:]
    (share,), *_ = np.linalg.lstsq(clean[where].reshape(-1, 1), restored[where].ravel())
    assert share > (1 + kept) / 2
    assert np.mean(np.square(restored - clean)) < 0.8 * np.mean(np.square(left - clean))
    assert np.abs(restored[:, :32]).max() < 0.1


def test_pure_noise_that_was_removed_is_not_restored() -> None:
    clean, given, left = halves(1.0)
    assert np.std(with_texture_back(given, left) - clean) < 0.02 * np.std(given - clean)
    np.testing.assert_array_equal(with_texture_back(left, left), left)


def test_remaining_noise_does_not_restore_removed_noise() -> None:
    noise = (6 * shared_noise((192, 256), seed=7)).astype(np.float32)
    assert np.std(with_texture_back(noise, np.float32(0.05) * noise)) < 0.1 * np.std(noise)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 60)])
def test_the_smallest_planes_are_denoised_and_may_have_texture(shape: tuple[int, int]) -> None:
    given = np.random.default_rng(0).normal(100, 9, shape).astype(np.float32)
    for restored in (with_texture_back(given, given * 0.8), denoise_kpca(given, noise="camera")):
        assert restored.shape == shape
        assert np.isfinite(restored).all()


@pytest.mark.parametrize("width", [1.0, 1.5])
def test_slower_presets_never_leave_more_correlated_noise(width: float) -> None:
    clean = data.camera()[100:228, 100:228].astype(float)
    noisy = np.clip(np.round(clean + 16 * shared_noise(clean.shape, width)), 0, 255)
    fast, balanced = (
        peak_signal_noise_ratio(
            clean, denoise_kpca(noisy, noise="camera", quality=quality), data_range=255
        )
        for quality in ("fast", "balanced")
    )
    assert balanced > fast - 0.02


def test_the_lowest_frequency_of_a_blur_follows_from_the_others() -> None:
    blur = np.sqrt(blurred_spectrum(0.6))[np.newaxis]
    seen = blur.copy()
    seen[:, 0, 0] = 0.0
    np.testing.assert_allclose(with_lowest(seen), blur, rtol=0.05)
