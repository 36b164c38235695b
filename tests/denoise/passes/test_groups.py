"""Groups of patches equal those of a numpy search; images equal those of uncompiled code."""

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kpca_apps.denoise.denoiser import denoise_kpca
from kpca_apps.denoise.passes import groups, one_pass
from kpca_apps.denoise.passes.groups import RADIUS, find_groups, gather_centred, spread
from kpca_apps.denoise.passes.one_pass import MARGINS
from kpca_apps.engine.groups import compiled
from tests.engine.groups.reference import denoise_group
from tests.quick import quick

Image = NDArray[np.float32]


def search(
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
    places, counts = find_groups(padded, (0, *place), (1, *shape), origin, k, ties)
    group = places[: counts[0]]
    assert not group[:, 0].any()
    return [(int(a), int(b)) for _, a, b in group]


def nearest(guide: Image, y: int, x: int, shape: tuple[int, int], k: int) -> set[tuple[int, int]]:
    patches = sliding_window_view(guide.astype(float), shape)
    d = ((patches - patches[y, x]) ** 2).sum((2, 3))
    rows, columns = np.indices(d.shape)
    d[(abs(rows - y) > RADIUS) | (abs(columns - x) > RADIUS)] = np.inf
    order = np.argsort(d, axis=None, kind="stable")  # NaN sorts last
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
    group = search(image, y, x, shape, 40)
    assert set(group) == nearest(image, y, x, shape, 40) and group == sorted(group)


def test_a_small_image_gives_all_its_patches() -> None:
    image = np.arange(20, dtype=np.float32).reshape(4, 5)
    assert len(search(image, 0, 0, (3, 3), 40)) == 2 * 3
    assert search(image, 0, 0, (4, 5), 40) == [(0, 0)]


def test_ties_are_drawn_from_everywhere_and_reproducibly(image: Image) -> None:
    """Patches drawn at random share no noise with the reference patch; the nearest patches do."""
    drawn = search(image, 30, 30, (6, 6), 48, tie=1e6)
    assert drawn == search(image, 30, 30, (6, 6), 48, tie=1e6)
    assert (30, 30) in drawn
    spread = np.array(drawn) - 30
    assert (np.abs(spread.mean(0)) < 4).all()
    assert (np.abs(spread.std(0) - 2 * RADIUS / np.sqrt(12)) < 2).all()
    patches = sliding_window_view(image, (6, 6))
    shared = [
        np.mean([np.vdot(patches[at], patches[30, 30]) for at in group if at != (30, 30)])
        for group in (drawn, search(image, 30, 30, (6, 6), 48))
    ]
    assert abs(shared[0]) < 2 < shared[1]


def test_draws_belong_to_the_whole_image(image: Image) -> None:
    whole = search(image, 30, 30, (6, 6), 20, tie=1e6)
    cut = search(image[10:, 3:], 20, 27, (6, 6), 20, tie=1e6, origin=(10, 3))
    assert whole == [(y + 10, x + 3) for y, x in cut]


def test_equal_patches_are_taken_in_reading_order() -> None:
    assert search(np.zeros((30, 30), np.float32), 20, 20, (4, 4), 3) == [(2, 2), (2, 3), (20, 20)]


@pytest.mark.parametrize("tie", [0.0, 100.0])
def test_nan_patches_are_never_near_and_never_overflow(image: Image, tie: float) -> None:
    rng = np.random.default_rng(1)
    for share in (0.001, 0.003, 0.02, 1.0):
        spoilt = image.copy()
        spoilt[rng.random(image.shape) < share] = np.nan
        spoilt[30:36, 30:36] = image[30:36, 30:36]
        group = search(spoilt, 30, 30, (6, 6), 48, tie)
        assert len(group) == 48
        assert (30, 30) in group
        if tie == 0 and share < 0.02:
            assert set(group) == nearest(spoilt, 30, 30, (6, 6), 48)


@pytest.mark.release
def test_pixels_beside_a_patch_enter_no_estimate() -> None:
    image = np.random.default_rng(1).normal(size=(6, 14)).astype(np.float32)
    image[:, 3] = image[:, 7:] = np.nan
    group, shape = np.array([[0, y, x] for y in (0, 3) for x in (0, 4)], np.int32), (1, 3, 3)
    patches, mean = np.full((5, 16), np.nan, np.float32), np.empty(16, np.float32)
    gather_centred(image[np.newaxis], group, shape, patches, mean)
    assert np.isfinite(patches).all() and not patches[:4, 9:].any()
    patches[:4] += mean
    patches[:, 9:] = np.nan
    sums, window = np.zeros((3, 1, 6, 14), np.float32), np.zeros((1, 3, 8), np.float32)
    window[:, :, :3] = np.outer([1, 2, 1], [1, 3, 1])
    weight, leverage = np.linspace(1, 2, 4, dtype=np.float32), np.full(4, 0.25, np.float32)
    spread(patches, weight, leverage, group, window, 3, (0, 0), sums)
    seen = np.isfinite(image)
    values, weights, leverages = sums[:, 0, seen]
    np.testing.assert_allclose(values / weights, image[seen], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(leverages / weights, 0.25, rtol=1e-5)
    assert not sums[:, 0, ~seen].any()


class ByOperator:
    """Python loops over groups of patches, to be used in place of the two compiled loops."""

    def __init__(self) -> None:
        self.bandwidths: list[float | None] = []  # bandwidth by group; None for `smooth`

    def truncate(
        self, planes: Any, variance: Any, found: Any, window: Any, width: int,
        bandwidth: float, most: float, start: Any, sums: Any, ratios: Any,
    ) -> None:  # fmt: skip
        for at, group in enumerate(self.groups(found)):
            level = float(variance[(0, *group.T)].mean())
            patches = self.cut(planes, group, window, width)
            estimate = denoise_group(patches, level, bandwidth=bandwidth, excess=float(most))
            ratios[at] = estimate.residual / level
            self.bandwidths.append(bandwidth)
            self.spread(estimate, group, window, width, start, sums)

    def smooth(
        self, planes: Any, points: Any, variance: Any, found: Any, window: Any, width: int,
        start: Any, sums: Any,
    ) -> None:  # fmt: skip
        for group in self.groups(found):
            patches, pilot = (self.cut(pages, group, window, width) for pages in (planes, points))
            estimate = denoise_group(patches, float(variance[0]), pilot=pilot)
            self.bandwidths.append(None)
            self.spread(estimate, group, window, width, start, sums)

    def groups(self, found: Any) -> list[Any]:
        places, counts = found
        room = len(places) // len(counts)
        return [places[at * room :][:k] for at, k in enumerate(counts)]

    def cut(self, planes: Any, group: Any, window: Any, width: int) -> Any:
        patches = sliding_window_view(planes[0], (*window.shape[:2], width))
        return patches[tuple(group.T)].reshape(len(group), -1).astype(float)

    def spread(self, estimate: Any, group: Any, window: Any, width: int, start: Any, sums: Any):
        weights = window[0, :, :width]
        shape, (page, top) = weights.shape, start
        values = zip(estimate.patches, estimate.weight, estimate.leverage, strict=True)
        for place, (patch, weight, leverage) in zip(group, values, strict=True):
            share = weight * weights
            under = sums[0, :, place[0] - page, place[1] - top :, place[2] :]
            under[:, : shape[0], : shape[1]] += [
                share * patch.reshape(shape),
                share,
                share * leverage,
            ]


@pytest.mark.parametrize(
    ("options", "bandwidths"),
    quick(
        [
            ({}, {None, 12.0, 24.0}),
            ({"content": "text"}, {None, 12.0}),
            ({"method": "mika"}, {12.0}),
        ],
        ({}, {None, 12.0, 24.0}),
    ),
)
def test_an_image_is_denoised_by_the_operator_of_the_engine(
    options: dict[str, Any], bandwidths: set[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiled loops use the engine's functions; `ByOperator` gives the same image."""
    loops: tuple[Any, Any] = groups.truncate_groups, groups.smooth_groups
    called = {name for loop in loops for name in loop.py_func.__code__.co_names}
    for name in ("truncate_rows", "linear_smooth"):
        assert name in called
        assert getattr(groups, name) is getattr(compiled, name)
    y, x = np.indices((40, 44))
    clean = 60 + 140 * (x > y) + 20 * np.sin(x * 0.8)
    noisy = clean + 12 * np.random.default_rng(3).standard_normal(clean.shape)
    by_machine_code = denoise_kpca(noisy, sigma=12, data_range=255, **options)
    traced = ByOperator()
    monkeypatch.setattr(one_pass, "truncate_groups", traced.truncate)
    monkeypatch.setattr(one_pass, "smooth_groups", traced.smooth)
    by_operator = denoise_kpca(noisy, sigma=12, data_range=255, **options)
    survey = {np.inf}  # bandwidth for estimating the noise, before the passes
    assert bandwidths <= set(traced.bandwidths) <= bandwidths | survey
    assert np.std(by_operator - clean) < 6
    np.testing.assert_allclose(by_operator, by_machine_code, rtol=0, atol=0.02)
