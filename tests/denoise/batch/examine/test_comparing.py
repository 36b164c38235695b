import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.metrics import peak_signal_noise_ratio

from kpca_apps.denoise.batch.examine.comparing import (
    BASELINES,
    compare,
    measure_residual,
    quality_of,
)
from kpca_apps.denoise.result import (
    Comparison,
    DenoisingResult,
    ImageOutcome,
    Quality,
    mean_comparison,
)

CAMERA = data.camera()[::2, ::2]


def noisy(image: np.ndarray, sigma: float) -> np.ndarray:
    return image + np.random.default_rng(0).normal(0, sigma, image.shape)


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 3)])
def test_quality_is_psnr_and_ssim(shape: tuple[int, ...]) -> None:
    clean = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    other = clean // 2
    found = quality_of(other, clean, 255.0)
    assert found.psnr == pytest.approx(peak_signal_noise_ratio(clean, other))
    assert found.ssim is not None
    assert 0 < found.ssim < 1
    same = quality_of(clean, clean, 255.0)
    assert same.psnr == np.inf and same.ssim == pytest.approx(1)
    assert quality_of(clean[:10], clean[:10], 255.0).ssim is None


@pytest.mark.parametrize("colour", [False, True])
def test_baselines_denoise(colour: bool) -> None:
    clean = data.astronaut()[:128, :128] if colour else CAMERA[:128, :128]
    image = np.clip(np.rint(noisy(clean, 20)), 0, 255).astype(np.uint8)
    found = compare(image, image, clean, sigma=20, span=255.0, baselines=BASELINES)
    assert found.noisy == found.denoised and set(found.baselines) == set(BASELINES)
    for quality in found.baselines.values():
        assert quality.psnr > found.noisy.psnr + 3


def test_baselines_keep_negative_values() -> None:
    clean = CAMERA[:64, :64].astype(np.int16) * 100 - 12000
    image = (clean + 2000 * np.random.default_rng(0).standard_normal(clean.shape)).astype(np.int16)
    found = compare(image, image, clean, sigma=2000, span=65535.0, baselines=BASELINES)
    for quality in found.baselines.values():
        assert quality.psnr > found.noisy.psnr + 3


def test_without_noise_baselines_change_nothing() -> None:
    found = compare(CAMERA, CAMERA, CAMERA, sigma=0, span=255.0, baselines=BASELINES)
    assert {quality.psnr for quality in found.baselines.values()} == {np.inf}


def test_noise_alone_is_not_structured_and_blur_is() -> None:
    image = noisy(CAMERA, 15)
    found = measure_residual(image, CAMERA)
    assert not found.structured and found.sd == pytest.approx(15, rel=0.02)
    assert measure_residual(image, gaussian_filter(CAMERA.astype(float), 3)).structured


@pytest.mark.parametrize("sign", [1, -1])
def test_the_mean_that_clipped_noise_adds_is_measured_where_pixels_are_clipped(sign: int) -> None:
    clean = np.full((128, 128), 100.0)
    clean[:, :64] = 0.0
    image = noisy(clean, 15).clip(0, None)
    # Clipping at 0 removes the negative noise, which raises the mean by sigma / sqrt(2 pi).
    found = measure_residual(sign * image, sign * clean).clipped_mean
    assert found == pytest.approx(sign * 15 / np.sqrt(2 * np.pi), rel=0.03)
    assert measure_residual(noisy(clean, 15), clean).clipped_mean == 0.0


def test_noise_correlated_everywhere_is_not_structure() -> None:
    grain = gaussian_filter(np.random.default_rng(0).normal(0, 40, CAMERA.shape), 1)
    found = measure_residual(CAMERA + grain, CAMERA)
    assert found.flat_correlation > 0.5 and not found.structured


@pytest.mark.filterwarnings("error")
def test_residuals_of_large_floats_are_measured_as_those_of_small_ones() -> None:
    clean = CAMERA.astype(np.float32)
    small, scale = noisy(clean, 9).astype(np.float32), np.float32(2.0**100)
    near, far = measure_residual(small, clean), measure_residual(small * scale, clean * scale)
    assert (far.sd, far.edge_correlation) == (near.sd * scale, near.edge_correlation)


def test_small_or_equal_images_have_no_structure() -> None:
    assert measure_residual(CAMERA, CAMERA).sd == 0
    assert not measure_residual(noisy(CAMERA[:20, :20], 9), CAMERA[:20, :20]).structured


def test_means_are_over_images_with_a_reference() -> None:
    def outcome(name: str, psnr: float, ssim: float | None, **baselines: Quality) -> ImageOutcome:
        quality = Quality(psnr, ssim)
        return ImageOutcome(name, "ok", comparison=Comparison(quality, quality, baselines))

    first = outcome("a", 30.0, 0.8, nl_means=Quality(28.0, 0.6), wavelet=Quality(1.0, 0.1))
    second = outcome("b", 32.0, None, nl_means=Quality(30.0, None))
    result = DenoisingResult((first, second, ImageOutcome("c", "failed", reason="c: no")))
    mean = result.mean_comparison
    assert mean is not None and mean.denoised == Quality(31.0, 0.8)
    assert mean.baselines == {"nl_means": Quality(29.0, 0.6)}
    assert (result.n_failed, result.n_resumed) == (1, 0)
    assert DenoisingResult(()).mean_comparison is None
    small = Quality(1.0, None)
    assert mean_comparison([Comparison(small, small)]).noisy == small
