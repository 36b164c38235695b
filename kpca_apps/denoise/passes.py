"""From one group to an image: kernel PCA on groups of similar patches, in three to five passes.

1. X, D1 = truncation of Y.
2. Q, D2 = truncation of X + t (Y - X), whose noise variance is s2 (t^2 + (1 - t^2) D1), t = .3:
   iterative regularisation brings detail the first pass lost above the edge (Osher et al. 2005).
   Left out when it is to be fast: Q = X.
3. B, D3 = Tikhonov filter of Y, learned on the pilot Q.
4. A = .8 B + .2 Q, and Q becomes truncation of A + t (Y - A), in small patches: what they are
   matched in is nearly clean by now.
5. The same again.

The result is b B + (1 - b) Q, b = .2, or up to .35 where noise is faint. Y is the noisy image, s2
the variance of its noise and D s2 the variance of what is left of it: t^2 + (1 - t^2) D is that of
t Y + (1 - t) X when X is a projection of Y. What a cut is: `kpca_apps.denoise.group`.

The same is done at half the scale, and so on, for the low frequencies of photographs: means of
2 x 2 pixels hold half the noise, and a patch of theirs shows four times the area. But the fine
estimate errs otherwise, so the two are averaged: E + (1/2) U G (C - H E), where E and C are the
estimates at the scale of the image and at half of it, H takes the means, G blurs and U enlarges
(Facciolo et al. 2017).

Bands of references are worked on in any order and summed in the order of the image, and a piece of
an image is worked on as if the rest were there: the same references, the same bands, the same
draws. So what a pixel gets does not depend on where the image was cut, nor on the number of
threads, to the last bit.

References
----------
Osher, Burger, Goldfarb, Xu & Yin 2005, Multiscale Model. Simul. 4(2).
Herbreteau & Kervrann 2022, SIAM J. Imaging Sci. 15(4) (the linear limit of pass 3).
Facciolo, Pierazzo & Morel 2017, SIAM J. Imaging Sci. 10(3) (conservative scale recomposition).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from kpca_apps.denoise._compiled import LANES, RADIUS, denoise_band, rbf_rows, survey_band
from kpca_apps.denoise._compiled_pages import denoise_page_band
from kpca_apps.denoise._small_matrices import padded_size
from kpca_apps.denoise.options import Options, Window
from kpca_apps.denoise.progress import LISTENER
from kpca_apps.system.blas import one_blas_thread

Planes = NDArray[np.float32]
Rows = NDArray[np.int64]

# Noise levels, and one over the bandwidth of the RBF kernel there, in mean squared distances of a
# group's patches. Measured on text made for it, in dB over the linear kernel: at 12, 1.0; at 25, .5
# at bandwidths of 3 to 4 and .3 at 8; at 50, -.1 at 4 and 0 at 8. On photographs, at 25: -.2 at 4,
# and 0 from 64.
NARROWNESS = ((25.0, 50.0), (0.25, 0.0))

# Noise levels the tables below were tuned at, on the scale 0..255; interpolated between them and
# held outside.
SIGMAS = (15.0, 25.0, 50.0)
# Pixels a side of a patch, patches a group, and the `tie` of `PassSettings` at those levels.
PASSES = {
    "first": ((6, 7, 8), (40, 48, 64), (1.1, 1.1, 1.1)),
    "second": ((5, 6, 7), (40, 48, 64), (8.0, 6.0, 4.0)),
    "soft": ((7, 8, 8), (60, 90, 120), (0.0, 0.0, 0.0)),
    "last": ((4, 5, 6), (28, 36, 48), (1.1, 1.1, 1.1)),
}
# b: faint noise leaves fine texture to the Tikhonov filter, which projection on few components
# loses.
SMOOTH = (0.35, 0.2, 0.2)
# The passes of each preset, and the pixels between their references.
STRIDES = {
    "fast": (("first", 6), ("soft", 7), ("last", 4)),
    "balanced": (("first", 5), ("second", 5), ("soft", 5), ("last", 3)),
    "high": (("first", 4), ("second", 4), ("soft", 4), ("last", 3), ("last", 3)),
}

ADDED_BACK = np.float32(0.3)  # t: the share of the residual that is added back
# Chosen on 16 crops of BSDS500 (`development` in tests/benchmarks/held_out.py): over .6 it gains
# .006 dB at 15, .013 at 25 and .022 at 50.
SMOOTH_IN_PILOT = np.float32(0.8)  # weight of B in A

STRIP_SAMPLES = 4_000_000  # pixels times channels worked on at once, margins not counted: 270 MB
GRID_ROWS_A_BAND = 6
MARGINS = ((0, 0), (RADIUS, LANES))  # beside the image matched in: zeros, never chosen

SURVEYED = 1600  # groups looked at, about, to see whether the noise level given is too low
QUIET = 0.05  # share of groups that hold little but noise, in all but the busiest images
# Residual variance of those groups over the noise variance when that is right; patches that look
# alike share some of their noise, so less than 1. Measured: .84 to .89 on noise alone, .85 to .90
# on photographs at sigma 15 to 50, .97 to .99 with sigma given 10 % too low.
QUIET_RATIO = 0.905
# Matching hides most of an excess: this is what brings 10 % in sigma back to 20 % in variance.
STEEPNESS = 2.5
MOST_EXCESS = 1.25  # noise variance over the one given that is allowed for: sigma 12 % too low

BLUR = 1.0  # deviation of G in pixels of the half scale: what is finer there has been aliased
HALF_SHARE = np.float32(0.5)
BLURRED = 6  # pixels on either side at half the scale that decide how low frequencies change
AT_HALF = 0.25  # share of the work that is left for half the scale and below
SMALLEST = 16  # pixels a side of the smallest scale, at the least: two patches

FAINTEST = 0.02  # times the strongest noise of an image: no plane of it is taken to have less
NEGLIGIBLE = 1e-3  # noise, of 255: far below what rounding does, and near that of float32

KEPT_NOWHERE = (
    "The compiled code can be kept nowhere, so every run compiles it again: set NUMBA_CACHE_DIR to "
    "a folder that can be written to."
)


@dataclass(frozen=True)
class PassSettings:
    """How one pass groups patches, and whether it filters or truncates."""

    size: int  # pixels a side
    group: int  # patches
    tie: float  # candidates nearer than so many times what noise explains are drawn at random
    stride: int  # pixels between references
    soft: bool = False

    def shape(self, image: tuple[int, ...]) -> tuple[int, int]:
        """Return height and width of the patches of an image, which may be smaller than they."""
        return min(self.size, image[0]), min(self.size, image[1])


@dataclass(frozen=True)
class Plan:
    """What is done at one noise level."""

    passes: tuple[PassSettings, ...]
    smooth: float  # b, the weight of the Tikhonov filter
    bandwidth: float | None  # of the RBF kernel; None for an infinite one


def plan_for(sigma: float, options: Options) -> Plan:
    """Choose patch sizes, group sizes, grids and kernel for a noise level on the scale 0..255.

    >>> plan_for(25.0, Options()).passes[0]
    PassSettings(size=7, group=48, tie=1.1, stride=5, soft=False)
    """
    passes = []
    for name, stride in STRIDES[options.quality]:
        size, group, tie = (float(np.interp(sigma, SIGMAS, row)) for row in PASSES[name])
        # Text and drawings want smaller patches.
        pixels = round(size) - (options.content == "text")
        passes.append(
            PassSettings(pixels, round(group), round(tie, 3), min(stride, pixels), name == "soft")
        )
    narrowness = 0.0 if options.is_linear else float(np.interp(sigma, *NARROWNESS))
    bandwidth = options.bandwidth or (1.0 / narrowness if narrowness else None)
    return Plan(tuple(passes), float(np.interp(sigma, SIGMAS, SMOOTH)), bandwidth)


@one_blas_thread()
def denoise_planes(noisy: Planes, sigmas: NDArray[np.floating], options: Options) -> Planes:
    """Remove white Gaussian noise from planes of one scene, matched in the first of them.

    They (c, h, w) are on the scale 0..255, not clipped, luminance first, which shows edges with
    less noise. Those without noise, or whose factor of `options` is 0, are returned as they are.
    """
    factors = np.array([options.luma] + [options.chroma] * (len(noisy) - 1))
    levels = np.asarray(sigmas, np.float64) * factors
    levels[levels < NEGLIGIBLE] = 0.0
    if not levels.any():
        return noisy.copy()
    untouched = levels == 0
    levels = np.maximum(levels, FAINTEST * levels.max()).astype(np.float32)
    planes, wanted = np.ascontiguousarray(noisy, np.float32), options.wanted
    wanted = wanted or ((0, planes.shape[1]), (0, planes.shape[2]))
    # Of the finest scale, for at others detail passes for noise.
    first = plan_for(float(levels[0]), options).passes[0]
    excess = noise_excess(planes[0], float(levels[0]), first)
    estimates: list[Planes] = []
    done = 0.0
    while True:
        plan, (height, width) = plan_for(float(levels[0]), options), planes.shape[1:]
        # Text has nothing of the half scale.
        halves = options.content == "photo" and min(height, width) >= 2 * SMALLEST
        if halves:
            (top, bottom), (left, right) = wanted
            top, left = max(0, top // 2 - BLURRED), max(0, left // 2 - BLURRED)
            bottom = min(height // 2, bottom // 2 + BLURRED)
            right = min(width // 2, right // 2 + BLURRED)
            # With an odd last row or column, which has no half.
            wanted = (
                (2 * top, height if bottom == height // 2 else 2 * bottom),
                (2 * left, width if right == width // 2 else 2 * right),
            )
        share = (1 - done) * (1 - AT_HALF) if halves else 1 - done
        estimates.append(
            _denoise_scale(planes, levels**2, plan, wanted, excess, options.n_jobs, (done, share))
        )
        if not halves:
            break
        done += share
        planes, levels = halve(planes), np.float32(0.5) * levels
        wanted = ((top, bottom), (left, right))
    cleaned = estimates.pop()
    while estimates:
        average_low_frequencies(estimates[-1], cleaned)
        cleaned = estimates.pop()
    cleaned[untouched] = noisy[untouched]
    return cleaned


def _denoise_scale(
    planes: Planes,
    variances: Planes,
    plan: Plan,
    wanted: Window,
    excess: float,
    n_jobs: int | None,
    work: tuple[float, float],
) -> Planes:
    """Run the passes over a window, in strips of rows with a margin that is cut off again.

    `work` is the share of all work that is done before, and that of this scale.
    """
    channels, _, width = planes.shape
    margin = sum(map(_reach, plan.passes))
    (start, stop), (left, right) = wanted
    samples = channels * (min(width, right + margin) - max(0, left - margin))
    # At least two margins, so that in very wide images too more is kept than done twice.
    rows = max(2 * margin, STRIP_SAMPLES // samples)
    # Of one height, for the last is as large as the others in memory.
    rows = -(-(stop - start) // -(-(stop - start) // rows))
    result = planes.copy()
    carried: list[tuple[Planes, Planes]] = []
    for top in range(start, stop, rows):
        bottom = min(top + rows, stop)
        done = work[0] + work[1] * (top - start) / (stop - start)
        share = work[1] * (bottom - top) / (stop - start)
        inner = ((top, bottom), (left, right))
        result[:, top:bottom, left:right], carried = _denoise_strip(
            planes, variances, plan, inner, excess, n_jobs, (done, share), carried
        )
    return result


def _reach(settings: PassSettings) -> int:
    """Return how many pixels on either side decide what a pass makes of one.

    The patches over a pixel belong to references up to a radius away, and those compare with
    patches a radius further on.
    """
    return 2 * RADIUS + settings.size


def _denoise_strip(
    planes: Planes,
    variances: Planes,
    plan: Plan,
    wanted: Window,
    excess: float,
    n_jobs: int | None,
    work: tuple[float, float],
    carried: list[tuple[Planes, Planes]],
) -> tuple[Planes, list[tuple[Planes, Planes]]]:
    """Run the passes over a window with a margin; return the window, which all of them reach.

    Returned too is what each pass made of the rows around the lower end, which the strip below
    needs again; `carried` is that of the strip above, or nothing. What is not needed any more is
    freed at once: these arrays take most of the memory.
    """
    (top, bottom), (left, right) = wanted
    height, width = planes.shape[1:]
    margin = sum(map(_reach, plan.passes))
    first, last = max(0, top - margin), min(height, bottom + margin)
    before, after = max(0, left - margin), min(width, right + margin)
    noisy = np.ascontiguousarray(planes[:, first:last, before:after])
    piece, whole = ((first, last), (before, after)), (height, width)
    s2, one = variances[:, None, None], np.float32(1)
    pilot, leverage, t = noisy, np.ones_like(noisy), one
    smooth, left_over, share = noisy, leverage, np.float32(0)  # B, and its part in A: none yet
    each = work[1] / len(plan.passes)
    kept: list[tuple[Planes, Planes]] = []

    def join(made: tuple[Planes, Planes], number: int, margin: int) -> None:
        """Fill in what the strip above made of its last rows, and keep what this one did."""
        ends = [
            slice(max(0, row - margin) - first, min(height, row + margin) - first)
            for row in (top, bottom)
        ]
        if carried:
            for values, above in zip(made, carried[number], strict=True):
                values[:, ends[0]] = above
        kept.append((made[0][:, ends[1]].copy(), made[1][:, ends[1]].copy()))

    for number, settings in enumerate(plan.passes):
        margin -= _reach(settings)
        # What later passes reach, and no more; what the strip above has is not done again.
        upper = top + margin if carried else top - margin
        needed = ((upper, bottom + margin), (left - margin, right + margin))
        part = (work[0] + number * each, each)
        if settings.soft:
            smooth, left_over = run_pass(
                noisy, pilot[0], s2, settings, piece, whole,
                pilot=pilot, wanted=needed, n_jobs=n_jobs, work=part,
            )  # fmt: skip
            share = SMOOTH_IN_PILOT
            join((smooth, left_over), number, margin)
            continue
        leverage = share * left_over + (one - share) * leverage
        mixed = share * smooth + (one - share) * pilot
        guide, left_in_guide = mixed[0].copy(), variances[0] * leverage[0]
        added = np.subtract(noisy, mixed)
        added *= t
        added += mixed
        pilot = mixed = added
        if number + 1 == len(plan.passes):
            noisy = left_over = added
        leverage *= one - t * t
        leverage += t * t
        leverage *= s2
        pilot, leverage = run_pass(
            added, guide, leverage, settings, piece, whole,
            left=left_in_guide, wanted=needed, bandwidth=plan.bandwidth, excess=excess,
            n_jobs=n_jobs, work=part,
        )  # fmt: skip
        join((pilot, leverage), number, margin)
        t = ADDED_BACK
    inner = np.s_[:, top - first : bottom - first, left - before : right - before]
    share = np.float32(plan.smooth)
    estimate: Planes = share * smooth[inner] + (one - share) * pilot[inner]
    return estimate, kept


def run_pass(
    planes: Planes,
    guide: Planes,
    variance: Planes,
    settings: PassSettings,
    piece: Window,
    whole: tuple[int, ...],
    *,
    pilot: Planes | None = None,
    left: Planes | None = None,
    wanted: Window | None = None,
    bandwidth: float | None = None,
    excess: float = 1.0,
    n_jobs: int | None = None,
    work: tuple[float, float] = (0.0, 1.0),
) -> tuple[Planes, Planes]:
    """Run one pass over a piece of an image; return the estimate and its leverage.

    `planes` (c, h, w) are denoised in groups matched in `guide` (h, w), and lie at `piece` of the
    `whole` image, of which height and width are given. `variance` (c, h, w) is that of their noise.
    With a `pilot` (c, h, w), a first estimate of the planes, a Tikhonov filter is used, and
    `variance` one value a plane, (c, 1, 1). For truncation `left` (h, w) is the variance of the
    noise in the guide, and `excess` is from `noise_excess`. Outside the part of the whole that is
    `wanted` the estimate may hold anything. The leverage is the variance of the estimate over the
    noise's. `work` is the share of all work that is done before, and that of this pass.
    """
    (first, _), (first_column, _) = piece
    shape = tall, wide = settings.shape(whole)
    (top_most, lowest), (left_most, right_most) = wanted or piece
    window = np.outer(np.kaiser(tall, 2.0), np.kaiser(wide, 2.0)).astype(np.float32)
    tie = np.zeros((1, 1), np.float32)
    if left is not None:
        variance = patch_means(variance, shape)
        tie = patch_means(left, shape) * np.float32(settings.tie * 2 * window.size)
    height, width = planes.shape[1:]

    def within(corners: Rows, begin: int, length: int, size: int, low: int, high: int) -> Rows:
        """Return corners in the piece whose groups reach what is wanted."""
        inside = (corners >= begin) & (corners + size <= begin + length)
        inside &= (corners + size + RADIUS > low) & (corners - RADIUS < high)
        return corners[inside] - begin

    columns = patch_grid(whole[1], wide, settings.stride)
    columns = within(columns, first_column, width, wide, left_most, right_most)
    # The whole image's bands of references, as far as they are needed, and the rows each can reach.
    grid, bands = patch_grid(whole[0], tall, settings.stride), []
    for start in range(0, len(grid), GRID_ROWS_A_BAND):
        rows = within(grid[start : start + GRID_ROWS_A_BAND], first, height, tall, top_most, lowest)
        if len(rows):
            top, end = max(0, rows[0] - RADIUS), min(height, rows[-1] + tall + RADIUS)
            bands.append((rows, int(top), int(end - top)))
    padded, points = np.pad(guide, MARGINS), planes if pilot is None else pilot
    totals, weights, leverages = (np.zeros(planes.shape, np.float32) for _ in range(3))
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
    parts = parallel(
        delayed(denoise_band)(
            padded, points, planes, variance, tie, window, settings.group, pilot is not None,
            bandwidth, np.float32(excess), rows, columns, (first, first_column), top, high,
        )
        for rows, top, high in bands
    )  # fmt: skip
    listener = LISTENER.get()
    for number, ((_, top, high), part) in enumerate(zip(bands, parts, strict=True), 1):
        for sums, its_own in zip(
            (totals, weights, leverages), np.moveaxis(part, 1, 0), strict=True
        ):
            sums[:, top : top + high] += its_own
        if listener is not None:
            listener(min(work[0] + work[1] * number / len(bands), 1.0))
    # Pixels no patch covers stay as they are.
    bare = weights == 0
    weights[bare] = np.float32(1)
    totals /= weights
    leverages /= weights
    totals[bare] = planes[bare]
    leverages[bare] = np.float32(1)
    return totals, leverages


def patch_grid(length: int, size: int, stride: int) -> Rows:
    """Return the corners of patches along one side, the last one always in.

    >>> patch_grid(10, 4, 4)
    array([0, 4, 6])
    """
    corners = np.arange(0, length - size + 1, stride)
    if corners[-1] != length - size:
        corners = np.append(corners, length - size)
    return corners


def patch_means(maps: Planes, shape: tuple[int, ...]) -> Planes:
    """Return the means of maps (..., h, w) over the patch at each position, by direct sums.

    >>> patch_means(np.array([[0, 2, 4]], np.float32), (1, 2))
    array([[1., 3.]], dtype=float32)
    """
    tall, wide = shape
    down, across = maps.shape[-2] - tall + 1, maps.shape[-1] - wide + 1
    columns = maps[..., :down, :].copy()
    for i in range(1, tall):
        columns += maps[..., i : i + down, :]
    means = columns[..., :across].copy()
    for j in range(1, wide):
        means += columns[..., j : j + across]
    means /= np.float32(tall * wide)
    return means


def noise_excess(plane: Planes, sigma: float, settings: PassSettings) -> float:
    """Return by how much the noise variance exceeds what it is said to be, at the least.

    From 1, where sigma is right or too high, to 1.25, as quiet groups of the first pass show it.
    """
    tall, wide = (min(settings.size, side) for side in plane.shape)
    step = max(settings.size, int(np.sqrt(plane.size / SURVEYED)))
    variance = np.float32(sigma**2)
    tie = np.float32(settings.tie * 2 * tall * wide) * variance
    ratios = survey_band(
        np.pad(plane, MARGINS), plane, variance, tie, (tall, wide), settings.group,
        np.float32(MOST_EXCESS),
        patch_grid(plane.shape[0], tall, step), patch_grid(plane.shape[1], wide, step),
    )  # fmt: skip
    excess = 1.0 + STEEPNESS * (float(np.quantile(ratios, QUIET)) - QUIET_RATIO)
    return min(max(excess, 1.0), MOST_EXCESS)


def halve(planes: Planes) -> Planes:
    """Return means of 2 x 2 pixels, without an odd last row or column; white noise stays white."""
    height, width = (side // 2 * 2 for side in planes.shape[-2:])
    rows = planes[..., 0:height:2, :width] + planes[..., 1:height:2, :width]
    means: Planes = np.float32(0.25) * (rows[..., 0::2] + rows[..., 1::2])
    return means


def average_low_frequencies(fine: Planes, coarse: Planes) -> None:
    """Move the low frequencies of an estimate, in place, halfway to those at half the scale."""
    near, quarter = np.float32(0.75), np.float32(0.25)
    for plane, better in zip(fine, coarse, strict=True):
        change = gaussian_filter(better - halve(plane), BLUR)
        # Enlarged linearly; what is outside is as the nearest inside.
        for length in plane.shape:
            # Twice as many rows, each at a quarter of the way from one old row to the next.
            padded = np.pad(change, ((1, 2), (0, 0)), mode="edge")
            rows = np.empty((2 * len(change) + 2, change.shape[1]), np.float32)
            rows[0::2] = near * padded[1:-1] + quarter * padded[:-2]
            rows[1::2] = near * padded[1:-1] + quarter * padded[2:]
            change = rows[:length].T
        plane += HALF_SHARE * change


# Functions as numba has wrapped them, of which mypy sees the plain ones: a small one, the one that
# is compiled last, and one that is compiled for a kernel of finite width alone.
_FIRST: Any = padded_size
_LAST: Any = denoise_band
_FINITE: Any = rbf_rows


def is_kept() -> bool:
    """Whether compiled code is kept for later runs and for worker processes."""
    return bool(_LAST.stats.cache_path)


def warm_up(announce: Callable[[], None], *, is_linear: bool = True, stack: bool = False) -> None:
    """Load the inner loops, or announce that they are compiled, which takes a minute, and do so.

    Done before work starts, they are compiled once for a machine, and not in every worker.
    """
    needed = [_LAST, *([] if is_linear else [_FINITE]), *([denoise_page_band] if stack else [])]
    if not all(map(_is_compiled, needed)):
        announce()
    options = Options(quality="fast", kernel="linear" if is_linear else "rbf")
    denoise_planes(np.zeros((1, 24, 24), np.float32), np.array([10.0]), options)
    if stack:
        from kpca_apps.denoise.stack import denoise_pages  # which imports this module

        denoise_pages(np.zeros((1, 2, 24, 24), np.float32), np.array([10.0]), options)


def _is_compiled(function: Any) -> bool:
    """Whether a function is compiled, by this compiler.

    The index of a function may be there and be out of date, as after an upgrade of the compiler;
    a small function shows it, for it is compiled here if so.
    """
    if function.signatures:
        return True
    if not is_kept():
        return False
    # Numba's own reading of its index: empty where the source is another one. Dates of files do
    # not tell, for they change with every installation.
    fresh = bool(function._cache._cache_file._load_index())
    _FIRST(1)
    return fresh and not _FIRST.stats.cache_misses
