"""Compare a result with the clean image, and check whether the residual looks like noise.

References
----------
A. Buades, B. Coll, J.-M. Morel (2005), "A review of image denoising algorithms, with a new one",
SIAM Multiscale Modeling and Simulation 4(2): method noise.
Z. Wang et al. (2004), "Image quality assessment: from error visibility to structural similarity",
IEEE Transactions on Image Processing 13(4).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.image import as_stored
from kpca_apps.denoise.result import Comparison, Quality, Residual
from kpca_apps.errors import InputError
from kpca_apps.images.files import read_image
from kpca_apps.images.types import ImageFile

BASELINES = ("nl_means", "wavelet")
_WINDOW = 11  # side in pixels of the window for structural similarity
_BLOCK = 16  # side in pixels of the blocks in which detail is measured
_SHARE = 0.1  # share of all blocks that count as edges; the same share counts as flat
# Detail was removed if the correlation of the residual's neighbouring pixels is higher by more than
# this in blocks with edges than in flat blocks.
_MORE_CORRELATED = 0.1
_CLIPPED = 0.1  # minimum share of extreme pixels in a block that counts as clipped


def quality_of(image: NDArray[Any], clean: NDArray[Any], span: float) -> Quality:
    """Return PSNR and SSIM of an image against a clean one."""
    difference = image.astype(np.float64) - clean
    error = float(np.mean(np.square(difference, out=difference)))
    psnr = float("inf") if error == 0 else 10 * float(np.log10(span**2 / error))
    if min(image.shape[:2]) < _WINDOW:
        return Quality(psnr, None)
    from skimage.metrics import structural_similarity

    # Wang et al. use a Gaussian window of deviation 1.5 pixels, and biased covariances.
    ssim = structural_similarity(
        image.astype(np.float32),
        clean.astype(np.float32),
        data_range=span,
        channel_axis=-1 if image.ndim == 3 else None,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
    )
    return Quality(psnr, float(ssim))


def compare(
    noisy: NDArray[Any],
    denoised: NDArray[Any],
    clean: NDArray[Any],
    *,
    sigma: float,
    span: float,
    baselines: Sequence[str] = (),
) -> Comparison:
    """Compare the noisy image, the result and the baselines with a clean image."""
    found = {
        name: quality_of(_baseline(name, noisy, sigma, span), clean, span) for name in baselines
    }
    return Comparison(quality_of(noisy, clean, span), quality_of(denoised, clean, span), found)


def _baseline(name: str, noisy: NDArray[Any], sigma: float, span: float) -> NDArray[Any]:
    """Return a baseline's result, rounded and clipped as stored results are."""
    from skimage.restoration import denoise_nl_means, denoise_wavelet

    scaled = noisy.astype(np.float64) / span
    axis = -1 if noisy.ndim == 3 else None
    level = sigma / span
    if level == 0:
        return noisy
    if name == "nl_means":
        result = denoise_nl_means(
            scaled, patch_size=5, patch_distance=6, h=0.8 * level, sigma=level, channel_axis=axis
        )
    else:
        result = denoise_wavelet(
            scaled, sigma=[level] * 3 if axis else level, rescale_sigma=True, channel_axis=axis
        )
    result = np.asarray(result * span)
    return as_stored(result, noisy.dtype) if noisy.dtype.kind in "ui" else result


def measure_residual(noisy: NDArray[Any], denoised: NDArray[Any]) -> Residual:
    """Measure noisy minus denoised; if neighbouring pixels correlate at edges, detail was lost.

    Clipping changes the mean of noise at black and white. Denoising restores the mean, so that the
    residual has a non-zero mean in clipped blocks.
    """
    # Process one channel at a time and in single precision, to save memory.
    before, after = (p[..., np.newaxis] if p.ndim == 2 else p for p in (noisy, denoised))
    grey, guide = (np.zeros(before.shape[:2], np.float32) for _ in range(2))
    limits, n, moments, clipped = (before.min(), before.max()), before.shape[2], [], []
    for channel in range(n):
        difference = np.subtract(before[..., channel], after[..., channel], dtype=np.float64)
        grey += difference / n
        guide += after[..., channel] / np.float32(n)
        clipped.append(_block_sums(np.isin(before[..., channel], limits)))
        moments.append((difference.mean(), np.square(difference, out=difference).mean()))
    mean, square = np.mean(moments, axis=0)
    sd = float(np.sqrt(max(square - mean**2, 0.0)))
    if min(grey.shape) < 4 * _BLOCK or sd == 0:
        return Residual(sd, 0.0, 0.0, structured=False)
    is_clipped = np.mean(clipped, axis=0) > _CLIPPED * _BLOCK**2
    # The mean of a block of noise has a standard deviation of sd / _BLOCK.
    means = _block_sums(grey)[is_clipped] / _BLOCK**2
    clipped_mean = float(means.mean()) if means.size else 0.0
    if abs(clipped_mean) < float(grey.std(dtype=np.float64)) / _BLOCK:
        clipped_mean = 0.0
    # Multiply by powers of 2, without rounding errors, so that squares of large floats stay finite.
    grey, guide = (np.ldexp(one, -np.frexp(np.abs(one).max())[1]) for one in (grey, guide))
    across, down = (np.diff(guide, axis=axis, append=np.float32(0)) ** 2 for axis in (1, 0))
    across[:, -1] = down[-1] = 0
    activity = _block_sums(np.add(across, down, out=down))
    products = np.pad(0.5 * grey[:-1, :-1] * (grey[1:, :-1] + grey[:-1, 1:]), (0, 1))
    covariance, variance = _block_sums(products), _block_sums(grey**2)
    order = np.argsort(activity, axis=None, kind="stable")
    # Skip unchanged blocks, such as blocks outside a region.
    order = order[variance.ravel()[order] > 0]
    n_blocks = max(4, int(_SHARE * order.size))
    edge = _ratio(covariance, variance, order[-n_blocks:])
    flat = _ratio(covariance, variance, order[:n_blocks])
    return Residual(sd, edge, flat, edge - flat > _MORE_CORRELATED, clipped_mean)


def _block_sums(values: NDArray[np.float32 | np.bool_]) -> NDArray[np.float64]:
    down, across = (size // _BLOCK for size in values.shape)
    blocks = values[: down * _BLOCK, : across * _BLOCK].reshape(down, _BLOCK, across, _BLOCK)
    return np.asarray(blocks.sum(axis=(1, 3), dtype=np.float64))


def _ratio(
    covariance: NDArray[np.float64], variance: NDArray[np.float64], which: NDArray[np.intp]
) -> float:
    total = float(variance.ravel()[which].sum())
    return float(covariance.ravel()[which].sum()) / total if total > 0 else 0.0


def read_reference(path: Path | None, name: str, image: ImageFile) -> ImageFile | None:
    """Open the clean image of an input; refuse pages of other sizes than the input's pages."""
    if path is None:
        return None
    label = f"{name}: its reference {path.name}"
    clean = read_image(path, label=label)
    for number, (one, other) in enumerate(zip(image.pages, clean.pages, strict=False), 1):
        sizes = {(page.height, page.width, page.channels - page.alpha) for page in (one, other)}
        if len(sizes) > 1:
            where = f" (page {number})" if len(image.pages) > 1 else ""
            its, own = (" x ".join(map(str, page.shape)) for page in (other, one))
            raise InputError(
                f"{label} has shape {its} and the image{where} {own}; give a reference of the same "
                "size and channels."
            )
    if len(image.pages) != len(clean.pages):
        raise InputError(
            f"{label} has {len(clean.pages)} pages and the image {len(image.pages)}; give a "
            "reference with the same pages."
        )
    if image.pages[0].dtype != clean.pages[0].dtype:
        raise InputError(
            f"{label} holds {clean.pages[0].dtype} and the image {image.pages[0].dtype}; give a "
            "reference of the same type."
        )
    return clean
