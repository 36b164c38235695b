"""Groups against a search in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kpca_apps.denoise.passes.compiled import RADIUS, find_groups
from kpca_apps.denoise.passes.one_pass import MARGINS

Image = NDArray[np.float32]


def found(
    guide: Image,
    y: int,
    x: int,
    shape: tuple[int, int],
    k: int,
    tie: float = 0.0,
    origin: tuple[int, int] = (0, 0),
) -> list[tuple[int, int]]:
    padded = np.pad(guide[np.newaxis], MARGINS)
    ties = np.full(guide[np.newaxis].shape, tie, np.float32)
    place = np.array([y]), np.array([x])
    places, counts = find_groups(padded, 0, *place, (1, *shape), origin, k, ties)
    group = places[: counts[0]]
    assert not group[:, 0].any()
    return [(int(a), int(b)) for _, a, b in group]


def nearest(guide: Image, y: int, x: int, shape: tuple[int, int], k: int) -> set[tuple[int, int]]:
    patches = sliding_window_view(guide.astype(float), shape)
    d = ((patches - patches[y, x]) ** 2).sum((2, 3))
    rows, columns = np.indices(d.shape)
    d[(abs(rows - y) > RADIUS) | (abs(columns - x) > RADIUS)] = np.inf
    order = np.argsort(d, axis=None, kind="stable")  # NaN last
    order = order[np.isfinite(d.ravel()[order])][:k]
    return {(int(i) // d.shape[1], int(i) % d.shape[1]) for i in order}


@pytest.fixture
def image() -> Image:
    return np.random.default_rng(0).normal(size=(60, 70)).astype(np.float32)


@pytest.mark.parametrize("place", [(0, 0), (30, 30), (54, 64), (54, 0), (3, 61)])
@pytest.mark.parametrize("shape", [(6, 6), (5, 7)])
def test_the_nearest_patches_are_found(
    image: Image, place: tuple[int, int], shape: tuple[int, int]
) -> None:
    y, x = min(place[0], 60 - shape[0]), min(place[1], 70 - shape[1])
    group = found(image, y, x, shape, 40)
    assert set(group) == nearest(image, y, x, shape, 40)
    assert group == sorted(group)


def test_a_small_image_gives_all_it_has() -> None:
    image = np.arange(20, dtype=np.float32).reshape(4, 5)
    assert len(found(image, 0, 0, (3, 3), 40)) == 2 * 3
    assert found(image, 0, 0, (4, 5), 40) == [(0, 0)]


def test_ties_are_drawn_from_everywhere_and_always_the_same(image: Image) -> None:
    """In noise the nearest 48 of 1369 share the reference's noise; drawn ones do not."""
    drawn = found(image, 30, 30, (6, 6), 48, tie=1e6)
    assert drawn == found(image, 30, 30, (6, 6), 48, tie=1e6)
    assert (30, 30) in drawn
    spread = np.array(drawn) - 30
    assert (np.abs(spread.mean(0)) < 4).all()
    assert (np.abs(spread.std(0) - 2 * RADIUS / np.sqrt(12)) < 2).all()
    patches = sliding_window_view(image, (6, 6))
    shared = [
        np.mean([np.vdot(patches[at], patches[30, 30]) for at in group if at != (30, 30)])
        for group in (drawn, found(image, 30, 30, (6, 6), 48))
    ]
    assert abs(shared[0]) < 2 < shared[1]


def test_draws_belong_to_the_whole_image(image: Image) -> None:
    whole = found(image, 30, 30, (6, 6), 20, tie=1e6)
    cut = found(image[10:, 3:], 20, 27, (6, 6), 20, tie=1e6, origin=(10, 3))
    assert whole == [(y + 10, x + 3) for y, x in cut]


def test_equal_patches_are_taken_in_reading_order() -> None:
    flat = np.zeros((30, 30), np.float32)
    assert found(flat, 20, 20, (4, 4), 3) == [(2, 2), (2, 3), (20, 20)]


@pytest.mark.parametrize("tie", [0.0, 100.0])
def test_what_is_not_a_number_is_never_near_and_never_too_much(image: Image, tie: float) -> None:
    rng = np.random.default_rng(1)
    for share in (0.001, 0.003, 0.02, 1.0):
        spoilt = image.copy()
        spoilt[rng.random(image.shape) < share] = np.nan
        spoilt[30:36, 30:36] = image[30:36, 30:36]
        group = found(spoilt, 30, 30, (6, 6), 48, tie)
        assert len(group) == 48
        assert (30, 30) in group
        if tie == 0 and share < 0.02:
            assert set(group) == nearest(spoilt, 30, 30, (6, 6), 48)
