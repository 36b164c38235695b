"""Make previews of an image for a report, before and after denoising."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kpca_apps.denoise.batch.pages import grey_of
from kpca_apps.denoise.result import Crop, ImagePreviews, Preview

VIEW, LONGEST, THUMB, CROP = 560, 1100, 120, 128  # sides in pixels; see `ImagePreviews`
# A higher quality would spend most of its additional bytes on noise, and look no better.
_JPEG_QUALITY = 82
_RESIDUAL_QUALITY = 75
_MAX_PROFILE = 8192  # maximum number of bytes of a colour profile in a preview
_TAILS = (0.1, 99.9)  # percentiles of the values drawn black and white
# A median below the share _DARK of the range is drawn at the share _LIFTED of full brightness.
_DARK, _LIFTED = 0.1, 0.25
_MARGIN = 0.08  # a flat crop's mean is this share of the range or more above black and below white


def make_previews(
    noisy: NDArray[Any],
    denoised: NDArray[Any],
    *,
    clean: NDArray[Any] | None = None,
    orientation: int = 1,
    icc: bytes | None = None,
) -> ImagePreviews:
    """Return previews of an image, turned by its orientation tag."""
    scale = _Scale.of(denoised)
    icc = icc if icc is not None and len(icc) <= _MAX_PROFILE else None
    before, after = turned(noisy, orientation), turned(denoised, orientation)
    reference = None if clean is None else turned(clean, orientation)
    drawn_before, drawn_after = scale.picture(before), scale.picture(after)

    def crop(pixels: NDArray[Any], left: int, top: int) -> Preview:
        return encoded(scale.picture(pixels[top : top + CROP, left : left + CROP]), None, icc)

    crops = tuple(
        Crop(
            kind=kind,
            left=left,
            top=top,
            before=crop(before, left, top),
            after=crop(after, left, top),
            reference=None if reference is None else crop(reference, left, top),
        )
        for kind, left, top in _places(after)
    )
    return ImagePreviews(
        before=encoded(_viewed(drawn_before), _JPEG_QUALITY, icc),
        after=encoded(_viewed(drawn_after), _JPEG_QUALITY, icc),
        thumb=encoded(_fitted(drawn_after, THUMB), _JPEG_QUALITY, icc),
        residual=_residual(before, after),
        crops=crops,
        stretched=scale.stretched,
    )


def turned(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Turn an image as its orientation tag says."""
    if orientation >= 5:
        pixels = np.swapaxes(pixels, 0, 1)
    # After rows and columns are swapped, choose the axes to reverse.
    upside_down = orientation in (3, 4, 7, 8)
    mirrored = orientation in (2, 3, 6, 7)
    return pixels[:: -1 if upside_down else 1, :: -1 if mirrored else 1]


def used_range(pixels: NDArray[Any]) -> float:
    """Return the range of the values of an image without outliers."""
    low, high = _ends(_sampled(pixels))
    return high - low


def _sampled(pixels: NDArray[Any]) -> NDArray[Any]:
    step = max(1, int(np.sqrt(pixels.shape[0] * pixels.shape[1] / 1e6)))
    return pixels[::step, ::step]


def _ends(values: NDArray[Any]) -> tuple[float, float]:
    low, high = np.percentile(values, _TAILS)
    return float(low), float(high)


@dataclass(frozen=True)
class _Scale:
    """Scale from values to 8 bits, which lifts the midtones of a dark image with bright spots."""

    low: float
    high: float
    midtone: float  # value drawn at half the brightness of `high`, as a share of the range
    stretched: bool

    @classmethod
    def of(cls, denoised: NDArray[Any]) -> _Scale:
        if denoised.dtype == np.uint8:
            return cls(0.0, 255.0, 0.5, False)
        values = _sampled(denoised)
        low, high = _ends(values)
        lit = values[values > low]
        typical = (float(np.median(lit)) - low) / (high - low) if high > low and lit.size else 1.0
        return cls(low, high, _lifted(typical, _LIFTED) if typical < _DARK else 0.5, True)

    def picture(self, pixels: NDArray[Any]) -> Image.Image:
        if not self.stretched:
            return Image.fromarray(np.ascontiguousarray(pixels, np.uint8))
        span = self.high - self.low or 1.0
        scaled = np.clip((pixels.astype(np.float64) - self.low) / span, 0, 1)
        return Image.fromarray(np.asarray(np.rint(255 * _lifted(scaled, self.midtone)), np.uint8))


def encoded(picture: Image.Image, quality: int | None, icc: bytes | None = None) -> Preview:
    """Encode a picture as JPEG, or as PNG if `quality` is None."""
    buffer, kind = io.BytesIO(), "png" if quality is None else "jpeg"
    options = {} if quality is None else {"quality": quality, "subsampling": 0}
    picture.save(buffer, kind, icc_profile=icc, **options)
    return Preview(f"image/{kind}", buffer.getvalue(), picture.width, picture.height)


def _lifted(values: Any, midtone: float) -> Any:
    """Map 0, `midtone` and 1 smoothly to 0, 0.5 and 1; if f(x, m) = t, then f(x, t) = m."""
    return (1 - midtone) * values / ((1 - 2 * midtone) * values + midtone)


def _viewed(picture: Image.Image) -> Image.Image:
    """Scale a picture down to at most `VIEW`**2 pixels, with sides of at most `LONGEST` pixels."""
    width, height = picture.size
    return _fitted(picture, min(LONGEST, VIEW * (max(width, height) / min(width, height)) ** 0.5))


def _fitted(picture: Image.Image, most: float) -> Image.Image:
    """Reduce a picture to at most `most` pixels wide and high; never enlarge it."""
    scale = most / max(picture.size)
    if scale >= 1:
        return picture
    width, height = (max(1, round(side * scale)) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BOX)


def _residual(before: NDArray[Any], after: NDArray[Any]) -> Preview:
    """Draw noisy minus denoised on middle grey; -3 deviations are black, +3 white."""
    difference = grey_of(before.astype(np.float32) - after)
    reduced = np.asarray(_viewed(Image.fromarray(difference)), np.float64)
    sd = float(reduced.std()) or 1.0
    grey = np.clip(np.rint(128 + reduced * (127 / (3 * sd))), 0, 255).astype(np.uint8)
    return encoded(Image.fromarray(grey), _RESIDUAL_QUALITY)


def _places(image: NDArray[Any]) -> list[tuple[str, int, int]]:
    """Return kind, left and top of the crops with the most and the least detail."""
    grey = grey_of(image)
    height, width = grey.shape
    if height * width < 4 * CROP * CROP:
        return [("detail", max(0, (width - CROP) // 2), max(0, (height - CROP) // 2))]
    tops, lefts = places_for(height, CROP), places_for(width, CROP)
    energy = np.zeros((len(tops), len(lefts)))
    mean = np.zeros_like(energy)
    for row, top in enumerate(tops):
        for column, left in enumerate(lefts):
            piece = grey[top : top + CROP, left : left + CROP]
            energy[row, column] = detail_of(piece)
            mean[row, column] = piece.mean(dtype=np.float64)
    low, high = float(grey.min()), float(grey.max())
    margin = _MARGIN * (high - low)
    dull = (mean < low + margin) | (mean > high - margin)
    # Avoid clipped shadows and highlights, which show no noise, if possible.
    flat = np.where(dull & ~dull.all(), np.inf, energy)
    places = []
    for kind, index in (("detail", int(energy.argmax())), ("flat", int(flat.argmin()))):
        row, column = divmod(index, len(lefts))
        places.append((kind, lefts[column], tops[row]))
    return places


def detail_of(piece: NDArray[np.float32]) -> float:
    """Return the mean absolute slope of a grey piece, which no single hard edge dominates."""
    slopes = (np.abs(np.diff(piece, axis=axis)) for axis in (0, 1) if piece.shape[axis] > 1)
    return float(sum(one.mean(dtype=np.float64) for one in slopes))


def places_for(length: int, crop: int) -> list[int]:
    """Return candidate positions of crops, half a crop apart, the last at the border."""
    last = max(0, length - crop)
    return sorted({*range(0, last, crop // 2), last})
