"""Pixels without data are neither used nor changed, nor are pixels outside a region changed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, distance_transform_edt
from skimage.data import brick

from kpca_apps import denoise_kpca, denoise_with_info
from kpca_apps.denoise.batch.denoisers import GroupDenoiser
from kpca_apps.denoise.estimate.level import estimate_noise
from kpca_apps.denoise.masks import continued, imputed, mirrored
from kpca_apps.denoise.options import Options
from kpca_apps.errors import ConfigError, InputError

SIGMA = 20.0
CLEAN = brick()[:128, :160].astype(np.float32)
NOISY = CLEAN + SIGMA * np.random.default_rng(0).standard_normal(CLEAN.shape).astype(np.float32)


def with_disc(shape: tuple[int, int]) -> NDArray[np.bool_]:
    """A round field of view, as in a microscope, with a line of dead pixels."""
    rows, columns = np.indices(shape)
    mask = np.hypot(rows - shape[0] / 2, columns - shape[1] / 2) < 0.45 * min(shape)
    mask[:, shape[1] // 2] = False
    return mask


def psnr(image: NDArray[np.floating], where: NDArray[np.bool_]) -> float:
    return float(-10 * np.log10(np.mean(np.square((image - CLEAN) / 255)[where])))


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    noise=st.sampled_from(["gaussian", "auto", "poisson", "speckle", "impulse", "camera"]),
    dtype=st.sampled_from(["u1", "u2", "f4", "f8"]),
)
def test_masked_pixels_have_no_influence(seed: int, noise: str, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    image = rng.integers(1, 200, (24, 40)).astype(dtype)
    mask = rng.random(image.shape) > rng.random() ** 2
    mask[0, 0] = True
    other = np.where(mask, image, rng.integers(0, 255, image.shape)).astype(dtype)
    level = 0.2 if noise == "speckle" else 5.0
    options = {"mask": mask, "noise": noise, "quality": "draft", "sigma": level}
    first, second = (denoise_kpca(image, **options) for image in (image, other))
    assert np.array_equal(first[mask], second[mask]) and np.array_equal(first[~mask], image[~mask])
    assert np.array_equal(second[~mask], other[~mask])


def test_all_ways_to_mark_missing_data_are_equivalent() -> None:
    mask = with_disc(NOISY.shape)
    colours = np.stack([NOISY, NOISY[::-1], NOISY[:, ::-1]], axis=-1)
    options = {"quality": "draft", "channel_axis": -1}
    expected, info = denoise_with_info(colours, mask=mask, **options)
    assert np.array_equal(expected[~mask], colours[~mask])
    found, by_nan = denoise_with_info(np.where(mask[..., np.newaxis], colours, np.nan), **options)
    assert by_nan == info
    assert np.array_equal(found, np.where(mask[..., np.newaxis], expected, np.nan), equal_nan=True)
    masked = np.ma.masked_array(colours, np.repeat(~mask[..., np.newaxis], 3, axis=2))
    assert np.array_equal(denoise_kpca(masked, **options), expected)
    alpha = np.dstack([colours, mask.astype(np.float32)])
    assert np.array_equal(denoise_kpca(alpha, **options)[..., :3], expected)


@pytest.mark.parametrize("masked", ["disc", "dead"])
def test_noise_is_that_of_the_data_and_is_removed_up_to_the_edge(masked: str) -> None:
    dead = np.random.default_rng(1).random(NOISY.shape) > 0.02
    mask = with_disc(NOISY.shape) if masked == "disc" else dead
    image = np.where(mask, NOISY, 0)
    found, info = denoise_with_info(image, mask=mask, data_range=255, quality="fast")
    whole, of_whole = denoise_with_info(NOISY, data_range=255, quality="fast")
    assert info.noise == of_whole.noise and info.sigma == pytest.approx(of_whole.sigma, rel=0.1)
    near = mask & binary_dilation(~mask, iterations=8)
    # Pixels near dead pixels lose few neighbours; pixels near the rim lose all beyond it.
    assert psnr(found, near) > psnr(whole, near) - (0.1 if masked == "dead" else 2.5)


@pytest.mark.parametrize("missing", ["half", "rows", "most"])
def test_sparse_data_have_the_same_noise_level(missing: str) -> None:
    draws = np.random.default_rng(1).random(NOISY.shape)
    sparse = {"half": draws < 0.5, "most": draws < 0.3, "rows": np.indices(draws.shape)[0] % 2 == 0}
    filled = imputed(np.where(sparse[missing], NOISY, np.nan), sparse[missing])
    assert np.array_equal(filled[sparse[missing]], NOISY[sparse[missing]])
    assert estimate_noise(filled).sigma == pytest.approx(estimate_noise(NOISY).sigma, rel=0.15)


def test_holes_are_filled_from_the_surrounding_data() -> None:
    rows = np.repeat(np.arange(40.0)[:, np.newaxis], 40, axis=1)
    mask = np.ones(rows.shape, bool)
    mask[10:30, 12:28] = False
    smooth, mirror, noisy = (fill(rows, mask) for fill in (continued, mirrored, imputed))
    for filled in (smooth, mirror, noisy):
        assert np.array_equal(filled[mask], rows[mask])
        assert filled[~mask].min() >= 0 and filled[~mask].max() <= 39
    # Filled-in pixels roughly continue a gradient.
    assert np.abs(smooth - rows).max() < 6
    assert set(mirror[~mask]) <= set(rows[mask])


def test_sparse_data_are_mirrored_only_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return distance_transform_edt(*args, **options)

    monkeypatch.setattr("kpca_apps.denoise.masks.distance_transform_edt", counted)
    data = np.random.default_rng(0).random(NOISY.shape) < 0.02
    filled = mirrored(NOISY, data)
    assert len(calls) <= 8
    assert set(filled[~data]) <= set(NOISY[data])


@pytest.mark.parametrize("channels", [(0, 1), (1, 0)])
def test_infinities_count_only_where_there_are_data(channels: tuple[int, int]) -> None:
    image = np.ones((8, 8, 3))
    image[2, 3, channels[0]], image[2, 3, channels[1]] = np.nan, np.inf
    options = {"channel_axis": -1, "sigma": 0.1, "quality": "draft"}
    assert np.array_equal(denoise_kpca(image, **options), image, equal_nan=True)
    image[2, 3, channels[0]] = 1
    with pytest.raises(InputError, match="holds inf at row 2, column 3, channel"):
        denoise_kpca(image, **options)
    alpha = np.dstack([image, np.ones((8, 8))])
    alpha[2, 3, 3] = 0
    assert np.array_equal(denoise_kpca(alpha, **options), alpha)


def test_pages_of_a_block_without_data_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    film = np.stack([NOISY[:64, :64]] * 24)
    film[:12] = np.nan
    film[20, 3, 4] = np.inf  # infinite, but masked below
    mask = np.ones((64, 64), bool)
    mask[3, 4] = False
    monkeypatch.setattr("kpca_apps.denoise.batch.denoisers.page_blocks", lambda *_: [(0, 8, 0, 12)])
    denoiser = GroupDenoiser(Options(), sigma=SIGMA, stack=True)
    pages = list(denoiser.stacked(lambda n: (film[n], mask if n == 20 else None), range(24)))
    assert len(pages) == 8 and all(np.isnan(page).all() for page, _ in pages)


@pytest.mark.parametrize("noise", ["auto", "camera"])
def test_only_the_region_is_denoised(noise: str) -> None:
    image = NOISY.copy()
    image[:, 100:] = CLEAN[:, 100:]  # pixels without noise, outside the region
    found, info = denoise_with_info(
        image, region=(8, 16, 80, 96), noise=noise, data_range=255, quality="fast"
    )
    outside = np.ones(image.shape, bool)
    outside[16:112, 8:88] = False
    assert np.array_equal(found[outside], image[outside])
    assert np.mean(found[~outside] != image[~outside]) > 0.9
    assert info.sigma == pytest.approx(SIGMA, rel=0.25)
    # Patches outside the region are matched as well, so the region's borders resemble `whole`.
    whole = denoise_kpca(NOISY, noise=noise, data_range=255, quality="fast", sigma=info.sigma)
    inner = np.zeros(image.shape, bool)
    inner[24:104, 16:80] = True
    edge = ~outside & ~inner
    assert psnr(found, edge) > psnr(whole, edge) - 0.3


def test_pages_have_masks_of_their_own() -> None:
    film = np.stack([NOISY[:64, :64]] * 5)
    mask = np.ones(film.shape, bool)
    mask[1, 20:30], mask[3] = False, False
    other = np.where(mask, film, -1000)
    first, second = (
        denoise_kpca(pages, mask=mask, stack_axis=0, sigma=SIGMA, data_range=255)
        for pages in (film, other)
    )
    assert np.array_equal(first[mask], second[mask]) and np.array_equal(second[~mask], other[~mask])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mask": np.ones((8, 9))}, InputError, "mask has shape 8 x 9 and the image 8 x 8"),
        ({"mask": np.full((8, 8), "x")}, InputError, "mask has dtype"),
        ({"mask": np.zeros((8, 8))}, InputError, "no pixel that is data"),
        ({"region": (0, 0, 9, 8)}, InputError, "reaches beyond the image of 8 x 8"),
        ({"region": (0, 0, 8)}, ConfigError, "give four whole numbers"),
        ({"region": (0, 0, 8, 0)}, ConfigError, "give four whole numbers"),
        ({"region": 8}, ConfigError, "give four whole numbers"),
    ],
)
def test_impossible_arguments_are_rejected(options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        denoise_kpca(np.ones((8, 8)), **options)


def test_a_mask_that_is_not_a_number_somewhere_is_refused() -> None:
    mask = np.ones(NOISY.shape)
    mask[3, 5] = np.nan
    with pytest.raises(InputError, match="mask is not a number at 3, 5"):
        denoise_kpca(NOISY, mask=mask, quality="draft")
