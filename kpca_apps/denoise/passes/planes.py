"""Denoise an image by kernel PCA on groups of similar patches, in three to five passes.

Y is the noisy image, s2 the variance of its noise, and D the leverage of an estimate, whose noise
variance is D s2. Truncation and Tikhonov filter: `kpca_apps.engine.groups.operator`.

1. X, D1 = truncation of Y.
2. Q, D2 = truncation of X + t (Y - X), whose noise variance is s2 (t^2 + (1 - t^2) D1), as X is
   nearly a projection of Y. Iterative regularisation restores detail that the first pass lost
   (Osher et al. 2005). t^2 is the mean of D1: the noise added is as strong as the noise left.
   Left out for a draft, at quality "fast", and for a stack: Q = X.
3. B, D3 = Tikhonov filter of Y, learned on the pilot Q.
4. A = .8 B + .2 Q, and Q = truncation of A + t (Y - A), t = .3. The patches are small, as they are
   matched in a nearly clean image.
5. Step 4 again, at high quality.

The colours of an image are truncated together, as one plane of larger patches. Steps 3 to 5 then
gain by a smaller t = .1 and without B, so A = Q.

The result is b B + (1 - b) Q, b = .2, or up to .35 where noise is faint. A draft uses smaller
groups and coarser grids, and no other scale.

Low frequencies of photographs are also estimated at half the scale, and so on: means of 2 x 2
pixels have half the noise, and their patches cover four times the area. Both estimates are
averaged, as their errors differ: E + (1/2) U G (C - H E). E and C are the estimates at full and at
half scale, H takes the means, G blurs and U enlarges (Facciolo et al. 2017).

An image is processed in strips of rows with a margin. The pages of a volume or a film are denoised
together, at full scale only: patches span two pages, and groups are also sought in the pages
around, where the search follows motion. Long stacks are processed in blocks of pages with a margin.

References
----------
Osher, Burger, Goldfarb, Xu & Yin 2005, Multiscale Model. Simul. 4(2).
Herbreteau & Kervrann 2022, SIAM J. Imaging Sci. 15(4) (the linear limit of pass 3).
Facciolo, Pierazzo & Morel 2017, SIAM J. Imaging Sci. 10(3) (conservative scale recomposition).
Maggioni, Katkovnik, Egiazarian & Foi 2013, IEEE Trans. Image Processing 22 (BM4D: cubes).
Dabov, Foi & Egiazarian 2007, EUSIPCO (V-BM3D: the search that follows).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kpca_apps.denoise.image import SCALE, used_range
from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.passes.one_pass import Piece, residual_ratios, run_pass
from kpca_apps.denoise.passes.plan import Pass, Plan, plan_for
from kpca_apps.denoise.passes.scales import average_low_frequencies, halve
from kpca_apps.denoise.progress import part, share_of_work
from kpca_apps.system.blas import one_blas_thread

Planes = NDArray[np.float32]
Side = tuple[int, int]  # begin and end of a window along an axis
Estimates = list[tuple[Planes, Planes]]  # estimate and leverage of each pass

# Weight of the Tikhonov filter's estimate when it is averaged with the estimate by truncation (step
# 4 of the module's docstring). Chosen on 16 crops of BSDS500 (`development` in
# tests/benchmarks/held_out.py). The gains over a weight of .6 are .006 dB at noise of 15, .013 at
# 25 and .022 at 50.
SMOOTH_IN_PILOT = np.float32(0.8)
# Share of what was removed from colours that steps 4 and 5 add back to them (t in the docstring of
# this module). Chosen on crops of BSDS500/train, where .3 loses .04 dB.
BACK_IN_COLOURS = np.float32(0.1)

STRIP_SAMPLES = 4_000_000  # maximum number of pixels times channels in a strip, which takes 270 MB
BLOCK_SAMPLES = 6_000_000  # the same for a block of pages, which takes 500 MB
AROUND = 4  # number of pages on each side of a block that are denoised with the block
FEWEST_PAGES = 4  # minimum number of pages in a block

# Number of groups that test whether a given noise level is too low, and that number for a draft.
SURVEYED, SURVEYED_FOR_DRAFT = 1600, 400
QUIET = 0.05  # in all but the busiest images, at least this share of groups shows almost only noise
# Ratio of residual to given noise variance in quiet groups, if the given sigma is right: below 1,
# as similar patches share some of their noise. Measured: .84 to .89 on noise alone, .85 to .90 on
# photographs at sigma 15 to 50; but .97 to .99 if the given sigma is 10 % too low.
QUIET_RATIO = 0.905
# Excess noise variance, divided by the rise that it causes in the ratio above: 20 % / 8 %.
STEEPNESS = 2.5
MOST_EXCESS = 1.25  # maximum assumed ratio of the actual noise variance to the given one

BLURRED = 6  # half-scale pixels at most this far outside a window affect its low frequencies
AT_HALF = 0.25  # share of the running time at half scale and below, used to show progress
SMALLEST = 16  # minimum side in pixels of an image at the smallest scale: two patches

FAINTEST = 0.02  # least noise level assumed in a plane, as a share of the noisiest plane's
NEGLIGIBLE = 1e-3  # noise level, of 255, below which planes stay unchanged


@one_blas_thread()
def denoise_planes(noisy: Planes, sigmas: NDArray[np.floating], options: Options) -> Planes:
    """Remove white Gaussian noise from planes of one scene, matching patches in the first plane.

    The planes (c, h, w) are on the scale 0..255 and not clipped; the first is luminance, which
    shows edges with least noise. Pages of a stack lie one below the other. Planes without noise, or
    whose factor in `options` is 0, are returned unchanged.
    """
    factors = np.array([options.luma] + [options.chroma] * (len(noisy) - 1))
    levels = np.asarray(sigmas, np.float64) * factors
    levels[levels < NEGLIGIBLE] = 0.0
    if not levels.any():
        return noisy.copy()
    untouched = levels == 0
    levels = np.maximum(levels, FAINTEST * levels.max()).astype(np.float32)
    pages = np.ascontiguousarray(noisy, np.float32)
    pages = pages.reshape(len(noisy), options.pages, -1, noisy.shape[2])
    by_kind = _denoise_stack if options.pages > 1 else _denoise_scales
    cleaned = by_kind(pages, levels, options).reshape(noisy.shape)
    cleaned[untouched] = noisy[untouched]
    return cleaned


def page_blocks(count: int, samples: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield first and end of each block of pages, and of the pages denoised with the block.

    `samples` is the number of pixels times channels of a page.

    >>> list(page_blocks(20, 1_000_000))
    [(0, 6, 0, 10), (6, 12, 2, 16), (12, 18, 8, 20), (18, 20, 14, 20)]
    """
    size = max(FEWEST_PAGES, BLOCK_SAMPLES // samples)
    size = count if count <= size + 2 * AROUND else size
    for first in range(0, count, size):
        end = min(first + size, count)
        yield first, end, max(0, first - AROUND), min(count, end + AROUND)


def _denoise_stack(pages: Planes, levels: Planes, options: Options) -> Planes:
    plan, cleaned = plan_for(float(levels[0]), options), np.empty_like(pages)
    whole = ((0, pages.shape[2]), (0, pages.shape[3]))
    blocks = list(page_blocks(pages.shape[1], pages[:, 0].size))
    for number, (first, end, begin, stop) in enumerate(blocks):
        with part(number, len(blocks)):
            found, _ = _denoise_strip(pages[:, begin:stop], levels**2, plan, whole, [])
        cleaned[:, first:end] = found[:, first - begin : end - begin]
    return cleaned


def _denoise_scales(planes: Planes, levels: Planes, options: Options) -> Planes:
    """Denoise the planes of an image at its scale, at half the scale, and so on."""
    wanted = options.wanted or ((0, planes.shape[2]), (0, planes.shape[3]))
    # Check the noise level only at the finest scale: at coarser scales, detail looks like noise.
    surveyed = SURVEYED_FOR_DRAFT if options.quality == "draft" else SURVEYED
    sigma = float(levels[0])
    # Choose patches and groups by the noise relative to the range that the picture uses.
    relative = max(1.0, SCALE / max(2.0 * used_range(planes[0]), sigma))
    first = plan_for(relative * sigma, options).passes[0]
    seen = survey(planes, sigma, first, surveyed)
    estimates: list[Planes] = []
    done = 0.0
    while True:
        plan = plan_for(relative * float(levels[0]), options, *seen)
        halves = plan.halves and min(planes.shape[2:]) >= 2 * SMALLEST
        if halves:
            (rows, tall), (columns, wide) = map(_with_what_blurs, wanted, planes.shape[2:])
            wanted = tall, wide
        share = (1 - done) * (1 - AT_HALF) if halves else 1 - done
        with share_of_work(done, share):
            estimates.append(_denoise_strips(planes, levels**2, plan, wanted))
        if not halves:
            break
        done += share
        planes, levels = halve(planes), np.float32(0.5) * levels
        wanted = rows, columns
    cleaned = estimates.pop()
    while estimates:
        average_low_frequencies(estimates[-1][:, 0], cleaned[:, 0])
        cleaned = estimates.pop()
    return cleaned


def _with_what_blurs(side: Side, size: int) -> tuple[Side, Side]:
    """Widen an interval by BLURRED half-scale pixels; return it in half- and full-scale pixels.

    An odd last row or column belongs to the last pair.

    >>> _with_what_blurs((100, 200), 205)
    ((44, 102), (88, 205))
    """
    begin, end = max(0, side[0] // 2 - BLURRED), min(size // 2, (side[1] + 1) // 2 + BLURRED)
    return (begin, end), (2 * begin, size if end == size // 2 else 2 * end)


def _denoise_strips(planes: Planes, variances: Planes, plan: Plan, wanted: Window) -> Planes:
    """Run the passes over a window, in strips of rows with a margin that is cut off."""
    channels, _, _, width = planes.shape
    margin, ((start, stop), (left, right)) = plan.reach, wanted
    samples = channels * (min(width, right + margin) - max(0, left - margin))
    # Make strips at least twice as high as the margin, so that margins at most double the work.
    rows = max(2 * margin, STRIP_SAMPLES // samples)
    # Make all strips about equally high, which lowers peak memory.
    n_strips = -(-(stop - start) // rows)
    rows = -(-(stop - start) // n_strips)
    result, carried = planes.copy(), Estimates()
    for number, top in enumerate(range(start, stop, rows)):
        inner = ((top, min(top + rows, stop)), (left, right))
        with part(number, n_strips):
            strip, carried = _denoise_strip(planes, variances, plan, inner, carried)
        result[:, :, top : inner[0][1], left:right] = strip
    return result


def _denoise_strip(
    planes: Planes, variances: Planes, plan: Plan, wanted: Window, carried: Estimates
) -> tuple[Planes, Estimates]:
    """Run the passes over a window with a margin; return the estimate of the window.

    Also return the estimates of each pass around the lower end, which the strip below needs again;
    `carried` holds those of the strip above. Arrays are freed early, as they take most of the
    memory.
    """
    (top, bottom), (left, right) = wanted
    height, width = planes.shape[2:]
    margin = plan.reach
    first, last = max(0, top - margin), min(height, bottom + margin)
    before, after = max(0, left - margin), min(width, right + margin)
    # Scale all planes to the noise level of the first, so that one noise level holds for all.
    scale = np.sqrt(variances / variances[0])[:, None, None, None]
    noisy = planes[:, :, first:last, before:after] / scale
    s2, one = np.full_like(scale, variances[0]), np.float32(1)
    pilot, leverage = noisy, np.ones_like(noisy)
    # Only the first `count` planes are Tikhonov-filtered: of a colour image, only its luminance.
    count = 1 if noisy.shape[:2] == (3, 1) else len(noisy)
    smooth = noisy[:count]
    left_over, share = leverage[:count], np.float32(0)  # no Tikhonov estimate yet: share 0
    kept = Estimates()

    def join(made: tuple[Planes, Planes], number: int, margin: int) -> None:
        """Fill in the rows that the strip above computed; keep those that the strip below needs."""
        ends = [
            slice(max(0, row - margin) - first, min(height, row + margin) - first)
            for row in (top, bottom)
        ]
        if carried:
            for values, above in zip(made, carried[number], strict=True):
                values[:, :, ends[0]] = above
        if bottom < height:
            kept.append((made[0][:, :, ends[1]].copy(), made[1][:, :, ends[1]].copy()))

    for number, settings in enumerate(plan.passes):
        margin -= settings.reach
        # Compute only rows that later passes need and the strip above did not compute.
        upper = top + margin if carried else top - margin
        needed = ((upper, bottom + margin), (left - margin, right + margin))
        piece = Piece(((first, last), (before, after)), (height, width), needed)
        if settings.soft:
            with part(number, len(plan.passes)):
                smooth, left_over = run_pass(
                    noisy[:count], pilot[0], s2[:count], settings, piece, pilot=pilot[:count]
                )
            share = SMOOTH_IN_PILOT
            join((smooth, left_over), number, margin)
            continue
        leverage[:count] = share * left_over + (one - share) * leverage[:count]
        mixed = pilot.copy()
        mixed[:count] = share * smooth + (one - share) * pilot[:count]
        guide, left_in_guide = mixed[0].copy(), variances[0] * leverage[0]
        added = np.subtract(noisy, mixed)
        t = np.full_like(s2, settings.back if number else one)
        if share:
            t[count:] = BACK_IN_COLOURS
        added *= t
        added += mixed
        pilot = mixed = added
        if number + 1 == len(plan.passes):
            noisy = left_over = added
        leverage *= one - t * t
        leverage += t * t
        leverage *= s2
        with part(number, len(plan.passes)):
            pilot, leverage = run_pass(
                added, guide, leverage, settings, piece, guide_variance=left_in_guide
            )
        join((pilot, leverage), number, margin)
    inner = np.s_[:, :, top - first : bottom - first, left - before : right - before]
    share = np.float32(plan.smooth)
    estimate: Planes = pilot[inner].copy()
    estimate[:count] = share * smooth[inner] + (one - share) * estimate[:count]
    return estimate * scale, kept


def survey(
    planes: Planes, sigma: float, settings: Pass, surveyed: int = SURVEYED
) -> tuple[float, float]:
    """Return the ratio of actual to given noise variance, and the noise left by the first pass.

    The ratio is 1 (sigma is right or too high) to 1.25, measured in the quietest of about
    `surveyed` groups, in the first pass over the first of planes (c, 1, h, w). The deviation of the
    noise left is given as a share of sigma.
    """
    _, _, height, width = planes.shape
    step = max(settings.size, int(np.sqrt(height * width / surveyed)))
    settings = replace(settings, stride=step, excess=MOST_EXCESS)
    ratios, leverage = residual_ratios(planes, sigma**2, settings)
    excess = 1.0 + STEEPNESS * (float(np.quantile(ratios, QUIET)) - QUIET_RATIO)
    return min(max(excess, 1.0), MOST_EXCESS), leverage**0.5
