"""Planes of a layer, without napari: previews, all planes, and cancelling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kpca_apps import denoise_with_info
from kpca_apps.denoise.options import Options
from kpca_apps.napari.layers import (
    CancelledError,
    DenoiseRequest,
    denoise_planes,
    describe_noise,
    plane_at,
    preview,
)

FILM = np.clip(
    np.add.outer(np.arange(4), np.add.outer(np.arange(96), np.arange(120)))
    + 8 * np.random.default_rng(0).normal(size=(4, 96, 120)),
    0,
    255,
).astype(np.uint8)
FAST = DenoiseRequest(Options(quality="draft"))


def check_share(share: float) -> None:
    assert 0 <= share <= 1


@pytest.mark.parametrize("rgb", [False, True])
def test_a_preview_is_a_part_of_the_whole(rgb: bool) -> None:
    plane = np.moveaxis(FILM[:3], 0, -1) if rgb else FILM[0]
    part, info = preview(plane, ((20, 60), (30, 90)), FAST, check_share)
    whole, _ = denoise_with_info(plane, channel_axis=-1 if rgb else None, quality="draft")
    assert np.array_equal(part, np.rint(whole[20:60, 30:90]))
    assert "(measured)" in describe_noise([info])


def test_planes_are_denoised_one_by_one_or_together() -> None:
    seen: list[float] = []
    single, infos = denoise_planes(FILM, FAST, seen.append, rgb=False)
    assert len(infos) == 4 and single.dtype == np.uint8
    assert seen[-1] == 1.0 and seen == sorted(seen)
    expected, _ = denoise_with_info(FILM[2], quality="draft")
    assert np.array_equal(single[2], np.rint(expected))
    together, infos = denoise_planes(
        FILM, DenoiseRequest(FAST.options, 8.0, stack=True), check_share, rgb=False
    )
    expected, _ = denoise_with_info(FILM, stack_axis=0, sigma=8.0, quality="draft")
    assert len(infos) == 1 and np.array_equal(together, np.rint(expected))


def test_what_is_no_array_is_read_plane_by_plane() -> None:
    read = []

    class Lazy:
        ndim, shape, dtype = 4, (2, 4, 96, 120), FILM.dtype

        def __getitem__(self, place: tuple[Any, ...]) -> np.ndarray:
            read.append(place)
            return FILM[place[-1]]

    lazy: Any = Lazy()
    assert np.array_equal(plane_at(lazy, (1, 3, 0, 0), rgb=False), FILM[3])
    denoise_planes(lazy, DenoiseRequest(Options(strength=0.0)), check_share, rgb=False)
    assert read == [(1, 3), *np.ndindex(2, 4)]


def test_a_callback_may_end_the_work() -> None:
    def cancel(share: float) -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        denoise_planes(FILM, FAST, cancel, rgb=False)


def test_noise_levels_of_planes_are_reported_together() -> None:
    texture, _ = denoise_with_info(FILM[0], sigma=3.0, quality="draft", strength=0.0)
    assert texture.shape == FILM[0].shape
    _, first = denoise_with_info(FILM[0], sigma=3.0, strength=0.0)
    _, second = denoise_with_info(FILM[0], sigma=4.5, strength=0.0)
    assert describe_noise([first, second]) == "Noise: gaussian, level 3 to 4.5."
