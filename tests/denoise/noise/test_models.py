"""Each noise model removes its kind of noise better than the Gaussian model."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, median_filter
from skimage import data
from skimage.metrics import peak_signal_noise_ratio

from kpca_apps.denoise.denoiser import denoise_kpca, denoise_with_info, measure_noise
from tests.quick import quick

CLEAN = data.camera()[100:196, 170:266].astype(float)
RNG = np.random.default_rng(3)
PEAK = 20  # photons at white


def db(image: np.ndarray, clean: np.ndarray = CLEAN) -> float:
    return float(peak_signal_noise_ratio(clean, np.clip(image, 0, 255), data_range=255))


def photons() -> np.ndarray:
    return RNG.poisson(CLEAN / 255 * PEAK) * 255 / PEAK


def speckle(sigma: float = 0.25) -> np.ndarray:
    return CLEAN * RNG.gamma(1 / sigma**2, sigma**2, CLEAN.shape)


def salt_and_pepper(share: float = 0.2) -> np.ndarray:
    hit = RNG.random(CLEAN.shape) < share
    return np.where(hit, RNG.choice([0.0, 255.0], CLEAN.shape), CLEAN)


def random_values(share: float = 0.15) -> np.ndarray:
    hit = RNG.random(CLEAN.shape) < share
    return np.where(hit, RNG.uniform(0, 255, CLEAN.shape), CLEAN)


@pytest.mark.filterwarnings("ignore:Single pixels stand out")
@pytest.mark.parametrize(
    ("noise", "image", "gain"),
    [
        ("poisson", photons(), 0.2),
        ("speckle", speckle(), 0.5),
        ("impulse", salt_and_pepper(), 8.0),
        ("impulse", random_values(), 3.0),
    ],
    ids=["poisson", "speckle", "salt and pepper", "random values"],
)
def test_beats_gaussian_mode_at_any_level_on_its_own_noise(
    noise: str, image: np.ndarray, gain: float
) -> None:
    own = db(denoise_kpca(image, noise=noise, data_range=255, quality="fast"))
    deviation = float(np.std(image - CLEAN))
    gaussian = [
        db(denoise_kpca(image, sigma=factor * deviation, data_range=255, quality="fast"))
        for factor in (0.7, 1.0, 1.4)
    ]
    assert own > max(gaussian) + gain


def test_poisson_level_is_estimated_and_stated_at_the_bright_end() -> None:
    image = photons()
    expected = 255 / np.sqrt(PEAK)
    found, info = denoise_with_info(image, noise="poisson", data_range=255, quality="fast")
    assert info.sigma == pytest.approx(expected, rel=0.1)
    given = denoise_kpca(image, sigma=expected, noise="poisson", data_range=255, quality="fast")
    assert abs(db(given) - db(found)) < 0.5


@pytest.mark.release
@pytest.mark.parametrize("peak", [3, 5, 10, 60])
@pytest.mark.parametrize("picture", ["camera", "coins"])
def test_poisson_level_is_estimated_from_few_photons(picture: str, peak: int) -> None:
    clean = getattr(data, picture)()[100:228, 150:278].astype(float)
    image = np.random.default_rng(5).poisson(clean / 255 * peak) * 255 / peak
    info = denoise_with_info(image, noise="poisson", data_range=255, quality="fast", luma=0)[1]
    assert info.sigma == pytest.approx(255 / np.sqrt(peak), rel=0.1)


def test_poisson_mode_is_not_biased_in_the_dark() -> None:
    counts = RNG.poisson(1.5, (96, 96)).astype(float)
    out = denoise_kpca(counts, sigma=np.sqrt(20), noise="poisson", data_range=20)
    assert out.mean() == pytest.approx(1.5, rel=0.05) and out.std() < 0.25


@pytest.mark.parametrize(("peak", "background"), quick([(50, 10), (50, 100), (20, 400)], (50, 10)))
def test_poisson_mode_removes_noise_of_a_subtracted_background(peak: int, background: int) -> None:
    """The result is about as good as without the subtraction, and unbiased above and below 0."""
    clean = CLEAN / 255 * peak - 0.15 * peak
    counts = np.random.default_rng(6).poisson(clean + background).astype(float)
    image = counts - background
    options = {"noise": "poisson", "quality": "fast"}
    out, left_in = denoise_kpca(image, **options), denoise_kpca(counts, **options) - background

    def error(result: np.ndarray) -> float:
        return float(np.sqrt(np.mean((result - clean) ** 2)))

    assert error(out) < 1.05 * error(left_in)
    assert out.mean() == pytest.approx(image.mean(), abs=0.02 * peak)
    negative = clean < -0.1 * peak
    assert (out[negative] < 0).mean() > 0.7
    assert out[negative].mean() == pytest.approx(left_in[negative].mean(), abs=0.02 * peak)


def test_speckle_mode_keeps_negatives_and_their_mean() -> None:
    rng = np.random.default_rng(8)
    clean = CLEAN / 255 * 100 - 10
    image = clean * rng.gamma(25, 1 / 25, clean.shape) + rng.normal(0, 4, clean.shape)
    out, info = denoise_with_info(image, noise="speckle", quality="fast")
    assert np.std(out - clean) < 0.45 * np.std(image - clean)
    assert info.sigma == pytest.approx(0.2, rel=0.15)
    negative = clean < -2
    assert (out[negative] < 0).mean() > 0.8
    assert out[negative].mean() == pytest.approx(clean[negative].mean(), abs=2)


@pytest.mark.parametrize("depth", [float, np.uint8])
@pytest.mark.parametrize("sigma", [0.1, 0.3])
def test_speckle_is_distinguished_from_poisson_noise(sigma: float, depth: type) -> None:
    rng = np.random.default_rng(0)
    clean = data.camera()[:192, :192] / 2.0  # dark enough that almost no noise is clipped at white
    noisy = np.clip(clean * rng.gamma(1 / sigma**2, sigma**2, clean.shape), 0, 255).astype(depth)
    info = measure_noise(noisy, data_range=255)
    assert (info.noise, info.established) == ("speckle", True)
    assert info.sigma == pytest.approx(sigma, rel=0.15)
    counted = np.clip(rng.poisson(clean / 2) * 2, 0, 255).astype(depth)
    assert measure_noise(counted, data_range=255).noise == "poisson"
    shared = gaussian_filter(rng.normal(size=clean.shape), 0.7)
    steps = np.kron(rng.uniform(20, 230, (8, 8)), np.ones((24, 24)))
    assert measure_noise(steps * (1 + 0.2 * shared / shared.std())).noise == "poisson"


def test_speckle_is_detected_beside_a_dark_channel_but_not_in_a_stack() -> None:
    rng = np.random.default_rng(0)
    light = np.kron(rng.uniform(20, 230, (8, 8)), np.ones((24, 24)))
    noisy = light[..., np.newaxis] * rng.gamma(25, 1 / 25, (*light.shape, 3)) * [1.0, 1.0, 0.0]
    info = measure_noise(noisy, data_range=255, channel_axis=-1)
    assert info.noise == "speckle"
    np.testing.assert_allclose(info.channel_sigma, [0.2, 0.2, 0.0], atol=0.01)
    stack = light * rng.gamma(25, 1 / 25, (3, *light.shape))
    assert denoise_with_info(stack, data_range=255, stack_axis=0)[1].noise == "poisson"


def test_levels_of_speckle_are_not_mixed_with_others() -> None:
    rng = np.random.default_rng(0)
    light = np.kron(rng.uniform(20, 230, (8, 8)), np.ones((16, 16)))
    channels = light * rng.gamma(25, 1 / 25, light.shape), light + rng.normal(0, 10, light.shape)
    _, info = denoise_with_info(
        np.stack(channels, axis=-1), data_range=255, channel_axis=-1, quality="draft"
    )
    assert (info.noise, info.sigma) == ("gaussian", info.channel_sigma[1])
    np.testing.assert_allclose(info.channel_sigma, [0.2, 10], rtol=0.05)


def test_speckle_level_is_estimated_relative_to_the_intensity() -> None:
    assert denoise_with_info(speckle(0.3), noise="speckle")[1].sigma == pytest.approx(0.3, rel=0.15)
    flat = 50 * RNG.gamma(4, 1 / 4, (96, 96))
    assert denoise_kpca(flat, noise="speckle", sigma=0.5).mean() == pytest.approx(50, rel=0.02)


@pytest.mark.parametrize("sigma", [1e-300, 1e-160, 1e-8])
def test_speckle_whose_square_overflows_leaves_the_image_unchanged(sigma: float) -> None:
    image = speckle()[:24, :24]
    out = denoise_kpca(image, noise="speckle", sigma=sigma)
    np.testing.assert_allclose(out, image, rtol=0, atol=1e-6 * image.max())


@pytest.mark.parametrize("sigma", [0.2, 0.3])
def test_factors_near_zero_leave_no_black_specks(sigma: float) -> None:
    """The result is no worse than if every factor were at least a third."""
    clean = 130 + 90 * np.sin(np.add.outer(np.arange(128), np.arange(128)) / 40)
    factor = 1 + sigma * np.random.default_rng(2).standard_normal(clean.shape)
    assert (factor < 0.3).any()
    options = {"noise": "speckle", "sigma": sigma, "data_range": 255, "quality": "fast"}
    out = denoise_kpca(clean * np.maximum(factor, 0), **options)
    without = denoise_kpca(clean * np.maximum(factor, 1 / 3), **options)
    assert db(out, clean) > db(without, clean) - 0.3
    assert (out / clean).min() > 0.6


def test_black_is_zero_and_not_the_darkest_pixel() -> None:
    info = denoise_with_info(RNG.poisson(400.0, (64, 64)).astype(float), noise="poisson")[1]
    assert (info.sigma**2 / info.data_range) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_impulses_are_replaced_and_other_pixels_unchanged(share: float) -> None:
    """Without other noise, at most one good pixel in 200 is taken for an impulse."""
    image = salt_and_pepper(share)
    hit, far = image != CLEAN, np.abs(image - CLEAN) > 25
    out = denoise_kpca(image, noise="impulse", sigma=0, data_range=255, quality="fast")
    changed = out != image
    assert changed[far].mean() > 0.98 and changed[~hit].mean() < 0.005
    by_median = np.where(hit, median_filter(image, 3), image)
    assert db(out) > db(by_median) + 3, "better than a median where the impulses are known"


NOISY = {"gaussian": CLEAN + 15 * RNG.standard_normal(CLEAN.shape), "poisson": photons()}
NOISY["speckle"] = speckle()


@pytest.mark.parametrize("noise", NOISY)
@pytest.mark.parametrize("given", quick([True, False], False))
def test_empty_channels_stay_empty_and_the_others_lose_their_noise(noise: str, given: bool) -> None:
    """As in fluorescence microscopy: one or two channels hold a dye, all other channels nothing."""
    sigma = {"gaussian": 15.0, "poisson": 255 / np.sqrt(PEAK), "speckle": 0.25}[noise]
    options = {
        "noise": noise,
        "data_range": 255,
        "quality": "fast",
        "sigma": sigma if given else None,
    }
    piece = np.s_[:64, :64]
    plane, clean = NOISY[noise][piece], CLEAN[piece]
    alone = db(denoise_kpca(plane, **options), clean)
    assert alone > db(plane, clean) + 3
    for used in ((1,), (0, 1)):
        image = np.zeros((*plane.shape, 3))
        image[..., used] = plane[..., np.newaxis]
        out = denoise_kpca(image, channel_axis=-1, **options)
        for channel in range(3):
            if channel in used:
                assert db(out[..., channel], clean) > alone - 1.5
            else:
                np.testing.assert_allclose(out[..., channel], 0, atol=1e-4)


@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
def test_naming_the_kind_gives_the_result_of_auto(kind: str) -> None:
    clean = data.camera()[60:220, 120:280].astype(float)
    image = RNG.poisson(clean / 255 * PEAK) * 255 / PEAK
    if kind == "gaussian":  # the noise increases from left to right
        image = clean + np.linspace(4, 24, clean.shape[1]) * RNG.standard_normal(clean.shape)
    out, info = denoise_with_info(image, data_range=255, quality="draft")
    assert info.noise == kind and (kind == "poisson") == (info.place_range is None)
    named = denoise_with_info(image, noise=kind, data_range=255, quality="draft")
    np.testing.assert_array_equal(named[0], out)
    assert named[1].sigma == info.sigma and named[1].place_range == info.place_range
