"""Report previews: rotated, downscaled, and cropped where there is detail."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from kpca_apps.denoise.batch.examine.previews import (
    CROP,
    LONGEST,
    THUMB,
    VIEW,
    make_previews,
    turned,
)
from kpca_apps.denoise.result import Preview
from tests.denoise.toy import picture


def decoded(preview: Preview) -> np.ndarray:
    with Image.open(io.BytesIO(preview.data)) as seen:
        assert seen.get_format_mimetype() == preview.media_type
        assert seen.size == (preview.width, preview.height)
        return np.array(seen)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_as_pillow_turns(orientation: int) -> None:
    pixels = picture(0, (5, 7, 3))
    exif = Image.Exif()
    exif[274] = orientation
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", exif=exif)
    with Image.open(io.BytesIO(buffer.getvalue())) as seen:
        expected = np.array(ImageOps.exif_transpose(seen))
    np.testing.assert_array_equal(turned(pixels, orientation), expected)


def scene() -> np.ndarray:
    """Texture at the lower right, black at the upper left, constant grey elsewhere."""
    image = np.full((500, 700), 120, np.uint8)
    image[:250, :200] = 0
    image[300:, 500:] = picture(1, (200, 200))
    return image


def test_crops_show_detail_and_evenness_at_full_size() -> None:
    after = scene()
    before = after ^ 1
    previews = make_previews(before, after, clean=after)
    assert [crop.kind for crop in previews.crops] == ["detail", "flat"]
    detail, flat = previews.crops
    assert (detail.left, detail.top) >= (500, 300)
    for crop in previews.crops:
        place = np.s_[crop.top : crop.top + CROP, crop.left : crop.left + CROP]
        np.testing.assert_array_equal(decoded(crop.before), before[place])
        np.testing.assert_array_equal(decoded(crop.after), after[place])
        assert crop.reference is not None
        np.testing.assert_array_equal(decoded(crop.reference), after[place])
    assert (after[flat.top : flat.top + CROP, flat.left : flat.left + CROP] == 120).all()


@pytest.mark.parametrize("shape", [(900, 1800, 3), (1200, 1200), (100, 5000), (5000, 100, 3)])
def test_sizes_are_bounded(shape: tuple[int, ...]) -> None:
    previews = make_previews(*[np.zeros(shape, np.uint8)] * 2)
    for view in (previews.before, previews.after, previews.residual):
        assert view.width * view.height <= 1.01 * VIEW**2
        assert max(view.width, view.height) <= LONGEST
        assert view.width / view.height == pytest.approx(shape[1] / shape[0], rel=0.02)
        at_most = view.width * view.height >= 0.99 * VIEW**2
        assert at_most or max(view.width, view.height) == LONGEST
    assert max(previews.thumb.width, previews.thumb.height) == THUMB


def test_images_are_never_enlarged() -> None:
    small = make_previews(*[np.zeros((3, 1), np.uint8)] * 2)
    for view in (small.before, small.after, small.residual, small.thumb):
        assert (view.width, view.height) == (1, 3)


@pytest.mark.filterwarnings("error")
def test_large_floats_look_as_small_ones() -> None:
    small, scale = np.tile(picture(0), (12, 12)).astype(np.float32), np.float32(2.0**115)
    near, far = (make_previews(x, np.roll(x, 1)) for x in (small, small * scale))
    assert (far.residual, far.after) == (near.residual, near.after)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [(70, 70), (70, 70, 3)])
def test_the_residual_of_the_smallest_floats_is_visible(size: tuple[int, ...]) -> None:
    noisy = (np.random.default_rng(0).random(size) * 1e-42).astype(np.float32)
    shown = decoded(make_previews(noisy, np.full_like(noisy, 5e-43)).residual).astype(float)
    assert shown.std() == pytest.approx(127 / 3, abs=3)


def test_the_residual_is_on_middle_grey() -> None:
    noise = np.random.default_rng(0).normal(0, 10, (200, 300))
    clean = np.full((200, 300), 128.0)
    shown = decoded(make_previews(clean + noise, clean).residual).astype(float)
    assert abs(shown.mean() - 128) < 2 and abs(shown.std() - 127 / 3) < 3
    assert np.corrcoef(shown.ravel(), noise.ravel())[0, 1] > 0.97


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_deep_images_are_stretched_alike_before_and_after(dtype: str) -> None:
    after = (1000 + 10 * np.add.outer(np.arange(40), np.arange(40))).astype(dtype)
    previews = make_previews((after + 50).astype(dtype), after)
    assert previews.stretched
    (crop,) = previews.crops
    shown = decoded(crop.after)
    assert shown.min() == 0 and shown.max() == 255
    assert decoded(crop.before).mean() > shown.mean()


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_a_dim_picture_with_a_few_bright_spots_is_not_shown_black(dtype: str) -> None:
    """Pictures of night skies, and of cells with one stained structure, have such spots."""
    after = np.random.default_rng(0).normal(300, 60, (300, 400))
    after[100:115, 200:260] = 60000
    after = after.clip(0, None).astype(dtype)
    previews = make_previews(after, after)
    for view in (previews.before, previews.after, previews.thumb):
        shown = decoded(view)
        assert 40 < np.median(shown) < 200
        assert shown.max() > 240
    # The tone curve is monotonic: brighter values are never shown darker.
    crop = previews.crops[0]
    place = np.s_[crop.top : crop.top + CROP, crop.left : crop.left + CROP]
    order = np.argsort(after[place], axis=None)
    assert (np.diff(decoded(crop.after).ravel()[order].astype(int)) >= 0).all()
    assert len(np.unique(decoded(crop.after))) > 60


def test_the_colour_profile_is_put_in() -> None:
    pixels = picture(0, (200, 300, 3))
    previews = make_previews(pixels, pixels, icc=b"a small profile")
    for preview in (previews.before, previews.crops[0].after):
        with Image.open(io.BytesIO(preview.data)) as seen:
            assert seen.info["icc_profile"] == b"a small profile"
    large = make_previews(pixels, pixels, icc=bytes(100_000))
    with Image.open(io.BytesIO(large.before.data)) as seen:
        assert "icc_profile" not in seen.info
