from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data, restoration

from kpca_apps.denoise.options import CONTENTS, QUALITIES, Options, Quality, Window
from kpca_apps.denoise.passes import planes
from kpca_apps.denoise.passes.groups import RADIUS
from kpca_apps.denoise.passes.one_pass import Piece, run_pass
from kpca_apps.denoise.passes.plan import plan_for
from kpca_apps.denoise.passes.planes import denoise_planes, survey

Image = NDArray[np.float64]


def denoise_plane(noisy: Image, sigma: float, **options: Any) -> NDArray[np.float32]:
    return denoised(noisy[None], [sigma], **options)[0]


def denoised(noisy: Image, sigmas: list[float], **options: Any) -> NDArray[np.float32]:
    return denoise_planes(noisy.astype(np.float32), np.array(sigmas), Options(**options))


def psnr(clean: Image, image: NDArray[np.floating]) -> float:
    return float(10 * np.log10(255**2 / np.mean((clean - image) ** 2)))


def noisy_copy(clean: Image, sigma: float) -> Image:
    return clean + sigma * np.random.default_rng(7).standard_normal(clean.shape)


@pytest.fixture(scope="module")
def clean() -> Image:
    """A crop of scikit-image's cameraman photograph."""
    return data.camera()[130:226, 180:308].astype(float)


@pytest.fixture(scope="module")
def noisy(clean: Image) -> Image:
    return noisy_copy(clean, 25.0)


@pytest.fixture(scope="module")
def fast(noisy: Image) -> NDArray[np.float32]:
    """The result of the fastest preset; tests must not modify it."""
    result = denoise_plane(noisy, 25.0, quality="fast")
    result.flags.writeable = False
    return result


@pytest.fixture(scope="module")
def balanced(noisy: Image) -> NDArray[np.float32]:
    result = denoise_plane(noisy, 25.0)
    result.flags.writeable = False
    return result


def test_every_preset_beats_non_local_means_and_the_slower_is_not_worse(
    clean: Image, noisy: Image, fast: NDArray[np.float32], balanced: NDArray[np.float32]
) -> None:
    baseline = psnr(
        clean,
        restoration.denoise_nl_means(
            noisy, patch_size=5, patch_distance=9, h=0.8 * 25, sigma=25, fast_mode=True
        ),
    )
    assert psnr(clean, denoise_plane(noisy, 25.0, quality="draft")) > baseline + 0.5
    assert psnr(clean, fast) > psnr(clean, denoise_plane(noisy, 25.0, quality="draft"))
    assert psnr(clean, balanced) > psnr(clean, fast) + 0.05
    assert psnr(clean, denoise_plane(noisy, 25.0, quality="high")) > psnr(clean, balanced) - 0.02


@pytest.mark.parametrize(
    ("sigma", "gain"), [(0.5, 0.0), (2.0, 0.0), (3.0, 1.5), (10.0, 1.5), (35.0, 1.5), (100.0, 1.5)]
)
def test_it_helps_at_any_noise_level(clean: Image, sigma: float, gain: float) -> None:
    noisy = noisy_copy(clean, sigma)
    for quality in ("draft", "fast"):
        assert psnr(clean, denoise_plane(noisy, sigma, quality=quality)) > psnr(clean, noisy) + gain


def test_balanced_is_better_than_fast_where_noise_hides_the_picture() -> None:
    clean = 0.03 * data.coins()[:128, :256].astype(float)
    gains = []
    for seed in range(3):
        noisy = clean + 3.5 * np.random.default_rng(seed).standard_normal(clean.shape)
        fast, balanced = (
            psnr(clean, denoise_plane(noisy, 3.5, quality=quality))
            for quality in ("fast", "balanced")
        )
        gains.append(balanced - fast)
    assert np.mean(gains) > 0


def test_excess_noise_is_detected_only_where_it_exists(noisy: Image) -> None:
    plane = noisy.astype(np.float32)[np.newaxis, np.newaxis]
    excesses = [
        survey(plane, sigma, plan_for(sigma, Options()).passes[0])[0] for sigma in (28.0, 22.0)
    ]
    assert excesses[0] == 1.0 and excesses[1] > 1.1


WINDOWS: list[Window] = [((0, 40), (0, 40)), ((31, 61), (233, 280)), ((69, 71), (380, 401))]


def test_a_window_equals_that_part_of_the_whole() -> None:
    noisy = np.random.default_rng(5).normal(100, 20, (3, 71, 401)) + 60 * (np.arange(401) // 30 % 2)
    whole = denoised(noisy, [20.0, 12.0, 16.0], quality="fast")
    for window in WINDOWS:
        piece = denoised(noisy, [20.0, 12.0, 16.0], quality="fast", wanted=window)
        (top, bottom), (left, right) = window
        inner = np.s_[:, top:bottom, left:right]
        np.testing.assert_array_equal(piece[inner], whole[inner])
        # Only the pixels on which the window depends were processed.
        far = np.s_[:, :, -60:] if left < 200 else np.s_[:, :, :60]
        assert not np.array_equal(piece[far], whole[far])


@pytest.mark.parametrize("quality", ["draft", "balanced"])
def test_the_same_bytes_for_any_number_of_workers_and_any_strips(
    noisy: Image, monkeypatch: pytest.MonkeyPatch, quality: str
) -> None:
    tall = np.tile(noisy, (6, 1))[:531, 40:73]
    assert min(tall.shape) >= 2 * planes.SMALLEST  # large enough to be denoised at half scale, too
    margin = sum(2 * RADIUS + step.size for step in plan_for(25.0, Options(quality=quality)).passes)
    assert 2 * margin + margin < len(tall)  # the last strip does not need the first rows
    results = []
    for jobs, samples in [(1, 10**9), (2, 1), (4, 10**9)]:
        monkeypatch.setattr(planes, "STRIP_SAMPLES", samples)
        results.append(denoise_plane(tall, 25.0, quality=quality, n_jobs=jobs))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("quality", QUALITIES)
def test_noise_of_half_the_range_keeps_the_brightness(quality: str) -> None:
    flat = np.full((49, 37), 60.0)
    noisy = noisy_copy(flat, 127.5)
    result = denoise_plane(noisy, 127.5, quality=quality)
    assert np.abs(result - noisy.mean()).max() < 80
    assert psnr(flat, result) > psnr(flat, noisy) + 10


@pytest.mark.release
def test_the_half_scale_helps_photographs(
    clean: Image, noisy: Image, fast: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = denoise_plane(noisy, 25.0, quality="fast", content="text")
    monkeypatch.setattr(planes, "SMALLEST", 10**6)
    assert psnr(clean, fast) > psnr(clean, denoise_plane(noisy, 25.0, quality="fast"))
    np.testing.assert_array_equal(text, denoise_plane(noisy, 25.0, quality="fast", content="text"))


def test_planes_share_groups_and_keep_their_own_noise(clean: Image) -> None:
    rng = np.random.default_rng(3)
    colour = np.stack([clean, 255 - 0.5 * clean])
    noisy = colour + np.array([10.0, 30.0])[:, None, None] * rng.standard_normal(colour.shape)
    together = denoised(noisy, [10.0, 30.0], quality="fast")
    np.testing.assert_array_equal(together[0], denoise_plane(noisy[0], 10.0, quality="fast"))
    assert psnr(colour[1], together[1]) > psnr(
        colour[1], denoise_plane(noisy[1], 30.0, quality="fast")
    )


def test_colours_share_components_and_may_differ_in_noise(clean: Image) -> None:
    colour = np.stack([clean, 0.3 * clean, 0.3 * clean])
    noisy = colour + 25.0 * np.random.default_rng(4).standard_normal(colour.shape)
    both = denoised(noisy, [25.0] * 3, quality="draft")
    alone = denoised(noisy[:2], [25.0] * 2, quality="draft")
    np.testing.assert_array_equal(both[0], alone[0])
    assert psnr(colour[1], both[1]) > psnr(colour[1], alone[1]) + 0.1
    factors = np.array([1.0, 1.0, 4.0])
    scaled = denoised(factors[:, None, None] * noisy, 25.0 * factors, quality="draft")
    np.testing.assert_array_equal(scaled, factors[:, None, None] * both)


def test_planes_of_a_mosaic_do_not_share_components(clean: Image) -> None:
    noisy = np.stack([clean] * 4) + 25.0 * np.random.default_rng(4).standard_normal(
        (4, *clean.shape)
    )
    four, two = (denoised(some, [25.0] * len(some), quality="fast") for some in (noisy, noisy[:2]))
    np.testing.assert_array_equal(four[:2], two)


@pytest.mark.parametrize("quality", QUALITIES)
def test_patches_cover_all_pixels_of_the_colours(quality: Quality) -> None:
    noisy = np.random.default_rng(5).normal(100.0, 5.0, (3, 1, 41, 46)).astype(np.float32)
    whole = Piece(((0, 41), (0, 46)), (41, 46), ((0, 41), (0, 46)))
    last, variance = plan_for(5.0, Options(quality=quality)).passes[-1], np.full_like(noisy, 25.0)
    _, leverage = run_pass(noisy, noisy[0], variance, last, whole, guide_variance=variance[0])
    assert np.all(leverage < 1)


def test_groups_are_searched_in_the_first_plane_even_without_noise_there(
    clean: Image, noisy: Image, fast: NDArray[np.float32]
) -> None:
    first, guided = denoised(np.stack([clean, noisy]), [0.0, 25.0], quality="fast")
    np.testing.assert_array_equal(first, clean.astype(np.float32))
    assert psnr(clean, guided) > psnr(clean, fast) + 0.1


@pytest.mark.release
def test_rbf_approaches_its_linear_limit_as_it_widens(clean: Image, noisy: Image) -> None:
    linear, narrow, wide = (
        denoise_plane(noisy, 25.0, quality="fast", **options)
        for options in ({"method": "linear"}, {"bandwidth": 2.0}, {"bandwidth": 1e6})
    )
    assert psnr(clean, linear) - 1 < psnr(clean, narrow) < psnr(clean, linear)
    np.testing.assert_array_equal(wide, linear)


@pytest.mark.parametrize("content", CONTENTS)
def test_strokes_get_a_finite_width_automatically(content: str) -> None:
    rng = np.random.default_rng(3)
    strokes = 255.0 * (rng.random((24, 24)) > 0.3).repeat(4, axis=0).repeat(4, axis=1)
    noisy = noisy_copy(strokes, 20.0)
    by_itself, linear = (
        denoise_plane(noisy, 20.0, quality="fast", content=content, **options)
        for options in ({}, {"method": "linear"})
    )
    assert psnr(strokes, by_itself) > psnr(strokes, linear) + 0.2


@pytest.mark.parametrize("sigma", [25.0, 60.0])
def test_photographs_and_strong_noise_get_infinite_width(clean: Image, sigma: float) -> None:
    noisy = noisy_copy(clean, sigma)
    by_itself, linear = (
        denoise_plane(noisy, sigma, quality="fast", **options)
        for options in ({}, {"method": "linear"})
    )
    assert psnr(clean, by_itself) == pytest.approx(psnr(clean, linear), abs=0.01)


def test_a_draft_has_one_scale_and_fewer_patches_than_pixels() -> None:
    for sigma in (5.0, 15.0, 30.0, 80.0):
        plan = plan_for(sigma, Options(quality="draft"))
        assert not plan.halves
        assert all(step.group < step.size**2 for step in plan.passes[:2])


def test_the_default_kernel_widens_in_faint_and_in_strong_noise() -> None:
    levels = (4.0, 12.0, 25.0, 37.5, 50.0)
    widths = [plan_for(sigma, Options()).passes[0].bandwidth for sigma in levels]
    assert widths == pytest.approx([36.0, 12.0, 12.0, 24.0, np.inf])
    assert plan_for(5.0, Options(method="linear")).passes[0].bandwidth == np.inf
    assert plan_for(80.0, Options(bandwidth=3.0)).passes[0].bandwidth == 3.0
    assert plan_for(12.0, Options(pages=2)).passes[0].bandwidth == pytest.approx(12.0)
    assert plan_for(80.0, Options(method="mika")).passes[0].bandwidth == pytest.approx(12.0)
    for quality in QUALITIES:
        plan = plan_for(25.0, Options(method="mika", quality=quality))
        assert [step.soft for step in plan.passes] == [False]
        assert (plan.smooth, plan.halves) == (0.0, False)
