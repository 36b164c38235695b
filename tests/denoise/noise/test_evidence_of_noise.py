"""Noise is distinguished from bright spots, varying levels, printing screens and clipping."""

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.transform import resize

from kpca_apps.denoise.batch.examine.evidence import evidence_of
from kpca_apps.denoise.denoiser import denoise_with_info, measure_noise

ROWS, COLUMNS = np.mgrid[:192, :192].astype(float)


def picture(name: str) -> np.ndarray:
    return np.asarray(255 * resize(getattr(data, name)() / 255, (192, 192), anti_aliasing=True))


def white(seed: int, shape: tuple[int, ...] = (192, 192)) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def eight_bits(image: np.ndarray) -> np.ndarray:
    return np.clip(np.round(image), 0, 255).astype(np.uint8)


def gain_in_db(noisy: np.ndarray, clean: np.ndarray) -> float:
    """Return the PSNR gain in dB of denoising an image."""
    axis = -1 if noisy.ndim == 3 else None
    found, _ = denoise_with_info(noisy, quality="fast", channel_axis=axis)
    before, after = (np.mean(np.square(image - clean)) for image in (noisy.astype(float), found))
    return float(10 * np.log10(before / after))


@pytest.mark.parametrize("side", [0, 9, 21])
def test_a_bright_bead_does_not_hide_the_noise_elsewhere(side: int) -> None:
    cells = gaussian_filter(white(0), 6)
    clean = 200 + np.clip(150 + 60 * cells / cells.std(), 0, None)
    clean[30 : 30 + side, 50 : 50 + side] = 30000
    assert gain_in_db(np.round(clean + 15 * white(1)).astype(np.uint16), clean) > 9


@pytest.mark.parametrize("offset", [0.0, 7000.0])
def test_noise_of_a_warm_scene_is_detected_for_any_zero_of_its_scale(offset: float) -> None:
    clean = offset + 1000 + gaussian_filter(picture("camera"), 1.5)
    clean[100:109, 90:98] = offset + 20000
    assert gain_in_db(np.round(clean + 14 * white(2)).astype(np.uint16), clean) > 8


@pytest.mark.parametrize("seed", [0, 1])
def test_saturated_stars_do_not_hide_the_noise_of_a_black_sky(seed: int) -> None:
    rng = np.random.default_rng(seed)
    light = np.zeros((192, 192))
    light[tuple(rng.integers(4, 188, (2, 60)))] = 10 ** rng.uniform(2, 4.6, 60)
    clean = np.minimum(gaussian_filter(light, 1.4), 255)
    assert gain_in_db(eight_bits(clean + 5 * white(seed)), clean) > 6


def test_many_stars_do_not_hide_the_noise_of_the_sky() -> None:
    rng = np.random.default_rng(2)
    light = np.zeros((192, 192))
    light[tuple(rng.integers(4, 188, (2, 100)))] = 10 ** rng.uniform(2, 6.3, 100)
    clean = 1200 + gaussian_filter(light, 1.6)
    noisy = np.clip(np.round(clean + 12 * white(2)), 0, 65535).astype(np.uint16)
    assert gain_in_db(noisy, np.minimum(clean, 65535)) > 2


LEVELS = {
    "halves": np.where(COLUMNS < 96, 5.0, 18.0),
    "corners": 5 + 22 * np.square(np.hypot(ROWS - 96, COLUMNS - 96) / 136),
    "bands": np.where(ROWS // 24 % 2, 14.0, 4.0),
    "bump": 4 + 16 * np.exp(-np.square(np.hypot(ROWS - 96, COLUMNS - 96) / 48)),
}


@pytest.mark.parametrize("place", LEVELS)
def test_spatially_varying_noise_is_removed_and_reported(place: str) -> None:
    clean, level = picture("camera"), LEVELS[place]
    noisy = eight_bits(clean + level * white(3))
    info = measure_noise(noisy)
    assert info.noise == "gaussian"
    assert info.sigma == pytest.approx(np.sqrt(np.mean(level**2)), rel=0.25)
    assert info.place_range is not None
    low, high = info.place_range
    assert high > 1.8 * low
    assert "differs from place to place" in evidence_of(info).why
    assert gain_in_db(noisy, clean) > 3


def test_a_noisy_quarter_is_not_taken_for_poisson_noise() -> None:
    clean, level = picture("coins"), np.where((ROWS < 96) & (COLUMNS < 96), 20.0, 4.0)
    assert gain_in_db(eight_bits(clean + level * white(3)), clean) > 3


@pytest.mark.parametrize("name", ["camera", "coins", "moon"])
def test_constant_and_poisson_noise_do_not_vary_by_place(name: str) -> None:
    clean = picture(name)
    for level in (8.0, 20.0, np.sqrt(clean + 4)):
        assert measure_noise(eight_bits(clean + level * white(4))).place_range is None


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("end", ["black", "white"])
def test_clipped_noise_has_its_level_before_clipping(end: str, seed: int) -> None:
    clean = 0.06 * picture("camera")
    noisy = clean + 10 * white(seed)
    noisy, clean = (noisy, clean) if end == "black" else (255 - noisy, 255 - clean)
    info = measure_noise(eight_bits(noisy))
    assert info.noise == "gaussian" and info.sigma == pytest.approx(10, rel=0.08)
    assert gain_in_db(eight_bits(noisy), clean) > 12


@pytest.mark.parametrize("speed", [300.0, 200.0])
def test_waves_are_not_bands_of_noise(speed: float) -> None:
    clean = 127.5 + 60 * np.sin(ROWS**2 / speed)
    assert gain_in_db(eight_bits(clean + 10 * white(11)), clean) > 8


def test_noise_beside_flat_areas_is_removed() -> None:
    clean = np.where(COLUMNS < 72, 20 + 26 * (ROWS // 24), 40 + 0.9 * ROWS)
    noisy = np.where(COLUMNS < 72, clean, clean + 10 * white(3))
    assert gain_in_db(eight_bits(noisy), clean) > 8


@pytest.mark.parametrize("sigma", [10.0, 20.0, 30.0])
def test_noise_saved_in_few_levels_is_no_dither(sigma: float) -> None:
    clean = picture("camera")
    noisy = 36.0 * np.clip(np.round((clean + sigma * white(3)) / 36), 0, 7)
    assert gain_in_db(eight_bits(noisy), clean) > (5 if sigma == 10 else 9)


def screened(grey: np.ndarray, frequency: float, angle: float = np.pi / 4) -> np.ndarray:
    """A print: screen dots sized by brightness, slightly out of focus."""
    across = np.cos(angle) * COLUMNS + np.sin(angle) * ROWS
    along = np.cos(angle) * ROWS - np.sin(angle) * COLUMNS
    dots = (np.sin(frequency * across) + np.sin(frequency * along)) / 4 + 0.5
    return 255 * gaussian_filter((grey > dots).astype(float), 0.7)


@pytest.mark.parametrize("angle", [np.pi / 4, 1.2])
@pytest.mark.parametrize("frequency", [0.6, 0.9, 1.35, 1.4, 1.84])
def test_a_printing_screen_is_not_noise(frequency: float, angle: float) -> None:
    clean = screened(picture("camera") / 255, frequency, angle)
    found, info = denoise_with_info(eight_bits(clean), quality="fast")
    assert not info.established and not info.impulses and evidence_of(info).option == ""
    np.testing.assert_array_equal(found, eight_bits(clean))
    # With added noise, the image is left alone or improved.
    assert gain_in_db(eight_bits(clean + 12 * white(7)), clean) >= 0


@pytest.mark.parametrize("name", ["camera", "coins"])
def test_a_dither_is_not_noise(name: str) -> None:
    dithered = np.asarray(Image.fromarray(eight_bits(picture(name))).convert("1").convert("L"))
    found, _ = denoise_with_info(dithered, quality="fast")
    np.testing.assert_array_equal(found, dithered)


@pytest.mark.parametrize("levels", [2, 4])
def test_an_ordered_dither_is_a_pattern(levels: int) -> None:
    order = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16 + 1 / 32
    steps = np.floor(picture("coffee").mean(axis=2) / 255 * (levels - 1) + np.tile(order, (48, 48)))
    dithered = eight_bits(steps * 255 / (levels - 1))
    found, info = denoise_with_info(dithered, quality="fast")
    np.testing.assert_array_equal(found, dithered)
    assert not info.impulses and evidence_of(info).option == ""


@pytest.mark.parametrize("seed", [0, 1])
def test_a_drawing_of_thin_lines_is_kept(seed: int) -> None:
    ends = np.random.default_rng(seed).integers(0, 768, (60, 4)).tolist()
    large = Image.new("L", (768, 768), 255)
    for number, line in enumerate(ends):
        ImageDraw.Draw(large).line(line, fill=0, width=2 + number % 7)
    drawn = np.asarray(large.resize((192, 192), Image.Resampling.BOX))
    found, _ = denoise_with_info(drawn, quality="fast")
    np.testing.assert_array_equal(found, drawn)


def test_a_screen_of_three_inks_is_not_noise() -> None:
    colours = resize(data.astronaut() / 255, (192, 192), anti_aliasing=True)
    inks = [screened(colours[..., k], 1.05, angle) for k, angle in enumerate((0.26, 1.31, 0.79))]
    printed = eight_bits(np.dstack(inks))
    found, _ = denoise_with_info(printed, quality="fast", channel_axis=-1)
    np.testing.assert_array_equal(found, printed)


def test_a_dim_photograph_that_is_mostly_noise_is_denoised() -> None:
    # Draw a plain wall as seen by a camera that smooths its noise.
    clean = np.array([90.0, 45.0, 48.0]) + 6 * gaussian_filter(white(8), 8)[..., np.newaxis]
    noise = gaussian_filter(white(9, (192, 192, 3)), (0.8, 0.8, 0))
    assert gain_in_db(eight_bits(clean + 15 * noise / noise.std()), clean) > 12


def test_no_option_is_suggested_that_removes_nothing() -> None:
    grain = gaussian_filter(white(10), 0.8)
    clean = picture("camera")
    noisy = eight_bits(clean + 56 * grain / grain.std() * clean / 255 * (1 - clean / 255))
    option = evidence_of(measure_noise(noisy)).option
    if option:
        found, _ = denoise_with_info(noisy, noise=option.split()[-1], quality="fast")
        assert np.std(found - noisy) > 0.5 * np.std(noisy - clean)


@pytest.mark.parametrize("looks", [1.0, 1.5])
def test_the_logarithm_of_speckle_is_not_taken_for_white_noise(looks: float) -> None:
    speckle = np.log(np.random.default_rng(0).gamma(looks, size=ROWS.shape))
    scan = eight_bits(110 + 40 * np.sin(ROWS / 12) + 25 * (speckle - speckle.mean()))
    found = measure_noise(scan)
    assert found.noise == "camera" and found.established


def test_texture_with_a_dark_tail_is_not_taken_for_speckle() -> None:
    noisy = eight_bits(picture("grass") + 3 * white(3))
    found, _ = denoise_with_info(noisy, quality="fast")
    np.testing.assert_array_equal(found, noisy)
