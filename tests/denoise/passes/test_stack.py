"""Pages denoised as a stack are compared with single pages and with the truth."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from skimage import data

from kpca_apps.denoise.denoiser import denoise_kpca, denoise_with_info
from kpca_apps.denoise.options import Options
from kpca_apps.denoise.passes.planes import AROUND, denoise_planes, page_blocks
from kpca_apps.errors import ConfigError, InputError

# It takes long to compile the denoising loops for stacks.
pytestmark = pytest.mark.release

Pages = NDArray[np.float64]


def volume(pages: int = 8) -> Pages:
    smooth = gaussian_filter(np.random.default_rng(3).standard_normal((pages, 48, 40)), (3, 4, 4))
    return 128 + 60 * np.tanh(3 * smooth / smooth.std())


def film(pages: int = 8) -> Pages:
    whole = data.camera().astype(float)
    return np.stack([whole[60 + i : 116 + i, 150 + 2 * i : 206 + 2 * i] for i in range(pages)])


def with_noise(clean: Pages, sigma: float = 20.0) -> Pages:
    return clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)


def denoise_pages(noisy: NDArray[np.float32], **options: Any) -> NDArray[np.float32]:
    """Denoise pages arranged below one another, as in one picture."""
    below = noisy.reshape(1, -1, noisy.shape[-1])
    options["pages"] = len(noisy)
    return denoise_planes(below, np.array([20.0]), Options(**options)).reshape(noisy.shape)


def rms(difference: Pages) -> float:
    return float(np.sqrt(np.mean(np.square(difference))))


@pytest.mark.parametrize("clean", [volume(), film()], ids=["volume", "film"])
def test_a_stack_is_better_than_its_pages_one_by_one_by_a_decibel(clean: Pages) -> None:
    noisy = with_noise(clean)
    together = denoise_kpca(noisy, sigma=20, data_range=255, stack_axis=0)
    alone = np.stack([denoise_kpca(page, sigma=20, data_range=255) for page in noisy])
    assert rms(together - clean) < 10 ** (-1 / 20) * rms(alone - clean)


def test_axes_may_be_anywhere_and_are_kept() -> None:
    noisy = with_noise(volume(4))
    plain = denoise_kpca(noisy, sigma=20, data_range=255, stack_axis=0)
    last = denoise_kpca(np.moveaxis(noisy, 0, -1), sigma=20, data_range=255, stack_axis=-1)
    np.testing.assert_array_equal(np.moveaxis(last, -1, 0), plain)
    colours = np.stack([noisy, noisy[:, ::-1], 255 - noisy], axis=1)
    found = denoise_kpca(colours, sigma=20, data_range=255, stack_axis=0, channel_axis=1)
    assert found.shape == colours.shape
    assert rms(found - colours) > 10
    assert rms(found[:, 0] - volume(4)) < 0.7 * rms(noisy - volume(4))


def test_the_level_is_measured_in_the_whole_stack_and_integers_stay_in_range() -> None:
    noisy = np.clip(np.round(with_noise(volume(4))), 0, 255).astype(np.uint8)
    found, info = denoise_with_info(noisy, stack_axis=0)
    assert info.sigma == pytest.approx(20, rel=0.15)
    assert found.min() >= 0 and found.max() <= 255


def test_poisson_noise_in_a_stack() -> None:
    light = volume(4) / 10
    counts = np.random.default_rng(1).poisson(light).astype(float)
    found = denoise_kpca(counts, noise="poisson", stack_axis=0)
    assert rms(found - light) < 0.35 * rms(counts - light)


def test_any_number_of_workers_gives_the_same_bytes() -> None:
    noisy = with_noise(volume(3)).astype(np.float32)
    first, second = (denoise_pages(noisy, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("count", "samples"), [(1, 100), (2000, 1 << 18), (30, 1 << 30)])
def test_blocks_cover_all_pages_once_with_pages_around(count: int, samples: int) -> None:
    blocks = list(page_blocks(count, samples))
    assert [page for first, end, *_ in blocks for page in range(first, end)] == list(range(count))
    for first, end, begin, stop in blocks:
        assert begin == max(0, first - AROUND)
        assert stop == min(count, end + AROUND)
    # Memory use does not grow with the number of pages.
    assert max(stop - begin for _, _, begin, stop in blocks) <= 100


def test_pages_far_away_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpca_apps.denoise.passes.planes.BLOCK_SAMPLES", 4 * 48 * 40)
    noisy = with_noise(volume(20)).astype(np.float32)
    whole = denoise_pages(noisy)
    # The first four pages depend only on the next four, which are processed with them.
    changed = noisy.copy()
    changed[8:] += 40
    np.testing.assert_array_equal(denoise_pages(changed)[:4], whole[:4])


def test_impossible_arguments_are_rejected_by_name() -> None:
    noisy = with_noise(volume(4))
    with pytest.raises(InputError, match="has 4 dimensions"):
        denoise_kpca(noisy, stack_axis=0, channel_axis=-1)
    with pytest.raises(ConfigError, match="stack_axis is 3; give -3 to 2"):
        denoise_kpca(noisy, stack_axis=3)
    with pytest.raises(ConfigError, match="are both 0"):
        denoise_kpca(noisy[..., np.newaxis], stack_axis=0, channel_axis=0)
    with pytest.raises(ConfigError, match="a stack is only denoised for"):
        denoise_kpca(noisy, stack_axis=0, noise="impulse")
    noisy[2, 5, 7] = np.inf
    with pytest.raises(InputError, match="row 5, column 7, page 2"):
        denoise_kpca(noisy, stack_axis=0)
